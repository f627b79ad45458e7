"""Two evaluations side by side, from their folders."""

import json

import pytest
from ends import code_of
from response_rows import responses, rows, write_rows

from recipe.hint.main_report import main
from recipe.run.errors import DataError
from recipe.study.evaluation.comparison import compare_groups, compare_macro, compare_runs
from recipe.study.evaluation.estimators import mean_of, paired_mean
from recipe.study.evaluation.responses import complete_groups
from recipe.study.evaluation.results import write_results

TOY = {"benchmark": "toy"}


def make_run(folder, model="base", temperature=0.6, sampling=None, **benchmarks):
    for name, verdicts in benchmarks.items():
        write_rows(folder / "evaluation", name, rows(name, **verdicts))
    write_results(
        folder / "evaluation",
        {name: list(verdicts) for name, verdicts in benchmarks.items()},
        model=model,
        sampling={"temperature": temperature, **(sampling or {})},
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


def test_files_of_one_name_that_differ_are_told(tmp_path):
    folders = [make_run(tmp_path / name, gsm8k={"p": "--"}) for name in "ab"]
    for folder, digest in zip(folders, ("1" * 64, "2" * 64), strict=True):
        files = {"gsm8k.parquet": digest, "same.parquet": "3" * 64}
        (folder / "evaluation/settings.json").write_text(json.dumps({"files": files}))
    assert compare_runs(*folders)[-1] == "gsm8k.parquet is not the same file in A and B"


@pytest.mark.parametrize(("digest", "is_told"), [("1" * 64, False), ("2" * 64, True)])
def test_other_files_under_another_name_are_told(tmp_path, digest, is_told):
    folders = [make_run(tmp_path / name, gsm8k={"p": "--"}) for name in "ab"]
    for folder, files in zip(
        folders, ({"old.parquet": "1" * 64}, {"new.parquet": digest}), strict=True
    ):
        (folder / "evaluation/settings.json").write_text(json.dumps({"files": files}))
    told = "the problems are of other files: old.parquet in A, new.parquet in B"
    assert (told in compare_runs(*folders)) == is_told


def test_other_prompts_and_grades_are_told(tmp_path):
    folders = [make_run(tmp_path / name, gsm8k={"p": "--"}) for name in "ab"]
    for folder, thinks in zip(folders, (True, False), strict=True):
        drawn = {"template": {"options": {"enable_thinking": thinks}}, "turns": {"method": "score"}}
        (folder / "evaluation/settings.json").write_text(json.dumps(drawn))
    assert compare_runs(*folders)[-1] == (
        'template differs: {"options": {"enable_thinking": true}} in A and '
        '{"options": {"enable_thinking": false}} in B'
    )


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
    assert code_of(main, ["compare", str(first), str(tmp_path)]) == 2
    assert "results.json is missing" in capsys.readouterr().err


# -- two runs are compared on the same problems, or not at all


def groups(num_responses, **verdicts):
    return complete_groups(responses(**verdicts), num_responses, benchmark="toy")


def test_the_difference_is_second_minus_first_problem_by_problem():
    first = groups(2, a="--", b="+-", c="++", d="++")
    second = groups(2, a="+-", b="+-", c="+-", d="--")
    result = compare_groups(first, second, benchmark="toy")
    # Means 0, .5, 1, 1 and .5, .5, .5, 0: differences .5, 0, -.5, -1
    assert result.difference == paired_mean([0.5, 0.0, -0.5, -1.0])
    assert (result.first, result.second) == (0.625, 0.375)
    # Solved is >= 1/2: a is gained, d is lost, b and c stay solved.
    assert (result.num_gained, result.num_lost) == (1, 1)


def test_runs_with_different_numbers_of_responses_are_paired_by_their_means():
    result = compare_groups(groups(1, a="-"), groups(4, a="+++-"), benchmark="toy")
    assert result.difference.value == 0.75
    assert result.num_gained == 1


def test_a_run_against_itself_changes_nothing():
    run = groups(2, a="+-", b="++")
    result = compare_groups(run, run, benchmark="toy")
    assert result.difference.value == 0.0
    assert result.difference.low < 0 < result.difference.high
    assert (result.num_gained, result.num_lost) == (0, 0)


def test_different_problems_are_refused_unless_told():
    first, second = groups(1, a="+", b="+", c="-"), groups(1, b="-", c="-", d="+")
    with pytest.raises(DataError, match=r"toy: 2 problems are in one run only, such as 'a', 'd'"):
        compare_groups(first, second, benchmark="toy")
    result = compare_groups(first, second, benchmark="toy", should_intersect=True)
    assert (result.num_problems, result.num_left_out) == (2, 2)
    assert result.difference.value == -0.5


def test_runs_without_a_common_problem_cannot_be_paired():
    with pytest.raises(DataError, match="toy: the runs have no problem in common"):
        compare_groups(groups(1, a="+"), groups(1, b="+"), benchmark="toy", should_intersect=True)


def test_a_group_is_compared_when_all_its_members_are():
    up = compare_groups(groups(1, a="-", b="-"), groups(1, a="+", b="-"), benchmark="x")
    same = compare_groups(groups(1, a="-"), groups(1, a="-"), benchmark="y")
    assert compare_macro({"gpqa_diamond": up}) == {}
    result = compare_macro({"gpqa_diamond": up, "mmlu_pro": same})["out_of_distribution"]
    assert result.difference == mean_of([up.difference, same.difference])
    assert (result.difference.value, result.num_problems, result.num_gained) == (0.25, 3, 1)


def test_a_group_counts_the_problems_that_its_benchmarks_gained_and_lost():
    """Gained 1 + 1, lost 2 + 1."""
    one = compare_groups(groups(1, a="-", b="+", c="+"), groups(1, a="+", b="-", c="-"), **TOY)
    two = compare_groups(groups(1, a="-", b="+"), groups(1, a="+", b="-"), **TOY)
    result = compare_macro({"gpqa_diamond": one, "mmlu_pro": two})["out_of_distribution"]
    assert (result.num_gained, result.num_lost) == (2, 3)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ({}, {"top_p": 0.9}, "null in A and 0.9 in B"),
        ({"top_p": 0.9}, {}, "0.9 in A and null in B"),
    ],
)
def test_a_sampling_setting_that_one_run_alone_has_is_told_once(tmp_path, a, b, said):
    folders = [
        make_run(tmp_path / name, sampling=each, gsm8k={"p": "--"})
        for name, each in (("a", a), ("b", b))
    ]
    told = [line for line in compare_runs(*folders) if "sampling differs" in line]
    assert told == [f"sampling differs: top_p is {said}"]
