"""The command line before Hydra sees it: order, second names of settings, presets, near misses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NoReturn

from hydra._internal.utils import get_args_parser

from recipe.hint.errors import ConfigError

Action = Literal["run", "help", "show", "hydra"]

# Second names that are accepted: of the SAGE release for verl's, and of earlier versions.
ALIASES = {
    "hint.refresh_share": "hint.dropout_share",
    "hint.reliance_every": "hint.logprob_gain_every",
    "actor_rollout_ref.model.pretrained_model_name_or_path": "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.num_generations_per_prompt": "actor_rollout_ref.rollout.n",
}
# Both names exist in verl and must agree.
TWINS = {"actor_rollout_ref.rollout.response_length": "data.max_response_length"}
_OVERRIDE = re.compile(r"^(?:\+\+|\+|~)?([A-Za-z_][\w.@/]*)=(.*)$", re.DOTALL)


def given_settings(argv: Iterable[str]) -> dict[str, str]:
    """``name -> value`` of the overrides on the command line; the last one of a name wins."""
    return {match[1]: match[2] for arg in argv if (match := _OVERRIDE.match(arg))}


def resolve_aliases(argv: list[str]) -> list[str]:
    """The arguments with second names replaced by verl's, and twins set together.

    Raises:
        ConfigError: If both names of a pair are given with different values.
    """
    given = given_settings(argv)
    for second, first in (ALIASES | TWINS).items():
        if second in given and first in given and given[second] != given[first]:
            raise ConfigError(
                f"{second}={given[second]} and {first}={given[first]} are two names of one "
                "setting; give one of them, or the same value"
            )
    result = []
    for arg in argv:
        name = next(iter(given_settings([arg])), None)
        if name in ALIASES:
            arg = arg.replace(name, ALIASES[name], 1)
        result.append(arg)
    for second, first in TWINS.items():
        if second in given and first not in given:
            result.append(f"{first}={given[second]}")
    return result


def split_command(argv: list[str]) -> tuple[list[str], list[str], Action]:
    """Tell Hydra's options from the settings; Hydra's parser does not take them mixed.

    Returns:
        The options, the settings, and what they ask for: "show" prints settings and ends, "hydra"
        something of Hydra's.

    Raises:
        ConfigError: If an option is unknown, lacks its value or contradicts another.
    """
    parser = get_args_parser()
    parser.error = _refuse
    given = parser.parse_intermixed_args(argv)
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
        raise ConfigError(f"{' '.join(options)} ask for several things; give one of these options")
    if given.resolve and not given.cfg:
        raise ConfigError("--resolve needs --cfg: it resolves the settings that --cfg prints")
    asked = given_settings(given.overrides).keys() & {"install", "uninstall", "query"}
    if given.shell_completion and len(asked) != 1:
        raise ConfigError("--shell-completion needs install=bash or uninstall=bash (zsh, fish)")
    if any(hydras):
        return options, given.overrides, "hydra"
    if any(shows):
        return options, given.overrides, "show"
    return options, given.overrides, "run"


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; --hydra-help lists the options")


def choose_hardware(argv: list[str], has_gpu: bool) -> tuple[list[str], str]:
    """Add the laptop preset where no GPU is found and nothing given names a device.

    Returns:
        The arguments, and the line that says so, or an empty one.
    """
    given = given_settings(argv)
    # An experiment chooses its preset itself.
    if has_gpu or given.keys() & {"hardware", "experiment", "trainer.device"}:
        return argv, ""
    return ["hardware=laptop", *argv], (
        "no GPU found and no hardware= given: running the laptop preset (configs/hardware/"
        "laptop.yaml) on the embedded model and problems"
    )


def flat_names(node: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of all settings of a config."""
    names = []
    for key, value in node.items():
        name = f"{prefix}{key}"
        names.append(name)
        if isinstance(value, Mapping):
            names += flat_names(value, f"{name}.")
    return names


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the setting that a mistyped one was most likely meant to be.

    Its last part decides, first among those of the same section: the rest of a long name is alike
    for all of them.
    """
    names = list(names)
    section, _, leaf = name.rpartition(".")
    siblings = [other for other in names if other.rpartition(".")[0] == section]
    for pool in (siblings, names):
        close = difflib.get_close_matches(leaf, {_leaf(other) for other in pool}, n=1)
        if close:
            same = [other for other in pool if _leaf(other) == close[0]]
            return difflib.get_close_matches(name, same, n=1, cutoff=0)[0]
    return None


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]
