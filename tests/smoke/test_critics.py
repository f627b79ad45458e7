"""Methods with a critic on the embedded model: verl's, and ArCHer's with its replay and target."""

import numpy as np
import pytest
from runs import ROOT, check_weights, train

pytestmark = pytest.mark.long
# The embedded tokenizer spells the instructions out: a prompt of a later turn is long.
TURNS = ("actor_rollout_ref.rollout.prompt_length=420", "data.max_response_length=48")


def test_archer_goes_on_with_its_replay_and_its_target_after_a_restart(tmp_path):
    options = (
        *TURNS,
        "trainer.method=archer",
        "hint.archer.updates=4",
        "hint.archer.batch_size=32",
        "hint.archer.capacity=100",
        "trainer.critic_warmup=2",
        "trainer.save_freq=1",
        "trainer.max_actor_ckpt_to_keep=2",
        "trainer.max_critic_ckpt_to_keep=2",
    )
    run = train(tmp_path / "run", *options, "trainer.total_training_steps=2")
    assert run.code == 0, run.err
    run = train(tmp_path / "run", *options, "trainer.total_training_steps=3")
    assert run.code == 0, run.err
    assert all(row["training/rollout_probs_diff_mean"] <= 1e-6 for row in run.metrics)
    # 8 prompts x 4 conversations x 2 turns a step, of which 100 are kept.
    assert [row["critic/replay"] for row in run.metrics] == [64, 100, 100]
    # The critic is alone for a step: verl updates the policy from step critic_warmup on.
    assert ["actor/grad_norm" in row for row in run.metrics] == [False, True, True]
    for row in run.metrics:
        assert row["critic/q_loss"] > 0 and row["critic/target_lag"] > 0
        assert row["credit/solver_t1/reward"] == 0  # the first turn earns nothing by itself
    folder = run.folder / "checkpoints/global_step_3"
    assert (folder / "critic/target_world_size_1_rank_0.pt").exists()
    with np.load(folder / "hint_replay.npz") as replay:
        assert len(replay["reward"]) == 100


CRITICS = {
    "archer": ("hint.archer.updates=4", "hint.archer.batch_size=32", "hint.archer.capacity=100"),
    "mlmt": (
        "hint.mlmt.baseline=value",
        "hint.mlmt.value_bonus=0.5",
        "hint.mlmt.value_grad=full",
        "hint.mlmt.guide_max_tokens=24",
    ),
}


@pytest.mark.parametrize("method", CRITICS)
def test_a_critic_learns_in_an_asynchronous_mode(tmp_path, method):
    run = train(
        tmp_path / "run",
        *TURNS,
        *CRITICS[method],
        f"trainer.method={method}",
        f"data.train_files={ROOT / 'data/tiny/val_easy.parquet'}",
        "trainer.v1.trainer_mode=colocate_async",
        # The policy stays: prompts of a step are sampled before the update of the one before.
        "actor_rollout_ref.actor.optim.lr=1e-12",
        "trainer.total_training_steps=3",
    )
    assert run.code == 0, run.err
    check_weights(run, 3)
    loss = "critic/q_loss" if method == "archer" else "critic/vf_loss"
    assert all(np.isfinite(row[loss]) and row["critic/grad_norm"] > 0 for row in run.metrics)
    values = [row["credit/solver_t1/value"] for row in run.metrics]
    assert len(set(values)) == 3
    if method == "archer":  # 8 prompts x 4 conversations x 2 turns a step
        assert [row["critic/replay"] for row in run.metrics] == [64, 100, 100]
