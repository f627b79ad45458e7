"""The real model, from its wheel to a page: what scripts/real.sh does, with two steps."""

import json
import os
import signal
import subprocess

import pytest

from recipe import REPOSITORY

LIMIT_S = 2 * 3600


@pytest.mark.long  # half an hour on two cores
def test_a_real_model_is_made_warmed_up_trained_and_shown(tmp_path):
    command = ["bash", "scripts/real.sh", "sage", "trainer.total_training_steps=2"]
    environment = {**os.environ, "REAL_FOLDER": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdout=log, stderr=log, process_group=0
        )
        try:
            end = f"exit code {process.wait(LIMIT_S)}"
        except subprocess.TimeoutExpired:
            end = f"not done in {LIMIT_S} s"
        finally:
            if process.poll() is None:  # the phase that runs is of the same group
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(120)
    told = (tmp_path / "log").read_text(encoding="utf-8")
    assert end == "exit code 0", f"{end}; the last output:\n{told[-3000:]}"
    assert "eos <|im_end|>" in told
    assert "round trips: 2000 of 2000" in told
    records = [json.loads(line) for line in (tmp_path / "sage/records.jsonl").open()]
    assert len(records) == 2 * 8  # prompts
    assert "<html" in (tmp_path / "sage/page.html").read_text(encoding="utf-8")
