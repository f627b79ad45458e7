"""Refills and waits: prompts sent one at a time, and polls that verl must not take for idling."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import ray
from guarded_buffer import guarded
from omegaconf import OmegaConf
from ray.exceptions import GetTimeoutError
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter.sampling_guard import POLL_S
from recipe.hint.adapter.worker import HintManager
from recipe.run.errors import StallError

NODES = {"rollout": {}, "model": {}}
MINIMAL = OmegaConf.create({"actor_rollout_ref": NODES, "hint": {"watchdog": {"answer_s": 7.0}}})


def test_a_short_wait_is_no_idling_to_verls_trainer(monkeypatch):
    """Its adaptive ratio climbs with every step that waited longer than its own interval."""
    buffer, paused = guarded(ReplayBufferAsync), []
    monkeypatch.setattr("verl.trainer.ppo.v1.replay_buffer.time.sleep", paused.append)
    buffer._wait_for_next_poll("train", time.time())
    trainer = SimpleNamespace(replay_buffer=buffer, _step_sample_wait_seconds=0.3)
    assert paused == [POLL_S]
    assert not PPOTrainerSeparateAsync._step_had_idle(trainer)
    trainer._step_sample_wait_seconds = 2.1
    assert PPOTrainerSeparateAsync._step_had_idle(trainer)


def test_prompts_that_come_one_at_a_time_go_to_the_workers_in_turn(monkeypatch):
    """Groups that a filter takes out are refilled so."""
    limits = []
    monkeypatch.setattr(ray, "get", lambda calls, timeout: limits.append(timeout))
    manager, calls = HintManager(MINIMAL, None), [[], [], []]
    manager.agent_loop_workers = [
        SimpleNamespace(generate_sequences=SimpleNamespace(remote=each.append)) for each in calls
    ]
    for number in range(7):
        batch = tu.get_tensordict({"uid": np.array([f"u{number}"], dtype=object)})
        tu.assign_non_tensor_data(batch, "validate", False)
        manager.generate_sequences(batch)
    assert [len(each) for each in calls] == [3, 2, 2]
    assert limits == [7.0] * 7  # answer_s


def test_workers_that_take_no_prompts_end_the_run_at_a_limit(monkeypatch):
    def get(calls, timeout):
        raise GetTimeoutError(f"nothing within {timeout}")

    monkeypatch.setattr(ray, "get", get)
    manager = HintManager(MINIMAL, None)
    call = SimpleNamespace(remote=lambda chunk: None)
    manager.agent_loop_workers = [SimpleNamespace(generate_sequences=call)]
    batch = tu.get_tensordict({"uid": np.array(["a", "b"], dtype=object)})
    with pytest.raises(StallError, match=r"did not take 2 prompts within .*answer_s=7 s"):
        manager.generate_sequences(batch)
