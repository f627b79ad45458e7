"""How long nothing was seen of a job, and what a sweep does then."""

import os
import sys

from processes import wait_for

from recipe.hint.runtime import multirun
from recipe.hint.runtime.silence import Silence, job_files


def test_any_file_that_changes_is_a_sign_of_life(tmp_path):
    log, beat = tmp_path / "log", tmp_path / "logs/heartbeat"
    assert job_files(tmp_path, log) == [beat, log]
    log.touch()
    silence = Silence([beat, log])
    for path in (log, beat):
        wait_for(lambda: silence.seconds() > 0.01)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 1))
        assert silence.seconds() == 0
    beat.unlink()  # a file that is away has not changed
    wait_for(lambda: silence.seconds() > 0.01)


def test_a_job_of_a_sweep_without_a_sign_of_life_is_killed(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(multirun, "JOB_LIMIT_S", 1.0)
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert multirun._run_process(wait, Silence(job_files(tmp_path))) == -9
    assert capfd.readouterr().err == "no sign of life of this job for 1 s\n"
