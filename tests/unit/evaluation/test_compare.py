"""Two evaluations side by side, problem by problem, from their folders."""

import json

import pytest
from ends import code_of
from response_rows import responses, rows, write_rows

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.compare import compare_groups, compare_runs
from recipe.study.estimators import paired_mean
from recipe.study.responses import complete_groups
from recipe.study.results import write_results


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
        "temperature is not the same: 0.6 in A, 1.0 in B",
    ]


def test_other_files_prompts_and_turns_are_told(tmp_path):
    folders = [make_run(tmp_path / name, gsm8k={"p": "--"}) for name in "ab"]
    kept = [
        {"model": letter, "files": {"gsm8k.parquet": 64 * letter}, "template": {"thinks": letter}}
        for letter in "ab"
    ]
    kept[1]["turns"] = {"method": "score"}
    for folder, settings in zip(folders, kept, strict=True):
        (folder / "evaluation/settings.json").write_text(json.dumps(settings))
    files, template, turns = compare_runs(*folders)[-3:]
    assert files.startswith('files is not the same: {"gsm8k.parquet": "aaaa')
    assert template == 'template is not the same: {"thinks": "a"} in A, {"thinks": "b"} in B'
    assert turns == 'turns is not the same: null in A, {"method": "score"} in B'


def test_runs_without_a_common_benchmark_or_a_finished_one_are_refused(tmp_path, capsys):
    first = make_run(tmp_path / "a", gsm8k={"p": "--"})
    second = make_run(tmp_path / "b", aime24={"p": "--"})
    with pytest.raises(DataError, match="no benchmark in common: .* has gsm8k, .* has aime24"):
        compare_runs(first, second)
    assert code_of(main, ["compare", str(first), str(tmp_path)]) == 2
    assert "results.json is missing" in capsys.readouterr().err


def groups(num_responses, **verdicts):
    return complete_groups(responses(**verdicts), num_responses, benchmark="toy")


def test_the_difference_is_second_minus_first_problem_by_problem():
    first = groups(2, a="--", b="+-", c="++", d="++")
    second = groups(4, a="++--", b="+-+-", c="+--+", d="----")  # K may differ
    result = compare_groups(first, second, benchmark="toy")
    # Means 0, .5, 1, 1 and .5, .5, .5, 0: differences .5, 0, -.5, -1
    assert result.difference == paired_mean([0.5, 0.0, -0.5, -1.0])
    assert (result.first, result.second) == (0.625, 0.375)
    # Solved is >= 1/2: a is gained, d is lost, b and c stay solved.
    assert (result.num_gained, result.num_lost) == (1, 1)
