"""What a further turn changes: the first and the last turn of each conversation, paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean
from typing import Any

from recipe.study.evaluation.estimators import Estimate, clustered_mean, paired_mean

_SHARES = ("acc_t1", "acc_t2", "wrong_to_right", "right_to_wrong", "unchanged")
TURN_FACTS = (*_SHARES, "delta", "overlap")


def turn_metrics(facts_P: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return means over problems with their 95 % intervals, clustered by problem.

    Args:
        facts_P: Problem -> the facts of its conversations (``Conversation.facts``); where first
            turns branch, those of its first turns (``mean_facts``).

    Returns:
        ``acc_t1`` and ``acc_t2`` (the last turn), ``delta`` = acc_t2 - acc_t1, ``wrong_to_right``
        and ``right_to_wrong`` (shares of all conversations; their difference is ``delta``),
        ``unchanged`` (the same answer), each with ``_low`` and ``_high``; ``overlap`` and
        ``conversations`` (their number, or that of first turns). Those that are not known (NaN) are
        left out. Empty without conversations.
    """
    known_P = [[each for each in group if not isnan(each["delta"])] for group in facts_P.values()]
    groups = [group for group in known_P if group]
    if not groups:
        return {}
    most = max(map(len, groups))
    found: dict[str, float] = {"conversations": float(sum(map(len, groups)))}
    for name in TURN_FACTS:
        means_P = [fmean(each[name] for each in group) for group in groups]
        if name == "overlap":
            found[name] = fmean(means_P)
            continue
        is_share = name in _SHARES
        of: Estimate = clustered_mean(means_P, most) if is_share else paired_mean(means_P)
        found |= {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}
    return found


def not_compared(benchmarks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each benchmark some of whose conversations have no verdict at an end."""
    return [
        f"{name}: of {each['samples']} conversations {unknown:.0f} are not compared: the verifier "
        f"failed on their first or last turn."
        for name, each in benchmarks.items()
        if "turns" in each and (unknown := each["samples"] - each["turns"]["conversations"])
    ]
