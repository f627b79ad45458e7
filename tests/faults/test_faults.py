"""Any process of a run is killed or stopped: the run ends in time and says why, and goes on.

Two short runs for each line; a maintainer's, before a release.
"""

import contextlib
import json
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "smoke"))
from runs import SMALL, assert_nothing_is_left, started, train, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.long]
SETTINGS = ("trainer.method=sage-light", "trainer.save_freq=1")
STEPS = "trainer.total_training_steps={}"  # more than a silent process goes unnoticed
# Of the run with the fault alone: on a busy machine a sound one may take longer.
SHORT = ("answer_s=20", "update_s=60", "sync_s=60", "rollout_s=60", "progress_s=90")
LIMITS = tuple(f"hint.watchdog.{each}" for each in SHORT)
# How each kind of process names itself to the system.
DRIVER, AGENT, SERVER = "ray::HintTaskRunner", "ray::HintWorker", "ray::GroupHttpServer"
CONTROLLER, STORAGE = "ray::TransferQueueController", "ray::SimpleStorageUnit"


def victims(process, name):
    """Processes by their titles; a fork's client, which still has Python's name, is none."""
    found = []
    for each in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if name in " ".join(each.cmdline()[:1]):
                found.append(each)
    return found


@pytest.mark.parametrize(
    ("number", "target", "told"),
    [
        (signal.SIGKILL, DRIVER, "the driver died"),
        (signal.SIGSTOP, DRIVER, "the driver did not answer within hint.watchdog.answer_s"),
        (signal.SIGKILL, "ray::WorkerDict", "trainer rank 0 died|WorkerDict"),
        (signal.SIGSTOP, "ray::WorkerDict", "took longer than hint.watchdog|did not answer"),
        (signal.SIGKILL, SERVER, "vLLM server 0 died|GroupHttpServer"),
        (signal.SIGSTOP, SERVER, "vLLM server 0 did not answer|hint.watchdog"),
        (signal.SIGKILL, AGENT, "agent-loop worker 0 died|HintWorker"),
        (signal.SIGSTOP, AGENT, "agent-loop worker.* (did not answer|do not answer)"),
        (signal.SIGKILL, CONTROLLER, "TransferQueue"),
        (signal.SIGSTOP, CONTROLLER, "TransferQueue's controller did not answer"),
        (signal.SIGSTOP, STORAGE, "TransferQueue's storage unit 0 did not answer"),
        (signal.SIGKILL, "EngineCore", "vLLM|hint.watchdog"),
        (signal.SIGSTOP, "EngineCore", "hint.watchdog"),
        (signal.SIGKILL, "raylet", "Ray's process raylet died"),
        (signal.SIGSTOP, "gcs_server", "Ray's process gcs_server was stopped"),
    ],
)
def test_a_run_ends_with_the_name_and_goes_on_from_its_checkpoint(tmp_path, number, target, told):
    first = tmp_path / "checkpoints/global_step_1/COMPLETE"
    with started(tmp_path, *SETTINGS, *LIMITS, STEPS.format(200)) as process:
        wait_for(first.exists, "the first checkpoint", process)
        found = victims(process, target)
        assert found, f"no process {target}"
        for each in found:
            each.send_signal(number)
        _, err = process.communicate(timeout=400)
        assert process.returncode == 2, err
        [line] = [each for each in err.splitlines() if each.startswith("error: ")]
        assert re.search(told, line), line
        assert_nothing_is_left(tmp_path)
    last = 2 + max(
        int(each.parent.name.split("_")[-1]) for each in first.parents[1].glob("*/COMPLETE")
    )
    resumed = train(tmp_path, *SETTINGS, STEPS.format(last), preset=SMALL)
    assert resumed.code == 0, resumed.err
    rows = (tmp_path / "records.jsonl").read_text().splitlines()
    steps = [json.loads(row)["step"] for row in rows]
    assert sorted(steps) == [step for step in range(1, last + 1) for _ in range(8)]
