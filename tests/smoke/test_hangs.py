"""Somebody does not answer: the run ends in time, and says who it was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from runs import environment, processes_of, started, train, wait_for

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
STEPS = ("trainer.method=sage", "trainer.total_training_steps=50")
LIMIT_S = 20


def assert_nothing_is_left(folder):
    """Ray's processes may take a moment to go after the command has ended."""
    deadline = time.monotonic() + 120
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [process.name() for process in processes_of(folder)] == []


@pytest.mark.long
def test_a_weight_receiver_that_raises_ends_the_run_with_its_name(tmp_path):
    env = {
        "HINT_TEST_FAULT": "receiver",
        "VERL_USE_EXTERNAL_MODULES": "recipe.hint.runtime.plugin,sabotage",
        "PYTHONPATH": str(HERE),
    }
    run = train(tmp_path, *STEPS, f"hint.watchdog.sync_s={LIMIT_S}", env=env)
    assert run.code == 2
    assert "the weight sync from the trainer to the vLLM replicas did not answer" in run.err
    assert f"hint.watchdog.sync_s={LIMIT_S}" in run.err
    assert len(run.by_step()) == 1  # the second sync is the one after step 1
    assert_nothing_is_left(tmp_path)


def test_a_killed_vllm_process_ends_the_run_with_its_name(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    with started(tmp_path, *STEPS) as process:
        # Written at the very end of a step: what follows is the generation of the next one.
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, "step 1", process)
        engines = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if any("EngineCore" in part for part in child.cmdline())  # the title vLLM gives it
        ]
        assert engines, "no vLLM engine process among the children"
        os.kill(engines[0].pid, signal.SIGKILL)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 2
        assert "vLLM" in err or "EngineDead" in err
        assert_nothing_is_left(tmp_path)


@pytest.mark.long
def test_a_queue_without_cpus_ends_the_start_with_its_name(tmp_path):
    # Past the preflight, which refuses such a number: another job may hold the CPUs.
    code = (
        "import sys; from recipe.hint import main_hint; "
        "from recipe.hint.runtime.preflight import run; "
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
