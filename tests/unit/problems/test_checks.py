"""Findings count rows and name their places."""

from pathlib import Path

import pytest

from recipe.hint.errors import DataError
from recipe.hint.problems import checks
from recipe.hint.problems.columns import Labels, make_row, write_rows
from recipe.hint.problems.prepare import Prepared
from recipe.hint.schema import Verdict

TINY = str(Path(__file__).parents[3] / "data" / "tiny" / "base")


def prepared(*rows):
    return Prepared("in.jsonl", rows, tuple(f"line {n}" for n, _ in enumerate(rows, 1)))


class FakePool:
    """Gives the reason that stands for each answer; anything else is wrong."""

    timeout_s = 10.0

    def __init__(self, reasons):
        self.reasons = reasons
        self.asked = []

    def grade_many_blocking(self, items, ids=None):
        self.asked += items
        return [Verdict(0.0, self.reasons.get(item.answer, "wrong")) for item in items]


def test_missing_solutions_are_a_note_with_places():
    (found,) = checks.missing_solutions(prepared(make_row("a", "1"), make_row("b", "1")))
    assert (found.rows, found.is_note) == ((0, 1), True)
    assert found.line("in.jsonl") == (
        "note: in.jsonl: 2 rows, column `solution`: empty, so these problems get no self-written"
        " hint (line 1, line 2)"
    )


def test_a_problem_repeated_under_another_id_is_a_warning():
    rows = [make_row(text, "1", row_id=text) for text in ("What is x?", "y", "what  is X")]
    (found,) = checks.repeated_problems(prepared(*rows))
    assert found.line("in.jsonl") == (
        "warning: in.jsonl: 1 row, column `problem`: the same words as an earlier row"
        " (line 3 = line 1)"
    )


def test_answers_that_are_not_read_or_too_slow_are_told_apart():
    rows = [make_row(str(n), answer) for n, answer in enumerate(("2", "t(0,4]", "9^9^9"))]
    rows.append(make_row("Even?", "B", labels=Labels("x", "test", "choice")))
    pool = FakePool({"t(0,4]": "error", "9^9^9": "timeout"})
    unread, slow = checks.unreadable_answers(prepared(*rows), pool)
    assert (unread.rows, unread.places) == ((1,), ("line 2: 't(0,4]'",))
    assert (slow.rows, slow.what) == ((2,), "not read within 10 s, so no response can be graded")
    assert [item.answer for item in pool.asked] == ["2", "t(0,4]", "9^9^9"]  # the choice is not


def test_prompts_above_the_limit_are_named_with_their_length():
    tokenizer = checks.load_tokenizer(TINY)
    rows = prepared(make_row("a", "1"), make_row("b" * 100, "1"))
    assert checks.long_prompts(rows, tokenizer, 1000) == []
    (found,) = checks.long_prompts(rows, tokenizer, 50)
    assert found.rows == (1,)  # letters are bytes, and bytes are tokens, to this tokenizer
    assert found.places[0].startswith("line 2: 1")
    assert found.what == "longer than 50 tokens"


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be loaded"):
        checks.load_tokenizer(str(tmp_path))


def test_shared_problems_are_named_in_pairs(tmp_path):
    text = "How many of the first hundred whole numbers can be divided by seven?"
    write_rows([make_row(text, "14", row_id="bench/0")], tmp_path / "bench.parquet")
    rows = prepared(make_row("x", "1"), make_row(text.upper(), "14"))
    (found,) = checks.overlaps(rows, [tmp_path / "bench.parquet"])
    assert (found.rows, found.places) == ((1,), ("line 2 = bench/0 (100%)",))
    assert "text shared with" in found.line("in.jsonl")


def test_long_lists_are_cut_and_can_be_had_whole():
    found = checks.Finding("problem", "x", tuple(range(7)), tuple("abcdefg"))
    assert found.line("p").endswith("(a, b, c, d, e and 2 more)")
    assert found.line("p", is_listed=True).endswith("(a, b, c, d, e, f, g)")
