"""The question that ``main_ask.py`` puts together, and the arguments it takes."""

from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

from recipe.hint.main_ask import read_arguments, write_question
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.run.errors import DataError


@pytest.fixture
def files(tmp_path):
    """Validation and training problems; one has a column of its own."""
    rows = [make_row(f"What is {n} + 1?", str(n + 1), row_id=f"n/{n}") for n in range(4)]
    rows[3]["hint_level_1"] = "count on"
    write_rows(rows[:2], tmp_path / "val.parquet")
    write_rows(rows[2:], tmp_path / "train.parquet")
    return SimpleNamespace(
        config=OmegaConf.create(
            {
                "data": {
                    "val_files": str(tmp_path / "val.parquet"),
                    "train_files": [str(tmp_path / "train.parquet")],
                }
            }
        ),
        target=tmp_path / "question.parquet",
    )


def question(files, *argv):
    given, _ = read_arguments(argv)
    write_question(given, files.config, files.target)
    [problem] = read_problems(files.target)
    return problem


def test_a_problem_is_found_by_its_id_in_validation_and_training_files(files):
    assert question(files, "--id", "n/1").text == "What is 1 + 1?"
    assert question(files, "--id", "n/3").answer == "4"
    # With all columns that the method may read.
    [row] = pq.read_table(files.target).to_pylist()
    assert row["hint_level_1"] == "count on"


def test_an_unknown_id_is_answered_with_some_that_there_are(files):
    with pytest.raises(DataError, match="n/9 is not in .*; the first has n/0, n/1, ..."):
        question(files, "--id", "n/9")
    files.config.data.train_files = files.config.data.val_files
    with pytest.raises(DataError, match="is not in [^,]*val.parquet; the first has"):
        question(files, "--id", "n/9")


def test_a_problem_of_ones_own_has_the_form_of_prepared_ones(files):
    asked = question(files, "--problem", "How many?", "--answer", "7", "--solution", "Count.")
    assert (asked.text, asked.answer, asked.solution) == ("How many?", "7", "Count.")
    assert [turn["role"] for turn in asked.messages] == ["system", "user"]
    bare = question(files, "--problem", "How many?", "--answer", "7", "--system-prompt", "")
    assert [turn["role"] for turn in bare.messages] == ["user"]


def test_settings_pass_through_in_their_order():
    argv = ["a.b=1", "--id", "n/1", "+c=2", "--all", "hardware=laptop"]
    given, settings = read_arguments(argv)
    assert settings == ["a.b=1", "+c=2", "hardware=laptop"]
    assert given.all


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "give --id ID of a problem in a file, or --problem TEXT --answer A"),
        (["--id", "1", "--problem", "x"], "give --id ID of a problem in a file, or --problem"),
        (["--problem", "x"], "--problem needs --answer A"),
        *(
            (["--id", "1", name, "maths"], f"{name} would not be read with --id")
            for name in ("--answer", "--solution", "--kind", "--system-prompt")
        ),
        (
            ["--problem", "x", "--answer", "1", "--file", "f.parquet"],
            "--file would not be read with --problem",
        ),
    ],
)
def test_a_question_that_is_none_ends_in_one_line(argv, told, capsys):
    with pytest.raises(SystemExit, match="2"):
        read_arguments(argv)
    [line] = capsys.readouterr().err.splitlines()
    assert line.partition(": ")[2].startswith(told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--answer", "AB", "--kind", "choice"], "--answer: .*one letter.*'AB'"),
        (["--answer", "pass", "--kind", "program"], "--answer: "),
    ],
)
def test_an_answer_that_is_none_of_its_kind_is_told_by_its_argument(files, given, told):
    with pytest.raises(DataError, match=f"^{told}") as caught:
        question(files, "--problem", "Which?", *given)
    assert "question.parquet" not in str(caught.value)
