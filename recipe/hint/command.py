"""Read the command line before Hydra does, explain what Hydra refuses, and print the help."""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import OverrideParseException
from omegaconf import OmegaConf

from recipe import PROGRAMS, REPOSITORY
from recipe.hint.methods import every_method
from recipe.hint.settings import method_defaults
from recipe.run.config import leaves
from recipe.run.errors import ConfigError, one_line

CONFIG_DIR = PROGRAMS / "config"
# Names of the SAGE release -> verl's.
_NAMES = {
    "actor_rollout_ref.model.pretrained_model_name_or_path": "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.num_generations_per_prompt": "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.response_length": "data.max_response_length",
}
_OVERRIDE = re.compile(r"^(?:\+\+|\+|~)?([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)
_HOME = re.compile(r"(^|[\[,])~/")
_NOT_THERE = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")
_HELP = """\
Train a language model with hint-guided reinforcement learning on verl, or evaluate one.
usage: hint train [hardware=NAME] [experiment=NAME] [NAME=VALUE ...]
methods (trainer.method=NAME, docs/methods/):
{methods}
machines (hardware=NAME, configs/hardware/):
{hardware}
experiments (experiment=NAME, configs/experiment/):
{experiment}
recipe/hint/config/hint_trainer.yaml has all settings, with comments.
--cfg job prints the values, --hydra-help Hydra's options. hint campaign makes several runs.
hint check only checks and hint eval only evaluates, with the same settings."""


def given_settings(argv: Iterable[str]) -> dict[str, str]:
    """Return ``name -> value`` of the overrides; the last one of a name wins."""
    return {match[1]: match[2] for arg in argv if (match := _OVERRIDE.match(arg))}


def translated(argv: Sequence[str]) -> list[str]:
    """Replace ``~`` and the names of the SAGE release."""
    result = []
    for arg in argv:
        name, equals, value = arg.partition("=")
        result.append(_NAMES.get(name, name) + equals + _HOME.sub(rf"\g<1>{Path.home()}/", value))
    return result


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate Hydra's options from the settings, which its parser does not accept mixed."""

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; settings are NAME=VALUE without dashes; see --hydra-help")

    parser = get_args_parser()
    parser.error = refuse
    settings = parser.parse_intermixed_args(list(argv)).overrides
    return [arg for arg in argv if arg not in settings], settings


def choose_hardware(argv: list[str], has_gpu: bool) -> tuple[list[str], str]:
    """Add the laptop preset, and say so, where no GPU is found and nothing given names a device."""
    # An experiment chooses its preset itself.
    if has_gpu or given_settings(argv).keys() & {"hardware", "experiment", "trainer.device"}:
        return argv, ""
    return ["hardware=laptop", *argv], (
        "no GPU found and no hardware= given: taking the laptop preset (configs/hardware/"
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


def explain(error: Exception, argv: Sequence[str]) -> str:
    """Return in one line what is wrong with the command line, and the name that was meant."""
    text = one_line(error)
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override!r} cannot be read as NAME=VALUE; a value with commas, brackets, =, ~ "
            f"or letters beyond ASCII needs two kinds of quotes: 'NAME=\"VALUE\"'"
        )
    if not (match := _NOT_THERE.search(text)):
        return text
    found = match[1] or match[2]
    name = next((given for given in given_settings(argv) if given.endswith(found)), found)
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(CONFIG_DIR), version_base=None):
        node: Any = OmegaConf.to_container(compose("hint_trainer"), resolve=False)
    known = dict(leaves(node))
    meant = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {meant[0]}?" if meant else ""
    return f"{name} is not a setting{hint} (a new key of verl's needs a + in front)"


def help_text() -> str:
    """Return the help: one screen with the methods and presets."""
    docs = ((name, (cls.__doc__ or "").splitlines()[0]) for name, cls in every_method().items())
    groups = {"methods": "\n".join(f"  {name:14}{doc}" for name, doc in docs)}
    for group in ("hardware", "experiment"):
        files = sorted((REPOSITORY / "configs" / group).glob("*.yaml"))
        names = ", ".join(file.stem for file in files)
        groups[group] = textwrap.indent(textwrap.fill(names, 98), "  ")
    return _HELP.format(**groups)
