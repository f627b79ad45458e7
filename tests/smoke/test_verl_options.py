"""verl's own options together with hints: two steps each, in as few runs as their sum allows."""

import math

import pytest
from runs import check_records, check_weights, train

pytestmark = pytest.mark.long
STEPS = 2
ACTOR, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.model"


def two_steps(folder, *options):
    steps = f"trainer.total_training_steps={STEPS}"
    run = train(folder, "trainer.method=sage", steps, *options)
    check_records(run, STEPS)
    check_weights(run, STEPS)
    return run.metrics, run.records


def test_groups_are_filtered_under_a_kl_loss_and_rollout_correction(tmp_path):
    metrics, records = two_steps(
        tmp_path,
        "algorithm.filter_groups.enable=true",
        f"{ACTOR}.use_kl_loss=true",
        "algorithm.rollout_correction.rollout_is=token",
    )
    # What trains has a difference; what was thrown away is known to the tracker all the same.
    assert all(len(set(record["rewards"])) > 1 for record in records)
    filtered = sum(row["hint/filtered_prompts"] for row in metrics)
    surplus = sum(row.get("training/filter_groups/discarded_surplus_samples", 0) for row in metrics)
    assert filtered > 0
    # Of 160 problems none comes twice.
    sampled = len(records) + filtered + surplus
    assert metrics[-1]["reward_tracking/num_total_indexes"] == sampled
    # Reference and policy are the same model until the first update is over.
    assert metrics[0]["actor/kl_loss"] == pytest.approx(0, abs=1e-6)
    assert metrics[1]["actor/kl_loss"] > 1e-6
    for row in metrics:
        assert row["rollout_corr/rollout_is_mean"] == pytest.approx(1, abs=1e-4)


def test_a_critic_learns_values_with_a_kl_in_the_reward(tmp_path):
    metrics, _ = two_steps(
        tmp_path, "algorithm.adv_estimator=gae", "algorithm.use_kl_in_reward=true"
    )
    assert metrics[0]["actor/reward_kl_penalty"] == pytest.approx(0, abs=1e-6)
    assert metrics[1]["actor/reward_kl_penalty"] > 1e-6
    for row in metrics:
        assert row["critic/vf_loss"] > 0
        assert row["critic/grad_norm"] > 0
        assert math.isfinite(row["critic/values/mean"])


def test_a_lora_adapter_trains_and_reaches_vllm(tmp_path):
    # `check_weights` compares the two after the first update, which vLLM has as an adapter.
    two_steps(tmp_path, f"{MODEL}.lora_rank=8", f"{MODEL}.lora_alpha=16")
