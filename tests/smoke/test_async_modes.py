"""The asynchronous modes: prompts that fail, and responses longer than the time between two syncs.

The learning rate changes no weight, so that the trainer must give every token the probability that
vLLM sampled it with, whatever the number of syncs in the middle of its response.
"""

from pathlib import Path

import pytest
from runs import check_records, train
from test_modes import SEPARATE

pytestmark = pytest.mark.long
MODES = {
    "colocate_async": (
        "trainer.v1.trainer_mode=colocate_async",
        "trainer.v1.colocate_async.num_warmup_batches=2",
    ),
    "separate_async": (*SEPARATE, "trainer.v1.separate_async.parameter_sync_step=1"),
}
STEPS, PROMPTS, GROUP = 12, 4, 4
# Tokens of the long group; the others' responses have at most 48. Where the rollouts go on during
# the update, more fit between two syncs, and on a busy machine 600 fitted.
LONG = {"colocate_async": 100, "separate_async": 900}
FAILING = (3, 10, 17, 24, 31)  # in the order of their start
SETTINGS = (
    "trainer.method=grpo",
    f"trainer.total_training_steps={STEPS}",
    f"data.train_batch_size={PROMPTS}",
    f"actor_rollout_ref.actor.ppo_mini_batch_size={PROMPTS}",
    "actor_rollout_ref.actor.optim.lr=1e-12",
    # Of 12 steps, none in which the long group would be thrown away as too old.
    f"trainer.v1.sampler.max_off_policy_threshold={STEPS}",
)


def sabotaged(fault):
    return {
        "HINT_TEST_FAULT": fault,
        "VERL_USE_EXTERNAL_MODULES": "recipe.laptop.plugin,sabotage",
        "PYTHONPATH": str(Path(__file__).parent),
    }


@pytest.mark.parametrize("mode", MODES)
def test_forty_eight_prompts_train_once_each_while_five_fail_and_one_is_long(tmp_path, mode):
    fault = sabotaged(f"some prompts:{','.join(map(str, FAILING))}")
    length = f"data.max_response_length={LONG[mode]}"
    run = train(tmp_path, *MODES[mode], *SETTINGS, length, env=fault)
    check_records(run, STEPS, PROMPTS, GROUP)
    # 12 x 4 = 48 prompts, and of 160 problems none comes twice.
    assert len({record["uid"] for record in run.records}) == 48
    assert len({record["problem_id"] for record in run.records}) == 48
    assert sum(row["hint/failed_prompts"] for row in run.metrics) == len(FAILING)
    assert run.out.count("  failed at step") == len(FAILING)
    # Every token of the long group trained, at a step that its syncs lead up to.
    [long] = [each for each in run.records if each["trained_tokens"] == GROUP * LONG[mode]]
    spans = {row["step"]: row["training/off_policy/trajectory_spans/max"] for row in run.metrics}
    # Versions: three syncs in the middle of it.
    assert spans[long["step"]] >= 4
    for row in run.metrics:
        assert row["training/rollout_probs_diff_max"] <= 1e-4, row["step"]


def test_a_run_whose_prompts_all_fail_ends_with_the_reason(tmp_path):
    # More than half of a batch of 4.
    mode = MODES["colocate_async"]
    run = train(tmp_path, *mode, *SETTINGS, env=sabotaged("every prompt"))
    assert run.code == 2
    assert "prompts failed at step 1, more than half of a batch of 4" in run.err
    assert "injected: this prompt cannot be sampled" in run.err
    assert run.records == []
