"""Check single values: type, range, choices, and verl's arithmetic of a first update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from omegaconf import DictConfig, ListConfig

from recipe.hint.adapter.preflight.settings import (
    ACTOR,
    REF,
    ROLLOUT,
    is_whole,
    names,
    setting,
)
from recipe.run.errors import ConfigError, one_line

# True or false, and null or not there in verl's file.
BOOLS = (
    *("preflight_only", "trainer.eval_only", "critic.enable", f"{ROLLOUT}.enable_sleep_mode"),
    *("trainer.remove_previous_ckpt_in_save", "data.filter_prompts", "data.need_tools_kwargs"),
)
_FSDP = (f"{ACTOR}.fsdp_config", f"{REF}.fsdp_config", "critic.fsdp")
_OPTIMS = (f"{ACTOR}.optim", "critic.optim")
_VAL = f"{ROLLOUT}.val_kwargs"
# These may have another type than their default: FSDP2 takes a number of processes for the first,
# and verl takes "0.5_2.0" (both bounds) for the second.
OTHERWISE_TYPED = (
    *(f"{name}.reshard_after_forward" for name in _FSDP),
    "algorithm.rollout_correction.rollout_is_threshold",
)
_WHOLE = (
    *names("data", "train_batch_size max_prompt_length max_response_length seed gen_batch_size"),
    *names("data", "train_max_samples val_max_samples val_batch_size dataloader_num_workers"),
    *names(ROLLOUT, "n prompt_length response_length val_kwargs.n agent.num_workers"),
    *names(ROLLOUT, "tensor_model_parallel_size max_model_len max_num_seqs"),
    *names(ROLLOUT, "max_num_batched_tokens top_k val_kwargs.top_k"),
    *names("trainer", "nnodes n_gpus_per_node total_epochs save_freq test_freq critic_warmup"),
    *names("trainer", "max_actor_ckpt_to_keep max_critic_ckpt_to_keep"),
    *names("trainer", "total_training_steps log_val_generations"),
    "transfer_queue.backend.SimpleStorage.num_data_storage_units",
    *names(ACTOR, "ppo_mini_batch_size ppo_epochs"),
    *names("algorithm.filter_groups", "max_num_gen_batches max_inflight_gen_batches"),
    *("ray_kwargs.ray_init.num_cpus", "actor_rollout_ref.model.lora_rank"),
    "trainer.v1.sampler.max_off_policy_threshold",
)
_OR_NULL = (
    *names("trainer", "total_training_steps max_actor_ckpt_to_keep max_critic_ckpt_to_keep"),
    *(f"{ROLLOUT}.max_model_len", "ray_kwargs.ray_init.num_cpus"),
    *names("data", "seed gen_batch_size val_batch_size"),
    *names(ACTOR, "clip_ratio_low clip_ratio_high"),
    "trainer.v1.sampler.max_off_policy_threshold",
)
_ANY = -(2**63)
# Where it is not 1.
_SMALLEST = {
    **dict.fromkeys(names("trainer", "save_freq test_freq"), -1),
    **dict.fromkeys(names(ROLLOUT, "top_k val_kwargs.top_k"), -1),
    **dict.fromkeys(names("data", "dataloader_num_workers val_batch_size"), 0),
    **dict.fromkeys(("trainer.critic_warmup", "actor_rollout_ref.model.lora_rank"), 0),
    **dict.fromkeys(names("data", "seed train_max_samples val_max_samples"), _ANY),
    "trainer.log_val_generations": _ANY,
    f"{ROLLOUT}.max_model_len": 2,
}


class _Range(NamedTuple):
    """The numbers from ``low``, or above it, to ``high``."""

    low: float
    is_above: bool = False
    high: float = float("inf")

    def holds(self, value: Any) -> bool:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (value > self.low if self.is_above else value >= self.low)
            and value <= self.high
        )

    def __str__(self) -> str:
        begin = f"{'above' if self.is_above else 'of at least'} {self.low:g}"
        return begin if self.high == float("inf") else f"{begin} and at most {self.high:g}"


_POSITIVE, _SHARE = _Range(0, is_above=True), _Range(0, is_above=True, high=1)
_RANGES = {
    **dict.fromkeys(names(ROLLOUT, "top_p val_kwargs.top_p gpu_memory_utilization"), _SHARE),
    f"{ROLLOUT}.temperature": _POSITIVE,  # its rollouts are to differ
    f"{_VAL}.temperature": _Range(0),
    **{name: _POSITIVE for optim in _OPTIMS for name in names(optim, "lr clip_grad")},
    **{f"{optim}.weight_decay": _Range(0) for optim in _OPTIMS},
    **dict.fromkeys(names(ACTOR, "clip_ratio clip_ratio_low clip_ratio_high"), _Range(0)),
    f"{ACTOR}.clip_ratio_c": _Range(1, is_above=True),
}
_DTYPES = ("fp32", "float32", "fp16", "float16", "bf16", "bfloat16", "16", "32", 16, 32)
_CHOICES: dict[str, tuple[Any, ...]] = {
    "trainer.device": ("cuda", "cpu"),
    "trainer.v1.trainer_mode": ("sync", "colocate_async", "separate_async"),
    "trainer.v1.sampler.max_off_policy_strategy": ("drop", "wait"),
    "trainer.resume_mode": ("auto", "disable", "resume_path"),
    f"{ROLLOUT}.name": ("vllm",),
    f"{ROLLOUT}.dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    f"{ACTOR}.strategy": ("fsdp", "fsdp2"),
    # What every row carries: what it trains with, and whether it is right.
    "algorithm.filter_groups.metric": ("reward", "acc"),
    "algorithm.rollout_correction.rollout_is": (None, "token", "sequence"),
    **{f"{optim}.lr_scheduler_type": ("constant", "cosine") for optim in _OPTIMS},
    **{f"{name}.{key}": _DTYPES for name in _FSDP for key in ("model_dtype", "dtype")},
}
# verl's KL estimators; with a + their gradient is another's.
_KLS = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3")
# Backends of trainer.logger that are packages of their own.
_LOGGERS = ("wandb", "mlflow", "swanlab", "clearml", "trackio", "tensorboard")
_CLASSES = (f"{ROLLOUT}.agent.agent_loop_manager_class", "trainer.checkpoint_callback_class")
_CODE = ("trainer.v1.sampler.custom_sampler.path", "data.custom_cls.path")


def check_types(config: DictConfig, defaults: Mapping[str, Any]) -> None:
    """Refuse ``no`` for false and a text for a number, wherever verl's default is one.

    Nothing else would: what is not empty counts as true, and a text is compared with a number only
    inside Ray. ``null`` is not a type.

    Args:
        config: Composed by Hydra.
        defaults: verl's, by dotted name; what belongs to somebody else is not among them.
    """
    for name, default in {**defaults, **dict.fromkeys(BOOLS, False)}.items():
        if not isinstance(default, bool | int | float) or name in OTHERWISE_TYPED:
            continue
        check_type(name, setting(config, name), bool if isinstance(default, bool) else float)


def check_type(name: str, value: Any, expected: type) -> None:
    """Refuse a value that is neither null nor of the type: ``bool``, or a number for the others."""
    if value is None:
        return
    if expected is bool and not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} must be true or false")
    if expected is not bool and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ConfigError(f"{name}={value} must be a number")


def check_values(config: DictConfig) -> None:
    """Refuse values that are out of range or not a choice, and code that does not exist."""
    for name in _WHOLE:
        value, smallest = setting(config, name), _SMALLEST.get(name, 1)
        if not is_whole(value, smallest) and not (value is None and name in _OR_NULL):
            least = "" if smallest == _ANY else f" of at least {smallest}"
            raise ConfigError(f"{name}={value} must be a whole number{least}")
    for name, numbers in _RANGES.items():
        value = setting(config, name)
        if not numbers.holds(value) and not (value is None and name in _OR_NULL):
            raise ConfigError(f"{name}={value} must be a number {numbers}")
    for name, choices in _CHOICES.items():
        _check_choice(name, setting(config, name), choices)
    if not setting(config, "trainer.eval_only"):
        _check_training(config)
    for name in _CLASSES:
        _check_class(name, setting(config, name))
    for name in _CODE:
        path = setting(config, name)
        # verl takes pkg://MODULE too.
        if path is not None and "://" not in str(path) and not Path(str(path)).is_file():
            raise ConfigError(f"{name}={path}: no such file; give a Python file, or drop it")


def _check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    if value in choices:
        return
    allowed = dict.fromkeys("null" if each is None else str(each) for each in choices)
    raise ConfigError(f"{name}={value} is not a choice; choose one of {', '.join(allowed)}")


def _check_training(config: DictConfig) -> None:
    """Check what verl looks up by name in the first update, and the optimizer's settings."""
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY, POLICY_LOSS_REGISTRY

    _check_loggers(setting(config, "trainer.logger"))
    for name in (f"{ACTOR}.kl_loss_type", "algorithm.kl_penalty"):
        _check_choice(name, setting(config, name), (*_KLS, *(f"{each}+" for each in _KLS)))
    registered = {
        "algorithm.adv_estimator": ADV_ESTIMATOR_REGISTRY,
        f"{ACTOR}.policy_loss.loss_mode": POLICY_LOSS_REGISTRY,
    }
    # A library of the user's may register more; the workers import it.
    if not setting(config, "actor_rollout_ref.model.external_lib"):
        for name, registry in registered.items():
            _check_choice(name, setting(config, name), sorted(registry))
    for optim in _OPTIMS:
        module, name = (
            setting(config, f"{optim}.{key}") for key in ("optimizer_impl", "optimizer")
        )
        if module == "torch.optim" and not hasattr(import_module(module), str(name)):
            raise ConfigError(f"{optim}.optimizer={name} is no class of {module}; like AdamW")
        betas = setting(config, f"{optim}.betas")
        is_pair = isinstance(betas, list | tuple | ListConfig) and len(betas) == 2
        if not is_pair or not all(_Range(0).holds(beta) and beta < 1 for beta in betas):
            raise ConfigError(
                f"{optim}.betas={betas} must be two numbers from 0 to below 1, like [0.9,0.999]"
            )


def check_first_update(config: DictConfig) -> None:
    """Run verl's arithmetic of a first update on four rows: it refuses some values only there.

    Raises:
        ConfigError: Naming the settings, with verl's reason.
    """
    if setting(config, "actor_rollout_ref.model.external_lib"):
        return  # it may register what these settings name
    correction = "algorithm.rollout_correction"
    rows = names(correction, "rollout_is rollout_is_threshold rollout_rs rollout_rs_threshold")
    for settings, update in (
        (("algorithm.adv_estimator",), _estimate),
        (rows, _correct),
        (names(f"{ACTOR}.policy_loss", "loss_mode dro_beta"), _lose),
    ):
        try:
            update(config)
        except (AssertionError, KeyError, NotImplementedError, TypeError, ValueError) as error:
            given = ", ".join(f"{name}={setting(config, name)}" for name in settings)
            raise ConfigError(
                f"{given}: verl would stop at the first update: {one_line(error)}; "
                f"change one of them"
            ) from error


def _estimate(config: DictConfig) -> None:
    """Estimate advantages from the columns that verl's V1 trainers have."""
    import torch
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    if (name := setting(config, "algorithm.adv_estimator")) == "gae":
        return  # called by itself, with the critic's values
    rewards, mask = torch.tensor([[0.0], [1.0]] * 2), torch.ones(4, 1)
    columns = {"non_tensor_batch": {}, "batch": {"prompts": mask, "attention_mask": mask}}
    estimator: Any = get_adv_estimator_fn(name)
    taken = {key: columns[key] for key in columns.keys() & signature(estimator).parameters.keys()}
    estimator(
        token_level_rewards=rewards,
        response_mask=mask,
        config=config.algorithm,
        index=np.array(["a", "a", "b", "b"]),
        **taken,
    )


def _correct(config: DictConfig) -> None:
    import torch
    from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask

    given = setting(config, "algorithm.rollout_correction")
    if not given or given.bypass_mode:
        return
    ones = torch.ones(4, 3)
    compute_rollout_correction_and_rejection_mask(
        -ones,
        -ones,
        ones,
        rollout_is=given.rollout_is,
        rollout_is_threshold=given.rollout_is_threshold,
        rollout_rs=given.rollout_rs,
        rollout_rs_threshold=given.rollout_rs_threshold,
    )


def _lose(config: DictConfig) -> None:
    import torch
    from verl.trainer.ppo.core_algos import get_policy_loss_fn
    from verl.utils.config import omega_conf_to_dataclass

    actor: Any = omega_conf_to_dataclass(setting(config, ACTOR))
    actor.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=12,
        global_batch_size=4,
        loss_scale_factor=actor.loss_scale_factor,
    )
    ones = torch.ones(4, 3)
    loss: Any = get_policy_loss_fn(actor.policy_loss.loss_mode)
    loss(
        old_log_prob=-ones,
        log_prob=-ones,
        advantages=ones,
        response_mask=ones,
        loss_agg_mode=actor.loss_agg_mode,
        config=actor,
        rollout_is_weights=None,
    )


def _check_loggers(given: Any) -> None:
    from verl.utils.tracking import Tracking

    if not isinstance(given, str | list | tuple | ListConfig):
        raise ConfigError(f"trainer.logger={given} must be a list, like [tensorboard], or []")
    for each in [given] if isinstance(given, str) else given:
        _check_choice("trainer.logger", each, [*Tracking.supported_backend, "tracking"])
        if each in _LOGGERS and find_spec(each) is None:
            raise ConfigError(
                f"trainer.logger={each} is not installed; pip install {each}, or drop it"
            )


def _check_class(name: str, value: Any) -> None:
    """Check that the module of a class is there; its import takes seconds."""
    if value is None:
        return
    module, _, cls = str(value).rpartition(".")
    try:
        is_there = bool(module and cls) and find_spec(module) is not None
    except (ImportError, ValueError):
        is_there = False
    if not is_there:
        raise ConfigError(
            f"{name}={value}: no module {module or value}; give a class as MODULE.CLASS that "
            f"this Python can import, or drop it"
        )
