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
    "highest_level": (np.uint8, 0),  # the highest that trained last
    "worked_level": (np.uint8, _NEVER),  # lowest level with a right response last
}
# Names that earlier checkpoints use.
_OLD_NAMES = {"had_signal": "was_mixed", "highest_level": "accepted_level"}
STATE_VERSION = 4
_READ = (3, STATE_VERSION)


class RewardTracker:
    """13 bytes per problem id, on the driver; the history is in ``records.jsonl``."""

    def __init__(self) -> None:
        self._row_of: dict[str, int] = {}
        self._columns = {name: np.full(64, new, dtype) for name, (dtype, new) in _FIELDS.items()}

    def __len__(self) -> int:
        return len(self._row_of)

    def state(self, problem_id: str) -> ProblemState:
        """Return what a method may know of the problem; the empty state when it is new."""
        row = self._row_of.get(problem_id)
        if row is None:
            return ProblemState()
        columns = self._columns
        accuracy = round(float(columns["accuracy"][row]), 6)
        worked = int(columns["worked_level"][row])
        return ProblemState(
            visits=int(columns["visits"][row]),
            level=int(columns["level"][row]),
            accuracy=None if accuracy == _UNKNOWN else accuracy,
            highest_level=int(columns["highest_level"][row]),
            worked_level=None if worked == _NEVER else worked,
        )

    def update(self, records: Iterable[PromptRecord], *, train: bool = True) -> None:
        """Fold one step's records in; their order matters only if a problem occurs twice.

        With ``train=False`` only ``had_signal`` and ``highest_level`` stay as they are.
        """
        for record in records:
            row = self._row(record.problem_id)
            columns = self._columns
            columns["visits"][row] += 1
            if not record.is_off_schedule:
                columns["level"][row] = record.planned_level
                accuracy = _accuracy_at_plan(record)
                columns["accuracy"][row] = _UNKNOWN if accuracy is None else accuracy
            sampled = [each for each in record.rounds if not each.is_given]
            solved = [each.level for each in sampled if each.is_solved]
            columns["best_level"][row] = min([columns["best_level"][row], *solved])
            if train:
                columns["had_signal"][row] |= record.has_signal
                columns["highest_level"][row] = record.highest_level
            columns["worked_level"][row] = min(solved, default=_NEVER)

    def metrics(self) -> dict[str, float]:
        """Return names relative to ``reward_tracking/``, in percent of the problems seen.

        ``pct_indexes_*`` are shares of those whose last accuracy is known.
        """
        count = len(self)
        accuracy = self._column("accuracy")
        known = accuracy[accuracy != _UNKNOWN]
        result = {"num_total_indexes": float(count)}
        bounds = [0.0, 0.2, 0.4, 0.6, 0.8]
        result["pct_indexes_in_0"] = _percent(known == 0, known.size)
        for low in bounds:
            high = round(low + 0.2, 1)
            inside = (known > low) & (known <= high if high < 1 else known < 1)
            name = f"({low},{high}]" if high < 1 else f"({low},1)"
            result[f"pct_indexes_in_{name}"] = _percent(inside, known.size)
        result["pct_indexes_in_1"] = _percent(known == 1, known.size)
        result["pct_never_solved"] = _percent(self._column("best_level") == _NEVER, count)
        result["pct_never_solved_unhinted"] = _percent(self._column("best_level") > 0, count)
        result["pct_never_mixed"] = _percent(~self._column("had_signal"), count)
        return result

    def state_dict(self) -> dict[str, Any]:
        """Return everything, as arrays that ``numpy.savez`` takes."""
        state: dict[str, Any] = {name: self._column(name).copy() for name in _FIELDS}
        # As JSON: an array of texts pads every id to the longest and cuts NULs from their ends.
        state["ids"] = np.frombuffer(json.dumps(list(self._row_of)).encode(), np.uint8)
        state["version"] = np.int64(STATE_VERSION)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Replace the content by a saved one.

        Raises:
            ValueError: If this version cannot read the state, an id is there twice, or a column is
                not as long as the ids are many.
        """
        ids = saved_ids(state)
        row_of = {problem_id: row for row, problem_id in enumerate(ids)}
        if len(row_of) < len(ids):
            twice = next(each for row, each in enumerate(ids) if row_of[each] != row)
            raise ValueError(f"tracker state holds the id {twice!r} twice, expected each id once")
        state = {new: state[old] for new, old in _OLD_NAMES.items() if old in state} | state
        for name in _FIELDS:
            shape = np.shape(state[name]) if name in state else None
            if shape != (len(ids),):
                found = "missing" if shape is None else f"of shape {shape}"
                raise ValueError(
                    f"tracker state: `{name}` is {found}, expected one value for each of "
                    f"{len(ids)} ids"
                )
        self._row_of = row_of
        size = max(64, len(ids))
        for name, (dtype, new) in _FIELDS.items():
            self._columns[name] = np.full(size, new, dtype)
            self._columns[name][: len(ids)] = state[name]

    def _column(self, name: str) -> np.ndarray:
        return self._columns[name][: len(self)]

    def _row(self, problem_id: str) -> int:
        row = self._row_of.get(problem_id)
        if row is not None:
            return row
        row = self._row_of[problem_id] = len(self._row_of)
        if row >= len(self._columns["visits"]):
            for name, column in self._columns.items():
                more = np.full_like(column, _FIELDS[name][1])
                self._columns[name] = np.concatenate([column, more])
        return row


def saved_ids(state: Mapping[str, Any]) -> list[str]:
    """Return the problem ids of a saved state, in the order of its columns.

    Raises:
        ValueError: If another version wrote the state.
    """
    version = int(state["version"])
    if version not in _READ:
        read = " and ".join(map(str, _READ))
        raise ValueError(f"tracker state has version {version}, this code reads {read}")
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


def _percent(mask: np.ndarray, count: int) -> float:
    return 100.0 * float(np.count_nonzero(mask)) / count if count else 0.0
