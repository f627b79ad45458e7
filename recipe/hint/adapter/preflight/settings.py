"""Check settings: keys, values, sizes that agree, and the loss that the method is defined by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from omegaconf import DictConfig
from pydantic import Field, TypeAdapter, ValidationError

from recipe.hint.methods import Method
from recipe.run.config import (
    ACTOR,
    GROUP,
    MINI,
    MODEL_NODE,
    PROMPT_LENGTH,
    REF,
    ROLLOUT,
    check,
    demand,
    files_of,
    is_separate,
    names,
    setting,
    world_size,
)
from recipe.run.errors import ConfigError
from recipe.run.typed import fault_of

_ESTIMATOR, _FILTER = "algorithm.adv_estimator", "algorithm.filter_groups.enable"
_BYPASS = "algorithm.rollout_correction.bypass_mode"
_ULYSSES = "ulysses_sequence_parallel_size"
# verl's estimators that compare a response with nothing of its group.
_WITHOUT_GROUP = ("gae", "reinforce_plus_plus")

# What a setting may be, of which another value spoils the run or fails late.
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "trainer.v1.trainer_mode": ("sync", "colocate_async", "separate_async"),
    "trainer.resume_mode": ("auto", "disable", "resume_path"),
    "model_engine": ("dp",),  # FSDP
    f"{ROLLOUT}.name": ("vllm",),
    f"{ACTOR}.strategy": ("fsdp", "fsdp2"),
    "algorithm.filter_groups.metric": ("reward", "acc"),  # no row carries another
    "algorithm.kl_ctrl.type": ("fixed",),  # an adapted coefficient is in no checkpoint
    "reward.reward_manager.name": ("naive", "dapo"),  # hint.verify or a function gives rewards
    **dict.fromkeys(
        (
            *("reward.reward_model.enable", "distillation.enabled"),
            # No agent loop or tool of verl's runs, and a group goes to one replica.
            *names(ROLLOUT, "multi_turn.enable disaggregation.enabled"),
            # A kill during the save would leave no checkpoint, or one that looks whole.
            "trainer.remove_previous_ckpt_in_save",
            *(f"{section}.checkpoint.async_save" for section in (ACTOR, "critic")),
        ),
        (False,),
    ),
}


_COUNT, _FREQUENCY = (Annotated[int, Field(ge=least)] for least in (1, -1))
_SHARE = Annotated[float, Field(gt=0, le=1)]
_AT_LEAST_0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_STEPS = "trainer.total_training_steps"  # null: as the epochs have it
# What a number must be.
_NUMBERS: dict[str, Any] = {
    **dict.fromkeys(
        (
            *names("data", "train_batch_size max_response_length"),
            *(MINI, GROUP, PROMPT_LENGTH, _STEPS, f"{ROLLOUT}.val_kwargs.n"),
            *names("trainer", "nnodes n_gpus_per_node total_epochs"),
            *names(ROLLOUT, "tensor_model_parallel_size response_length"),
        ),
        _COUNT,
    ),
    **dict.fromkeys(names("trainer", "save_freq test_freq"), _FREQUENCY),
    **dict.fromkeys(names("data", "train_max_samples val_max_samples"), _FREQUENCY),
    **dict.fromkeys(names(ROLLOUT, "top_k val_kwargs.top_k"), _FREQUENCY),
    **dict.fromkeys(names(ROLLOUT, "top_p val_kwargs.top_p"), _SHARE),
    **dict.fromkeys(names(ACTOR, "optim.lr clip_ratio"), _AT_LEAST_0),
    f"{ROLLOUT}.val_kwargs.temperature": _AT_LEAST_0,
    # Rollouts are to differ; a validation may be greedy.
    f"{ROLLOUT}.temperature": Annotated[float, Field(gt=0, allow_inf_nan=False)],
}


class Sizes(NamedTuple):
    """Numbers of a training in prompts, and the responses of each."""

    batch: int
    share: int  # of a batch, between two syncs of the weights
    mini: int
    group: int


def read_sizes(config: DictConfig) -> Sizes:
    """Read the sizes of a run, whose values are checked."""
    mode = setting(config, "trainer.v1.trainer_mode")
    batch = setting(config, "data.train_batch_size")
    parts = setting(config, f"trainer.v1.{mode}.parameter_sync_step") or 1
    told = f"data.train_batch_size={batch} must be a multiple of parameter_sync_step={parts}"
    check(batch % parts == 0, told)
    return Sizes(batch, batch // parts, setting(config, MINI), setting(config, GROUP))


def check_values(config: DictConfig) -> None:
    """Refuse values that fail or spoil a run after its start."""
    for name, kind in _NUMBERS.items():
        if (value := setting(config, name)) is not None or name != _STEPS:
            try:
                TypeAdapter(kind).validate_python(value, strict=True)
            except ValidationError as error:
                raise ConfigError(fault_of(error, name)) from error
    allowed = dict(_ALLOWED)
    # A library of the user's may register more.
    if not (setting(config, "trainer.eval_only") or setting(config, f"{MODEL_NODE}.external_lib")):
        from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY
        from verl.utils.tracking import Tracking

        known, loggers = Tracking.supported_backend, files_of(config, "trainer.logger")
        told = f"trainer.logger={loggers} must be of {', '.join(known)}"
        check({*loggers} <= {"tracking", *known}, told)
        allowed[_ESTIMATOR] = tuple(sorted(ADV_ESTIMATOR_REGISTRY))
        allowed[f"{ACTOR}.policy_loss.loss_mode"] = tuple(sorted(POLICY_LOSS_REGISTRY))
    for name, choices in allowed.items():
        demand(config, name, choices)


def check_sizes(config: DictConfig, sizes: Sizes) -> None:
    """Check what verl asserts on after the first rollouts; ``config`` has the method's models."""
    if is_separate(config):
        _check_separate(config, sizes)
    mini = f"{MINI}={sizes.mini}"
    told = f"{mini} must be a divisor of {sizes.share}, data.train_batch_size={sizes.batch} / "
    check(sizes.share % sizes.mini == 0, f"{told}parameter_sync_step; both count prompts")
    row = setting(config, PROMPT_LENGTH) + setting(config, f"{ROLLOUT}.response_length")
    kl = ("algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss")  # for which verl builds a reference
    passes = [(ACTOR, f"{ACTOR}.", "ppo_"), (ACTOR, f"{ROLLOUT}.log_prob_", "")]
    passes += [(REF, f"{REF}.log_prob_", "")] if any(setting(config, each) for each in kl) else []
    for engine, head, kind in passes:
        shared = [setting(config, f"{engine}{part}.{_ULYSSES}") for part in ("", ".fsdp_config")]
        parallel = max(each or 1 for each in shared)
        ranks = max(1, world_size(config) // parallel)
        rows, rest = divmod(sizes.mini * sizes.group, ranks)
        check(not rest, f"{mini} x {GROUP}={sizes.group} rows do not divide to {ranks} processes")
        if setting(config, f"{head}use_dynamic_bsz"):
            name = f"{head}{kind}max_token_len_per_gpu"
            check(
                (setting(config, name) or 0) * parallel >= row,
                f"{name}={setting(config, name)} x {parallel} ({_ULYSSES}) is below a prompt and "
                f"its response = {row} tokens; give {-(-row // parallel)} or more",
            )
            continue
        name = f"{head}{kind}micro_batch_size_per_gpu"
        size = setting(config, name)
        told = f"{name}={size} must divide the {rows} rows that a process holds of a mini-batch"
        check(size and rows % size == 0, f"{told}; give a divisor, or {head}use_dynamic_bsz=true")


def _check_separate(config: DictConfig, sizes: Sizes) -> None:
    """Check what verl would do without a word in mode separate_async; the rest it refuses."""
    if any(setting(config, name) for name in names(MODEL_NODE, "lora_rank lora_adapter_path")):
        why = "with lora_rank in separate_async: verl would send the model without its adapter"
        demand(config, f"{MODEL_NODE}.lora.merge", (True,), why)
    is_on_gpus = setting(config, "trainer.device") == "cuda"
    if is_on_gpus and sizes.share < sizes.batch and not setting(config, _BYPASS):
        # verl writes the weights that a step began with into the shards, where the next pass must
        # see them and nothing else write.
        why = "where verl puts back the weights of a step's beginning (parameter_sync_step above 1)"
        demand(config, f"{ACTOR}.fsdp_config.reshard_after_forward", (True,), why)
        demand(config, f"{ACTOR}.fsdp_config.param_offload", (False,), why)
        if world_size(config) > 1:
            demand(config, f"{ACTOR}.strategy", ("fsdp2",), why)


def check_method(config: DictConfig, method: Method, sizes: Sizes) -> None:
    """Refuse values of verl's settings that do not give the loss that the method is defined by."""
    who, estimator = f"trainer.method={config.trainer.method}", setting(config, _ESTIMATOR)
    if method.credit is not None:
        for name, choice, why in _own_needs(method):
            demand(config, name, choice, f"with {who}: {why}")
    if setting(config, "trainer.val_only"):
        return
    compares = estimator not in _WITHOUT_GROUP if method.credit is None else method.needs.group
    check(
        sizes.group > 1 or not compares,
        f"{GROUP}=1 must be at least 2: {who} with {_ESTIMATOR}={estimator} compares the "
        f"responses of one group",
    )
    method.check_run(
        group_size=sizes.group, use_kl_in_reward=setting(config, "algorithm.use_kl_in_reward")
    )
    if method.role_steps[0]:
        why = f"with {method.settings_node}.t_low: phases mix in others"
        demand(config, "trainer.v1.trainer_mode", ("sync",), why)


def _own_needs(method: Method) -> Iterator[tuple[str, tuple[Any, ...], str]]:
    """Yield settings of verl's, what a method with its own credit needs them to be, and why."""
    rows = "a prompt has several rows, not always as many"
    for name in ("algorithm.use_kl_in_reward", f"{ACTOR}.use_kl_loss"):
        yield name, (False,), "it has KL coefficients of its own"
    yield f"{ACTOR}.use_dynamic_bsz", (True,), rows
    yield _FILTER, (False,), "verl would take all rows of a prompt for one group"
    if method.needs.reference:
        yield f"{REF}.log_prob_use_dynamic_bsz", (True,), rows
    if method.needs.log_probs:
        yield _BYPASS, (False,), "it reads the trainer's own log-probabilities"
    if method.credit and method.credit.weighs_tokens:
        yield f"{ACTOR}.policy_loss.loss_mode", ("vanilla",), "it weighs each token"
    if method.needs.critic_rows:
        yield f"{ACTOR}.entropy_coeff", (0,), "the role that does not train would train"
