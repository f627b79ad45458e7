"""Second names of settings: those of other implementations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from omegaconf import OmegaConf

from recipe import REPOSITORY
from recipe.hint.methods import METHODS
from recipe.run.errors import ConfigError

_ACTOR, _ROLLOUT, _MODEL = (f"actor_rollout_ref.{name}" for name in ("actor", "rollout", "model"))
_LENGTH = "data.max_response_length"
# Name there, of the SAGE release, GHPO and the multi-turn reference -> ours; for one value of it,
# the setting that says the same, or nothing.
NAMES = {
    "hint.verify.require_boxed=true": "hint.verify.answer_format=boxed",  # an earlier version
    "hint.verify.require_boxed=false": "hint.verify.answer_format=auto",
    f"{_MODEL}.pretrained_model_name_or_path": f"{_MODEL}.path",
    f"{_ROLLOUT}.num_generations_per_prompt": f"{_ROLLOUT}.n",
    f"{_ROLLOUT}.response_length": _LENGTH,
    "rl_type=ghpo": "trainer.method=ghpo",
    "rl_type=grpo": "trainer.method=grpo",
    "model_name_or_path": f"{_MODEL}.path",
    "num_generations": f"{_ROLLOUT}.n",
    "learning_rate": f"{_ACTOR}.optim.lr",
    "lr_scheduler_type": f"{_ACTOR}.optim.lr_scheduler_type",
    "warmup_ratio": f"{_ACTOR}.optim.lr_warmup_steps_ratio",
    "beta": f"{_ACTOR}.kl_loss_coef",
    "epsilon": f"{_ACTOR}.clip_ratio_low",
    "epsilon_high": f"{_ACTOR}.clip_ratio_high",
    "max_prompt_length": "data.max_prompt_length",
    "max_completion_length": _LENGTH,
    "max_steps": "trainer.total_training_steps",
    "num_train_epochs": "trainer.total_epochs",
    "agent_type=score": "trainer.method=score",
    "agent_type=bi_level_score": "trainer.method=mlmt",
    "agent_type=archer": "trainer.method=archer",
    "policy_lm": f"{_MODEL}.path",
    "rollout_size": "data.train_batch_size",
    "eval_size": "data.val_max_samples",
    "lm_lr": f"{_ACTOR}.optim.lr",
    "max_grad_norm": f"{_ACTOR}.optim.clip_grad",
    "max_new_tokens": _LENGTH,
    "max_tokens": _LENGTH,
    "temperature": f"{_ROLLOUT}.temperature",
    "use_gradient_checkpointing": f"{_MODEL}.enable_gradient_checkpointing",
    "iterations": "trainer.total_training_steps",
    "eval_freq": "trainer.test_freq",
    "save_freq": "trainer.save_freq",
    "save_path": "hint.run_dir",
    "run_name": "trainer.experiment_name",
    "project_name": "trainer.project_name",
    "use_wandb=true": "trainer.logger=[console,wandb]",
    "use_wandb=false": "",
}
# Those of one method, beside its settings, whose bare names are taken too.
_GUIDE_NAMES = {"train_guidance_model": "train_guide", "guidance_kl_coef": "guide_kl_coef"}
OF_METHOD = {
    "ghpo": {"start_hint_step": "hint.ghpo.cold_start_steps"},
    "score-guided": {name: f"hint.score_guided.{ours}" for name, ours in _GUIDE_NAMES.items()},
    "mlmt": {
        **{name: f"hint.mlmt.{ours}" for name, ours in _GUIDE_NAMES.items()},
        "value_coef": "hint.mlmt.value_bonus",
        "stop_value_gradients=true": "hint.mlmt.value_grad=stop",
        "stop_value_gradients=false": "hint.mlmt.value_grad=full",
        "value_model_name": "critic.model.path",
        "value_lr": "critic.optim.lr",
    },
    "archer": {
        "epochs": "hint.archer.updates",
        "critic_lm": "critic.model.path",
        "critic_lr": "critic.optim.lr",
    },
}
# Names without a setting here: left out with one line, or refused with what to write, where the run
# would be another one.
LEFT_OUT = (
    "per_device_train_batch_size hint_ratio eval_temperature reward_funcs guidance_lr epochs "
    "actor_epochs warmup_iter batch_size grad_accum_steps gamma tau critic_lm "
    "gradient_accumulation_steps max_micro_batch_size capacity critic_lr do_sample use_lora "
    "use_8bit_optimizers use_bf16_mixed_precision use_memory_efficient_attention env_type env_name "
    "language"
).split()
_GUIDE = "guide=teacher and hint.teacher.base_url serve another model as the guide"
REFUSED = {
    "dataset_name": "give data.train_files, made by main_prepare.py ghpo",
    "data_path": "give data.train_files, made by main_prepare.py",
    "checkpoint_path": "give trainer.resume_from_path",
    "guidance_model_path": _GUIDE,
    "correction_model_path": _GUIDE,
    "use_smart_corrections": "give trainer.method=score-guided",
    "stage2_steps": "give trainer.total_training_steps, the steps of both stages together",
}
_OVERRIDE = re.compile(r"^(?:\+\+|\+|~)?([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)


def given_settings(argv: Iterable[str]) -> dict[str, str]:
    """Return ``name -> value`` of the overrides; the last one of a name wins."""
    return {match[1]: match[2] for arg in argv if (match := _OVERRIDE.match(arg))}


def resolve_aliases(argv: Sequence[str]) -> list[str]:
    """Replace the names of other implementations; refuse two values of one setting."""
    given = given_settings(argv)
    words = [NAMES.get(f"{name}={given.get(name)}", "") for name in ("rl_type", "agent_type")]
    method = given.get("trainer.method") or "".join(words).rpartition("=")[2]
    method = method or method_of_experiment(given.get("experiment", ""))
    names = NAMES | OF_METHOD.get(method, {})
    if (cls := METHODS.get(method)) and cls.settings_node:
        names |= {
            each.name: f"{cls.settings_node}.{each.name}" for each in fields(cls.settings_cls)
        }
    result: list[str] = []
    left_out, seen = [], {}
    for arg in argv:
        match = _OVERRIDE.match(arg)
        ours = _translated(arg, match[1], match[2], names) if match else [arg]
        left_out += [arg] * (ours is None)
        result += ours or ()
        for name, value in given_settings(ours or ()).items():
            before, first = seen.setdefault(name, (value, arg))
            if before != value and first.split("=")[0] != arg.split("=")[0]:
                raise ConfigError(f"{first} and {arg} are two names of one setting; give one")
            seen[name] = (value, arg)
    if left_out:
        sys.stderr.write(f"left out, no setting here: {', '.join(left_out)}\n")
    return result


def _translated(arg: str, name: str, value: str, names: dict[str, str]) -> list[str] | None:
    """Return an argument as our settings; ``None`` where there is none."""
    if name == "reward_weights" and value.count(",") == 1:
        accuracy, form = value.strip("[]").split(",")
        return [f"hint.ghpo.accuracy_weight={accuracy}", f"hint.ghpo.format_weight={form}"]
    if (word := f"{name}={value.lower()}") in names:
        return [names[word]] if names[word] else []
    if name in names:
        is_off = value.strip("0.") == ""
        kl = [f"{_ACTOR}.use_kl_loss={'false' if is_off else 'true'}"] * (name == "beta")
        return [f"{arg[: arg.index(name)]}{names[name]}={value}", *kl]
    if name in REFUSED and value.lower() not in ("null", "false", ""):
        raise ConfigError(f"{arg} is no setting here: {REFUSED[name]}")
    return None if name in LEFT_OUT or name in REFUSED else [arg]


def method_of_experiment(experiment: str) -> str:
    """Return the method of an experiment's file, or of one that it builds on; empty if none."""
    path = REPOSITORY / f"configs/experiment/{experiment}.yaml"
    if not experiment or not path.is_file():
        return ""
    content: Any = OmegaConf.load(path)
    bases = [base for base in content.get("defaults", ()) if isinstance(base, str)]
    found = [OmegaConf.select(content, "trainer.method"), *map(method_of_experiment, bases[::-1])]
    return next((each for each in found if each), "")
