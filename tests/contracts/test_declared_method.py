"""A method of another package: installed beside this one, it is like the package's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = Path(__file__).parents[2] / "recipe/hint/main_hint.py"
MODULE = """
from dataclasses import dataclass

from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.turns import Hinted, Sample


@dataclass(frozen=True)
class EveryNthSettings(MethodSettings):
    period: int = 2


class EveryNth(Method):
    settings_cls = EveryNthSettings
    settings_node = "hint.every_nth"
    uses_hints = True

    def open(self, problem, state):
        return Sample() if state.visits % self.settings.period else Sample(Hinted(1))
"""


@pytest.fixture
def package(tmp_path):
    """The folder of an installed package: its module, and what pip writes beside it."""
    root = tmp_path / "site"
    root.mkdir()
    (root / "every_nth.py").write_text(MODULE)
    facts = root / "every_nth-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: every_nth\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[hint.methods]\nevery-nth = every_nth:EveryNth\n")
    return root


@pytest.mark.long
def test_a_run_can_take_it_with_settings_of_its_own(package, tmp_path):
    command = [
        *(sys.executable, MAIN, "hardware=laptop", "trainer.method=every-nth"),
        *("preflight_only=true", f"hint.run_dir={tmp_path}/run", "hint.every_nth.period=3"),
    ]
    paths = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "every-nth" in done.stdout
