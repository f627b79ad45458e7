"""Results follow from the response files alone, and are written whole or not at all."""

import json
import random

import pytest
from ends import code_of
from response_rows import rows, write_rows

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.evaluation.responses import read_responses
from recipe.study.evaluation.results import evaluation_table, read_results, recompute, write_results
from recipe.study.evaluation.tables import percent

IDS = {"aime24": ["a", "b"], "math500": ["a", "b", "c"]}


def lines_of(benchmark):
    verdicts = {"aime24": {"a": "+-", "b": "--"}, "math500": {"a": "++", "b": "-t", "c": "nc"}}
    return rows(benchmark, **verdicts[benchmark])


def test_a_percentage_does_not_depend_on_the_order_of_a_sum():
    """A half of the last digit, as a mean of 2,000 responses often is, goes away from 0."""
    for tenths in range(1000):
        half = (tenths + 0.5) / 1000
        for sign in (1, -1):
            wanted = f"{sign * (tenths + 1) / 10:.1f}"
            assert {percent(sign * half + bit) for bit in (-1e-14, 0, 1e-14)} == {wanted}
    assert percent(-0.0001) == "0.0" and percent(-0.0001, sign=True) == "+0.0"


def write(folder, ids=IDS, num_responses=2):
    return write_results(
        folder,
        ids,
        model="outputs/base",
        sampling={"temperature": 0.6, "seed": 1},
        num_responses=num_responses,
        wall_s=dict.fromkeys(ids, 90.0),
    )


@pytest.fixture
def run(tmp_path):
    for name in IDS:
        write_rows(tmp_path / "evaluation", name, lines_of(name))
    write(tmp_path / "evaluation")
    return tmp_path


def test_the_results_hold_every_number_of_the_table(run):
    stored = json.loads((run / "evaluation/results.json").read_text())
    assert {name: stored[name] for name in ("format", "model", "num_samples")} == {
        "format": 1,
        "model": "outputs/base",
        "num_samples": 2,
    }
    maths = stored["benchmarks"]["math500"]
    assert maths["avg"] == pytest.approx(2 / 6)
    assert (maths["problems"], maths["samples"], maths["wall_s"]) == (3, 6, 90.0)
    assert (maths["pass@1"], maths["pass@2"]) == pytest.approx((1 / 3, 1 / 3))
    # The timeout leaves "2" and nothing: a tie of two that are wrong.
    assert maths["maj"] == pytest.approx(1 / 3)
    assert (maths["timeouts"], maths["errors"]) == (1, 0)
    assert (maths["truncated"], maths["no_answer"], maths["undecided"]) == (1 / 6, 2 / 6, 1 / 6)
    assert stored["macro"]["out_of_distribution"] == {
        "members": {},
        "missing": ["gpqa_diamond", "mmlu_pro"],
        "problems": 0,
    }


def test_the_table_shows_them_in_percent(run):
    table = (run / "evaluation/table.md").read_text().splitlines()
    assert [cell.strip() for cell in table[0].strip("|").split("|")] == [
        "benchmark", "problems", "avg@2", "95 %", "pass@2", "maj@2", "truncated", "no answer",
        "timeouts", "errors", "tokens", "minutes",
    ]  # fmt: skip
    cells = [cell.strip() for cell in table[3].strip("|").split("|")]
    assert cells[:3] == ["math500", "3", "33.3"]
    assert cells[4:] == ["33.3", "33.3", "16.7", "33.3", "1", "0", "10", "1.5"]
    assert len({line.count("|") for line in table[:4]}) == 1
    assert table[5:] == [
        "math500: the verifier failed on 16.7 % of the samples; these count as 0, and avg@2 "
        "would be 50.0 if all were right.",
        "No in-distribution average: missing aime25, amc23, minerva, olympiadbench.",
        "No out-of-distribution average: missing gpqa_diamond, mmlu_pro.",
    ]


def test_a_complete_group_gets_a_line(tmp_path):
    ids = {"gpqa_diamond": ["a"], "mmlu_pro": ["a"]}
    for name, verdict in (("gpqa_diamond", "++"), ("mmlu_pro", "+-")):
        write_rows(tmp_path, name, rows(name, a=verdict))
    cells = evaluation_table(write(tmp_path, ids))[4].strip("|").split("|")
    assert [cell.strip() for cell in cells][:3] == ["out-of-distribution average", "2", "75.0"]


def test_the_order_of_the_lines_changes_nothing(run):
    before = (run / "evaluation/results.json").read_bytes()
    lines = lines_of("math500")
    random.Random(1).shuffle(lines)
    write_rows(run / "evaluation", "math500", lines)
    write(run / "evaluation")
    assert (run / "evaluation/results.json").read_bytes() == before


def test_nothing_is_written_while_a_response_is_missing(tmp_path):
    write_rows(tmp_path, "aime24", lines_of("aime24"))
    write_rows(tmp_path, "math500", lines_of("math500")[:-1])
    with pytest.raises(DataError, match="math500: responses that are missing .* such as 'c'"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]


def test_responses_to_a_benchmark_that_was_not_asked_for_are_refused(run):
    with pytest.raises(DataError, match=r"holds responses of math500, expected only aime24"):
        write(run / "evaluation", {"aime24": ["a", "b"]})


def test_a_benchmark_may_be_spread_over_files_and_have_a_slash_in_its_name(tmp_path):
    lines = rows("tiny/hard", a="+-", b="--")
    write_rows(tmp_path, "one", lines[:3])
    write_rows(tmp_path, "two", lines[3:])
    assert write(tmp_path, {"tiny/hard": ["a", "b"]})["benchmarks"]["tiny/hard"]["avg"] == 0.25


def test_a_half_written_last_line_is_an_error_that_names_the_line(run):
    path = run / "evaluation/samples/math500.jsonl"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"math500.jsonl: line 6 is cut off"):
        recompute(run / "evaluation")


def test_a_folder_without_responses_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no samples/\*.jsonl"):
        read_responses(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1}'])
def test_results_of_another_format_are_refused(run, text):
    (run / "evaluation/results.json").write_text(text)
    with pytest.raises(DataError, match="results.json is not (JSON|of format 1)"):
        read_results(run / "evaluation")


def test_recomputing_gives_the_same_numbers(run, capsys):
    assert recompute(run / "evaluation")[1] == []
    assert main(["evaluation", str(run)]) == 0
    assert "equal: every number" in capsys.readouterr().out


def test_a_number_that_was_changed_is_found(run, capsys):
    path = run / "evaluation/results.json"
    stored = json.loads(path.read_text())
    stored["benchmarks"]["aime24"]["avg"] = 0.5
    stored["benchmarks"]["math500"]["reasons"]["correct"] = 3
    path.write_text(json.dumps(stored))
    assert main(["evaluation", str(run)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  benchmarks.aime24.avg: stored 0.5, from the samples 0.25",
        "  benchmarks.math500.reasons.correct: stored 3, from the samples 2",
    ]


def test_a_response_that_was_changed_is_found(run):
    lines = lines_of("aime24")
    lines[0] |= {"score": 0.0, "reason": "wrong"}
    write_rows(run / "evaluation", "aime24", lines)
    differences = recompute(run / "evaluation")[1]
    assert "benchmarks.aime24.avg: stored 0.25, from the samples 0.0" in differences


def test_a_benchmark_whose_responses_are_gone_is_found(run):
    (run / "evaluation/samples/aime24.jsonl").unlink()
    differences = recompute(run / "evaluation")[1]
    assert any("benchmarks.aime24" in line and "nothing" in line for line in differences)


def test_a_table_that_was_changed_is_found(run):
    path = run / "evaluation/table.md"
    path.write_text(path.read_text().replace("33.3", "43.3"))
    expected = ["table.md does not show the numbers of results.json"]
    assert recompute(run / "evaluation")[1] == expected
    path.unlink()
    assert recompute(run / "evaluation")[1] == expected


def test_an_unfinished_evaluation_is_an_error_in_one_line(tmp_path, capsys):
    assert code_of(main, ["evaluation", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    assert "results.json is missing: no finished evaluation is there" in error
