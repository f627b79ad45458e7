"""How long nothing was seen of a job, and what a sweep does then."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import is_alive, wait_for

from recipe.run.silence import Heartbeat, Silence, job_files
from recipe.study import multirun


def test_any_file_that_changes_is_a_sign_of_life(tmp_path):
    log, beat = tmp_path / "log", tmp_path / "logs/heartbeat"
    assert job_files(tmp_path, log) == [beat, log]
    clock = [0.0]
    silence = Silence([beat, log], lambda: clock[0])
    log.touch()
    beat.parent.mkdir()
    beat.touch()
    for at, changed, expected in (
        (5.0, None, 0.0),  # both are new
        (7.0, None, 2.0),
        (9.0, log, 0.0),
        (10.0, None, 1.0),
        (11.0, beat, 0.0),
        (15.0, None, 4.0),
    ):
        clock[0] = at
        if changed:
            os.utime(changed, (at, at))
        assert silence.length_s() == expected
    beat.unlink()  # a file that is away has not changed
    assert silence.length_s() == 4.0


def test_a_beat_neither_waits_for_the_disk_nor_fails_with_it(tmp_path, monkeypatch):
    heart, beat = Heartbeat(tmp_path), tmp_path / "logs/heartbeat"
    heart.beat()
    wait_for(beat.exists)
    threads, goes_on = threading.active_count(), threading.Event()
    monkeypatch.setattr(Path, "touch", lambda path: goes_on.wait(60))
    for _ in range(5):
        heart.beat()
    assert threading.active_count() == threads + 1  # the one that hangs, and no further one
    goes_on.set()
    (tmp_path / "file").touch()
    Heartbeat(tmp_path / "file").beat()  # no folder can be made there


@pytest.mark.parametrize("hears", [True, False])
def test_a_sweep_that_is_told_to_end_ends_a_job_that_does_not_hear_it(tmp_path, hears):
    wait = (
        f"import signal, time; signal.signal(signal.SIGTERM, {'h' if hears else 'signal.SIG_IGN'})"
    )
    wait = "import sys\ndef h(*_): sys.exit(9)\n" + wait
    code = (
        "import sys; from pathlib import Path\n"
        "from recipe.run.errors import Terminated\n"
        "from recipe.study import multirun\n"
        "from recipe.run.silence import Silence\n"
        "multirun._GRACE_S = 1.0\n"
        "try:\n    multirun._run_process(sys.argv[1:], Silence([]))\n"
        "except Terminated:\n    sys.exit(143)\n"
    )
    pid = tmp_path / "pid"
    job = f"{wait}; import os; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code, sys.executable, "-c", job]) as process:
        wait_for(lambda: pid.exists() and pid.read_text())
        process.terminate()
        try:
            assert process.wait(60) == 143
        finally:
            process.kill()
    assert not is_alive(int(pid.read_text()))


def test_a_job_of_a_sweep_without_a_sign_of_life_is_killed(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(multirun, "JOB_LIMIT_S", 1.0)
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert multirun._run_process(wait, Silence(job_files(tmp_path))) == -9
    assert capfd.readouterr().err == "killed: no sign of life of this job for 1 s\n"
