"""Every number of a table, counted by hand; the files it stands in; what changes and damage do."""

import json
import random

import pytest
from response_rows import responses, row, rows, turn_facts, write_rows

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.estimators import Estimate, clustered_mean
from recipe.study.responses import complete_groups
from recipe.study.results import (
    PAPER_GROUPS,
    assign_members,
    evaluation_table,
    macro_averages,
    read_evaluation,
    recompute,
    summarise,
    write_results,
)
from recipe.study.tables import percent

IDS = {"aime24": ["a", "b"], "math500": ["a", "b", "c"]}


def summary(num_responses=4, **verdicts):
    lines = responses(**verdicts)
    return summarise(complete_groups(lines, num_responses, benchmark="toy"), num_responses)


def test_every_number_of_a_benchmark():
    numbers = summary(a="++-n", b="--tc", c="++++", d="emns")
    assert numbers["problems"] == 4
    # Means 2/4, 0, 1, 0: 0.375
    found = Estimate(numbers["avg"], numbers["avg_low"], numbers["avg_high"])
    assert found == clustered_mean([0.5, 0.0, 1.0, 0.0], 4)
    # pass@2 of 2 in 4: 1 - (2/4)(1/3) = 5/6; so (5/6 + 0 + 1 + 0) / 4; pass@4: 2 of 4 problems
    assert [numbers[f"pass@{k}"] for k in (1, 2, 4)] == pytest.approx([0.375, 11 / 24, 0.5])
    # a: "1" twice against "2" and nothing; b: wrong and nothing tie, both wrong; c right; d nothing
    assert numbers["maj"] == 0.5
    # 16 samples: cut b3; no answer a3, b3, d1, d2 (d3 was too slow: wrong); undecided b2, d0
    shares = [numbers[name] for name in ("truncated", "no_answer", "undecided")]
    assert shares == [1 / 16, 4 / 16, 2 / 16]
    assert (numbers["timeouts"], numbers["errors"]) == (1, 1)
    assert numbers["response_tokens"] == 10.0
    assert sum(numbers["reasons"].values()) == numbers["samples"] == 16


def test_the_macro_average_is_over_benchmarks_and_names_what_it_lacks():
    parts = {"gpqa_diamond": summary(2, a="++"), "MMLU-Pro": summary(2, a="--", b="+-", c="--")}
    macro = macro_averages(parts)
    # 1 and 1/6: their mean, though 3 of 4 problems are in one of them
    assert macro["out_of_distribution"]["avg"] == pytest.approx((1 + 1 / 6) / 2)
    assert macro["out_of_distribution"]["problems"] == 4
    assert macro["in_distribution"]["missing"] == list(PAPER_GROUPS["in_distribution"])
    found = assign_members(["HuggingFaceH4/MATH-500", "aime24", "AIME-24", "mmlu_pro_test"])
    assert found["in_distribution"]["math500"] == "HuggingFaceH4/MATH-500"
    assert "aime24" not in found["in_distribution"]  # two stand for none
    assert found["out_of_distribution"] == {}  # a part of it is not it


def test_a_percentage_does_not_depend_on_the_order_of_a_sum():
    """A half of the last digit, as a mean of 2,000 responses often is, goes away from 0."""
    for sign, wanted in ((1, "12.4"), (-1, "-12.4")):
        assert {percent(sign * 0.1235 + bit) for bit in (-1e-14, 0, 1e-14)} == {wanted}
    assert percent(-0.0001, sign=True) == "+0.0"


# -- files


def lines_of(benchmark):
    verdicts = {"aime24": {"a": "+-", "b": "--"}, "math500": {"a": "++", "b": "-t", "c": "nc"}}
    return rows(benchmark, **verdicts[benchmark])


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


def test_the_table_shows_the_results_in_percent(run):
    stored = json.loads((run / "evaluation/results.json").read_text())
    assert {stored[name] for name in ("format", "model", "num_samples")} == {1, "outputs/base", 2}
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


def test_the_changes_of_turns_have_a_table_and_those_not_compared_a_line(tmp_path):
    facts = [turn_facts(0.0, 1.0), None]
    lines = [row("a", k, "correct", facts=each) for k, each in enumerate(facts)]
    write_rows(tmp_path, "toy", lines)
    table = evaluation_table(write(tmp_path, {"toy": ["a"]}))
    head = next(line for line in table if "first turn" in line)
    cells = [cell.strip() for cell in table[table.index(head) + 2].split("|")[1:5]]
    assert "wrong to right" in head and cells == ["toy", "0.0", "100.0", "+100.0"]
    assert any("of 2 conversations 1 are not compared" in line for line in table)


def test_the_order_of_the_lines_and_their_files_change_nothing(run):
    before = (run / "evaluation/results.json").read_bytes()
    lines = lines_of("math500")
    random.Random(1).shuffle(lines)
    write_rows(run / "evaluation", "math500", lines[:3])
    write_rows(run / "evaluation", "more", lines[3:])
    write(run / "evaluation")
    assert (run / "evaluation/results.json").read_bytes() == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-1],  # one is missing
        lambda lines: [*lines, lines[0]],  # twice
        lambda lines: [*lines, {**lines[-1], "sample": 2}],  # beyond K
        lambda lines: [*lines, row("d", 0, benchmark="math500")],  # of no problem
    ],
)
def test_nothing_is_written_while_a_response_is_missing_or_twice(tmp_path, spoil):
    write_rows(tmp_path, "aime24", lines_of("aime24"))
    write_rows(tmp_path, "math500", spoil(lines_of("math500")))
    with pytest.raises(DataError, match="math500: 1 problems, such as '[acd]', do not have"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]


def test_what_cannot_be_evaluated_is_told(run):
    with pytest.raises(DataError, match="holds responses of math500, expected only aime24"):
        write(run / "evaluation", {"aime24": ["a", "b"]})
    path = run / "evaluation/samples/math500.jsonl"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"math500.jsonl: line 6 is not a response: .*cut it off"):
        recompute(run / "evaluation")
    path.unlink()
    with pytest.raises(DataError, match="results.json counts"):
        read_evaluation(run / "evaluation")
    (run / "evaluation/results.json").write_text('{"format": 2}')
    with pytest.raises(DataError, match="is not of format 1"):
        recompute(run / "evaluation")


def test_recomputing_gives_the_same_numbers_and_finds_one_that_was_changed(run, capsys):
    assert main(["evaluation", str(run)]) == 0
    assert "equal: every number" in capsys.readouterr().out
    path = run / "evaluation/results.json"
    stored = json.loads(path.read_text())
    stored["benchmarks"]["aime24"]["avg"] = 0.5
    path.write_text(json.dumps(stored))
    assert main(["evaluation", str(run)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "  benchmarks.aime24.avg: stored 0.5, from the samples 0.25"


def test_changed_responses_and_tables_are_found(run):
    (run / "evaluation/table.md").write_text("")
    assert recompute(run / "evaluation")[1] == [
        "table.md does not show the numbers of results.json"
    ]
    lines = lines_of("aime24")
    lines[0] |= {"score": 0.0, "reason": "wrong"}
    write_rows(run / "evaluation", "aime24", lines)
    differences = recompute(run / "evaluation")[1]
    assert "benchmarks.aime24.avg: stored 0.25, from the samples 0.0" in differences
