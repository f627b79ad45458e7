"""Second names of settings: those of other implementations."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import yaml

from recipe import REPOSITORY
from recipe.hint.methods import METHODS, Method
from recipe.run.errors import ConfigError

_EXPERIMENTS = REPOSITORY / "configs/experiment"
_ALL_STEPS = "trainer.total_training_steps"
_ACTOR = "actor_rollout_ref.actor"
_ROLLOUT = "actor_rollout_ref.rollout"
_MODEL = "actor_rollout_ref.model"


@dataclass(frozen=True)
class Note:
    """A name without a setting here: it is left out, and one line says what to write."""

    text: str
    is_error: bool = False  # the run would not be the one that was asked for


def _words(**overrides: str) -> Callable[[str], list[str]]:
    """Return what maps each word to one override, or to none where that is empty."""

    def settings(value: str) -> list[str]:
        if value.lower() not in overrides:
            raise ConfigError(f"must be {' or '.join(overrides)}")
        return [overrides[value.lower()]] if overrides[value.lower()] else []

    return settings


def _beta(value: str) -> list[str]:
    is_used = str(float(value) > 0).lower()
    return [f"{_ACTOR}.kl_loss_coef={value}", f"{_ACTOR}.use_kl_loss={is_used}"]


def _reward_weights(value: str) -> list[str]:
    weights = value.strip("[]").split(",")
    if len(weights) != 2:
        raise ConfigError("must be two numbers, of the accuracy and of the format: [1.0,0.5]")
    names = ("accuracy_weight", "format_weight")
    return [f"hint.ghpo.{name}={weight}" for name, weight in zip(names, weights, strict=True)]


Meaning = str | Note | Callable[[str], list[str]]
_LR = f"{_ACTOR}.optim.lr"
_LENGTH = "data.max_response_length"
_ONE_PASS = Note("each step makes one pass over its rows; ppo_epochs of the actor repeats it")
_MEMORY = Note(f"{_ACTOR}.ppo_max_token_len_per_gpu sizes the pieces of an update")
_IGNORED = Note("the reference ignores it too")
_ROWS = Note("each row says what it is")
_GUIDE = "guide=teacher and hint.teacher.base_url serve another model as the guide"
# Method, or "" for all -> name there -> our setting (one that begins with a dot is the method's
# own), what makes our settings of the value, or a note. A method's settings need no line here.
NAMES: dict[str, dict[str, Meaning]] = {
    "": {
        "hint.verify.require_boxed": _words(  # an earlier version
            true="hint.verify.answer_format=boxed", false="hint.verify.answer_format=auto"
        ),
        # The SAGE release.
        f"{_MODEL}.pretrained_model_name_or_path": f"{_MODEL}.path",
        f"{_ROLLOUT}.num_generations_per_prompt": f"{_ROLLOUT}.n",
        # GHPO.
        "rl_type": _words(ghpo="trainer.method=ghpo", grpo="trainer.method=grpo"),
        "model_name_or_path": f"{_MODEL}.path",
        "num_generations": f"{_ROLLOUT}.n",
        "learning_rate": _LR,
        "lr_scheduler_type": f"{_ACTOR}.optim.lr_scheduler_type",
        "warmup_ratio": f"{_ACTOR}.optim.lr_warmup_steps_ratio",
        "beta": _beta,
        "epsilon": f"{_ACTOR}.clip_ratio_low",
        "epsilon_high": f"{_ACTOR}.clip_ratio_high",
        "max_prompt_length": "data.max_prompt_length",
        "max_completion_length": _LENGTH,
        "max_steps": _ALL_STEPS,
        "num_train_epochs": "trainer.total_epochs",
        "dataset_name": Note("give data.train_files, made by main_prepare.py ghpo", is_error=True),
        "per_device_train_batch_size": Note("data.train_batch_size counts a step's problems"),
        "hint_ratio": Note("the reference never reads it; hint.prefix.ratios are the shares"),
        "eval_temperature": Note(
            f"the reference never reads it; {_ROLLOUT}.val_kwargs.temperature"
        ),
        "reward_funcs": Note("reward_weights=[1.0,0.5] weighs accuracy and format"),
        # The multi-turn reference.
        "agent_type": _words(
            score="trainer.method=score",
            bi_level_score="trainer.method=mlmt",
            archer="trainer.method=archer",
        ),
        "policy_lm": f"{_MODEL}.path",
        "rollout_size": "data.train_batch_size",
        "eval_size": "data.val_max_samples",
        "lm_lr": _LR,
        "max_grad_norm": f"{_ACTOR}.optim.clip_grad",
        "max_new_tokens": _LENGTH,
        "max_tokens": _LENGTH,
        "temperature": f"{_ROLLOUT}.temperature",
        "use_gradient_checkpointing": f"{_MODEL}.enable_gradient_checkpointing",
        "iterations": _ALL_STEPS,
        "eval_freq": "trainer.test_freq",
        "save_freq": "trainer.save_freq",
        "save_path": "hint.run_dir",
        "run_name": "trainer.experiment_name",
        "project_name": "trainer.project_name",
        "use_wandb": _words(true="trainer.logger=[console,wandb]", false=""),
        "data_path": Note("give data.train_files, made by main_prepare.py", is_error=True),
        "checkpoint_path": Note("give trainer.resume_from_path", is_error=True),
        "guidance_model_path": Note(_GUIDE, is_error=True),
        "correction_model_path": Note(_GUIDE, is_error=True),
        "use_smart_corrections": Note("trainer.method=score-guided or mlmt has a guide"),
        "guidance_lr": Note(
            "one policy has one learning rate, lm_lr; guide_weight weighs the guide"
        ),
        "epochs": _ONE_PASS,
        "actor_epochs": _ONE_PASS,
        "warmup_iter": Note("trainer.critic_warmup=N+1 gives a critic N steps alone"),
        "batch_size": _MEMORY,
        "grad_accum_steps": _MEMORY,
        "gradient_accumulation_steps": _MEMORY,
        "max_micro_batch_size": _MEMORY,
        "capacity": Note("trainer.method=archer alone has a replay buffer"),
        "gamma": Note("credit stays in its turn"),
        "tau": Note("trainer.method=archer alone has a slow target"),
        "critic_lm": Note("trainer.method=archer alone has a critic of utterances"),
        "critic_lr": Note("trainer.method=archer alone has a critic of utterances"),
        "do_sample": Note(f"every response is sampled, at {_ROLLOUT}.temperature"),
        "use_lora": Note(f"{_MODEL}.lora_rank=32 trains an adapter"),
        "use_8bit_optimizers": _IGNORED,
        "use_bf16_mixed_precision": _IGNORED,
        "use_memory_efficient_attention": _IGNORED,
        "env_type": _ROWS,
        "env_name": _ROWS,
        "language": _ROWS,
    },
    "ghpo": {"start_hint_step": ".cold_start_steps", "reward_weights": _reward_weights},
    "score": {
        "use_smart_corrections": _words(true="trainer.method=score-guided", false=""),
    },
    "score-guided": {"train_guidance_model": ".train_guide", "guidance_kl_coef": ".guide_kl_coef"},
    "mlmt": {
        "train_guidance_model": ".train_guide",
        "guidance_kl_coef": ".guide_kl_coef",
        "value_coef": ".value_bonus",
        "stop_value_gradients": _words(
            true="hint.mlmt.value_grad=stop", false="hint.mlmt.value_grad=full"
        ),
        "value_model_name": "critic.model.path",
        "value_lr": "critic.optim.lr",
    },
    "archer": {
        "epochs": ".updates",
        "critic_lm": "critic.model.path",
        "critic_lr": "critic.optim.lr",
    },
}
# Both names exist in verl and must agree.
TWINS = {f"{_ROLLOUT}.response_length": _LENGTH}
_OVERRIDE = re.compile(r"^(?:\+\+|\+|~)?([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)


def given_settings(argv: Iterable[str]) -> dict[str, str]:
    """Return ``name -> value`` of the overrides; the last one of a name wins."""
    return {match[1]: match[2] for arg in argv if (match := _OVERRIDE.match(arg))}


def resolve_aliases(argv: Sequence[str]) -> list[str]:
    """Replace aliases by ours and verl's, and set twins together.

    Names without a counterpart are left out; one line on stderr says what to write.

    Raises:
        ConfigError: If two names of one setting are given with different values, or without the
            name that is left out the run would be another one.
    """
    given = given_settings(argv)
    experiment = given.get("experiment", "")
    method = given.get("trainer.method") or _of_file(experiment, "trainer.method") or ""
    notes: dict[str, str] = {}
    pairs = [(arg, arg) for arg in argv]

    def translate(is_meant: Callable[[str], bool]) -> list[tuple[str, str]]:
        return [
            (arg, each)
            for arg, new in pairs
            for each in (_translated(new, method, notes) if is_meant(new) else [new])
        ]

    for name in ("rl_type", "agent_type", "use_smart_corrections"):
        if name in given:
            prefix = f"{name}="
            pairs = translate(lambda arg, prefix=prefix: arg.startswith(prefix))
            method = given_settings(new for _, new in pairs).get("trainer.method", method)
    if steps := _all_steps(given, METHODS.get(method), experiment):
        pairs = [
            (steps, steps) if arg.startswith("stage2_steps=") else (arg, n) for arg, n in pairs
        ]
    pairs = translate(lambda arg: True)
    _check_agree(pairs)
    if notes:
        said = "; ".join(f"{arg} ({text})" for arg, text in notes.items())
        sys.stderr.write(f"left out, no setting here: {said}\n")
    now = given_settings(new for _, new in pairs)
    twins = [f"{b}={now[a]}" for a, b in TWINS.items() if a in now and b not in now]
    return [*(new for _, new in pairs), *twins]


def _translated(arg: str, method: str, notes: dict[str, str]) -> list[str]:
    """Return an argument as our settings; a note goes to ``notes``.

    Raises:
        ConfigError: If the value has no counterpart.
    """
    match = _OVERRIDE.match(arg)
    meaning = _meaning(match[1], method) if match else None
    if not match or meaning is None:
        return [arg]
    _, value = match.groups()
    if isinstance(meaning, Note):
        if meaning.is_error and value.lower() not in ("null", ""):
            raise ConfigError(f"{arg} is no setting here: {meaning.text}")
        notes[arg] = meaning.text
        return []
    if isinstance(meaning, str):
        return [f"{arg[: match.start(1)]}{meaning}={value}"]
    try:
        return meaning(value)
    except ValueError as error:
        raise ConfigError(f"{arg} {error}") from None


def _meaning(name: str, method: str) -> Meaning | None:
    """Return what a name means to a method; ``None`` where it is a setting's own name."""
    cls = METHODS.get(method)
    of_method = NAMES.get(method, {}).get(name)
    if cls and of_method is None and name in (item.name for item in fields(cls.settings_cls)):
        of_method = f".{name}"
    meaning = NAMES[""].get(name) if of_method is None else of_method
    is_own = cls and isinstance(meaning, str) and meaning.startswith(".")
    return f"{cls.settings_node}{meaning}" if cls and is_own else meaning


def _check_agree(renamed: Iterable[tuple[str, str]]) -> None:
    """Refuse two names of one setting with different values.

    Raises:
        ConfigError: Naming both.
    """
    seen: dict[str, tuple[str, str]] = {}
    for arg, new in renamed:
        for name, value in given_settings([new]).items():
            setting = TWINS.get(name, name)
            before, first = seen.get(setting, (value, arg))
            if before != value and first.split("=")[0] != arg.split("=")[0]:
                raise ConfigError(
                    f"{first} and {arg} are two names of one setting; give one of them, or the "
                    f"same value"
                )
            seen[setting] = (value, arg)


def _of_file(experiment: str, name: str) -> Any:
    """Return the value that an experiment, or one that it builds on, gives a setting."""
    path = _EXPERIMENTS / f"{experiment}.yaml"
    if not experiment or not path.is_file():
        return None
    content = node = yaml.safe_load(path.read_text("utf-8"))
    for part in name.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    bases = [base for base in content.get("defaults", ()) if isinstance(base, str)]
    below = (_of_file(base, name) for base in reversed(bases))
    return next((value for value in (node, *below) if value is not None), None)


def _all_steps(given: Mapping[str, str], method: type[Method] | None, experiment: str) -> str:
    """Return the steps of a run from those of both stages; empty without ``stage2_steps``.

    Raises:
        ConfigError: If a number of steps is not a whole number.
    """
    name = getattr(method, "stage1", "")
    if not (method and name and "stage2_steps" in given):
        return ""
    whole_name = f"{method.settings_node}.{name}"
    of_file = _of_file(experiment, whole_name)
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
    return f"{_ALL_STEPS}={total}"
