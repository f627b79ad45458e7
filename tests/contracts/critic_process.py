"""The critic's workers without Ray, on rows of a few tokens; prints what they gave.

Run by test_critic.py, with VERL_PLATFORM=cpu.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from types import SimpleNamespace

import numpy as np
import torch
import verl  # noqa: F401  - loads the plugin, as in every process of a run
from hydra import compose, initialize_config_dir
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import TrainingWorkerConfig
from verl.workers.engine_workers import TrainingWorker

from recipe.hint.adapter.archer import UtteranceLearner
from recipe.hint.adapter.critic import CriticWorker, UtteranceCriticWorker, turn_value_loss
from recipe.hint.credit.archer import Transition, UtteranceCriticSettings
from recipe.hint.main_hint import CONFIG_DIR, set_config_paths

os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
PROMPTS = [[5, 6, 7], [8, 9, 10, 11], [5, 6, 7]]
RESPONSES = [[12, 13], [14], [20, 21, 22]]


def nested(rows, dtype=torch.int64):
    return torch.nested.as_nested_tensor(
        [torch.tensor(row, dtype=dtype) for row in rows], layout=torch.jagged
    )


def settings():
    """The critic's settings of the laptop preset, as verl's trainer reads them."""
    set_config_paths()
    with initialize_config_dir(str(CONFIG_DIR), version_base=None):
        config = compose("hint_trainer", overrides=["hardware=laptop", "critic.enable=true"])
    critic = omega_conf_to_dataclass(config.critic)
    critic.engine.infer_max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.engine.max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.optim.total_training_steps = 100
    return critic


def build(worker_cls, seed=1):
    torch.manual_seed(seed)
    critic = settings()
    config = TrainingWorkerConfig(
        model_type="value_model",
        model_config=critic.model,
        engine_config=critic.engine,
        optimizer_config=critic.optim,
        checkpoint_config=critic.checkpoint,
        profiler_config=None,
    )
    worker = worker_cls(config=config)
    worker.reset()
    return worker


def batch(responses, **fields):
    """Rows as the queue gives them to a worker."""
    both = [prompt + response for prompt, response in zip(PROMPTS, responses, strict=True)]
    rows = {
        "prompts": nested(PROMPTS),
        "responses": nested(responses),
        "input_ids": nested(both),
        "position_ids": nested([list(range(len(each))) for each in both]),
        "response_mask": nested([[1] * len(each) for each in responses]),
        "loss_mask": nested([[1] * len(each) for each in responses]),
        **{name: nested(value, torch.float32) for name, value in fields.items()},
    }
    data = TensorDict(rows, batch_size=len(responses))
    tu.assign_non_tensor(data, temperature=1.0, global_batch_size=len(responses))
    return data


def values(worker, responses):
    data = batch(responses)
    tu.assign_non_tensor(data, compute_loss=False)
    found = worker.infer_batch(data)["values"]
    return [
        each[len(prompt) - 1].item() for each, prompt in zip(found.unbind(), PROMPTS, strict=True)
    ]


def one_value_a_turn():
    worker = build(CriticWorker)
    worker.set_loss_fn(turn_value_loss)
    before = values(worker, RESPONSES)
    permuted = values(worker, [RESPONSES[2], RESPONSES[0], RESPONSES[1]])
    targets = [1.0, 0.25, 1.0]
    losses = []
    for _ in range(60):
        returns = [[target] * len(r) for target, r in zip(targets, RESPONSES, strict=True)]
        data = batch(RESPONSES, returns=returns)
        tu.assign_non_tensor(data, mini_batch_size=3, epochs=1, seed=1, dataloader_kwargs={})
        metrics = tu.get(worker.train_mini_batch(data), "metrics")
        losses.append(metrics["vf_loss"])
    return {
        "before": before,
        "with other responses": permuted,
        "after": values(worker, RESPONSES),
        "losses": [losses[0], losses[-1]],
    }


def heads():
    """The weights that a head begins with, after another use of the generator."""
    return {
        worker_cls.__name__: [
            build(worker_cls, seed).engine.module.score.weight.to_local()[0, :4].tolist()
            for seed in (7, 8)
        ]
        for worker_cls in (TrainingWorker, CriticWorker, UtteranceCriticWorker)
    }


class Direct:
    """A worker group of one worker in this process."""

    world_size = 1

    def __init__(self, worker):
        self.worker = worker
        self.set_loss_fn = worker.set_loss_fn

    def soft_update(self, tau):
        return [self.worker.soft_update(tau)]

    def __getattr__(self, name):
        def call(data):
            found = getattr(self.worker, name)(data)
            return SimpleNamespace(get=lambda: found)

        return call


def transition(state, action, reward, after=()):
    return Transition(*map(np.array, (state, action)), reward, np.array(after, int))


def utterances():
    """Two turns: the first is worth 0.9 of what the second brings, 1 after 12 and 0 after 14."""
    worker = build(UtteranceCriticWorker)
    settings = UtteranceCriticSettings(
        0.9, 0.5, updates=1, batch_size=16, capacity=100, expectile=None
    )
    learner = UtteranceLearner(settings, Direct(worker), seed=1)
    data = [
        transition([5, 6, 7], [12, 13], 0.0, [5, 6, 7, 12, 13, 9]),
        transition([5, 6, 7, 12, 13, 9], [20], 1.0),
        transition([5, 6, 7], [14], 0.0, [5, 6, 7, 14, 9]),
        transition([5, 6, 7, 14, 9], [20, 21, 22], 0.0),
    ]
    online = [each.clone() for each in worker._shards()]
    before = learner.heads_of(data)
    told = [learner.learn(data, step) for step in range(1, 151)]
    after = learner.heads_of(data)
    # The target trails the weights; asking it leaves them as they are.
    kept = [each.clone() for each in worker._shards()]
    slow = learner._evaluate(learner._workers.infer_target, data)
    again = learner._evaluate(learner._workers.infer_target, data)
    unchanged = all(torch.equal(a, b) for a, b in zip(kept, worker._shards(), strict=True))
    other = [
        transition(each.state_T, [30, 31, 32, 33], each.reward, each.next_state_T) for each in data
    ]
    with tempfile.TemporaryDirectory() as folder:
        worker.save_checkpoint(folder, global_step=1)
        files = sorted(os.listdir(folder))
        learner.learn(data, 200)
        moved = learner._evaluate(learner._workers.infer_target, data)
        worker.load_checkpoint(folder)
        loaded = learner._evaluate(learner._workers.infer_target, data)
        loaded_online = learner.heads_of(data)
    return {
        "parameters moved": any(
            not torch.equal(a, b) for a, b in zip(online, worker._shards(), strict=True)
        ),
        "before": before.tolist(),
        "after": after.tolist(),
        "V with other utterances": learner.heads_of(other)[:, 2:].tolist(),
        "V": loaded_online[:, 2:].tolist(),
        "slow": slow.tolist(),
        "slow again": again.tolist(),
        "weights are as before": unchanged,
        "first": told[0],
        "last": told[-1],
        "files": files,
        "slow moved": moved.tolist(),
        "slow loaded": loaded.tolist(),
        "loaded": loaded_online.tolist(),
    }


def slow_target():
    """After k updates of the target towards weights that stay, (1 - tau)^k of the way is left."""
    worker = build(UtteranceCriticWorker)
    start = worker._target[0].clone()
    with torch.no_grad():
        for shard in worker._shards():
            shard.add_(1.0)
    lags = [(lag / size) ** 0.5 for lag, size in (worker.soft_update(0.1) for _ in range(5))]
    left = (worker._shards()[0] - worker._target[0]).mean().item()
    return {"left": left, "lags": lags, "moved": (worker._target[0] - start).mean().item()}


PARTS = {each.__name__: each for each in (heads, one_value_a_turn, utterances, slow_target)}

if __name__ == "__main__":
    found = {name: part() for name, part in PARTS.items()}
    sys.stdout.write("\n" + json.dumps(found, default=float))
