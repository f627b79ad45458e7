"""The critic's workers without Ray, on rows of a few tokens; prints what they gave.

Run by test_critic.py, with VERL_PLATFORM=cpu.
"""

from __future__ import annotations

import json
import os
import sys

import torch
import verl  # noqa: F401  - loads the plugin, as in every process of a run
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import TrainingWorkerConfig

from recipe.hint.runtime.critic import CriticWorker, turn_value_loss

os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
PROMPTS = [[5, 6, 7], [8, 9, 10, 11], [5, 6, 7]]
RESPONSES = [[12, 13], [14], [20, 21, 22]]


def nested(rows, dtype=torch.int64):
    return torch.nested.as_nested_tensor(
        [torch.tensor(row, dtype=dtype) for row in rows], layout=torch.jagged
    )


def settings(folder):
    """The critic's settings of the laptop preset, as verl's trainer reads them."""
    from hydra import compose, initialize_config_dir

    from recipe.hint.main_hint import CONFIG_DIR, set_config_paths

    set_config_paths()
    with initialize_config_dir(str(CONFIG_DIR), version_base=None):
        config = compose("hint_trainer", overrides=["hardware=laptop", "critic.enable=true"])
    critic = omega_conf_to_dataclass(config.critic)
    critic.engine.infer_max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.engine.max_token_len_per_gpu = critic.ppo_infer_max_token_len_per_gpu
    critic.optim.total_training_steps = 100
    return critic


def build(worker_cls):
    critic = settings(None)
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
        "engine": type(worker.engine).__name__,
    }


if __name__ == "__main__":
    found = one_value_a_turn()
    sys.stdout.write("\n" + json.dumps(found, default=str))
