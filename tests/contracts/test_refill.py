"""Refills and waits: prompts sent one at a time, and polls that verl must not take for idling."""

import time
from types import SimpleNamespace

import numpy as np
import ray
from guarded_buffer import guarded
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter.sampling_guard import POLL_S
from recipe.hint.adapter.worker import HintManager

NODES = {"rollout": {}, "model": {}}
MINIMAL = OmegaConf.create({"actor_rollout_ref": NODES})


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
    monkeypatch.setattr(ray, "get", lambda calls: calls)
    manager, calls = HintManager(MINIMAL, None), [[], [], []]
    manager.agent_loop_workers = [
        SimpleNamespace(generate_sequences=SimpleNamespace(remote=each.append)) for each in calls
    ]
    for number in range(7):
        batch = tu.get_tensordict({"uid": np.array([f"u{number}"], dtype=object)})
        tu.assign_non_tensor_data(batch, "validate", False)
        manager.generate_sequences(batch)
    assert [len(each) for each in calls] == [3, 2, 2]
