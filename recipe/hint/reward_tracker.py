"""Remember each problem between its visits, in a fixed size per id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from recipe.hint.conversations import by_first
from recipe.hint.record import PromptRecord
from recipe.hint.schema import MAX_LEVELS, ProblemState

# In the arrays, for what `ProblemState` has `None` for.
_NEVER = MAX_LEVELS + 1  # a level at which no rollout was right
_UNKNOWN = -1.0  # an accuracy
# Name -> type, and value of a new problem.
_FIELDS = {
    "visits": (np.int32, 0),
    "level": (np.uint8, 0),  # the level planned last
    "accuracy": (np.float32, _UNKNOWN),  # at that level
    "best_level": (np.uint8, _NEVER),  # lowest level at which a rollout was right
    "had_signal": (np.bool_, False),  # it trained with a gradient at least once
    "worked_level": (np.uint8, _NEVER),  # lowest level with a right response last
}
_DTYPE = [(name, dtype) for name, (dtype, _) in _FIELDS.items()]
_NEW = np.array([tuple(new for _, new in _FIELDS.values())], _DTYPE)
STATE_VERSION = 4


class RewardTracker:
    """12 bytes per problem id, on the driver; the history is in ``records.jsonl``."""

    def __init__(self) -> None:
        self._row_of: dict[str, int] = {}
        self._rows = _NEW.repeat(64)

    def __len__(self) -> int:
        return len(self._row_of)

    def state(self, problem_id: str) -> ProblemState:
        """Return what a method may know of the problem; the empty state when it is new."""
        number = self._row_of.get(problem_id)
        if number is None:
            return ProblemState()
        row = self._rows[number]
        accuracy = round(float(row["accuracy"]), 6)
        worked = int(row["worked_level"])
        return ProblemState(
            visits=int(row["visits"]),
            level=int(row["level"]),
            accuracy=None if accuracy == _UNKNOWN else accuracy,
            worked_level=None if worked == _NEVER else worked,
        )

    def update(self, records: Iterable[PromptRecord], *, train: bool = True) -> None:
        """Fold one step's records in; their order matters only if a problem occurs twice.

        With ``train=False`` only ``had_signal`` stays as it is.
        """
        for record in records:
            number = self._row_of.setdefault(record.problem_id, len(self))
            if number == len(self._rows):
                self._rows = np.concatenate([self._rows, _NEW.repeat(number)])
            row = self._rows[number]  # a view
            row["visits"] += 1
            if not record.is_off_schedule:
                row["level"] = record.planned_level
                accuracy = _accuracy_at_plan(record)
                row["accuracy"] = _UNKNOWN if accuracy is None else accuracy
            sampled = [each for each in record.rounds if not each.is_given]
            solved = [each.level for each in sampled if each.is_solved]
            row["best_level"] = min([row["best_level"], *solved])
            if train:
                row["had_signal"] |= record.has_signal
            row["worked_level"] = min(solved, default=_NEVER)

    def metrics(self) -> dict[str, float]:
        """Return names relative to ``reward_tracking/``, in percent of the problems seen.

        ``pct_indexes_*`` are shares of those whose last accuracy is known.
        """
        rows = self._rows[: len(self)]
        known = rows["accuracy"][rows["accuracy"] != _UNKNOWN]
        shares = {"indexes_in_0": known == 0}
        for low in (0.0, 0.2, 0.4, 0.6, 0.8):
            high = round(low + 0.2, 1)
            name = f"({low},{high}]" if high < 1 else f"({low},1)"
            shares[f"indexes_in_{name}"] = (known > low) & (
                known <= high if high < 1 else known < 1
            )
        shares["indexes_in_1"] = known == 1
        shares["never_solved"] = rows["best_level"] == _NEVER
        shares["never_solved_unhinted"] = rows["best_level"] > 0
        shares["never_mixed"] = ~rows["had_signal"]
        return {"num_total_indexes": float(len(self))} | {
            f"pct_{name}": 100.0 * float(np.count_nonzero(mask)) / max(mask.size, 1)
            for name, mask in shares.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return everything, as arrays that ``numpy.savez`` takes."""
        state: dict[str, Any] = {name: self._rows[name][: len(self)].copy() for name in _FIELDS}
        # As JSON: an array of texts pads every id to the longest and cuts NULs from their ends.
        state["ids"] = np.frombuffer(json.dumps(list(self._row_of)).encode(), np.uint8)
        state["version"] = np.int64(STATE_VERSION)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the content by a saved one.

        Raises:
            ValueError: If another version wrote the state, or a column is not as long as the ids.
        """
        ids = saved_ids(state)
        rows = _NEW.repeat(max(64, len(ids)))
        for name in _FIELDS:
            if np.shape(state[name]) != (len(ids),):
                raise ValueError(f"tracker state: `{name}` needs one value for each of its ids")
            rows[name][: len(ids)] = state[name]
        self._row_of = {problem_id: row for row, problem_id in enumerate(ids)}
        self._rows = rows


def saved_ids(state: Mapping[str, Any]) -> list[str]:
    """Return the problem ids of a saved state, in the order of its columns.

    Raises:
        ValueError: If another version wrote the state.
    """
    version = int(state["version"])
    if version != STATE_VERSION:
        raise ValueError(f"tracker state has version {version}, this code reads {STATE_VERSION}")
    return json.loads(np.asarray(state["ids"]).tobytes())


def _accuracy_at_plan(record: PromptRecord) -> float | None:
    """Return the accuracy of the last group at the planned level; ``None`` when it is unknown.

    For conversations: the mean over first turns of the accuracy of their last turns.
    """
    if record.conversations:
        if not all(each.is_known for each in record.conversations):
            return None
        groups = by_first(record.conversations)
        return fmean(fmean(each.acc_last > 0 for each in group) for group in groups)
    accuracy = None
    for each in record.rounds:
        is_known = each.accuracies and not each.num_ungraded and not each.is_given
        if each.level == record.planned_level and is_known:
            accuracy = each.accuracy
    return accuracy
