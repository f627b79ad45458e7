"""Which settings tell runs apart, and which runs are seeds of one arm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recipe.study.report.page.folder import PageRun

# Where a run lies, and how long it goes on: not what it is.
_FOLDERS = ("hint.run_dir", "trainer.default_local_dir")
_PLACES = {*_FOLDERS, "trainer.experiment_name"}
_LENGTH = {"trainer.total_training_steps", "trainer.save_freq", "trainer.test_freq"}
_VALUE_CHARS = 300


@dataclass(frozen=True)
class Arm:
    """Runs that differ in their seeds only."""

    name: str
    runs: Sequence[PageRun]


@dataclass(frozen=True)
class SettingRow:
    """One setting: the default, and the value of each run."""

    name: str
    default: str
    values: tuple[str, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether the runs differ in it."""
        return len(set(self.values)) > 1


def leaves(node: Any, prefix: str = "") -> dict[str, Any]:
    """Return ``dotted name -> value`` of a tree of settings."""
    if not isinstance(node, Mapping) or (not node and prefix):
        return {prefix.removesuffix("."): node}
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= leaves(value, f"{prefix}{key}.")
    return found


def changed_settings(runs: Sequence[PageRun], defaults: Mapping[str, Any]) -> list[SettingRow]:
    """Return settings that some run changed, or that tell the runs apart; the latter first.

    Args:
        runs: Runs with their ``config``.
        defaults: All settings as the primary configuration gives them, interpolations unresolved;
            empty when they are not at hand, which leaves the differences between runs.
    """
    given = [leaves(run.config) for run in runs]
    plain = leaves(defaults)
    usual = [_defaults_of(plain, run, each) for run, each in zip(runs, given, strict=True)]
    rows = []
    for name in sorted(set().union(*given) - _PLACES):
        values = tuple(_shown(each[name]) if name in each else "-" for each in given)
        default = [each.get(name, "-") for each in usual]
        is_derived = any(name.startswith(f"{other}.") for other in plain)
        is_changed = list(values) != default and not is_derived
        if is_changed if defaults else len(set(values)) > 1:
            rows.append(SettingRow(name, default[0], values))
    return sorted(rows, key=lambda row: not row.is_mixed)


def group_arms(runs: Sequence[PageRun]) -> list[Arm]:
    """Return the arms in the order of their first runs, named by what tells them apart.

    A run with the seeds of an earlier one says nothing about other seeds: it is an arm of its own.
    """
    arms: dict[frozenset[tuple[str, str]], list[PageRun]] = {}
    for number, run in enumerate(runs):
        # A run without settings is an arm of its own.
        identity = _identity(run) if run.config else [("run", str(number))]
        key = frozenset([("arm", folder)] if (folder := _campaign_arm(run)) else identity)
        if any(_seeds(run) == _seeds(other) for other in arms.get(key, ())):
            key |= {("again", str(number + 1))}
        arms.setdefault(key, []).append(run)
    names = [_arm_name(key, arms) for key in arms]
    return [
        Arm(f"{name} ({group[0].name})" if names.count(name) > 1 else name, tuple(group))
        for name, group in zip(names, arms.values(), strict=True)
    ]


def _campaign_arm(run: PageRun) -> str:
    """Return the arm that a run of a campaign is named after, ``ARM/seed-N``."""
    found = re.fullmatch(r"(.+)/seed-\d+", run.name)
    return found[1] if found else ""


def _identity(run: PageRun) -> Iterator[tuple[str, str]]:
    """Yield the settings that make the arm: without seeds, places and lengths."""
    places = [PurePath(str(value)) for name in _FOLDERS if (value := run.setting(name))]
    for name, value in leaves(run.config).items():
        path = PurePath(value) if isinstance(value, str) and value else None
        is_place = name in _PLACES or any(path and path.is_relative_to(each) for each in places)
        if not (is_place or name in _LENGTH or name.endswith("seed")):
            yield name, _shown(value)


def _seeds(run: PageRun) -> tuple[Any, Any]:
    return run.setting("hint.seed"), run.setting("data.seed")


def _arm_name(key: frozenset, arms: Mapping[frozenset, Sequence[PageRun]]) -> str:
    """Return the method, with the one or two settings that tell its arms apart."""
    if folder := _campaign_arm(arms[key][0]):
        return folder
    method = arms[key][0].method
    others = [other for other, group in arms.items() if group[0].method == method and other != key]
    telling = sorted(set().union(*(key - other for other in others)))
    if not others or not 1 <= len(telling) <= 2:
        return method
    return f"{method} {', '.join(f'{n.rpartition(chr(46))[2]}={value}' for n, value in telling)}"


def _defaults_of(
    plain: Mapping[str, Any], run: PageRun, given: Mapping[str, Any]
) -> dict[str, str]:
    """Return the defaults as they come out under the run's other settings."""
    tree = OmegaConf.create(run.config)
    found = {}
    for name, value in plain.items():
        found[name] = _shown(value)
        if isinstance(value, str) and "${" in value and name in given:
            # The expression is read where it stands, among the run's own values.
            try:
                OmegaConf.update(tree, name, value)
                found[name] = _shown(OmegaConf.select(tree, name))
            except (OmegaConfBaseException, ValueError, TypeError):
                found[name] = _shown(given[name])  # from the clock or environment of the start
            OmegaConf.update(tree, name, given[name])
    return found


def _shown(value: Any) -> str:
    shown = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return shown.replace("none", "null") if value is None else shown[:_VALUE_CHARS]
