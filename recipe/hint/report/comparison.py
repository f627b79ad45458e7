"""Two finished evaluations, paired problem by problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.evaluation.paired import Comparison, compare_groups, compare_macro
from recipe.hint.report.evaluation import read_groups, read_results
from recipe.hint.report.evaluation_table import comparison_table


def compare_runs(
    first: str | Path, second: str | Path, *, should_intersect: bool = False
) -> list[str]:
    """A table of second minus first over the benchmarks of both, and what to know about it.

    Args:
        first: Folder of a run, which holds ``evaluation``.
        second: Folder of another.
        should_intersect: Pair the problems that both have, where they are not the same.

    Raises:
        DataError: A run is not finished, they share no benchmark, or their problems differ.
    """
    folders = [Path(each) / "evaluation" for each in (first, second)]
    stored = [read_results(folder) for folder in folders]
    groups = [
        read_groups(folder, results["num_samples"])
        for folder, results in zip(folders, stored, strict=True)
    ]
    known = [stored[1]["benchmarks"], *groups]
    shared = [name for name in stored[0]["benchmarks"] if all(name in each for each in known)]
    if not shared:
        raise DataError(
            f"no benchmark in common: {first} has {', '.join(sorted(groups[0]))}, {second} has "
            f"{', '.join(sorted(groups[1]))}; evaluate both on the same files"
        )
    comparisons = {
        name: compare_groups(
            groups[0][name], groups[1][name], benchmark=name, should_intersect=should_intersect
        )
        for name in shared
    }
    lines = [f"A: {first}: {stored[0]['model']}", f"B: {second}: {stored[1]['model']}", ""]
    lines += comparison_table(
        (f"A avg@{stored[0]['num_samples']}", f"B avg@{stored[1]['num_samples']}"),
        comparisons,
        compare_macro(comparisons),
    )
    notes = [*_alone(groups), *_left_out(comparisons), *_undecided(stored, shared)]
    notes += _settings(stored[0]["sampling"], stored[1]["sampling"])
    return [*lines, "", *notes] if notes else lines


def _alone(groups: list[dict[str, Any]]) -> list[str]:
    return [
        f"only in {letter}: {', '.join(sorted(mine.keys() - other.keys()))}"
        for letter, mine, other in (("A", *groups), ("B", *reversed(groups)))
        if mine.keys() - other.keys()
    ]


def _left_out(comparisons: Mapping[str, Comparison]) -> list[str]:
    return [
        f"{name}: {each.num_left_out} problems that only one run has are left out"
        for name, each in comparisons.items()
        if each.num_left_out
    ]


def _undecided(stored: list[dict[str, Any]], shared: list[str]) -> list[str]:
    return [
        f"{name}: the verifier failed on {100 * share:.1f} % of {letter}'s samples, counted as 0"
        for name in shared
        for letter, results in zip("AB", stored, strict=True)
        if (share := results["benchmarks"][name]["undecided"])
    ]


def _settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The comparison is of model and sampling together where the sampling differs."""
    names = [*first, *(name for name in second if name not in first)]
    return [
        f"sampling differs: {name} is {json.dumps(first.get(name))} in A and "
        f"{json.dumps(second.get(name))} in B"
        for name in names
        if first.get(name) != second.get(name)
    ]
