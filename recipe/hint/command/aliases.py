"""Second names of settings: those of other implementations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import yaml

from recipe import REPOSITORY
from recipe.hint.methods import METHODS, Method, MultiTurn, OwnCredit
from recipe.run.errors import ConfigError

_EXPERIMENTS = REPOSITORY / "configs/experiment"
_ALL_STEPS = "trainer.total_training_steps"
# Names that mean the same for every method: of the SAGE release.
ALIASES = {
    "actor_rollout_ref.model.pretrained_model_name_or_path": "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.num_generations_per_prompt": "actor_rollout_ref.rollout.n",
    # Of the multi-turn reference (docs/methods/score.md).
    "policy_lm": "actor_rollout_ref.model.path",
    "rollout_size": "data.train_batch_size",
    "eval_size": "data.val_max_samples",
    "lm_lr": "actor_rollout_ref.actor.optim.lr",
    "max_grad_norm": "actor_rollout_ref.actor.optim.clip_grad",
    "max_new_tokens": "data.max_response_length",
    "max_tokens": "data.max_response_length",
    "temperature": "actor_rollout_ref.rollout.temperature",
    "use_gradient_checkpointing": "actor_rollout_ref.model.enable_gradient_checkpointing",
    "iterations": _ALL_STEPS,
    "eval_freq": "trainer.test_freq",
    "save_freq": "trainer.save_freq",
    "save_path": "hint.run_dir",
    "run_name": "trainer.experiment_name",
    "project_name": "trainer.project_name",
}
# Both names exist in verl and must agree.
TWINS = {"actor_rollout_ref.rollout.response_length": "data.max_response_length"}
_ONE_PASS = "each step makes one pass over the rows that it sampled"
_BY_TOKENS = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu sizes the pieces of an update"
_ONE_POLICY = "solver and guide are one policy with one optimizer, whose learning rate is lm_lr"
_SERVED = "another model as the guide is served at an address: guide=teacher, hint.teacher.base_url"
# Names of the multi-turn reference without a counterpart, and what to do.
NO_COUNTERPART = {
    "agent_type": "trainer.method names the method",
    "use_smart_corrections": (
        "trainer.method names one with a guide; guide=teacher train_guide=false is a frozen one"
    ),
    "guidance_lr": _ONE_POLICY,
    "guidance_model_path": _SERVED,
    "correction_model_path": _SERVED,
    "epochs": _ONE_PASS,
    "actor_epochs": (
        f"{_ONE_PASS}; actor_rollout_ref.actor.ppo_epochs repeats it on the same rows"
    ),
    "warmup_iter": (
        "N steps of the critic alone are trainer.critic_warmup=N+1, the first step of the policy, "
        "for a method with a critic"
    ),
    "capacity": _ONE_PASS,
    "gamma": "credit stays in its turn",
    "tau": "there is no slow target",
    "critic_lm": "there is no critic of utterances",
    "critic_lr": "there is no critic of utterances",
    "batch_size": _BY_TOKENS,
    "grad_accum_steps": _BY_TOKENS,
    "gradient_accumulation_steps": _BY_TOKENS,
    "max_micro_batch_size": _BY_TOKENS,
    "do_sample": "every response is sampled, at actor_rollout_ref.rollout.temperature",
    "use_lora": "give actor_rollout_ref.model.lora_rank, such as 32",
    "use_wandb": "give trainer.logger=[console,wandb]",
}
_OVERRIDE = re.compile(r"^(?:\+\+|\+|~)?([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)


def given_settings(argv: Iterable[str]) -> dict[str, str]:
    """Return ``name -> value`` of the overrides; the last one of a name wins."""
    return {match[1]: match[2] for arg in argv if (match := _OVERRIDE.match(arg))}


def resolve_aliases(argv: Sequence[str]) -> list[str]:
    """Replace aliases by ours and verl's, and set twins together.

    Raises:
        ConfigError: If two names of one setting are given with different values, or a name of the
            multi-turn reference that means nothing to the method.
    """
    given = given_settings(argv)
    experiment = _experiment(given.get("experiment", ""))
    name = given.get("trainer.method") or _setting(experiment, "trainer.method") or ""
    method = METHODS.get(name)
    argv = _with_all_steps(argv, method, experiment)
    if method and issubclass(method, OwnCredit):
        names = ALIASES | _of_method(method)
        for second, value in given.items():
            if second in NO_COUNTERPART.keys() - names.keys():
                raise ConfigError(
                    f"{second}={value} is not read by trainer.method={name}: "
                    f"{NO_COUNTERPART[second]}; drop it"
                )
        renamed = [_renamed(arg, names, method.alias_values) for arg in argv]
    else:
        renamed = [_renamed(arg, ALIASES, {}) for arg in argv]
    _check_agree(argv, renamed)
    now = given_settings(renamed)
    twins = [f"{b}={now[a]}" for a, b in TWINS.items() if a in now and b not in now]
    return [*renamed, *twins]


def _renamed(arg: str, names: Mapping[str, str], values: Mapping[str, Mapping[str, str]]) -> str:
    """Return an argument under the setting's own name, and with its own word for the value.

    Raises:
        ConfigError: If the value is none of those that have a word.
    """
    [(second, value)] = given_settings([arg]).items() or [("", "")]
    if second not in names:
        return arg
    arg = arg.replace(second, names[second], 1)
    if second not in values:
        return arg
    words = values[second]
    if value.lower() not in words:
        raise ConfigError(f"{second}={value} must be {' or '.join(words)}")
    return f"{names[second]}={words[value.lower()]}"


def _check_agree(argv: Sequence[str], renamed: Sequence[str]) -> None:
    """Refuse two names of one setting with different values.

    Raises:
        ConfigError: Naming both.
    """
    seen: dict[str, tuple[str, str]] = {}
    for arg, new in zip(argv, renamed, strict=True):
        for name, value in given_settings([new]).items():
            setting = TWINS.get(name, name)
            before, first = seen.get(setting, (value, arg))
            if before != value and first.split("=")[0] != arg.split("=")[0]:
                raise ConfigError(
                    f"{first} and {arg} are two names of one setting; give one of them, or the "
                    f"same value"
                )
            seen[setting] = (value, arg)


def _experiment(name: str) -> Any:
    """Return what a file of configs/experiment holds; ``None`` where there is none."""
    path = _EXPERIMENTS / f"{name}.yaml"
    return yaml.safe_load(path.read_text("utf-8")) if name and path.is_file() else None


def _setting(node: Any, name: str) -> Any:
    """Return the value that a file gives a setting; ``None`` where it gives none."""
    for part in name.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _with_all_steps(
    argv: Sequence[str], method: type[Method] | None, experiment: Any
) -> Sequence[str]:
    """Replace ``stage2_steps``: the steps of a run less those of stage I.

    ``experiment`` is what the file of configs/experiment holds.

    Raises:
        ConfigError: If a number of steps is not a whole number.
    """
    given = given_settings(argv)
    name = method.stage1 if method and issubclass(method, MultiTurn) else ""
    if not (method and name and "stage2_steps" in given):
        return argv
    whole_name = f"{method.settings_node}.{name}"
    of_file = _setting(experiment, whole_name)
    default = str(asdict(method.settings_cls())[name] if of_file is None else of_file)
    first = given.get(name, given.get(whole_name, default))
    second = given["stage2_steps"]
    if not (first.isdecimal() and second.isdecimal()):
        raise ConfigError(f"stage2_steps={second} after {name}={first}: both must be whole numbers")
    total = str(int(first) + int(second))
    if (all_steps := given.get(_ALL_STEPS, total)) != total:
        raise ConfigError(
            f"{_ALL_STEPS}={all_steps} is not {name}={first} + stage2_steps={second}; drop "
            f"one of them"
        )
    return [f"{_ALL_STEPS}={total}" if arg == f"stage2_steps={second}" else arg for arg in argv]


def _of_method(cls: type[OwnCredit]) -> dict[str, str]:
    """Return the bare names of a method's settings, and those that other implementations use."""
    own = {item.name: item.name for item in fields(cls.settings_cls)}
    return {
        second: first if "." in first else f"{cls.settings_node}.{first}"
        for second, first in {**own, **cls.aliases}.items()
    }
