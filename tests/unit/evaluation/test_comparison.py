"""Two evaluations side by side, from their folders."""

import pytest
from response_rows import rows, write_rows

from recipe.hint.errors import DataError
from recipe.hint.evaluation.comparison import compare_runs
from recipe.hint.evaluation.results import write_results
from recipe.hint.main_report import main


def make_run(folder, model="base", temperature=0.6, **benchmarks):
    for name, verdicts in benchmarks.items():
        write_rows(folder / "evaluation", name, rows(name, **verdicts))
    write_results(
        folder / "evaluation",
        {name: list(verdicts) for name, verdicts in benchmarks.items()},
        model=model,
        sampling={"temperature": temperature},
        num_responses=2,
        wall_s=dict.fromkeys(benchmarks, 1.0),
    )
    return folder


def test_the_table_shows_both_runs_the_difference_and_who_changed_sides(tmp_path, capsys):
    first = make_run(tmp_path / "a", "base", gsm8k={"p": "--", "q": "+-", "r": "++"})
    second = make_run(tmp_path / "b", "trained", gsm8k={"p": "++", "q": "+-", "r": "++"})
    assert main(["compare", str(first), str(second)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"A: {first}: base", f"B: {second}: trained", ""]
    # Differences 1, 0, 0: mean 1/3, error 1/3, t(2) = 4.303: +- 1.434, cut at 1.
    cells = [cell.strip() for cell in lines[5].strip("|").split("|")]
    assert cells == ["gsm8k", "3", "50.0", "83.3", "+33.3", "-100.0 to +100.0", "1", "0"]
    assert len(lines) == 6


def test_what_a_reader_must_know_stands_below(tmp_path):
    first = make_run(tmp_path / "a", gsm8k={"p": "--", "q": "+-"}, aime24={"p": "--"})
    second = make_run(tmp_path / "b", temperature=1.0, gsm8k={"p": "t-", "r": "++"})
    with pytest.raises(DataError, match="gsm8k: 2 problems are in one run only, such as 'q', 'r'"):
        compare_runs(first, second)
    assert compare_runs(first, second, should_intersect=True)[7:] == [
        "only in A: aime24",
        "gsm8k: 2 problems that only one run has are left out",
        "gsm8k: the verifier failed on 25.0 % of B's samples, counted as 0",
        "sampling differs: temperature is 0.6 in A and 1.0 in B",
    ]


def test_a_group_that_both_runs_have_gets_a_line(tmp_path):
    sets = ("gpqa_diamond", "mmlu_pro")
    first = make_run(tmp_path / "a", **{name: {"p": "--", "q": "++"} for name in sets})
    second = make_run(tmp_path / "b", **{name: {"p": "+-", "q": "++"} for name in sets})
    line = compare_runs(first, second)[-1]
    assert line.startswith("| out-of-distribution average |        4 |    50.0 |    75.0 |")


def test_runs_without_a_common_benchmark_are_refused(tmp_path):
    first = make_run(tmp_path / "a", gsm8k={"p": "--"})
    second = make_run(tmp_path / "b", aime24={"p": "--"})
    with pytest.raises(DataError, match="no benchmark in common: .* has gsm8k, .* has aime24"):
        compare_runs(first, second)


def test_the_command_says_in_one_line_why_runs_cannot_be_compared(tmp_path, capsys):
    first = make_run(tmp_path / "a", gsm8k={"p": "--"})
    assert main(["compare", str(first), str(tmp_path / "gone")]) == 2
    assert "results.json is missing" in capsys.readouterr().err
