"""``metrics.jsonl`` is read in one place, whatever a kill left at its end."""

import pytest

from recipe.hint.errors import DataError
from recipe.hint.report.runs import accuracies, read_rows


def test_rows_come_in_order_and_half_a_last_line_is_none(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step": 1}\n{"step": 2, "ti')
    assert [row["step"] for row in read_rows(path)] == [0, 1]


def test_a_run_that_has_not_begun_has_no_rows(tmp_path):
    assert list(read_rows(tmp_path / "metrics.jsonl")) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "metrics.jsonl: line 2 is not JSON"), ("[]", "line 2 holds a list, expected an object")],
)
def test_a_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        list(read_rows(path))


def test_accuracies_are_those_of_a_validation_by_source():
    row = {
        "step": 4,
        "val-core/tiny/hard/acc/mean@4": 0.25,
        "val-core/gsm8k/acc/mean@4": 0.5,
        "val-core/gsm8k/acc/best@4/mean": 0.9,
        "val-aux/gsm8k/reward/mean@4": 0.1,
        "critic/score/mean": 0.3,
    }
    assert accuracies(row) == {"gsm8k": 0.5, "tiny/hard": 0.25}
    assert accuracies({"step": 5, "critic/score/mean": 0.3}) == {}
