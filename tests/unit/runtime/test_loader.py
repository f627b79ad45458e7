"""A data loader whose processes hang ends the run, in training and in validation."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from recipe.hint.adapter.trainer import HintMixin
from recipe.run.watchdog import Limited, Watchdog, read_fatal


def test_an_item_that_does_not_come_ends_the_run(tmp_path):
    code = (
        "import pathlib, time\n"
        "from recipe.run.watchdog import NO_ANSWER, Limited, Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}))\n"
        "class Loader(list):\n"
        "    def __iter__(self):\n"
        "        yield 1\n"
        "        time.sleep(600)\n"
        "limit = lambda: dog.phase('the loader', 0.2, 'hint.watchdog.x_s', fault=NO_ANSWER)\n"
        "for item in Limited(Loader(), limit):\n"
        "    time.sleep(0.5)\n"  # what is done with an item takes as long as it wants
        "    print(item)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, timeout=300, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (70, "1\n")
    assert read_fatal(tmp_path).startswith("the loader did not answer within hint.watchdog.x_s=0.2")


def test_all_items_come_in_order_and_the_length_is_the_loaders(tmp_path):
    dog = Watchdog(tmp_path)
    loader = Limited([3, 1, 2], lambda: dog.phase("the loader", 60, "x"))
    assert (len(loader), list(loader), list(loader)) == (3, [3, 1, 2], [3, 1, 2])
    dog.stop()


class Fetched(Exception):
    pass


class Base:
    def _fetch_one_gen_batch(self):
        raise Fetched([each.label for each in self.watchdog._stack])


class Trainer(HintMixin, Base):
    def __init__(self, watchdog, answer_s):
        self.watchdog = watchdog
        self.hint = SimpleNamespace(watchdog=SimpleNamespace(answer_s=answer_s))


def test_a_training_batch_is_waited_for_under_a_limit(tmp_path):
    dog = Watchdog(tmp_path)
    told = "the data loader did not answer within hint.watchdog.answer_s=7 s"
    with pytest.raises(Fetched, match=told):
        Trainer(dog, 7.0)._fetch_one_gen_batch()
    dog.stop()
