"""How long nothing was seen of a job, and what a sweep does then."""

import os
import sys

from recipe.hint.runtime import multirun
from recipe.hint.runtime.silence import Silence, job_files


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


def test_a_job_of_a_sweep_without_a_sign_of_life_is_killed(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(multirun, "JOB_LIMIT_S", 1.0)
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert multirun._run_process(wait, Silence(job_files(tmp_path))) == -9
    assert capfd.readouterr().err == "killed: no sign of life of this job for 1 s\n"
