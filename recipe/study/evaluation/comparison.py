"""Two finished evaluations, paired problem by problem."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError
from recipe.study.evaluation.estimators import Estimate, mean_of, paired_mean
from recipe.study.evaluation.responses import Groups, drawn_with, problem_digests
from recipe.study.evaluation.results import GROUP_TITLES, assign_members, read_evaluation
from recipe.study.evaluation.tables import markdown, percent

_SOLVED = 0.5  # a run solves a problem when at least this share of its responses is correct
_SHOWN = 3


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

    Args:
        first: Responses of one run by problem.
        second: Those of the other.
        benchmark: Its name, for messages.
        should_intersect: Leave out problems that only one run has, instead of refusing.

    Raises:
        DataError: The runs have different problems, or none in common.
    """
    alone = sorted(first.keys() ^ second.keys())
    common = sorted(first.keys() & second.keys())
    if not common:
        raise DataError(f"{benchmark}: the runs have no problem in common; nothing can be paired")
    if alone and not should_intersect:
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


def compare_macro(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """Return the groups of the SAGE paper that are complete in both runs, as unweighted means."""
    result = {}
    for group, members in assign_members(comparisons).items():
        if not all(members.values()):
            continue
        parts = [comparisons[name] for name in members.values()]
        result[group] = Comparison(
            num_problems=sum(part.num_problems for part in parts),
            num_left_out=sum(part.num_left_out for part in parts),
            first=sum(part.first for part in parts) / len(parts),
            second=sum(part.second for part in parts) / len(parts),
            difference=mean_of([part.difference for part in parts]),
            num_gained=sum(part.num_gained for part in parts),
            num_lost=sum(part.num_lost for part in parts),
        )
    return result


def compare_runs(
    first: str | Path, second: str | Path, *, should_intersect: bool = False
) -> list[str]:
    """Return a table of second minus first over the benchmarks of both, and what to know about it.

    Args:
        first: Folder of a run, which holds ``evaluation``.
        second: Folder of another.
        should_intersect: Pair the problems that both have, where they are not the same.

    Raises:
        DataError: A run is not finished, they share no benchmark, or their problems differ.
    """
    folders = [Path(each) / "evaluation" for each in (first, second)]
    (a, groups_a), (b, groups_b) = map(read_evaluation, folders)
    known = (b["benchmarks"], groups_a, groups_b)
    shared = [name for name in a["benchmarks"] if all(name in each for each in known)]
    if not shared:
        raise DataError(
            f"no benchmark in common: {first} has {', '.join(sorted(groups_a))}, {second} has "
            f"{', '.join(sorted(groups_b))}; evaluate both on the same files"
        )
    comparisons = {
        name: compare_groups(
            groups_a[name], groups_b[name], benchmark=name, should_intersect=should_intersect
        )
        for name in shared
    }
    notes = [
        *_alone(groups_a, groups_b),
        *_left_out(comparisons),
        *_ungraded(shared, a, b),
        *_other_files(*map(problem_digests, folders)),
        *_other_sampling(a["sampling"], b["sampling"]),
        *_drawn_otherwise(*map(drawn_with, folders)),
    ]
    models = [f"A: {first}: {a['model']}", f"B: {second}: {b['model']}", ""]
    table = _table(comparisons, f"A avg@{a['num_samples']}", f"B avg@{b['num_samples']}")
    return [*models, *table, *([""] if notes else []), *notes]


def _table(comparisons: Mapping[str, Comparison], *titles: str) -> list[str]:
    macro = {GROUP_TITLES[name]: each for name, each in compare_macro(comparisons).items()}
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
        for name, each in {**comparisons, **macro}.items()
    ]
    head = ["benchmark", "problems", *titles, "B - A", "95 %", "gained", "lost"]
    return markdown(head, rows)


def _alone(first: Collection[str], second: Collection[str]) -> Iterator[str]:
    """Name the benchmarks that one run alone has."""
    for letter, names in (("A", {*first} - {*second}), ("B", {*second} - {*first})):
        if names:
            yield f"only in {letter}: {', '.join(sorted(names))}"


def _left_out(comparisons: Mapping[str, Comparison]) -> Iterator[str]:
    for name, each in comparisons.items():
        if each.num_left_out:
            yield f"{name}: {each.num_left_out} problems that only one run has are left out"


def _ungraded(names: Sequence[str], *stored: Mapping[str, Any]) -> Iterator[str]:
    for name in names:
        for letter, results in zip("AB", stored, strict=True):
            if share := results["benchmarks"][name]["undecided"]:
                yield (
                    f"{name}: the verifier failed on {percent(share)} % of {letter}'s samples, "
                    f"counted as 0"
                )


def _other_files(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    """Compare the files of problems, name -> digest."""
    common = sorted(first.keys() & second.keys())
    for name in common:
        if first[name] != second[name]:
            yield f"{name} is not the same file in A and B"
    if first and second and not common and {*first.values()} != {*second.values()}:
        a_names, b_names = (", ".join(sorted(each)) for each in (first, second))
        yield f"the problems are of other files: {a_names} in A, {b_names} in B"


def _other_sampling(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs: there the comparison is of model and sampling together."""
    for name in dict.fromkeys((*first, *second)):
        if first.get(name) != second.get(name):
            yield f"sampling differs: {name} is {_both(name, first, second)}"


def _drawn_otherwise(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for name in ("template", "grading", "turns", "dtype"):
        # An earlier version did not write them; without turns there is no such key.
        is_written = (name == "turns" and first and second) or (name in first and name in second)
        if is_written and first.get(name) != second.get(name):
            yield f"{name} differs: {_both(name, first, second)}"


def _both(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    return f"{json.dumps(first.get(name))} in A and {json.dumps(second.get(name))} in B"
