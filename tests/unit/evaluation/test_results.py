"""Every number of a table, counted by hand; the files it stands in; two runs side by side."""

import json

import pytest
from response_rows import responses, row, rows, turn_facts, write_rows

from recipe.hint.estimators import Estimate, crossed_share
from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.results import (
    compare_runs,
    complete_groups,
    evaluation_table,
    macro_average,
    recomputed,
    summarise,
    write_results,
)
from recipe.study.tables import percent

IDS = {"aime24": ["a", "b"], "math500": ["a", "b", "c"]}


def summary(num_responses=4, **verdicts):
    return summarise(complete_groups(responses(**verdicts), num_responses), num_responses)


def test_every_number_of_a_benchmark():
    numbers = summary(a="++-n", b="--tc", c="++++", d="emns")
    assert numbers["problems"] == 4
    # Means 2/4, 0, 1, 0: 0.375
    found = Estimate(numbers["avg"], numbers["avg_low"], numbers["avg_high"])
    assert found == crossed_share([0.5, 0.0, 1.0, 0.0], 4)
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


def test_the_macro_average_is_over_benchmarks():
    parts = {"gpqa_diamond": summary(2, a="++"), "MMLU-Pro": summary(2, a="--", b="+-", c="--")}
    macro = macro_average(parts)
    # 1 and 1/6: their mean, though 3 of 4 problems are in one of them
    assert (macro["avg"], macro["problems"]) == (pytest.approx((1 + 1 / 6) / 2), 4)
    assert macro_average({"gpqa_diamond": parts["gpqa_diamond"]}) == {}


def test_a_percentage_does_not_depend_on_the_order_of_a_sum():
    """A half of the last digit, as a mean of 2,000 responses often is, goes away from 0."""
    for sign, wanted in ((1, "12.4"), (-1, "-12.4")):
        assert {percent(sign * 0.1235 + bit) for bit in (-1e-14, 0, 1e-14)} == {wanted}
    assert percent(-0.0001, sign=True) == "+0.0"


# -- files


def lines_of(benchmark):
    verdicts = {"aime24": {"a": "+-", "b": "--"}, "math500": {"a": "++", "b": "-t", "c": "nc"}}
    return rows(benchmark, **verdicts[benchmark])


def write(folder, ids=IDS):
    write_results(folder, ids, {"model": "outputs/base", "temperature": 0.6, "num_samples": 2})


@pytest.fixture
def run(tmp_path):
    for name in IDS:
        write_rows(tmp_path / "evaluation", name, lines_of(name))
    write(tmp_path / "evaluation")
    return tmp_path


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_shows_the_results_in_percent(run):
    stored = json.loads((run / "evaluation/results.json").read_text())
    facts = [stored[name] for name in ("format", "model", "num_samples")]
    assert facts == [2, "outputs/base", 2]
    table = (run / "evaluation/table.md").read_text().splitlines()
    assert cells_of(table[0]) == [
        "benchmark", "problems", "avg@2", "95 %", "pass@2", "maj@2", "truncated", "no answer",
        "timeouts", "errors", "tokens",
    ]  # fmt: skip
    cells = cells_of(table[3])
    assert cells[:3] == ["math500", "3", "33.3"]
    assert cells[4:] == ["33.3", "33.3", "16.7", "33.3", "1", "0", "10"]
    # 1/4 and 1/3: 29.2.
    assert cells_of(table[4])[:5] == ["mean of 2", "5", "29.2", "", "41.7"]
    assert table[6:] == [
        "math500: the verifier failed on 16.7 % of the samples; these count as 0, and avg@2 "
        "would be 50.0 if all were right.",
    ]


def test_the_changes_of_turns_have_a_table_of_the_conversations_that_can_be_compared(tmp_path):
    facts = [turn_facts(0.0, 1.0), None]
    lines = [row("a", k, "correct", facts=each) for k, each in enumerate(facts)]
    write_rows(tmp_path, "toy", lines)
    write(tmp_path, {"toy": ["a"]})
    table = evaluation_table(json.loads((tmp_path / "results.json").read_text()))
    head = next(line for line in table if "first turn" in line)
    cells = cells_of(table[table.index(head) + 2])
    assert "wrong to right" in head and cells[:5] == ["toy", "1", "0.0", "100.0", "+100.0"]


@pytest.mark.parametrize("spoil", [lambda lines: lines[:-1], lambda lines: [*lines, lines[0]]])
def test_nothing_is_written_while_a_response_is_missing_or_twice(tmp_path, spoil):
    write_rows(tmp_path, "aime24", lines_of("aime24"))
    write_rows(tmp_path, "math500", spoil(lines_of("math500")))
    with pytest.raises(DataError, match="the same command draws missing ones"):
        write(tmp_path)
    assert not (tmp_path / "results.json").exists()


def test_an_evaluation_is_computed_again_from_its_responses(run, capsys):
    main(["evaluation", str(run)])
    assert capsys.readouterr().out == (run / "evaluation/table.md").read_text()
    assert recomputed(run / "evaluation") == json.loads(
        (run / "evaluation/results.json").read_text()
    )
    lines = lines_of("aime24")
    lines[0] |= {"score": 0.0, "reason": "wrong"}
    write_rows(run / "evaluation", "aime24", lines)
    assert recomputed(run / "evaluation")["benchmarks"]["aime24"]["avg"] == 0.0


# -- two runs


def make_run(folder, num_responses=2, settings=(), **benchmarks):
    for name, verdicts in benchmarks.items():
        write_rows(folder / "evaluation", name, rows(name, **verdicts))
    settings = {"model": folder.name, "num_samples": num_responses, **dict(settings)}
    (folder / "evaluation/settings.json").write_text(json.dumps(settings))
    ids = {name: list(verdicts) for name, verdicts in benchmarks.items()}
    write_results(folder / "evaluation", ids, settings)
    return folder


def test_the_table_shows_both_runs_the_difference_and_who_changed_sides(tmp_path, capsys):
    first = make_run(tmp_path / "a", gsm8k={"p": "--", "q": "+-", "r": "++"})
    second = make_run(tmp_path / "b", 4, gsm8k={"p": "++++", "q": "+-+-", "r": "++++"})
    main(["compare", str(first), str(second)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"A: {first}: a", f"B: {second}: b", ""]
    # Differences 1, 0, 0: mean 1/3, error 1/3, t(2) = 4.303: +- 1.434, cut at 1.
    cells = ["gsm8k", "3", "50.0", "83.3", "+33.3", "-100.0 to +100.0", "1", "0"]
    assert cells_of(lines[5]) == cells and len(lines) == 6
    swapped = cells_of(compare_runs(second, first)[5])
    assert swapped[4:] == ["-33.3", "-100.0 to +100.0", "0", "1"]


def test_what_a_reader_must_know_stands_below(tmp_path):
    first = make_run(tmp_path / "a", gsm8k={"p": "--", "q": "+-"}, aime24={"p": "--"})
    second = make_run(tmp_path / "b", settings={"top_p": 0.5}, gsm8k={"p": "t-", "r": "++"})
    assert compare_runs(first, second)[7:] == [
        "gsm8k: 2 problems that only one run has are left out",
        "gsm8k: the verifier failed on 25.0 % of B's samples, counted as 0",
        "in one run only: aime24",
        "top_p is not the same: None in A, 0.5 in B",
    ]
    third = make_run(tmp_path / "c", aime25={"p": "--"})
    with pytest.raises(DataError, match="no problem in common"):
        compare_runs(first, third)
