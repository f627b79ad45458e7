"""Weights go from a run's trainer to its own vLLM: two runs on a machine share no socket."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import ray
from verl.workers.config import RolloutConfig
from verl.workers.rollout import base
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from recipe.hint.adapter.weight_sender import RunServerAdapter, job_name
from recipe.run.environment import RUN_VARIABLE, set_environment

JOB = "01000000"  # of the first job of every cluster
OURS = f"{RunServerAdapter.__module__}.{RunServerAdapter.__name__}"


@pytest.fixture
def handles(monkeypatch):
    """The sockets of sender and receiver in the run of a folder."""
    context = SimpleNamespace(get_job_id=lambda: JOB)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    for name, value in (("RANK", "0"), ("RAY_LOCAL_WORLD_SIZE", "1"), ("VERL_REPLICA_RANK", "0")):
        monkeypatch.setenv(name, value)
    parallel = ("tensor_model", "data", "pipeline_model")
    config = RolloutConfig(name="vllm", **{f"{each}_parallel_size": 1 for each in parallel})
    receiver = vLLMColocateWorkerExtension.__new__(vLLMColocateWorkerExtension)
    receiver.model_runner, receiver.local_rank = SimpleNamespace(), 0

    def handles(folder):
        monkeypatch.setenv(RUN_VARIABLE, folder)
        monkeypatch.setenv("VERL_RAY_JOB_ID", job_name())  # as the server sets it
        return RunServerAdapter(config, None, None).zmq_handle, receiver._get_zmq_handle()

    return handles


def test_sender_and_receiver_of_a_run_meet_and_those_of_two_runs_do_not(handles):
    (sender, receiver), (other_sender, other_receiver) = handles("/runs/a"), handles("/runs/b")
    assert sender == receiver
    assert other_sender == other_receiver != sender
    assert len(sender) < len("ipc://") + 100  # a socket's path may have 107 characters


def test_every_process_of_a_run_loads_the_plugin_before_the_users_own_modules(
    composed, monkeypatch
):
    """That it sends by the plugin's class shows in every real run: vLLM hears no other socket."""
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "json,recipe.laptop.plugin")
    monkeypatch.setenv(RUN_VARIABLE, "of another run")
    config = composed("hardware=laptop", "hint.run_dir=some/run")
    set_environment(config)
    assert os.environ["VERL_USE_EXTERNAL_MODULES"] == "recipe.laptop.plugin,json"
    assert os.environ[RUN_VARIABLE] == f"{os.getcwd()}/some/run"


def test_verl_finds_it_under_the_name_that_the_plugin_gives(monkeypatch):
    monkeypatch.setitem(base._ROLLOUT_REGISTRY, ("vllm", "async"), OURS)
    assert base.get_rollout_class("vllm", "async") is RunServerAdapter


@pytest.mark.slow
def test_another_program_on_verl_keeps_verls_socket(handles, monkeypatch):
    """The package's entry point loads the plugin in every program that imports verl."""
    sender, receiver = handles("")
    assert sender == receiver == f"ipc:///tmp/rl-colocate-zmq-{JOB}-replica-0-rank-0.sock"
    monkeypatch.delenv(RUN_VARIABLE)
    code = "from verl.workers.rollout.base import _ROLLOUT_REGISTRY as r; print(r['vllm', 'async'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "verl.workers.rollout.vllm_rollout.ServerAdapter"
