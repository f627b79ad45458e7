"""Prepare the command line for Hydra, and turn its errors into one sentence."""

from __future__ import annotations

import csv
import difflib
import importlib.util
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf

from recipe import PROGRAMS, REPOSITORY
from recipe.hint.command.aliases import given_settings
from recipe.hint.methods import METHODS, RELEASED
from recipe.hint.settings import method_defaults
from recipe.run.errors import ConfigError, one_line

Action = Literal["run", "help", "show", "hydra"]

CONFIG_DIR = PROGRAMS / "config"
_OWN_GROUPS = REPOSITORY / "configs"
_HOME = re.compile(r"(^|[\[,])~/")
_NOT_THERE = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")
# Settings and sections of earlier versions.
_REMOVED = (
    *("hint.rl_zvp", "hint.seele", "hint.prefix_rl", "hint.logprob_gain_every"),
    *("hint.verify.audit", "hint.samples.second_judge_share"),
)
# Values that Hydra takes for no file, or fails on: it reads them as something else than a text.
_NO_NAME = re.compile(r"|null|none|true|false|[-+]?[\d._]+(?:e[-+]?\d+)?", re.I)


def tidied(argv: Sequence[str]) -> list[str]:
    """Return the arguments with ``~`` replaced and a method's name as it is written.

    Raises:
        ConfigError: On what only a slip in a script can be.
    """
    result = []
    for arg in argv:
        if arg.endswith("\r"):
            raise ConfigError(
                f"{arg.rstrip()!r} ends in a carriage return: the script has Windows line ends; "
                f"take them out with sed -i 's/\\r$//' SCRIPT"
            )
        name, equals, value = arg.partition("=")
        if equals and value.endswith(","):
            raise ConfigError(f"{arg} ends in a comma; settings stand apart by spaces, so drop it")
        if name == "trainer.method":
            written = value.lower().replace("_", "-")
            value = written if written in METHODS else value
        value = _HOME.sub(rf"\g<1>{Path.home()}/", value)
        result.append(f"{name}{equals}{value}")
    return result


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str], Action]:
    """Separate Hydra's options from the settings, which its parser does not accept mixed.

    Returns:
        The options, the settings, and what they ask for: "show" prints settings and ends, "hydra"
        something of Hydra's.

    Raises:
        ConfigError: If an option is unknown, lacks its value or contradicts another, or if a
            setting has no value.
    """

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; --hydra-help lists the options")

    parser = get_args_parser()
    parser.error = refuse
    for arg in argv:
        option, _, value = arg.partition("=")
        if arg.startswith("-") and option not in parser._option_string_actions:
            name = option.lstrip("-").replace("-", "_")
            meant = nearest(name, _names_of(CONFIG_DIR)) or "hint.seed"
            raise ConfigError(
                f"{arg} is not an option; settings are given as NAME=VALUE without dashes, like "
                f"{meant}={value or 'VALUE'}"
            )
    given = parser.parse_intermixed_args(argv)
    _check_values_are_given(given.overrides)
    settings, options = list(given.overrides), []
    for arg in argv:
        if settings and arg == settings[0]:
            settings.pop(0)
        else:
            options.append(arg)
    if given.help:
        return options, given.overrides, "help"
    shows, hydras = [given.cfg, given.info], [given.shell_completion, given.hydra_help]
    if sum(bool(each) for each in (*shows, *hydras, given.multirun, given.run)) > 1:
        raise ConfigError(f"{' '.join(options)} exclude each other; give one of these options")
    if given.resolve and not given.cfg:
        raise ConfigError("--resolve needs --cfg: it resolves the settings that --cfg prints")
    asked = given_settings(given.overrides).keys() & {"install", "uninstall", "query"}
    if given.shell_completion and len(asked) != 1:
        raise ConfigError("--shell-completion needs install=bash or uninstall=bash (zsh, fish)")
    action: Action = "hydra" if any(hydras) else "show" if any(shows) else "run"
    return options, given.overrides, action


def _check_values_are_given(settings: Sequence[str]) -> None:
    for place, arg in enumerate(settings):
        if arg.startswith("~") or "=" in arg.lstrip("="):
            continue
        around = [*settings[max(0, place - 1) : place + 3], "", ""]
        before = around.pop(0) if place else ""
        name, value = arg, around[2] if around[1] == "=" else around[1]
        if arg == "=":
            name, value = before, around[1]
        elif before.endswith("="):
            name, value = before[:-1], arg
        is_pair = bool(name and value) and "=" not in value
        example = f"{name}={value}" if is_pair else f"trainer.method={RELEASED[0]}"
        raise ConfigError(
            f"{arg!r} has no name, = or value of its own: settings are given as NAME=VALUE without "
            f"spaces, like {example}"
        )


def choose_hardware(argv: list[str], has_gpu: bool) -> tuple[list[str], str]:
    """Add the laptop preset where no GPU is found and nothing given names a device.

    Returns:
        The arguments, and the line that says so, or an empty one.

    Raises:
        ConfigError: If a group of files, such as ``hardware``, is given what names none.
    """
    given = given_settings(argv)
    for name, value in given.items():
        # verl's sections may be given as dictionaries, as Hydra takes them.
        files = _files_of(name)
        is_own = files is not None and files.is_relative_to(_OWN_GROUPS)
        if files and (_NO_NAME.fullmatch(value) or (is_own and value.startswith("{"))):
            raise ConfigError(
                f"{name}={value} names no file of {files}; give a name or leave it out"
            )
    # An experiment chooses its preset itself.
    if has_gpu or given.keys() & {"hardware", "experiment", "trainer.device"}:
        return argv, ""
    return ["hardware=laptop", *argv], (
        "no GPU found and no hardware= given: running the laptop preset (configs/hardware/"
        "laptop.yaml), with the embedded model and problems where you name none"
    )


def _files_of(name: str) -> Path | None:
    """Return the folder of a group's files; nothing where ``name`` is a setting."""
    roots = (_OWN_GROUPS, Path(os.environ.get("HINT_VERL_CONFIG", CONFIG_DIR)))
    folders = (root / name.partition("@")[0] for root in roots)
    return next((folder for folder in folders if folder.is_dir()), None)


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


def primary_config(config_dir: Path) -> DictConfig:
    """Return all settings as the primary configuration gives them, without overrides."""
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(config_dir), version_base=None):
        return compose("hint_trainer")


def explain(error: Exception, argv: Sequence[str], config_dir: Path) -> str:
    """Return in one line what is wrong with the command line, and the name that was meant."""
    text = one_line(error)
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override!r} cannot be read as NAME=VALUE ({text.split(' See https')[0]}); "
            f"a value with commas, brackets, =, ~ or letters beyond ASCII needs two kinds of "
            f"quotes: 'NAME=\"VALUE\"'"
        )
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, value = error.missing_cfg_file.partition("/")
        there = f"choose one of {', '.join(error.options)}" if error.options else "there is none"
        reported = _OWN_GROUPS / "experiment/reported.csv"
        if group == "experiment" and reported.is_file():
            for run in csv.DictReader(reported.read_text("utf-8").splitlines()):
                if run["replaces"] == value:
                    there = f"it is now experiment={run['experiment']} {run['settings']}"
        return f"{group}={value} is not a file of configs/{group}; {there}"
    match = _NOT_THERE.search(text)
    if not match:
        return text
    found = match[1] or match[2]
    name = next((given for given in given_settings(argv) if given.endswith(found)), found)
    if any(f"{name}.".startswith(f"{old}.") for old in _REMOVED):
        return f"{name} was removed; drop it"
    known = _names_of(config_dir)
    if name in known:
        return f"{name} takes a key that it does not have yet with a + in front: '+{name}=...'"
    meant = nearest(name, known)
    hint = f"; did you mean {meant}?" if meant else ""
    return f"{name} is not a setting{hint} (a new key of verl's needs a + in front)"


def _names_of(config_dir: Path) -> list[str]:
    """Return the names of all settings of the primary configuration."""
    config = OmegaConf.to_container(primary_config(config_dir), resolve=False)
    return flat_names(cast("dict", config))


def flat_names(node: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the dotted names of all settings and sections of a config."""
    names = []
    for key, value in node.items():
        names.append(f"{prefix}{key}")
        if isinstance(value, Mapping):
            names += flat_names(value, f"{prefix}{key}.")
    return names


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the setting that a mistyped one was most likely meant to be.

    Its last part decides, first among those of the same section: the rest of a long name is alike
    for all of them.
    """
    parts = {other: other.rpartition(".") for other in names}
    section, _, leaf = name.rpartition(".")
    siblings = [other for other in parts if parts[other][0] == section]
    for pool in (siblings, list(parts)):
        close = difflib.get_close_matches(leaf, {parts[other][2] for other in pool}, n=1)
        if close:
            same = [other for other in pool if parts[other][2] == close[0]]
            return difflib.get_close_matches(name, same, n=1, cutoff=0)[0]
    return None
