"""The command that an installed package puts on the path, and its subcommands."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from recipe.hint.main import COMMANDS, OF_HINT

ROOT = Path(__file__).parents[2]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
START = "import sys; from recipe.hint.main import main; sys.exit(main())"
HEAVY = ("torch", "hydra", "pandas", "ray", "numpy", "pydantic", "transformers")


def run(*words, monkeypatch):
    """The exit code of the installed command; it names itself by sys.argv."""
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/hint", *words])
    try:
        return EntryPoint("hint", SCRIPTS["hint"], "console_scripts").load()() or 0
    except SystemExit as ended:
        return ended.code or 0


def test_every_runnable_file_has_a_subcommand():
    files = [path.stem.removeprefix("main_") for path in (ROOT / "recipe/hint").glob("main_*.py")]
    assert {*files} == {*COMMANDS} - {*OF_HINT} | {"hint"} and [*SCRIPTS] == ["hint"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_each_subcommand_explains_itself_by_its_name(name, monkeypatch, capsys):
    assert run(name, "--help", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    told = "hint train" if name in OF_HINT else f"hint {name}"
    assert f"usage: {told}" in said or f"{told} [NAME=VALUE" in said


def test_the_help_has_a_line_for_each_and_neither_colours_in_a_pipe_nor_heavy_imports():
    code = START + "; print([*sys.modules])"
    command = [sys.executable, "-c", code.replace("sys.exit", ""), "--help"]
    *lines, loaded = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [*COMMANDS]
    assert not {*HEAVY} & {*ast.literal_eval(loaded)} and "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trein", "'trein' is no command; did you mean train?"),
        ("xyz", "'xyz' is no command; `hint --help` lists them"),
    ],
)
def test_a_wrong_subcommand_names_the_near_one(word, said, monkeypatch, capsys):
    assert run(word, monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == f"hint: {said}\n"


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["eval", "a=1"], ["a=1", "trainer.eval_only=true"]),
        (["check", "a=1"], ["a=1", "preflight_only=true"]),
        (["train", "a=1"], ["a=1"]),
        (["train", "--yes"], []),
    ],
)
def test_the_settings_of_a_subcommand_reach_the_file_behind_it(words, settings, monkeypatch):
    given = []
    monkeypatch.setattr("recipe.hint.main_hint.run_command", lambda argv, _: given.append(argv))
    assert run(*words, monkeypatch=monkeypatch) == 0
    assert given == [settings]


@pytest.mark.slow
def test_a_training_without_a_setting_is_shown_and_not_started(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", START, "train"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 2, ended.stderr
    assert "  trainer.method=sage-light\n" in ended.stdout and "hint train --yes" in ended.stdout
    assert not [*tmp_path.iterdir()]
