"""A call to TransferQueue that gets no answer ends the run, wherever verl makes it."""

import subprocess
import sys

import pytest
import transfer_queue as tq
from verl.trainer.ppo.v1 import replay_buffer, trainer_base

from recipe.run.queue_limit import CALLS, limited_queue
from recipe.run.watchdog import Watchdog, read_fatal


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_verls_has_a_limit_where_no_phase_has_one(name, tmp_path, monkeypatch):
    dog = Watchdog(tmp_path)
    monkeypatch.setattr(tq, name, lambda *_, **__: [each.label for each in dog._stack])
    free = getattr(tq, name)
    with limited_queue(dog, 7.0):
        for module in (replay_buffer, trainer_base):
            told = "TransferQueue did not answer within hint.watchdog.answer_s=7 s"
            assert getattr(module.tq, name)("train", keys=[]) == [told]
        with dog.phase("the update", 300.0, "hint.watchdog.update_s"):
            assert len(getattr(tq, name)()) == 1  # a large batch may take its time there
    assert getattr(tq, name) is free
    dog.stop()


def test_a_poll_that_gets_no_answer_ends_the_run(tmp_path):
    code = (
        "import pathlib, time\n"
        "import transfer_queue as tq\n"
        "from recipe.run.queue_limit import limited_queue\n"
        "from recipe.run.watchdog import Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}))\n"
        "tq.kv_list = lambda partition=None: time.sleep(600)\n"
        "with limited_queue(dog, 0.2):\n"
        "    tq.kv_list()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
    assert done.returncode == 70
    told = "TransferQueue did not answer within hint.watchdog.answer_s=0.2 s"
    assert read_fatal(tmp_path).startswith(told)
