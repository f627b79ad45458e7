"""Two finished evaluations, paired problem by problem."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recipe.hint.errors import DataError
from recipe.hint.evaluation.estimators import Estimate, mean_of, paired_mean
from recipe.hint.evaluation.responses import Groups, drawn_with, problem_digests
from recipe.hint.evaluation.results import GROUP_TITLES, assign_members, read_evaluation
from recipe.hint.evaluation.tables import markdown, percent

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
    stored = (a, b)
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
    macro = {GROUP_TITLES[name]: each for name, each in compare_macro(comparisons).items()}
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
        for name, each in {**comparisons, **macro}.items()
    ]
    table = markdown([*head, "B - A", "95 %", "gained", "lost"], rows)
    notes = [
        f"only in {letter}: {', '.join(sorted(alone))}"
        for letter, alone in (("A", groups_a.keys() - groups_b), ("B", groups_b.keys() - groups_a))
        if alone
    ]
    notes += [
        f"{name}: {each.num_left_out} problems that only one run has are left out"
        for name, each in comparisons.items()
        if each.num_left_out
    ]
    notes += [
        f"{name}: the verifier failed on {percent(share)} % of {letter}'s samples, counted as 0"
        for name in shared
        for letter, results in zip("AB", stored, strict=True)
        if (share := results["benchmarks"][name]["undecided"])
    ]
    files = [problem_digests(each) for each in folders]
    notes += [
        f"{name} is not the same file in A and B"
        for name in sorted(files[0].keys() & files[1].keys())
        if files[0][name] != files[1][name]
    ]
    is_disjoint = not files[0].keys() & files[1].keys()
    if all(files) and is_disjoint and {*files[0].values()} != {*files[1].values()}:
        a_names, b_names = (", ".join(sorted(each)) for each in files)
        notes.append(f"the problems are of other files: {a_names} in A, {b_names} in B")
    # The comparison is of model and sampling together where the sampling differs.
    notes += [
        f"sampling differs: {name} is {json.dumps(a['sampling'].get(name))} in A and "
        f"{json.dumps(b['sampling'].get(name))} in B"
        for name in [*a["sampling"], *(name for name in b["sampling"] if name not in a["sampling"])]
        if a["sampling"].get(name) != b["sampling"].get(name)
    ]
    drawn = [drawn_with(each) for each in folders]
    notes += [
        f"{name} differs: {json.dumps(drawn[0].get(name))} in A and "
        f"{json.dumps(drawn[1].get(name))} in B"
        for name in ("template", "grading", "turns", "dtype")
        # An earlier version did not write them; without turns there is no such key.
        if (name == "turns" and all(drawn)) or all(name in each for each in drawn)
        if drawn[0].get(name) != drawn[1].get(name)
    ]
    models = [f"A: {first}: {a['model']}", f"B: {second}: {b['model']}", ""]
    return [*models, *table, *([""] if notes else []), *notes]
