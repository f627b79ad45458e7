"""The names that an installed package puts on the path."""

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_every_runnable_file_has_one_name():
    modules = [value.removesuffix(":main") for value in PROJECT["scripts"].values()]
    files = [f"recipe.hint.{path.stem}" for path in (ROOT / "recipe/hint").glob("main_*.py")]
    assert sorted(modules) == sorted(files)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_each_name_explains_itself_by_that_name(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"/somewhere/bin/{name}", "--help"])
    script = EntryPoint(name, PROJECT["scripts"][name], "console_scripts")
    main = script.load()
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    assert not code
    said = capsys.readouterr().out
    file = script.module.rpartition(".")[2] + ".py"  # of the two whose arguments are settings
    assert f"usage: {name}" in said or f"{file} [" in said
