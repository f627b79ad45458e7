"""Read settings by their dotted names, and the numbers that several checks need, once."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from recipe.run.errors import ConfigError
from recipe.run.typed import check_finite


def names(section: str, keys: str) -> tuple[str, ...]:
    """Return the dotted names of several settings of one section."""
    return tuple(f"{section}.{key}" for key in keys.split())


ACTOR, ROLLOUT, REF, MODEL_NODE = names("actor_rollout_ref", "actor rollout ref model")
PROMPT_LENGTH = f"{ROLLOUT}.prompt_length"
MINI, GROUP = f"{ACTOR}.ppo_mini_batch_size", f"{ROLLOUT}.n"
_SECTIONS = ("trainer", "hint", "data", "actor_rollout_ref", "algorithm", "reward", "ray_kwargs")
_WHOLE = (
    *names("data", "train_batch_size max_prompt_length max_response_length"),
    *(MINI, GROUP, PROMPT_LENGTH, f"{ROLLOUT}.response_length", f"{ROLLOUT}.val_kwargs.n"),
    *names("trainer", "nnodes n_gpus_per_node total_epochs"),
    *names(ROLLOUT, "tensor_model_parallel_size agent.num_workers"),
    "transfer_queue.backend.SimpleStorage.num_data_storage_units",
)
_WHOLE_OR_NULL = (
    *names("trainer", "total_training_steps max_actor_ckpt_to_keep max_critic_ckpt_to_keep"),
    *(f"{ROLLOUT}.max_model_len", "ray_kwargs.ray_init.num_cpus", "data.gen_batch_size"),
)


def setting(config: DictConfig, name: str) -> Any:
    """Return the value of a dotted name; ``None`` where the config has no such node."""
    return OmegaConf.select(config, name)


def files_of(config: DictConfig, name: str) -> list[str]:
    """Return a setting that is one file or a list of files as a list."""
    value = setting(config, name)
    many = list(value) if isinstance(value, list | tuple | ListConfig) else [value]
    return [str(each) for each in many if each is not None and str(each).strip()]


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of each setting; an empty mapping is a value."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def text_of(value: Any) -> str:
    """Return a value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_separate(config: DictConfig) -> bool:
    """Return whether the run trains with rollouts on devices of their own."""
    mode = setting(config, "trainer.v1.trainer_mode")
    return mode == "separate_async" and not setting(config, "trainer.eval_only")


def world_size(config: DictConfig) -> int:
    """Return the number of trainer processes."""
    return setting(config, "trainer.nnodes") * setting(config, "trainer.n_gpus_per_node")


def rollout_devices(config: DictConfig) -> int:
    """Return the number of devices that only roll out."""
    if not is_separate(config):
        return 0
    counts = (setting(config, f"{ROLLOUT}.{name}") for name in ("nnodes", "n_gpus_per_node"))
    return math.prod(count or 0 for count in counts)


def reference_and_critic(config: DictConfig) -> tuple[bool, bool]:
    """Return whether verl will build either; its import takes a second."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy

    with quiet():
        return need_reference_policy(config), need_critic(config)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep verl's output out of the summary."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Sizes:
    """The numbers of a training that several checks need.

    ``batch``, ``mini`` and ``share`` count prompts; a share is what trains between two syncs of
    the weights. Lengths are in tokens.
    """

    batch: int
    mini: int
    num_shares: int
    group: int
    prompt: int
    response: int
    mode: str
    device: str
    num_processes: int

    @property
    def share(self) -> int:
        return self.batch // self.num_shares

    @property
    def num_updates(self) -> int:
        """Mini-batches of one share."""
        return self.share // self.mini


def read_sizes(config: DictConfig) -> Sizes:
    """Read the sizes of a run.

    Raises:
        ConfigError: If one is no whole number of at least 1.
    """
    for name in (*_WHOLE, *_WHOLE_OR_NULL):
        value = setting(config, name)
        if not is_whole(value) and not (value is None and name in _WHOLE_OR_NULL):
            raise ConfigError(f"{name}={value} must be a whole number of at least 1")
    mode = setting(config, "trainer.v1.trainer_mode")
    return Sizes(
        batch=setting(config, "data.train_batch_size"),
        mini=setting(config, MINI),
        num_shares=setting(config, f"trainer.v1.{mode}.parameter_sync_step") or 1,
        group=setting(config, GROUP),
        prompt=setting(config, PROMPT_LENGTH),
        response=setting(config, f"{ROLLOUT}.response_length"),
        mode=mode,
        device=setting(config, "trainer.device"),
        num_processes=world_size(config),
    )


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_sections(config: DictConfig) -> None:
    """Refuse ``trainer=3``, which replaces a whole section, and numbers that are not finite."""
    check_finite(OmegaConf.to_container(config), "")
    for name in _SECTIONS:
        value = config.get(name)
        if not isinstance(value, Mapping | DictConfig):
            raise ConfigError(
                f"{name}={value!r} replaces a whole section; set the keys in it, like "
                f"{name}.KEY=VALUE"
            )
