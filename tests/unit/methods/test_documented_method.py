"""The worked example of docs/new_method.md: its blocks are taken from the page and run."""

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from fakes import run

from recipe.hint import main_hint
from recipe.hint.command import set_config_paths
from recipe.hint.methods import ENTRY_POINTS, METHODS
from recipe.hint.settings import read_settings
from recipe.run.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs/new_method.md"
TEXT = PAGE.read_text("utf-8")
METHOD, REGISTRY, TESTS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
[TRACES] = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
[GIVEN] = re.findall(r"```bash\nhint check (.*?)```", TEXT, re.DOTALL)
COMMAND = f"{GIVEN} preflight_only=true"
WRITTEN = ModuleType("recipe.hint.methods.second_chance")

sys.modules[WRITTEN.__name__] = WRITTEN
exec(compile(METHOD, f"{PAGE.name}: the method", "exec"), WRITTEN.__dict__)
# The tests of the page are collected as tests of this file.
exec(compile(TESTS, f"{PAGE.name}: its tests", "exec"))


@pytest.fixture
def registered():
    """Register the method as the page says, for one test."""
    before = dict(METHODS)
    exec(REGISTRY, {"METHODS": METHODS})
    set_config_paths()  # Hydra learns of its settings
    yield
    METHODS.clear()
    METHODS.update(before)
    set_config_paths()


def told(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["main_hint.py", *argv, f"hint.run_dir={tmp_path}"])
    main_hint.main()
    return capsys.readouterr().out


def test_a_package_declares_it_in_the_group_that_is_read():
    [declared] = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    points = tomllib.loads(declared)["project"]["entry-points"]
    assert points == {ENTRY_POINTS: {"second-chance": "my_package.second_chance:SecondChance"}}


def test_the_command_of_the_page_composes_and_passes_the_checks(
    registered, composed_once, tmp_path, monkeypatch, capsys
):
    said = told(shlex.split(COMMAND), tmp_path, monkeypatch, capsys)
    assert "method    second-chance, without hints" in said
    assert "batch     16 prompts x 8 rollouts" in said


def test_its_traces_are_those_that_the_page_shows():
    golden = json.loads((PAGE.parents[1] / "tests/golden/traces.json").read_text("utf-8"))
    for scenario, expected in json.loads(f"{{{TRACES}}}")["second-chance"].items():
        outcome = run(
            WRITTEN.SecondChance(),
            {0: [0, 0]}
            | {
                int(level): rewards
                for level, rewards in golden["scenarios"][scenario]["outcomes"].items()
            },
        )
        assert list(outcome.record.levels) == expected["levels"]
        assert expected["train"] == {"0": len(outcome.rows)}


def test_its_setting_is_refused_out_of_range_and_without_effect_beside_another_method(
    registered, composed_once, tmp_path, monkeypatch, capsys
):
    assert read_settings({"second_chance": {"groups": 3}}).of(WRITTEN.SecondChance).groups == 3
    with pytest.raises(ConfigError, match=r"hint\.second_chance\.groups=0 must be greater"):
        read_settings({"second_chance": {"groups": 0}})
    argv = shlex.split(COMMAND.replace("method=second-chance", "method=grpo"))
    said = told(argv, tmp_path, monkeypatch, capsys)
    assert "without effect in this run: hint.second_chance.groups=" in said
