"""Checks of settings that need neither a file nor the model: ranges, and values that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from recipe.hint.errors import ConfigError
from recipe.hint.typed import check_finite

_SECTIONS = ("trainer", "hint", "data", "actor_rollout_ref", "algorithm", "reward", "ray_kwargs")
_ROLLOUT = "actor_rollout_ref.rollout"
_ACTOR = "actor_rollout_ref.actor"
# Whole numbers -> the smallest that makes sense.
_WHOLE = {
    "data.train_batch_size": 1,
    "data.max_prompt_length": 1,
    "data.max_response_length": 1,
    f"{_ROLLOUT}.prompt_length": 1,
    f"{_ROLLOUT}.response_length": 1,
    f"{_ROLLOUT}.val_kwargs.n": 1,
    f"{_ROLLOUT}.agent.num_workers": 1,
    f"{_ROLLOUT}.tensor_model_parallel_size": 1,
    f"{_ACTOR}.ppo_mini_batch_size": 1,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 1,
    "trainer.total_epochs": 1,
    "trainer.save_freq": -1,
    "trainer.test_freq": -1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
}
_WHOLE_OR_NULL = {
    "trainer.total_training_steps": 1,
    "trainer.max_actor_ckpt_to_keep": 1,
    f"{_ROLLOUT}.max_model_len": 2,
    "ray_kwargs.ray_init.num_cpus": 1,
}
_DEVICES = ("nnodes", "n_gpus_per_node")
_TRANSFER = ("backend", "custom_backend_module")
_POSITIVE = (f"{_ROLLOUT}.temperature", f"{_ACTOR}.optim.lr")
_CHOICES = {
    "trainer.device": ("cuda", "cpu"),
    "trainer.v1.trainer_mode": ("sync", "colocate_async", "separate_async"),
    "trainer.resume_mode": ("auto", "disable", "resume_path"),
    f"{_ROLLOUT}.name": ("vllm",),
}


def setting(config: DictConfig, name: str) -> Any:
    """The value of a dotted name; ``None`` where the config has no such node."""
    return OmegaConf.select(config, name)


def check_sections(config: DictConfig) -> None:
    """Refuse ``trainer=3``, which replaces a whole section, and numbers that are none.

    Raises:
        ConfigError: Naming the section or the setting.
    """
    check_finite(OmegaConf.to_container(config), "")
    for name in _SECTIONS:
        value = config.get(name)
        if not isinstance(value, Mapping | DictConfig):
            raise ConfigError(
                f"{name}={value!r} replaces a whole section; set the keys in it, like "
                f"{name}.KEY=VALUE"
            )


def check_settings(config: DictConfig) -> None:
    """Everything that follows from the settings alone.

    Raises:
        ConfigError: On the first value that is out of range or contradicts another.
    """
    _check_numbers(config)
    _check_choices(config)
    _check_group_size(config)
    _check_separate(config)
    _check_mini_batch(config)
    _check_shares(config)
    _check_micro_batches(config)
    _check_not_carried(config)
    _check_chunked_prefill(config)
    _check_greedy_validation(config)


def world_size(config: DictConfig) -> int:
    """Number of trainer processes."""
    return setting(config, "trainer.nnodes") * setting(config, "trainer.n_gpus_per_node")


def is_separate(config: DictConfig) -> bool:
    """Whether the run trains with rollouts on devices of their own."""
    mode = setting(config, "trainer.v1.trainer_mode")
    return mode == "separate_async" and not setting(config, "trainer.eval_only")


def files_of(config: DictConfig, name: str) -> list[str]:
    """A setting that is one file or a list of files."""
    value = setting(config, name)
    many = list(value) if isinstance(value, list | tuple | ListConfig) else [value]
    return [str(each) for each in many if each is not None and str(each).strip()]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_numbers(config: DictConfig) -> None:
    for name, smallest in (_WHOLE | _WHOLE_OR_NULL).items():
        value = setting(config, name)
        if value is None and name in _WHOLE_OR_NULL:
            continue
        if not _is_whole(value) or value < smallest:
            raise ConfigError(f"{name}={value} must be a whole number of at least {smallest}")
    for name in _POSITIVE:
        value = setting(config, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ConfigError(f"{name}={value} must be a number above 0")


def _check_choices(config: DictConfig) -> None:
    for name, choices in _CHOICES.items():
        value = setting(config, name)
        if value not in choices:
            raise ConfigError(f"{name}={value} is not a choice; choose one of {', '.join(choices)}")
    given, twin = f"{_ROLLOUT}.response_length", "data.max_response_length"
    if setting(config, given) != setting(config, twin):
        raise ConfigError(
            f"{given}={setting(config, given)} and {twin}={setting(config, twin)} are two names of "
            f"one length; give both the same value"
        )


def _check_group_size(config: DictConfig) -> None:
    name = f"{_ROLLOUT}.n"
    size = setting(config, name)
    if not _is_whole(size) or size < 2:
        raise ConfigError(
            f"{name}={size} must be a whole number of at least 2: an advantage compares the "
            f"rollouts of one group, and a single one has nothing to be compared with"
        )
    for part in ("hint.search.probe_n", "hint.scaf.rollouts"):
        count = setting(config, part)
        if count >= size:
            raise ConfigError(f"{part}={count} must be below the group size {name}={size}")


def _check_mini_batch(config: DictConfig) -> None:
    name = f"{_ACTOR}.ppo_mini_batch_size"
    batch, mini = setting(config, "data.train_batch_size"), setting(config, name)
    mode = setting(config, "trainer.v1.trainer_mode")
    syncs = setting(config, f"trainer.v1.{mode}.parameter_sync_step") or 1
    if batch % syncs:
        raise ConfigError(
            f"data.train_batch_size={batch} is not a multiple of "
            f"trainer.v1.{mode}.parameter_sync_step={syncs}; change one of them"
        )
    share = batch // syncs
    if mini > share or share % mini:
        cause = "is above" if mini > share else "does not divide"
        parts = f" / trainer.v1.{mode}.parameter_sync_step={syncs}" if syncs > 1 else ""
        raise ConfigError(
            f"{name}={mini} {cause} data.train_batch_size={batch}{parts} (both count prompts); "
            f"give a divisor of {share}"
        )


def _check_separate(config: DictConfig) -> None:
    """Mode separate_async: rollouts on devices of their own, and a way for the weights to them."""
    if not is_separate(config):
        return
    device, transfer = setting(config, "trainer.device"), f"{_ROLLOUT}.checkpoint_engine"
    what = f"trainer.v1.trainer_mode=separate_async with trainer.device={device}"
    for name in _DEVICES:
        value = setting(config, f"{_ROLLOUT}.{name}")
        if not _is_whole(value) or value < 1:
            raise ConfigError(
                f"{what} needs devices for the rollouts alone, but {_ROLLOUT}.{name}={value}; give "
                f"a whole number of at least 1 (those of the trainer are in trainer.{name})"
            )
    backend, module = (setting(config, f"{transfer}.{name}") for name in _TRANSFER)
    if backend == "naive" or (backend == "gloo" and not module):
        cpu = f"gloo {transfer}.custom_backend_module=recipe.hint.runtime.cpu.transfer"
        raise ConfigError(
            f"{what} sends weights to other devices, which {transfer}.backend={backend} with "
            f"custom_backend_module={module} cannot; give {transfer}.backend="
            f"{cpu if device == 'cpu' else 'nccl'}"
        )
    if not setting(config, "actor_rollout_ref.hybrid_engine"):
        raise ConfigError(
            f"{what} and actor_rollout_ref.hybrid_engine=false: verl 0.9.1 stops there while it "
            f"writes a line of its log; set it to true"
        )


def _check_shares(config: DictConfig) -> None:
    """Mode separate_async makes one update of each share of the batch."""
    batch, mini = setting(config, "data.train_batch_size"), f"{_ACTOR}.ppo_mini_batch_size"
    steps = "trainer.v1.separate_async.parameter_sync_step"
    if is_separate(config) and batch != setting(config, steps) * setting(config, mini):
        raise ConfigError(
            f"data.train_batch_size={batch} must be {steps}={setting(config, steps)} x "
            f"{mini}={setting(config, mini)} in mode separate_async; give "
            f"{mini}={batch // setting(config, steps)}"
        )


def _check_micro_batches(config: DictConfig) -> None:
    """verl stops in the first update with a bare assertion when these do not divide."""
    if setting(config, f"{_ACTOR}.strategy") not in ("fsdp", "fsdp2"):
        return
    sequence_parallel = setting(config, f"{_ACTOR}.ulysses_sequence_parallel_size") or 1
    ranks = max(world_size(config) // sequence_parallel, 1)
    rows = setting(config, f"{_ACTOR}.ppo_mini_batch_size") * setting(config, f"{_ROLLOUT}.n")
    if rows % ranks:
        raise ConfigError(
            f"{_ACTOR}.ppo_mini_batch_size x {_ROLLOUT}.n = {rows} rows cannot be shared out "
            f"evenly to {ranks} trainer processes; give a multiple of {ranks}"
        )
    for dynamic, micro in (
        (f"{_ACTOR}.use_dynamic_bsz", f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
        (f"{_ROLLOUT}.log_prob_use_dynamic_bsz", f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu"),
    ):
        size = setting(config, micro)
        if setting(config, dynamic):
            continue
        if not _is_whole(size) or size < 1 or (rows // ranks) % size:
            raise ConfigError(
                f"{micro}={size} must divide the {rows // ranks} rows that one process holds of a "
                f"mini-batch ({_ACTOR}.ppo_mini_batch_size x {_ROLLOUT}.n / processes); "
                f"give a divisor, or {dynamic}=true"
            )


# verl's options that a whole-group request does not carry: on, they would be ignored in silence.
_NOT_CARRIED = (
    "actor_rollout_ref.rollout.enable_rollout_routing_replay",
    "actor_rollout_ref.rollout.disaggregation.enabled",
    "actor_rollout_ref.rollout.full_determinism",
    "actor_rollout_ref.rollout.ignore_eos",
    "actor_rollout_ref.actor.checkpoint.async_save",
    "distillation.enabled",
    "algorithm.filter_groups.enable",
)


def _check_not_carried(config: DictConfig) -> None:
    for option in _NOT_CARRIED:
        if OmegaConf.select(config, option):
            raise ConfigError(f"{option}=true is not supported by this recipe; set it to false")


def _check_greedy_validation(config: DictConfig) -> None:
    """vLLM answers a greedy request only once."""
    node = config.actor_rollout_ref.rollout.val_kwargs
    if node.temperature == 0 and node.n > 1:
        raise ConfigError(
            f"{_ROLLOUT}.val_kwargs.n={node.n} with {_ROLLOUT}.val_kwargs.temperature=0 would give "
            f"one answer {node.n} times; set n to 1 or the temperature above 0"
        )


def _check_chunked_prefill(config: DictConfig) -> None:
    """vLLM's CPU build stops at a seeded request whose prompt it takes in pieces."""
    rollout = config.actor_rollout_ref.rollout
    if config.trainer.device == "cpu" and rollout.enable_chunked_prefill:
        raise ConfigError(
            "actor_rollout_ref.rollout.enable_chunked_prefill=true does not work with "
            "trainer.device=cpu: vLLM cannot rewind the seed of a request there; set it to false"
        )
