"""The end of a command that a bench runs has a limit."""

import subprocess

from recipe.study.bench import commands


def test_a_process_that_a_kill_does_not_end_is_waited_for_with_a_limit(tmp_path, monkeypatch):
    """One that waits for a disk that hangs; a process that nobody kills stands for it."""
    monkeypatch.setattr(commands.os, "killpg", lambda *_: None)
    monkeypatch.setattr(commands.psutil, "process_iter", lambda: [])
    monkeypatch.setattr(commands, "_END_S", 0.2)
    process = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        commands._end(process, tmp_path)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(60)
