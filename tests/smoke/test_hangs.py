"""Somebody does not answer: the run ends in time, and says who it was."""

import subprocess
import sys
from pathlib import Path

import pytest
from runs import assert_nothing_is_left, environment, train

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
STEPS = ("trainer.method=sage", "trainer.total_training_steps=50")
LIMIT_S = 20


@pytest.mark.long
def test_a_weight_receiver_that_raises_ends_the_run_with_its_name(tmp_path):
    env = {
        "HINT_TEST_FAULT": "receiver",
        "VERL_USE_EXTERNAL_MODULES": "recipe.laptop.plugin,sabotage",
        "PYTHONPATH": str(HERE),
    }
    run = train(tmp_path, *STEPS, f"hint.watchdog.sync_s={LIMIT_S}", env=env)
    assert run.code == 2
    what = "the weight sync from the trainer to the vLLM replicas"
    assert f"{what} took longer than hint.watchdog.sync_s={LIMIT_S} s" in run.err
    assert len(run.by_step()) == 1  # the second sync is the one after step 1
    assert_nothing_is_left(tmp_path)


@pytest.mark.long
def test_a_queue_without_cpus_ends_the_start_with_its_name(tmp_path):
    # Past the preflight, which refuses such a number: another job may hold the CPUs.
    code = (
        "import sys; from recipe.hint import main_hint; "
        "from recipe.hint.adapter.preflight import run; "
        "run.preflight = lambda config, argv: []; "
        "main_hint.main()"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            f"hint.run_dir={tmp_path}",
            "trainer.method=sage",
            "ray_kwargs.ray_init.num_cpus=1",
            f"hint.watchdog.queue_s={LIMIT_S}",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(tmp_path),
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "TransferQueue did not answer within hint.watchdog.queue_s=20 s" in done.stderr
    assert_nothing_is_left(tmp_path)
