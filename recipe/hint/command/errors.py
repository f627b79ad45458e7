"""Hydra's errors as one sentence, with the name that was probably meant."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf

from recipe.hint.command.compose import flat_names, given_settings, nearest
from recipe.hint.errors import ConfigError

_NOT_THERE = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")
_GROUPS = ("hardware", "experiment")


def check_arguments(argv: Iterable[str], configs: Path) -> None:
    """Refuse ``--method sage``, ``hardware=null`` and presets that are not there.

    Hydra answers these with more than a line, or with another error when a group has no files.

    Args:
        argv: The command line without the program's name.
        configs: The folder with one sub-folder per group.

    Raises:
        ConfigError: Naming the argument.
    """
    argv = list(argv)
    options = get_args_parser()._option_string_actions
    has_own_folder = any(arg.split("=")[0] in ("-cd", "--config-dir") for arg in argv)
    for arg in argv:
        if arg.startswith("-") and arg.split("=")[0] not in options:
            raise ConfigError(
                f"{arg} is not an option; settings are given as NAME=VALUE without dashes, like "
                f"trainer.method=sage"
            )
        group, _, values = arg.partition("=")
        # glob(...) and choice(...) of a multirun are Hydra's to read.
        if group in _GROUPS and "(" not in values:
            for value in values.split(","):
                _check_preset(group, value.strip(), configs, has_own_folder)


def _check_preset(group: str, value: str, configs: Path, has_own_folder: bool) -> None:
    if value.lower() in ("", "null", "none"):
        raise ConfigError(
            f"{group}={value} names no file of configs/{group}; give a name or leave it out"
        )
    there = sorted(path.stem for path in (configs / group).glob("*.yaml"))
    if value not in there and not has_own_folder:
        renamed = _renamed(value, configs) if group == "experiment" else ""
        raise ConfigError(
            f"{group}={value} is not a file of configs/{group}; "
            f"{renamed or 'there is: ' + (', '.join(there) or 'none')}"
        )


def _renamed(value: str, configs: Path) -> str:
    """What an experiment's old name is now, or an empty text."""
    table = configs / "experiment" / "reported.csv"
    if table.is_file():
        for run in csv.DictReader(table.read_text("utf-8").splitlines()):
            if run["replaces"] == value:
                return f"it is now experiment={run['experiment']} {run['settings']}"
    return ""


def explain(error: Exception, argv: list[str], config_dir: Path) -> str:
    """What is wrong with the command line, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override!r} cannot be read as NAME=VALUE ({text.split(' See https')[0]}); "
            f"quote values that hold commas, brackets, spaces or ="
        )
    match = _NOT_THERE.search(text)
    if not match:
        return text
    return _unknown(match[1] or match[2], argv, config_dir)


def _unknown(found: str, argv: list[str], config_dir: Path) -> str:
    name = next((given for given in given_settings(argv) if given.endswith(found)), found)
    config = primary_config(config_dir)
    names = flat_names(cast("dict", OmegaConf.to_container(config, resolve=False)))
    meant = nearest(name, names)
    hint = f"; did you mean {meant}?" if meant else ""
    return f"{name} is not a setting{hint} (a new key of verl's needs a + in front)"


def primary_config(config_dir: Path) -> DictConfig:
    """Return all settings as the primary configuration gives them, without overrides."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(config_dir), version_base=None):
        return compose("hint_trainer")
