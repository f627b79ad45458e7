"""The real model, from its wheel to a page: what scripts/real.sh does, with two steps."""

import json
import os
import subprocess

import pytest

from recipe import REPOSITORY


@pytest.mark.long  # half an hour on two cores
def test_a_real_model_is_made_warmed_up_trained_and_shown(tmp_path):
    command = ["bash", "scripts/real.sh", "sage", "trainer.total_training_steps=2"]
    environment = {**os.environ, "REAL_FOLDER": str(tmp_path)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "eos <|im_end|>" in done.stdout
    assert "round trips: 2000 of 2000" in done.stdout
    records = [json.loads(line) for line in (tmp_path / "sage/records.jsonl").open()]
    assert len(records) == 2 * 8  # prompts
    assert "<html" in (tmp_path / "sage/page.html").read_text(encoding="utf-8")
