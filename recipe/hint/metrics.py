"""Compute a step's metrics from its prompt records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from recipe.hint.record import PromptRecord
from recipe.hint.schema import FINAL_HINT_FAILURES
from recipe.verify.schema import Basis


def step_metrics(records: Sequence[PromptRecord], max_level: int) -> dict[str, float]:
    """Return the metrics of one step, names relative to ``hint/``.

    Args:
        records: One per problem that the step trains on, in any order.
        max_level: Highest hint level, L.

    Returns:
        Counts of problems, but for sums of tokens over the step; counts of responses
        (``injected_rollouts``, ``ungraded``, ``given*``, ``generate_attempts``); shares in [0, 1]
        (``acc_*_mean``, ``zero_signal_*``).
    """
    if not records:
        return {}
    count = len(records)
    rounds = [each for record in records for each in record.rounds]
    given = [each for each in rounds if each.is_given]
    sampled = ([each.accuracies for each in of.rounds if not each.is_given] for of in records)
    num_at_first = sum(len(set(next(filter(None, each), ()))) > 1 for each in sampled)
    num_with_signal = sum(record.has_signal for record in records)
    tokens = sum(each.tokens for each in rounds)
    result = {
        "prompts": count,
        "prompts_with_hint": sum(record.highest_level > 0 for record in records),
        "mixed_groups": num_with_signal,
        "zero_signal_before": (count - num_at_first) / count,
        "zero_signal_after": (count - num_with_signal) / count,
        "tokens": sum(record.hint_tokens for record in records),
        "rollout_tokens": tokens,
        "rollout_tokens_discarded": tokens - sum(record.trained_tokens for record in records),
        "injected_rollouts": sum(record.num_injected for record in records),
        "off_policy": sum(not record.on_policy for record in records),
        "dropped": sum(record.is_dropped for record in records),
        "off_schedule": sum(record.is_off_schedule for record in records),
        "ungraded": sum(each.num_ungraded for each in rounds),
    }
    result |= _writing(records)
    for level in range(max_level + 1):
        name = f"level_{level}" if level else "no_hint"
        group = [record for record in records if record.highest_level == level]
        graded = [record.accuracy for record in group if record.accuracies]
        result[f"used_{name}"] = len(group)
        if graded:
            result[f"acc_{name}_mean"] = sum(graded) / len(graded)
    if given:
        result["given"] = sum(len(each.accuracies) for each in given)
        result["given_right"] = sum(value > 0 for each in given for value in each.accuracies)
    return {name: float(value) for name, value in result.items()}


def verify_metrics(records: Sequence[PromptRecord]) -> dict[str, float]:
    """Return how the step's rollouts were graded, names relative to ``verify/``.

    Shares in [0, 1] of all verdicts, those of rounds that did not train included.
    """
    bases = sum((Counter(record.bases) for record in records), Counter())
    if not (count := bases.total()):
        return {}
    ungraded = sum(each.num_ungraded for record in records for each in record.rounds)
    return {f"by_{basis}": bases[basis] / count for basis in get_args(Basis)} | {
        "ignored_text": sum(record.num_ignored for record in records) / count,
        "ungraded": ungraded / count,
    }


def guide_metrics(records: Sequence[PromptRecord]) -> dict[str, float]:
    """Return what the guide wrote, names relative to ``turns/``; empty without feedback.

    ``leaks`` is a share of all feedback, ``feedback_tokens`` its mean length.
    """
    rounds = [each for record in records for each in record.rounds if each.role == "guide"]
    count = sum(len(each.parents) for each in rounds)
    if not count:
        return {}
    leaks, tokens = (sum(getattr(each, name) for each in rounds) for name in ("leaks", "tokens"))
    return {"leaks": leaks / count, "feedback_tokens": tokens / count}


def _writing(records: Sequence[PromptRecord]) -> dict[str, float]:
    """Return the outcome of the requests for hints, one per problem that needed them.

    Failures are counted over all problems, including turns that were not written or had no room.
    """
    asked = [record for record in records if any(level > 0 for level in record.levels)]
    by_status, by_status_asked = (
        Counter(
            status for record in group for status in {each.hint_status for each in record.rounds}
        )
        for group in (records, asked)
    )
    num_without = sum(by_status_asked[reason] for reason in FINAL_HINT_FAILURES)
    faults = Counter(record.hint_fault for record in records if record.hint_fault)
    return {
        "prompts_needing_hint": len(asked),
        "generate_requested": len(asked),
        "generate_success": len(asked) - num_without,
        "generate_failed": num_without,
        "generate_attempts": sum(record.hint_calls for record in records),
        "cut": by_status_asked["cut"],
        "leaked": sum(bool(set(record.levels) & set(record.leaked_levels)) for record in asked),
        **{reason: by_status[reason] for reason in (*FINAL_HINT_FAILURES, "too_long")},
        **{f"fault_{name}": count for name, count in faults.items()},
    }
