"""Compose what ``--help`` prints: one screen from the registry, presets and settings."""

from __future__ import annotations

import functools
import json
import operator
import textwrap
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.methods import METHODS

# The settings that matter -> what they are; their values are read from the configuration.
_SETTINGS = {
    "trainer.method": "the method",
    "actor_rollout_ref.model.path": "model: a folder or a name on the hub",
    "data.train_files": "training problems: a file or [a,b]",
    "data.val_files": "validation problems",
    "trainer.experiment_name": "an earlier name resumes",
    "hint.run_dir": "where the run goes",
    "data.train_batch_size": "prompts per step",
    "actor_rollout_ref.rollout.n": "responses per prompt, the group size G",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "prompts per update",
    "actor_rollout_ref.actor.optim.lr": "learning rate",
    "data.max_response_length": "longest response, in tokens",
    "actor_rollout_ref.rollout.prompt_length": "longest prompt with its hint, in tokens",
    "trainer.total_training_steps": "steps to train",
    "trainer.test_freq": "steps between validations",
    "trainer.save_freq": "steps between checkpoints",
    "hint.source": "source of hints; null: the method's own",
    "hint.max_level": "strongest hint level, L",
    "hint.seed": "sampling; data.seed orders the data",
    "trainer.eval_only": "only evaluate data.val_files",
    "preflight_only": "check everything, start nothing",
}
_REST = (
    "All settings, with comments: recipe/hint/config/hint_trainer.yaml. --cfg job: the values now.",
    "-m NAME=A,B: one run after another. -sc install=bash: completion. --hydra-help: all options.",
    "README.md is the way in; docs/troubleshooting.md explains errors.",
)


def help_text(config: DictConfig, configs: Path, program: str = "hint-train") -> str:
    """Return the help: at most 45 lines of 100 characters.

    Args:
        config: The primary configuration, without overrides; its values are shown as defaults.
        configs: The folder with one sub-folder per group of presets.
        program: How the command is called.
    """
    lines = [
        "Train a language model with hint-guided reinforcement learning on verl, or evaluate one.",
        f"usage: {program} [hardware=NAME] [experiment=NAME] [NAME=VALUE ...]",
        "methods (trainer.method=NAME, docs/methods/):",
    ]
    width = 2 + max(map(len, METHODS))
    lines += [
        f"  {name:{width}}{(cls.__doc__ or '').splitlines()[0]}" for name, cls in METHODS.items()
    ]
    for title, group in (("machines", "hardware"), ("experiments", "experiment")):
        names = ", ".join(sorted(path.stem for path in (configs / group).glob("*.yaml")))
        text = f"{title} ({group}=NAME, configs/{group}/): {names}"
        lines += textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)
    lines.append("settings that matter, with their defaults (presets change some):")
    node: Any = OmegaConf.to_container(config, resolve=False)
    for name, meaning in _SETTINGS.items():
        value = functools.reduce(operator.getitem, name.split("."), node)
        shown = value if isinstance(value, str) else json.dumps(value)  # null, true
        lines.append(f"  {f'{name}={shown}':54}  {meaning}")
    return "\n".join([*lines, *_REST])
