"""Data sets of reasoning-gym become files: kinds, splits, worked solutions, and what is refused."""

import re
import sys

import pytest
from hub_files import prepare

from recipe.problems.columns import read_problems, write_rows
from recipe.problems.gym import TAKES_ALL
from recipe.problems.prepare import Given, read_rows
from recipe.run.errors import ConfigError, DataError


def rows_of(name, num=20, **said):
    pytest.importorskip("reasoning_gym")
    return read_rows(f"reasoning_gym:{name}", Given(**said), limit=num)


def test_without_the_library_one_line_says_how_to_install_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.delitem(sys.modules, "reasoning_gym.factory", raising=False)
    with pytest.raises(SystemExit, match="2"):
        prepare("reasoning_gym:gcd", str(tmp_path / "out.parquet"))
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "pip install 'hint-rl[real]'" in err
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("name", ["leg_counting", "gsm_symbolic"])
def test_answers_that_are_numbers_can_be_mathematics_and_end_the_worked_solution(name):
    for row in rows_of(name, kind="maths").rows:
        assert row["reward_model"]["kind"] == "maths"
        assert row["data_source"] == f"reasoning_gym_{name}"
        assert "\\boxed{}" in row["prompt"][0]["content"]
        assert row["prompt"][-1]["content"] == row["problem"]
        numbers = re.findall(r"-?\d+(?:\.\d+)?", row["solution"].replace(",", ""))
        if name != "gsm_symbolic":  # its last sentence may say more than the answer
            assert numbers[-1] == row["answer"]
        assert float(row["answer"]) in map(float, numbers)


# The last one has metadata of numpy's types.
@pytest.mark.parametrize("name", ["countdown", "fraction_simplification", "knights_knaves"])
def test_answers_are_graded_by_the_library(name, tmp_path):
    prepared = rows_of(name)
    write_rows(prepared.rows, tmp_path / "a.parquet")
    for problem in read_problems(tmp_path / "a.parquet"):
        assert problem.kind == "reasoning_gym"
        assert "<answer>" in problem.messages[0]["content"]
        assert "metadata" in problem.row


def test_a_data_set_may_store_no_answer():
    assert {row["answer"] for row in rows_of("rush_hour", 5).rows} == {"any that the score accepts"}


@pytest.mark.parametrize("name", ["gsm_symbolic", "list_functions", "arc_1d"])
def test_the_splits_share_no_template_whatever_the_seeds(name):
    drawn = rows_of(name, 40).rows, rows_of(name, 40, split="test", seed=1).rows
    assert "template" not in drawn[0][0]
    train, test = ({row["extra_info"]["template"] for row in rows} for rows in drawn)
    assert "" not in train | test and not train & test


def test_the_splits_of_a_small_data_set_share_no_problem_and_too_few_are_told():
    small = {"config": ["max_digits=1", "max_terms=2"]}
    train = rows_of("chain_sum", 500, **small)
    test = rows_of("chain_sum", 500, split="test", seed=7, **small)
    problems = [{row["problem"] for row in each.rows} for each in (train, test)]
    assert sum(map(len, problems)) == len(set.union(*problems)) == 200
    assert "of 500: 25000 draws have no more" in train.warnings[0]


def test_another_seed_is_another_file_and_the_same_one_is_the_same_file(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_rows(rows_of("leg_counting", seed=seed).rows, tmp_path / f"{name}.parquet")
    a, b, c = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("sums", {}, "reasoning_gym:sums: no such data set; choose from ab, acre"),
        ("gcd", {"config": ["digits=1"]}, "--config: .* unexpected keyword argument 'digits'"),
        ("gcd", {"config": ["min_numbers=0"]}, "reasoning_gym:gcd: --config: "),
        ("gcd", {"split": "dev"}, "split='dev', 20 problems; give train or test"),
    ],
)
def test_what_the_library_does_not_have_is_refused(name, said, message):
    with pytest.raises(DataError, match=message):
        rows_of(name, **said)


@pytest.mark.parametrize(
    ("name", "answer"), zip(sorted(TAKES_ALL), ["0", "nan", "no", "6*4*1*1"], strict=True)
)
def test_a_data_set_is_refused_where_one_answer_is_right_for_almost_every_problem(name, answer):
    data_set = pytest.importorskip("reasoning_gym").create_dataset(name, seed=1, size=20)
    assert sum(data_set.score_answer(answer, each) == 1 for each in data_set) > 15
    with pytest.raises(DataError, match="its score takes one answer for almost every"):
        rows_of(name)
    if name == "coin_flip":  # its answers are numbers
        assert len(rows_of(name, kind="maths").rows) == 20


def test_a_row_without_the_library_or_its_entry_is_refused(tmp_path, monkeypatch):
    [row] = rows_of("countdown", 1).rows
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "reasoning_gym.factory", None)
        with pytest.raises(ConfigError, match="needs reasoning-gym: pip install"):
            write_rows([row], tmp_path / "a.parquet")
    del row["extra_info"]["reasoning_gym"]
    with pytest.raises(DataError, match="extra_info.reasoning_gym`: is not there; `hint prepare"):
        write_rows([row], tmp_path / "a.parquet")
