"""Remember each problem between its visits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from recipe.hint.conversations import by_first
from recipe.hint.record import PromptRecord
from recipe.hint.schema import ProblemState

STATE_VERSION = 5


@dataclass(slots=True)
class _Seen:
    """What is kept of one problem; see ``ProblemState`` for what it has too."""

    visits: int = 0
    level: int = 0
    accuracy: float | None = None
    worked_level: int | None = None
    best_level: int | None = None  # lowest level at which a rollout was ever right
    had_signal: bool = False  # it trained with a gradient at least once


class RewardTracker:
    """One small entry per problem id, on the driver; the history is in ``records.jsonl``."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def state(self, problem_id: str) -> ProblemState:
        """Return what a method may know of the problem; the empty state when it is new."""
        seen = self._seen.get(problem_id) or _Seen()
        return ProblemState(seen.visits, seen.level, seen.accuracy, seen.worked_level)

    def update(self, records: Iterable[PromptRecord], *, train: bool = True) -> None:
        """Fold one step's records in; their order matters only if a problem occurs twice.

        With ``train=False`` only ``had_signal`` stays as it is.
        """
        for record in records:
            seen = self._seen.setdefault(record.problem_id, _Seen())
            seen.visits += 1
            if not record.is_off_schedule:
                seen.level = record.planned_level
                seen.accuracy = _accuracy_at_plan(record)
            sampled = [each for each in record.rounds if not each.is_given]
            solved = [each.level for each in sampled if each.is_solved]
            seen.worked_level = min(solved, default=None)
            if seen.best_level is not None:
                solved.append(seen.best_level)
            seen.best_level = min(solved, default=None)
            seen.had_signal |= train and record.has_signal

    def metrics(self) -> dict[str, float]:
        """Return names relative to ``reward_tracking/``, in percent of the problems seen.

        ``pct_indexes_*`` are shares of those whose last accuracy is known.
        """
        all_seen = self._seen.values()
        known = np.array([each.accuracy for each in all_seen if each.accuracy is not None])
        shares = {"indexes_in_0": known == 0}
        for low in (0.0, 0.2, 0.4, 0.6, 0.8):
            high = round(low + 0.2, 1)
            name = f"({low},{high}]" if high < 1 else f"({low},1)"
            shares[f"indexes_in_{name}"] = (known > low) & (
                known <= high if high < 1 else known < 1
            )
        shares["indexes_in_1"] = known == 1
        shares["never_solved"] = np.array([each.best_level is None for each in all_seen])
        shares["never_solved_unhinted"] = np.array([each.best_level != 0 for each in all_seen])
        shares["never_mixed"] = np.array([not each.had_signal for each in all_seen])
        return {"num_total_indexes": float(len(self))} | {
            f"pct_{name}": 100.0 * float(np.count_nonzero(mask)) / max(mask.size, 1)
            for name, mask in shares.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return everything, as arrays that ``numpy.savez`` takes."""
        seen = {
            problem_id: [getattr(each, name) for name in _Seen.__slots__]
            for problem_id, each in self._seen.items()
        }
        # As JSON: an array of texts pads every id to the longest and cuts NULs from their ends.
        text = json.dumps(seen).encode()
        return {"version": np.int64(STATE_VERSION), "seen": np.frombuffer(text, np.uint8)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the content by a saved one.

        Raises:
            ValueError: If another version wrote the state.
        """
        version = int(state["version"])
        if version != STATE_VERSION:
            raise ValueError(
                f"tracker state has version {version}, this code reads {STATE_VERSION}"
            )
        seen = json.loads(np.asarray(state["seen"]).tobytes())
        self._seen = {problem_id: _Seen(*values) for problem_id, values in seen.items()}


def _accuracy_at_plan(record: PromptRecord) -> float | None:
    """Return the accuracy of the last group at the planned level; ``None`` when it is unknown.

    For conversations: the mean over first turns of the accuracy of their last turns.
    """
    if record.conversations:
        if not all(each.is_known for each in record.conversations):
            return None
        groups = by_first(record.conversations)
        return round(fmean(fmean(each.acc_last > 0 for each in group) for group in groups), 6)
    accuracy = None
    for each in record.rounds:
        is_known = each.accuracies and not each.num_ungraded and not each.is_given
        if each.level == record.planned_level and is_known:
            accuracy = round(each.accuracy, 6)
    return accuracy
