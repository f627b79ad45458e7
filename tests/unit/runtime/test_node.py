"""What an agent-loop worker checks of its node before it takes a prompt."""

import asyncio
import socket
from dataclasses import replace

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter import node
from recipe.hint.adapter.engine_builder import audit_file
from recipe.hint.adapter.node import fault_of_node
from recipe.hint.adapter.worker import HintWorker
from recipe.hint.settings import HintSettings, VerifySettings
from recipe.problems.columns import Labels, make_row, write_rows
from recipe.run.errors import HintError
from recipe.run.task_runner import DRIVER_LOCK

MATHS = make_row("2+2", "4", labels=Labels(kind="maths"))
PROGRAM = make_row("Write f.", "assert f(1) == 1", labels=Labels(kind="program"))


def fault(tmp_path, *rows, function=None, checkpoints=None, **verify):
    path = tmp_path / "data.parquet"
    write_rows(rows or [MATHS], path)
    config = OmegaConf.create(
        {
            "hint": {"run_dir": str(tmp_path)},
            "trainer": {"default_local_dir": str(checkpoints or tmp_path / "checkpoints")},
            "data": {"train_files": [str(path)], "val_files": str(path)},
            "reward": {"custom_reward_function": {"path": function}},
        }
    )
    own = replace(VerifySettings(), **verify)
    return fault_of_node(config, HintSettings(run_dir=str(tmp_path), verify=own), 0.0)


@pytest.fixture
def shared(tmp_path):
    """A folder in which the run's driver holds its lock."""
    (tmp_path / DRIVER_LOCK).write_text("process 7 on head")
    return tmp_path


def lacks(monkeypatch, *layers):
    monkeypatch.setattr(node, "layers_for", lambda wanted: None)
    monkeypatch.setattr(node, "available_layers", lambda: layers)


def test_a_node_without_the_drivers_file_has_a_disk_of_its_own(tmp_path):
    assert fault(tmp_path).startswith(
        f"node {socket.gethostname()}: hint.run_dir={tmp_path} does not hold the file .driver.lock"
    )


def test_a_file_that_a_network_disk_shows_late_is_waited_for(tmp_path, monkeypatch):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        (tmp_path / DRIVER_LOCK).touch()

    monkeypatch.setattr(node.time, "sleep", sleep)
    settings = HintSettings(run_dir=str(tmp_path))
    config = OmegaConf.create({"hint": {"run_dir": str(tmp_path)}, "trainer": {}})
    assert fault_of_node(config, settings) == ""
    assert len(slept) == 1


def test_a_disk_of_its_own_for_checkpoints_is_found_too(shared, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("scratch")
    told = f"trainer.default_local_dir={scratch} does not hold the file .driver.lock"
    assert told in fault(shared, checkpoints=scratch)


def test_a_node_with_the_sandbox_that_is_asked_for_takes_programs(shared, monkeypatch):
    monkeypatch.setattr(node, "layers_for", lambda wanted: ("seccomp",))
    assert fault(shared, PROGRAM) == ""


@pytest.mark.parametrize(
    ("layers", "wanted", "offers"),
    [(("seccomp",), "full", "offers seccomp,"), ((), "partial", "offers nothing,")],
)
def test_a_node_without_the_sandbox_that_programs_ask_for_is_named(
    shared, monkeypatch, layers, wanted, offers
):
    lacks(monkeypatch, *layers)
    told = fault(shared, MATHS, PROGRAM, program_isolation=wanted)
    assert told.startswith(f"node {socket.gethostname()}: hint.verify.program_isolation={wanted}, ")
    assert offers in told


def test_a_run_that_runs_no_program_needs_no_sandbox(shared, monkeypatch):
    lacks(monkeypatch)
    assert fault(shared, MATHS) == ""
    assert fault(shared, PROGRAM, function="/own/reward.py") == ""


def test_a_worker_on_such_a_node_answers_with_the_reason():
    worker = object.__new__(HintWorker)
    worker._fault = "node a: no sandbox"
    with pytest.raises(HintError, match="^node a: no sandbox$"):
        asyncio.run(worker.ping())


def test_each_process_writes_its_own_file_of_disagreements(tmp_path, monkeypatch):
    names = set()
    for host, process in [("a", 7), ("b", 7), ("a", 8)]:
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        names.add(audit_file(str(tmp_path)).name)
    assert names == {"audit-a-7.jsonl", "audit-b-7.jsonl", "audit-a-8.jsonl"}
