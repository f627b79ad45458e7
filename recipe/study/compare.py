"""Two finished evaluations, paired problem by problem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError
from recipe.study.estimators import Estimate, paired_mean
from recipe.study.responses import Groups, drawn_with
from recipe.study.results import read_evaluation
from recipe.study.tables import markdown, percent

_SOLVED = 0.5  # a run solves a problem when at least this share of its responses is correct
_SHOWN = 3
_LONGEST = 80  # characters of a setting that a note shows
_OF_THE_MODEL = ("model", "weights", "num_samples")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One benchmark, second run minus first.

    ``num_gained`` problems are solved by the second run and not by the first, ``num_lost`` the
    other way round, where solved means that at least half of the responses are correct.
    """

    num_problems: int
    num_left_out: int
    first: float
    second: float
    difference: Estimate
    num_gained: int
    num_lost: int


def compare_groups(
    first: Groups, second: Groups, *, benchmark: str, should_intersect: bool = False
) -> Comparison:
    """Pair the problems that both runs have; their K may differ.

    Raises:
        DataError: The runs have different problems, unless they are to intersect.
    """
    alone = sorted(first.keys() ^ second.keys())
    common = sorted(first.keys() & second.keys())
    if not common or (alone and not should_intersect):
        raise DataError(
            f"{benchmark}: {len(alone)} problems are in one run only, such as "
            f"{', '.join(map(repr, alone[:_SHOWN]))}; evaluate both on the same file, or pass "
            f"--common to compare the {len(common)} that both have"
        )
    first_P, second_P = (
        [sum(each.is_correct for each in run[name]) / len(run[name]) for name in common]
        for run in (first, second)
    )
    pairs = list(zip(first_P, second_P, strict=True))
    return Comparison(
        num_problems=len(common),
        num_left_out=len(alone),
        first=sum(first_P) / len(common),
        second=sum(second_P) / len(common),
        difference=paired_mean([b - a for a, b in pairs]),
        num_gained=sum(a < _SOLVED <= b for a, b in pairs),
        num_lost=sum(b < _SOLVED <= a for a, b in pairs),
    )


def compare_runs(
    first: str | Path, second: str | Path, *, should_intersect: bool = False
) -> list[str]:
    """Return a table of second minus first over the benchmarks of both, and what to know about it.

    Args:
        first: Folder of a run, which holds ``evaluation``.
        second: Folder of another.
        should_intersect: Leave out problems that only one run has, instead of refusing.

    Raises:
        DataError: A run is not finished, they share no benchmark, or their problems differ.
    """
    folders = [Path(each) / "evaluation" for each in (first, second)]
    (a, groups_a), (b, groups_b) = map(read_evaluation, folders)
    shared = [name for name in a["benchmarks"] if name in b["benchmarks"]]
    if not shared:
        raise DataError(
            f"no benchmark in common: {first} has {', '.join(sorted(groups_a))}, {second} has "
            f"{', '.join(sorted(groups_b))}; evaluate both on the same files"
        )
    found = {
        name: compare_groups(
            groups_a[name], groups_b[name], benchmark=name, should_intersect=should_intersect
        )
        for name in shared
    }
    head = ["benchmark", "problems", f"A avg@{a['num_samples']}", f"B avg@{b['num_samples']}"]
    rows = [
        [
            name,
            str(each.num_problems),
            percent(each.first),
            percent(each.second),
            percent(each.difference.value, sign=True),
            " to ".join(percent(end, sign=True) for end in each.difference[1:]),
            str(each.num_gained),
            str(each.num_lost),
        ]
        for name, each in found.items()
    ]
    notes = [
        *_not_compared(a["benchmarks"], b["benchmarks"], found),
        *_differing(a["sampling"] | drawn_with(folders[0]), b["sampling"] | drawn_with(folders[1])),
    ]
    models = [f"A: {first}: {a['model']}", f"B: {second}: {b['model']}", ""]
    table = markdown([*head, "B - A", "95 %", "gained", "lost"], rows)
    return [*models, *table, *([""] if notes else []), *notes]


def _not_compared(
    a: Mapping[str, Any], b: Mapping[str, Any], found: Mapping[str, Comparison]
) -> Iterator[str]:
    for letter, names in (("A", {*a} - {*b}), ("B", {*b} - {*a})):
        if names:
            yield f"only in {letter}: {', '.join(sorted(names))}"
    for name, each in found.items():
        if each.num_left_out:
            yield f"{name}: {each.num_left_out} problems that only one run has are left out"
        for letter, benchmarks in (("A", a), ("B", b)):
            if share := benchmarks[name]["undecided"]:
                yield (
                    f"{name}: the verifier failed on {percent(share)} % of {letter}'s samples, "
                    f"counted as 0"
                )


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs beside the model: there the comparison is of both together."""
    # An earlier version did not write all of them; without turns there is no such key.
    for name in [each for each in {**a, **b} if (each in a and each in b) or each == "turns"]:
        if a.get(name) != b.get(name) and name not in _OF_THE_MODEL:
            old, new = (json.dumps(each.get(name), sort_keys=True)[:_LONGEST] for each in (a, b))
            yield f"{name} is not the same: {old} in A, {new} in B"
