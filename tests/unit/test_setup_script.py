"""What scripts/setup.sh refuses before it touches anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose environment is a link to that of another one."""
    for name in ("scripts", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / "own" / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "own")
    (tmp_path / "other/bin").mkdir(parents=True)
    (tmp_path / "other/bin/python").touch()
    (tmp_path / "other/.hint-setup").write_text("cpu-1 run 0\n")
    (tmp_path / "own/.venv").symlink_to(tmp_path / "other")
    return tmp_path / "own"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--profile", "cpu"],
            ".venv leads to another environment, which this would replace; remove the link",
        ),
        (["--profile", "../requirements/cpu"], "--profile is ../requirements/cpu; choose cpu or"),
        (["--profile", "dev"], "--profile is dev; choose cpu or gpu"),
        (["--profile"], "--profile is none; choose cpu or gpu"),
        (["--fast"], "got --fast; expected [--profile cpu|gpu] [--dev] [--real]"),
    ],
)
def test_it_ends_with_one_line_and_the_other_environment_stays(checkout, arguments, said):
    command = ["bash", "scripts/setup.sh", *arguments]
    ended = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"setup.sh: {said}")
    assert ended.stderr.count("\n") == 1
    assert (checkout / ".venv/bin/python").exists()
