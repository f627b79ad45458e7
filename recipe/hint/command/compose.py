"""Read the command line before Hydra does, explain what Hydra refuses, and print the help."""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf

from recipe import PROGRAMS, REPOSITORY
from recipe.hint.command.aliases import given_settings
from recipe.hint.methods import METHODS
from recipe.hint.settings import method_defaults
from recipe.run.errors import ConfigError, one_line

CONFIG_DIR = PROGRAMS / "config"
_HOME = re.compile(r"(^|[\[,])~/")
_NOT_THERE = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")
# What --help says of the settings that matter; their values are read from the configuration.
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
_REST = """\
All settings, with comments: recipe/hint/config/hint_trainer.yaml. --cfg job: the values now.
-m NAME=A,B: one run after another. -sc install=bash: completion. --hydra-help: all options.
README.md is the way in; docs/troubleshooting.md explains errors."""


def tidied(argv: Sequence[str]) -> list[str]:
    """Return the arguments with ``~`` replaced and a method's name as it is written."""
    result = []
    for arg in argv:
        name, equals, value = arg.rstrip("\r").partition("=")  # of a script from Windows
        written = value.lower().replace("_", "-")
        value = written if name == "trainer.method" and written in METHODS else value
        value = _HOME.sub(rf"\g<1>{Path.home()}/", value)
        result.append(f"{name}{equals}{value}")
    return result


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate Hydra's options from the settings, which its parser does not accept mixed."""

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; settings are NAME=VALUE without dashes; see --hydra-help")

    parser = get_args_parser()
    parser.error = refuse
    settings = parser.parse_intermixed_args(list(argv)).overrides
    left, options = list(settings), []
    for arg in argv:
        if left and arg == left[0]:
            left.pop(0)
        else:
            options.append(arg)
    return options, settings


def choose_hardware(argv: list[str], has_gpu: bool) -> tuple[list[str], str]:
    """Add the laptop preset, and say so, where no GPU is found and nothing given names a device."""
    # An experiment chooses its preset itself.
    if has_gpu or given_settings(argv).keys() & {"hardware", "experiment", "trainer.device"}:
        return argv, ""
    return ["hardware=laptop", *argv], (
        "no GPU found and no hardware= given: running the laptop preset (configs/hardware/"
        "laptop.yaml), with the embedded model and problems where you name none"
    )


def set_config_paths() -> None:
    """Tell Hydra where this package, its methods and verl keep their settings.

    verl is found, not imported: importing it takes seconds, and its plugins read the
    environment that only the settings decide.
    """
    os.environ["HINT_REPO"] = str(REPOSITORY)
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("verl is not installed in this Python; see Install in README.md")
    package = Path(next(iter(spec.submodule_search_locations)))
    os.environ["HINT_VERL_CONFIG"] = str(package / "trainer" / "config")
    ConfigStore.instance().store(name="method_settings", node=method_defaults())


def primary_config() -> DictConfig:
    """Return all settings as the primary configuration gives them, without overrides."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(CONFIG_DIR), version_base=None):
        return compose("hint_trainer")


def explain(error: Exception, argv: Sequence[str]) -> str:
    """Return in one line what is wrong with the command line, and the name that was meant."""
    text = one_line(error)
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override!r} cannot be read as NAME=VALUE, without spaces; a value with commas,"
            f" brackets, =, ~ or letters beyond ASCII needs two kinds of quotes: 'NAME=\"VALUE\"'"
        )
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, value = error.missing_cfg_file.partition("/")
        there = ", ".join(error.options or ()) or "none"
        return f"{group}={value} is not a file of configs/{group}; choose one of {there}"
    if not (match := _NOT_THERE.search(text)):
        return text
    found = match[1] or match[2]
    name = next((given for given in given_settings(argv) if given.endswith(found)), found)
    known = flat_names(OmegaConf.to_container(primary_config(), resolve=False))
    if name in known:
        return f"{name} takes a key that it does not have yet with a + in front: '+{name}=...'"
    meant = nearest(name, known)
    hint = f"; did you mean {meant}?" if meant else ""
    return f"{name} is not a setting{hint} (a new key of verl's needs a + in front)"


def flat_names(node: Any, prefix: str = "") -> list[str]:
    """Return the dotted names of all settings and sections of a config."""
    names = []
    for key, value in node.items():
        names.append(f"{prefix}{key}")
        if isinstance(value, Mapping):
            names += flat_names(value, f"{prefix}{key}.")
    return names


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the setting that a mistyped one was most likely meant to be."""
    return next(iter(difflib.get_close_matches(name, names, n=1)), None)


def help_text(config: DictConfig, configs: Path, program: str = "hint-train") -> str:
    """Return the help, at most 45 lines, with the values of ``config`` as the defaults."""
    width = 2 + max(map(len, METHODS))
    lines = [
        "Train a language model with hint-guided reinforcement learning on verl, or evaluate one.",
        f"usage: {program} [hardware=NAME] [experiment=NAME] [NAME=VALUE ...]",
        "methods (trainer.method=NAME, docs/methods/):",
        *(
            f"  {name:{width}}{(cls.__doc__ or '').splitlines()[0]}"
            for name, cls in METHODS.items()
        ),
    ]
    for title, group in (("machines", "hardware"), ("experiments", "experiment")):
        names = ", ".join(sorted(path.stem for path in (configs / group).glob("*.yaml")))
        text = f"{title} ({group}=NAME, configs/{group}/): {names}"
        lines += textwrap.wrap(text, 100, subsequent_indent="  ", break_on_hyphens=False)
    lines.append("settings that matter, with their defaults (presets change some):")
    for name, meaning in _SETTINGS.items():
        *sections, key = name.split(".")
        node: Any = OmegaConf.select(config, ".".join(sections)) if sections else config
        value = OmegaConf.to_container(node, resolve=False)[key]
        shown = value if isinstance(value, str) else json.dumps(value)  # null, true
        lines.append(f"  {f'{name}={shown}':54}  {meaning}")
    return "\n".join([*lines, _REST])
