"""The runner that stands in place of verl's: the queue of its cluster, and what it builds."""

import inspect

import pytest
import ray
from transfer_queue import interface
from verl.trainer.main_ppo import TaskRunnerV1

from recipe.run import task_runner
from recipe.run.environment import PYTHON_OF_RUN, environment_of
from recipe.run.errors import HintError
from recipe.run.launcher import ray_arguments

RUNNER = TaskRunnerV1.__ray_actor_class__


def test_a_cluster_with_the_queue_of_another_run_is_left_alone(monkeypatch):
    """TransferQueue joins a queue that it finds; ``get_actor`` is Ray's, here without a cluster."""
    asked = []
    monkeypatch.setattr(ray, "get_actor", lambda name, namespace: asked.append((name, namespace)))
    with pytest.raises(HintError, match="another training runs in this Ray cluster"):
        task_runner._check_queue_is_free()
    assert asked == [("TransferQueueController", "transfer_queue")]
    # The names are TransferQueue's own.
    named = 'name="TransferQueueController", namespace="transfer_queue"'
    assert named in inspect.getsource(interface)


def test_the_runner_that_ours_replaces_does_only_what_ours_does():
    # run/task_runner.py: logging, queue, trainer, manager, fit, finish, close.
    assert set(RUNNER.run.__code__.co_names) <= {
        "configure_verl_logging", "transfer_queue", "verl.trainer.ppo.v1", "get_trainer_cls",
        "trainer", "v1", "trainer_mode", "enable", "pprint", "OmegaConf", "to_container",
        "resolve", "config", "init", "init_agent_loop_manager", "fit", "agent_loop_manager",
        "getattr", "finish", "close",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ((), "/run/python"),
        (("ray_kwargs.ray_init.runtime_env.py_executable=/own/python",), "/own/python"),
    ],
)
def test_workers_start_by_the_fork_client_where_the_user_names_no_program(
    composed, monkeypatch, override, expected
):
    monkeypatch.setenv(PYTHON_OF_RUN, "/run/python")
    config = composed("hardware=laptop", *override)
    assert composed("hardware=laptop").ray_kwargs.ray_init.runtime_env.py_executable is None
    assert arguments_of(config, monkeypatch)["runtime_env"]["py_executable"] == expected


def arguments_of(config, monkeypatch):
    monkeypatch.setenv("HINT_REPO", "here")
    for name in environment_of(config):
        monkeypatch.setenv(name, "set")
    return ray_arguments(config)


@pytest.mark.parametrize(
    ("overrides", "address", "expected"),
    [
        (["hardware=laptop"], None, "local"),
        (["hardware=laptop"], "10.0.0.1:6379", None),  # Ray reads it
        (["hardware=laptop", "+ray_kwargs.ray_init.address=10.0.0.2:1"], None, "10.0.0.2:1"),
        (["hardware=multinode", "trainer.nnodes=2"], None, None),
    ],
)
def test_a_run_of_one_node_joins_a_cluster_only_where_it_is_named(
    composed, monkeypatch, overrides, address, expected
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address:
        monkeypatch.setenv("RAY_ADDRESS", address)
    assert arguments_of(composed(*overrides), monkeypatch).get("address") == expected
