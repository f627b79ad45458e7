"""Hydra's command line as people know it: --cfg, --info, completion, help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from recipe import REPOSITORY
from recipe.hint.methods import METHODS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("config_paths")]

MAIN = REPOSITORY / "recipe/hint/main_hint.py"


def run(folder: Path, *arguments: str, script: Path = MAIN, **environment: str):
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("given", ["-m", "--multirun", "hydra.mode=MULTIRUN"])
def test_a_command_makes_one_run(given, tmp_path):
    end = run(tmp_path, "trainer.method=grpo,sage", given)
    assert end.returncode == 2 and "`hint campaign` makes several" in end.stderr


def test_the_settings_are_printed_as_yaml_and_nothing_else(tmp_path):
    end = run(tmp_path, "trainer.method=grpo", "--cfg", "job", "data.seed=5")
    assert (end.returncode, end.stderr) == (0, "")
    node = yaml.safe_load(end.stdout)
    assert (node["trainer"]["method"], node["data"]["seed"]) == ("grpo", 5)
    assert node["hint"]["seed"] == 1


def test_the_environment_is_set_before_a_run_starts_and_the_users_own_values_stay(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        "from recipe.hint.main_hint import run_command\n"
        "names = 'HINT_RUN', 'VLLM_NO_USAGE_STATS', 'TOKENIZERS_PARALLELISM'\n"
        "given = 'hardware=laptop', 'hint.run_dir=here', 'preflight_only=true'\n"
        "run_command(given, lambda config: print(*map(os.environ.get, names)))\n"
    )
    own = {"PYTHONPATH": str(REPOSITORY), "TOKENIZERS_PARALLELISM": "given"}
    end = run(tmp_path, script=program, **own)
    assert end.stdout.splitlines()[-1] == f"{tmp_path}/here 1 given", end.stderr


def test_the_help_is_one_screen_with_methods_and_presets(tmp_path):
    end = run(tmp_path, "--help")
    assert (end.returncode, end.stderr) == (0, "")
    lines = end.stdout.splitlines()
    assert len(lines) <= 45 and max(map(len, lines)) <= 100
    words = set(end.stdout.replace(",", " ").split())
    for group in ("hardware", "experiment"):
        assert {path.stem for path in (REPOSITORY / "configs" / group).glob("*.yaml")} <= words
    assert set(METHODS) <= words
