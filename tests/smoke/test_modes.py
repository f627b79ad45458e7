"""Mode separate_async on a CPU: replicas of their own, and weights sent to them by gloo."""

import pytest
from runs import check_records, check_weights, train

from recipe.hint.adapter.preflight.settings import check_sizes, read_sizes
from recipe.run.devices import check_machine
from recipe.run.errors import ConfigError

pytestmark = pytest.mark.slow

STEPS = 3
ROLLOUT = "actor_rollout_ref.rollout"
TRANSFER = f"{ROLLOUT}.checkpoint_engine"
MINI = "actor_rollout_ref.actor.ppo_mini_batch_size"
SYNC = "trainer.v1.separate_async.parameter_sync_step"
SEPARATE = (
    "trainer.v1.trainer_mode=separate_async",
    f"{ROLLOUT}.nnodes=1",
    f"{ROLLOUT}.n_gpus_per_node=1",
    f"{TRANSFER}.backend=gloo",
    f"{TRANSFER}.custom_backend_module=recipe.laptop.transfer",
    # The trainer's device and one for the rollouts.
    "ray_kwargs.ray_init.num_gpus=2",
    # Two updates between two syncs, each of half of the 8 prompts.
    "data.train_batch_size=8",
    f"{SYNC}=2",
    f"{MINI}=4",
)


@pytest.mark.long  # in CI a real run is of mode colocate_async: test_own_reward
def test_separate_devices_train_on_whole_batches_and_their_weights_follow(tmp_path):
    run = train(
        tmp_path,
        *SEPARATE,
        "trainer.method=sage",
        f"trainer.total_training_steps={STEPS}",
        # None ahead: every prompt is sampled from the weights that its step begins with, so that
        # the trainer, with old log-probs under those in both updates, must agree with vLLM.
        "trainer.v1.separate_async.num_warmup_batches=0",
    )
    check_records(run, STEPS)
    check_weights(run, STEPS)
    for record in run.records:
        levels = [done["level"] for done in record["rounds"]]
        assert levels == list(range(len(levels)))
        for done in record["rounds"][:-1]:
            assert not any(done["accuracies"])
    by_step = run.by_step()
    for row in run.metrics:
        hinted = sum(record["accepted_level"] > 0 for record in by_step[row["step"]])
        assert row["hint/prompts"] == 8  # of both updates, not their mean of 4
        assert row["hint/prompts_with_hint"] == hinted
        assert row["hint/failed_prompts"] == 0


@pytest.fixture
def check(composed, monkeypatch):
    """The preflight's checks of settings and machine on the laptop preset."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def check(*overrides):
        config = composed("hardware=laptop", *overrides)
        check_sizes(config, read_sizes(config))
        check_machine(config)

    return check


def test_the_settings_of_separate_devices_pass_the_preflight(check):
    assert check(*SEPARATE) is None
    adapter = ("actor_rollout_ref.model.lora_rank=8", "actor_rollout_ref.model.lora.merge=true")
    assert check(*SEPARATE, *adapter) is None


def test_an_adapter_that_would_not_reach_separate_devices_is_refused(check):
    with pytest.raises(ConfigError, match=r"lora\.merge=False .* without its adapter"):
        check(*SEPARATE, "actor_rollout_ref.model.lora_rank=8")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            "fsdp_config.param_offload=true",
            r"param_offload=True is not supported where verl",
        ),
        (
            "fsdp_config.reshard_after_forward=false",
            r"reshard_after_forward=False is not supported where verl",
        ),
        ("strategy=fsdp", r"strategy=fsdp is not supported where verl puts back"),
    ],
)
def test_weights_that_a_gpu_could_not_put_back_are_refused(composed, wrong, says):
    on_gpus = ("hardware=laptop", *SEPARATE, "trainer.device=cuda", "trainer.n_gpus_per_node=2")
    wrong = f"actor_rollout_ref.actor.{wrong}"

    def check(*given):
        config = composed(*given[0], *given[1:])
        check_sizes(config, read_sizes(config))

    with pytest.raises(ConfigError, match=says):
        check(on_gpus, wrong)
    check(on_gpus)
    # With one update a step nothing is put back.
    one = (f"{SYNC}=1", f"{MINI}=8")
    check(on_gpus, wrong, *one)


def test_devices_that_are_not_whole_replicas_are_refused(check):
    # 3 devices and replicas of 2: one would be left over.
    overrides = (
        "trainer.n_gpus_per_node=3",
        f"{ROLLOUT}.tensor_model_parallel_size=2",
        f"{MINI}=3",
    )
    with pytest.raises(ConfigError, match=r"3 devices are not whole replicas of 2"):
        check(*overrides, "data.train_batch_size=6")
