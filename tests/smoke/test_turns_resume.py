"""Methods of several turns, killed and started again: the run goes on as if nothing had happened.

The two-turn world, where revising earns something, so that every step has a gradient.
"""

import numpy as np
import pytest
import torch
from runs import killed_after, train

pytestmark = pytest.mark.long
STEPS = 3
COMMON = (
    "experiment=two_turn",
    f"trainer.total_training_steps={STEPS}",
    "trainer.save_freq=1",
    "trainer.max_actor_ckpt_to_keep=3",
    "trainer.max_critic_ckpt_to_keep=3",
)
METHODS = {
    # Killed in stage I, which has two steps; the third one is stage II.
    "score": ("trainer.method=score", "hint.score.stage1_steps=2"),
    # Killed while the critic learns alone; the policy changes from step 2 on.
    "archer": (
        "trainer.method=archer",
        "trainer.critic_warmup=2",
        "hint.archer.updates=4",
        "hint.archer.batch_size=32",
        "hint.archer.capacity=100",
    ),
    # Killed while the solver trains alone; the guide's phase is the third step.
    "mlmt": (
        "trainer.method=mlmt",
        "hint.mlmt.baseline=value",
        "hint.mlmt.t_low=2",
        "hint.mlmt.t_high=1",
        "hint.mlmt.guide_max_tokens=12",
        # The embedded tokenizer spells the guide's instructions out.
        "actor_rollout_ref.rollout.prompt_length=420",
    ),
}
UNCOMPARED = {"uid"}  # drawn anew


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_run_comes_to_the_records_and_weights_of_one_never_stopped(method, tmp_path):
    settings = (*COMMON, *METHODS[method])
    straight = train(tmp_path / "straight", *settings)
    assert straight.code == 0, straight.err
    assert all(row["training/rollout_probs_diff_mean"] <= 1e-6 for row in straight.metrics)

    folder = tmp_path / "killed"
    killed_after(folder, 1, *settings)
    assert not (folder / "checkpoints/global_step_2/COMPLETE").exists()
    resumed = train(folder, *settings)
    assert resumed.code == 0, resumed.err
    assert "resumed from step 1" in resumed.out

    assert records_of(resumed) == records_of(straight)
    before, after = (state_at(run, STEPS) for run in (straight, resumed))
    assert before.keys() == after.keys()
    assert [name for name in before if not np.array_equal(before[name], after[name])] == []
    # It is no run in which nothing changes.
    start = state_at(straight, 1)
    assert any(not np.array_equal(start[name], before[name]) for name in start)


def records_of(run):
    """What was sampled and what trained, by step and problem."""
    return {
        (record["step"], record["problem_id"]): {
            **{name: value for name, value in record.items() if name not in UNCOMPARED},
            "rounds": [
                {name: value for name, value in each.items() if name != "seconds"}
                for each in record["rounds"]
            ],
        }
        for record in run.records
    }


def state_at(run, step):
    """Every array of a checkpoint: weights, moments of the optimizers, target, replay."""
    checkpoint, found = run.folder / f"checkpoints/global_step_{step}", {}
    for file in sorted(checkpoint.rglob("*.pt")):
        if file.name.startswith(("model_", "optim_", "target_")):
            leaves(torch.load(file, weights_only=False), f"{file.relative_to(checkpoint)}", found)
    for file in sorted(checkpoint.glob("hint_replay.npz")):
        with np.load(file) as arrays:
            found |= {f"{file.name}/{name}": arrays[name] for name in arrays}
    return found


def leaves(node, name, found):
    if isinstance(node, dict | list):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            leaves(value, f"{name}/{key}", found)
    elif isinstance(node, torch.Tensor):
        tensor = node.to_local() if hasattr(node, "to_local") else node
        found[name] = tensor.detach().numpy()
