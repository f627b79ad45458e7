"""A folder holds one run: what makes a resumed run another one, and what may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.hint.errors import ConfigError
from recipe.hint.runtime.preflight.settings import setting

_ROLLOUT, _ACTOR = "actor_rollout_ref.rollout", "actor_rollout_ref.actor"
_MODEL = "actor_rollout_ref.model.path"
_DEVICES = "trainer.nnodes x trainer.n_gpus_per_node"
# A setting, or a section with all that is in it: what is sampled, what is trained on, and how.
DEFINES = (
    "trainer.method",
    "trainer.hint_accuracy_min_threshold",
    "trainer.hint_accuracy_max_threshold",
    "trainer.v1.trainer_mode",
    "hint",
    "algorithm",
    *(f"data.{name}" for name in ("train_files", "seed", "shuffle", "train_max_samples")),
    *(f"data.{name}" for name in ("train_batch_size", "max_prompt_length", "max_response_length")),
    _MODEL,
    *(f"{_ROLLOUT}.{name}" for name in ("n", "prompt_length", "response_length")),
    *(f"{_ROLLOUT}.{name}" for name in ("temperature", "top_p", "top_k")),
    f"{_ACTOR}.optim",
    *(f"{_ACTOR}.{name}" for name in ("strategy", "ppo_mini_batch_size", "ppo_epochs")),
    *(f"{_ACTOR}.{name}" for name in ("clip_ratio", "clip_ratio_low", "clip_ratio_high")),
    *(f"{_ACTOR}.{name}" for name in ("use_kl_loss", "kl_loss_coef", "entropy_coeff")),
    f"{_ACTOR}.loss_agg_mode",
    # verl keeps one file per trainer process and reads them with as many.
    _DEVICES,
)
# In `hint`, but not of the run: where it writes, how long it waits, how a service is reached.
OPERATION = (
    "hint.run_dir",
    "hint.watchdog",
    *(f"hint.verify.{name}" for name in ("num_workers", "timeout_s", "audit")),
    *(f"hint.teacher.{name}" for name in ("base_url", "api_key_env", "num_parallel", "timeout_s")),
    *(f"hint.teacher.{name}" for name in ("num_retries", "backoff_s", "max_wait_s")),
    *(f"hint.teacher.{name}" for name in ("budget_tokens", "cache_dir")),
)
# Not worth a line: of this start alone; nodes and GPUs are compared as their product.
_UNTOLD = (
    *("preflight_only", "hint.run_dir", "trainer.default_local_dir"),
    *(f"trainer.{name}" for name in ("experiment_name", "nnodes", "n_gpus_per_node")),
    *("trainer.resume_mode", "trainer.resume_from_path", f"{_ROLLOUT}.trace"),
)
_PATHS = ("data.train_files", "data.val_files", _MODEL, "hint.prompts", "hint.teacher.cache_dir")
_SHOWN = 4


def check_same_run(config: DictConfig) -> list[str]:
    """Compare a run's settings with those that the run in its folder began with.

    A folder without ``config.yaml``, or without a record or checkpoint, holds no run yet; with
    ``trainer.resume_mode=disable`` another run may begin there. Settings that only one of the two
    has, of another version, are not compared.

    Returns:
        A line that names the settings that changed and do not make another run, or nothing.

    Raises:
        ConfigError: Naming the settings that do, or a ``config.yaml`` that cannot be read.
    """
    root = Path(setting(config, "hint.run_dir"))
    if setting(config, "trainer.resume_mode") == "disable" or not _holds_a_run(config, root):
        return []
    before, now = _flat(_read(root / "config.yaml")), _flat(_plain(config))
    both = [name for name in before if name in now and not _is_part(name, _UNTOLD)]
    changed = [name for name in both if before[name] != now[name]]
    others = [name for name in changed if _is_part(name, DEFINES) and not _is_part(name, OPERATION)]
    if others:
        told = "; ".join(f"{name}={before[name]}, now {now[name]}" for name in others[:_SHOWN])
        raise ConfigError(
            f"hint.run_dir={root} holds a run with {told}{_more(others)}: give the old value to "
            f"resume it, another trainer.experiment_name to begin a run of its own, or "
            f"trainer.resume_mode=disable to begin anew in this folder"
        )
    if not changed:
        return []
    told = ", ".join(f"{name} {before[name]} -> {now[name]}" for name in changed[:_SHOWN])
    return [f"changed   since the run began: {told}{_more(changed)}"]


def _holds_a_run(config: DictConfig, root: Path) -> bool:
    records = root / "records.jsonl"
    checkpoints = Path(setting(config, "trainer.default_local_dir")).glob("global_step_*")
    has_begun = (records.is_file() and records.stat().st_size > 0) or any(checkpoints)
    return has_begun and (root / "config.yaml").exists()


def _read(path: Path) -> Mapping[str, Any]:
    try:
        node = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"{path} cannot be read ({' '.join(str(error).split())[:120]}), so nothing says which "
            f"run its folder holds; give another trainer.experiment_name, or take the file away"
        ) from error
    if not isinstance(node, dict):
        raise ConfigError(
            f"{path} holds no settings, so nothing says which run its folder holds; give another "
            f"trainer.experiment_name, or take the file away"
        )
    return node


def _plain(config: DictConfig) -> Mapping[str, Any]:
    node = OmegaConf.to_container(config, resolve=True)
    assert isinstance(node, dict)
    return node


def _flat(node: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names to values; paths are absolute, and one file is a list of one."""
    flat = dict(_leaves(node))
    for name in _PATHS:
        if name in flat:
            flat[name] = _absolute(name, flat[name])
    devices = [flat.get(f"trainer.{name}") for name in ("nnodes", "n_gpus_per_node")]
    if all(isinstance(each, int) for each in devices):
        flat[_DEVICES] = devices[0] * devices[1]
    return flat


def _leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _absolute(name: str, value: Any) -> Any:
    if name.startswith("data."):
        files = [value] if isinstance(value, str) else value or []
        return [_absolute("", each) for each in files]
    # A model that is no folder is a name on the hub.
    if not isinstance(value, str) or (name == _MODEL and not Path(value).exists()):
        return value
    return str(Path(value).resolve())


def _is_part(name: str, of: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in of)


def _more(names: list[str]) -> str:
    return f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
