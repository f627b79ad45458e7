"""What a run tells of the code that it ran."""

import re
import subprocess

from recipe.run import machine


def git(root, *command):
    own = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    subprocess.run(["git", "-C", str(root), *own, *command], check=True, capture_output=True)


def test_the_commit_is_told_and_whether_the_code_differs_from_it(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "REPOSITORY", tmp_path)
    assert machine.commit() == {}  # installed, no repository
    git(tmp_path, "init")
    assert machine.commit() == {}  # nothing committed yet
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/code.py").write_text("1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "one")
    found = machine.commit()["commit"]
    assert re.fullmatch("[0-9a-f]{12}", found)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs/run.txt").write_text("no code\n")
    assert machine.commit()["commit"] == found
    (tmp_path / "recipe/code.py").write_text("2\n")
    assert machine.commit()["commit"] == f"{found} with changes"
