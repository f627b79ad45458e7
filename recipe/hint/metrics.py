"""Group records -> the step's metrics; nothing here is counted anywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from recipe.hint.schema import Basis, PromptRecord

_NO_LADDER = ("parse_failed", "missing_solution", "missing_hint", "generation_failed")
_HINT_FAILURES = (*_NO_LADDER, "too_long")


def step_metrics(records: Sequence[PromptRecord], max_level: int) -> dict[str, float]:
    """Metrics of one step, names relative to ``hint/``.

    Args:
        records: One per problem that the step trains on, in any order.
        max_level: Highest hint level, L.

    Returns:
        Counts of problems unless the name says otherwise: ``tokens`` and ``seconds`` are sums
        over the step, ``acc_*_mean`` and ``zero_signal_*`` are shares in [0, 1],
        ``reliance_level_*`` means over right answers in nats per token.
    """
    if not records:
        return {}
    count = len(records)
    asked = [record for record in records if any(level > 0 for level in record.levels)]
    hinted = [record for record in records if record.hint_level > 0]
    before = sum(not _was_mixed_at_first(record) for record in records)
    after = sum(not record.has_signal for record in records)
    result = {
        "prompts": count,
        "prompts_needing_hint": len(asked),
        "prompts_with_hint": len(hinted),
        "mixed_groups": count - after,
        "zero_signal_before": before / count,
        "zero_signal_after": after / count,
        "tokens": sum(record.hint_tokens for record in records),
        "rollout_tokens": sum(sum(record.rollout_tokens) for record in records),
        "rollout_tokens_discarded": sum(
            sum(record.rollout_tokens) - _trained_tokens(record) for record in records
        ),
        "guided_rollouts": sum(_num_borrowed(record) for record in records),
        "off_policy": sum(not record.on_policy for record in records),
        "dropped": sum(record.is_dropped for record in records),
        "plain": sum(record.is_plain for record in records),
        "undecided": sum(sum(record.num_ungraded) for record in records),
        "seconds_hint": sum(record.hint_seconds for record in records),
        "seconds_rollout": sum(sum(record.seconds) for record in records),
    }
    result |= _writing(asked)
    result |= _levels(records, max_level)
    return {name: float(value) for name, value in result.items()}


def verify_metrics(records: Sequence[PromptRecord]) -> dict[str, float]:
    """Return how the step's rollouts were graded, names relative to ``verify/``.

    Shares in [0, 1] of all verdicts, those of attempts that did not train included;
    ``other_shape`` is a share of the prompts, the second judge's disagreement one of
    ``second_judge_asked`` and absent when that is 0.
    """
    count = sum(sum(record.bases.values()) for record in records)
    if not count:
        return {}
    asked = sum(record.num_second for record in records)
    result = {
        f"by_{basis}": sum(record.bases.get(basis, 0) for record in records) / count
        for basis in get_args(Basis)
    }
    result["ignored_text"] = sum(record.num_ignored for record in records) / count
    result["ungraded"] = sum(sum(record.num_ungraded) for record in records) / count
    result["other_shape"] = sum(bool(record.shapes) for record in records) / len(records)
    result["second_judge_asked"] = float(asked)
    if asked:
        disagreed = sum(record.num_disagreed for record in records)
        result["second_judge_disagreement"] = disagreed / asked
    return result


def _writing(asked: Sequence[PromptRecord]) -> dict[str, float]:
    """What became of the requests for a set of hints, one per problem that needed one."""
    failed = {reason: 0 for reason in _HINT_FAILURES}
    cut = 0
    for record in asked:
        statuses = set(record.hint_statuses)
        cut += "cut" in statuses
        for reason in _HINT_FAILURES:
            failed[reason] += reason in statuses
    no_ladder = sum(failed[reason] for reason in _NO_LADDER)
    return {
        "generate_requested": len(asked),
        "generate_success": len(asked) - no_ladder,
        "generate_failed": no_ladder,
        "generate_attempts": sum(record.hint_calls for record in asked),
        "cut": cut,
        "leaked": sum(bool(set(record.levels) & set(record.leaked_levels)) for record in asked),
        **failed,
    }


def _levels(records: Sequence[PromptRecord], max_level: int) -> dict[str, float]:
    """How many problems trained at each level, and how accurate they were there."""
    result: dict[str, float] = {}
    for level in range(max_level + 1):
        name = f"level_{level}" if level else "no_hint"
        group = [record for record in records if record.hint_level == level]
        result[f"used_{name}"] = len(group)
        if group:
            result[f"acc_{name}_mean"] = sum(map(accuracy, group)) / len(group)
        reliance = [gap for record in group for gap in record.reliance]
        if reliance:
            result[f"reliance_{name}"] = sum(reliance) / len(reliance)
    return result


def accuracy(record: PromptRecord) -> float:
    """Share of right rollouts among those that train."""
    return sum(reward > 0 for reward in record.accuracies) / len(record.accuracies)


def _was_mixed_at_first(record: PromptRecord) -> bool:
    """Whether the first group that was sampled had unequal accuracies."""
    first = next(rewards_G for rewards_G in record.rewards if rewards_G)
    return len(set(first)) > 1


def _trained_tokens(record: PromptRecord) -> int:
    if record.trained_tokens >= 0:
        return record.trained_tokens
    return record.rollout_tokens[record.accepted]


def _num_borrowed(record: PromptRecord) -> int:
    return sum(attempt != record.accepted for attempt, _ in record.kept)
