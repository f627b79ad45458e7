"""Whether a start goes on with the run that a folder holds, or with the one of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.preflight.settings import (
    ACTOR,
    ROLLOUT,
    leaves,
    names,
    setting,
)
from recipe.hint.adapter.rewards import FUNCTION
from recipe.run.checkpoints import (
    digests_of,
    is_within,
    resume_step,
    said_of,
    step_folder,
)
from recipe.run.errors import ConfigError, one_line
from recipe.run.paths import CHECKPOINTS, DATA_FILES, FOLDERS, SOURCES, TRAIN, local_path
from recipe.run.typed import read_yaml

_DEVICES = "trainer.nnodes x trainer.n_gpus_per_node"
_SHOWN = 4
_LOADER = "data.dataloader_num_workers"

# A setting, or a section with all that is in it: what is sampled, what is trained on, and how.
DEFINES = (
    *names("trainer", "method hint_accuracy_min_threshold hint_accuracy_max_threshold"),
    *("trainer.v1.trainer_mode", "hint", "algorithm"),
    *names("reward", "custom_reward_function reward_manager reward_kwargs"),
    *names("actor_rollout_ref.model", "path lora_rank lora_alpha target_modules lora_adapter_path"),
    *("actor_rollout_ref.model.custom_chat_template", "data.apply_chat_template_kwargs"),
    *names("data", "train_files seed shuffle train_max_samples train_batch_size"),
    # The order of one seed is another with processes of the loader, and so is its state.
    *names("data", "max_prompt_length max_response_length dataloader_num_workers"),
    *names(ROLLOUT, "n prompt_length response_length temperature top_p top_k"),
    *names(ACTOR, "optim strategy ppo_mini_batch_size ppo_epochs loss_agg_mode clip_ratio"),
    *names(ACTOR, "clip_ratio_low clip_ratio_high use_kl_loss kl_loss_coef entropy_coeff"),
    *(*names(ACTOR, "loss_scale_factor policy_loss"), *names("critic", "optim ppo_epochs")),
    # verl writes one file per trainer process and can be resumed only with as many, of which as
    # many share one copy of the weights.
    *(f"{ACTOR}.fsdp_config.fsdp_size", "critic.fsdp.fsdp_size", _DEVICES),
)
# Among them, but not of the run: where it writes, what it measures, how long it waits, how a
# service is reached.
OPERATION = (
    "algorithm.filter_groups.max_num_gen_batches",
    *names("hint", "run_dir watchdog max_in_flight samples"),
    *names("hint.verify", "num_workers timeout_s wall_factor worker_memory_mib"),
    *names("hint.teacher", "base_url api_key_env num_parallel timeout_s num_retries backoff_s"),
    *names("hint.teacher", "max_wait_s budget_tokens cache_dir"),
)
# Not reported: they concern this start alone, or are compared as a product (nodes and GPUs).
_UNTOLD = (
    *("preflight_only", "hint.run_dir", CHECKPOINTS, f"{ROLLOUT}.trace", f"{ROLLOUT}.seed"),
    *names("trainer", "experiment_name nnodes n_gpus_per_node resume_mode resume_from_path"),
)
# Sections of the user's own keys, compared as a whole: what is left out is a change too.
_OPEN = (
    *("data.apply_chat_template_kwargs", "hint.teacher.body", "reward.reward_kwargs"),
    f"{FUNCTION}.reward_kwargs",
)
_ANEW = (
    "begin a run at its weights: main_export.py writes them, and actor_rollout_ref.model.path "
    "takes the folder"
)
# What a checkpoint brings along, whatever the settings of a run that begins at it say.
_IN_CHECKPOINTS = (
    *names(f"{ACTOR}.optim", "lr weight_decay betas"),
    *names("critic.optim", "lr weight_decay betas"),
    *("data.seed", "data.shuffle", _DEVICES, _LOADER),
)


def check_same_run(config: DictConfig) -> list[str]:
    """Compare a run's settings with those that the run in its folder began with.

    A folder without ``config.yaml``, or without a record or checkpoint, holds no run yet; with
    ``trainer.resume_mode=disable`` another run may begin there. Settings that only one of the two
    has, of another version, are not compared.

    Returns:
        A line that names the settings that changed and do not make another run, or nothing.
    """
    root = Path(setting(config, "hint.run_dir"))
    records = root / "records.jsonl"
    has_begun = any(Path(setting(config, CHECKPOINTS)).glob("global_step_*"))
    has_begun |= records.is_file() and records.stat().st_size > 0
    is_resumed = setting(config, "trainer.resume_mode") != "disable"
    if not (has_begun and is_resumed and (root / "config.yaml").exists()):
        return []
    before, now = _values(_read(root / "config.yaml")), _values(OmegaConf.to_container(config))
    changed = [
        name
        for name in before
        if name in now and before[name] != now[name] and not _is_part(name, _UNTOLD)
    ]
    allowed = (*OPERATION, *_moved(config))
    others = [name for name in changed if _is_part(name, DEFINES) and not _is_part(name, allowed)]
    if others:
        raise ConfigError(
            f"hint.run_dir={root} holds a run with "
            f"{_join('; ', [f'{name}={before[name]}, now {now[name]}' for name in others])}: give "
            f"the old value to resume it, another trainer.experiment_name to begin a run of its "
            f"own, or trainer.resume_mode=disable to start over in this folder"
        )
    listed = _join(", ", [f"{name} {before[name]} -> {now[name]}" for name in changed])
    return [f"changed   since the run began: {listed}"] if changed else []


def check_taken_up(config: DictConfig, checkpoint: Path, *, has_critic: bool) -> None:
    """Refuse settings that a run which begins at another run's checkpoint would not get.

    They are in the checkpoint: the optimizer's, the order of the data and the place in it.

    Raises:
        ConfigError: Naming the setting, and the value of the run that the checkpoint is of.
    """
    if has_critic and not (checkpoint / "critic").is_dir():
        raise ConfigError(
            f"trainer.resume_from_path={checkpoint} has no folder critic, and this run has a "
            f"critic; give the checkpoint of a run with one, or {_ANEW}"
        )
    path = checkpoint.resolve().parent.parent / "config.yaml"
    before = _values(_read(path)) if path.is_file() else {}
    now = _values(OmegaConf.to_container(config))
    for name in _IN_CHECKPOINTS:
        if name in before and name in now and before[name] != now[name]:
            raise ConfigError(
                f"trainer.resume_from_path={checkpoint} is of a run with {name}={before[name]}, "
                f"and {name}={now[name]} would not replace it; give {before[name]}, or {_ANEW}"
            )
    said = said_of(checkpoint)
    _check_files(config, checkpoint, {TRAIN: said.get("train_files")}, f"or {_ANEW}")


def check_unchanged(config: DictConfig, checkpoint: Path) -> str:
    """Refuse to go on with files of other content than a checkpoint of this run was trained with.

    Returns:
        What the run's folder has lost since, to follow a sentence.
    """
    said = said_of(checkpoint)
    files = _digests(said)
    other = "another trainer.experiment_name, or trainer.resume_mode=disable to begin anew"
    _check_files(config, checkpoint, files, other)
    told = []
    for name, expected in {"records.jsonl": 0, **said.get("lines", {})}.items():
        path = Path(setting(config, "hint.run_dir")) / name
        if not path.is_file():
            told.append(f"; {name} of the steps before is gone")
        elif (found := path.stat().st_size) < expected:
            told.append(f"; {name} has lost {expected - found} bytes of the steps before")
    return "".join(told)


def _digests(said: Mapping[str, Any]) -> dict[str, list[str] | None]:
    """Return the digests that a checkpoint has of its run's files, by the name of the setting."""
    return {TRAIN: said.get("train_files"), **said.get("text_files", {})}


def _moved(config: DictConfig) -> list[str]:
    """Return the settings of files that have the content of the checkpoint to go on from."""
    root, path = Path(setting(config, CHECKPOINTS)), setting(config, "trainer.resume_from_path")
    step = resume_step(root)
    checkpoint = Path(path) if path else step_folder(root, step or 0)
    if not (path or step) or not is_within(root, checkpoint):
        return []
    before = _digests(said_of(checkpoint))
    return [
        name
        for name, digests in before.items()
        if digests and digests == [*digests_of(setting(config, name) or []).values()]
    ]


def _check_files(
    config: DictConfig, checkpoint: Path, files: Mapping[str, Sequence[str] | None], other: str
) -> None:
    """Refuse files whose digests are none of those by the name of their setting."""
    for name, before in files.items():
        for path, digest in digests_of(setting(config, name) or []).items():
            if before and digest not in before:
                raise ConfigError(
                    f"{name}={path} has another content than when {checkpoint} was saved: give "
                    f"the file as it was then, {other}"
                )


def _read(path: Path) -> Mapping[str, Any]:
    try:
        node = read_yaml(path.read_text(encoding="utf-8"))
        problem = "" if isinstance(node, dict) else "it holds no settings"
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        node, problem = {}, one_line(error, 120)
    if problem:
        raise ConfigError(
            f"{path} cannot be read ({problem}), so nothing says which run its folder holds; give "
            f"another trainer.experiment_name, or take the file away"
        )
    return node


def _values(node: Any) -> dict[str, Any]:
    """Map dotted names to values; paths are absolute, and one file is a list of one."""
    flat = dict(leaves(node))
    for name in DATA_FILES:
        if name in flat:
            files = [flat[name]] if isinstance(flat[name], str) else flat[name] or []
            flat[name] = [str(Path(local_path(file)).resolve()) for file in files]
    for name in _OPEN:
        own = [each for each in flat if _is_part(each, (name,))]  # itself where it is empty
        flat[name] = {each.removeprefix(f"{name}."): flat.pop(each) for each in own if each != name}
    for name in (*FOLDERS, *SOURCES):
        value = flat.get(name)
        # What a run makes may not be there yet; a source that is not may be a name on the hub.
        if isinstance(value, str) and (name in FOLDERS or Path(local_path(value)).exists()):
            flat[name] = str(Path(local_path(value)).resolve())
    nodes, devices = (flat.get(f"trainer.{name}") for name in ("nnodes", "n_gpus_per_node"))
    if isinstance(nodes, int) and isinstance(devices, int):
        flat[_DEVICES] = nodes * devices
    return flat


def _is_part(name: str, of: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in of)


def _join(separator: str, changes: Sequence[str]) -> str:
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return separator.join(changes[:_SHOWN]) + more
