"""Outcome of a prompt rollout: training rows, the record for metrics and tracker, a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from recipe.hint.conversations import Conversation
from recipe.hint.credit.base import CreditRow, has_signal
from recipe.hint.schema import HintStatus, share_right
from recipe.hint.turns import Place, Round, Turn
from recipe.run.typed import fields_of


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round: its prompt, its grades and what it cost.

    ``accuracies``: of the responses with a verdict, 0 where the verifier failed (``num_ungraded``);
    may be empty. ``tokens``: length of all responses. ``parents``: the turn that each turn
    continues; empty where that is the problem itself. ``leaks``: turns that hold the final answer,
    where that was looked for. ``is_given``: the responses were not sampled but known.
    """

    prompt: str
    level: int
    hint_status: HintStatus
    accuracies: tuple[float, ...]
    num_ungraded: int
    tokens: int
    role: str = "solver"
    parents: tuple[Place, ...] = ()
    leaks: int = 0
    is_given: bool = False

    @classmethod
    def of(cls, done: Round) -> RoundRecord:
        """Return the record of a round."""
        return cls(
            prompt=done.request.prompt.kind,
            level=done.level,
            hint_status=done.hint_status,
            accuracies=done.accuracies_G,
            num_ungraded=done.num_ungraded,
            tokens=done.num_tokens,
            role=done.request.role,
            parents=tuple(turn.parent for turn in done.turns if turn.parent),
            leaks=sum(turn.has_leak for turn in done.turns),
            is_given=bool(done.request.given),
        )

    @property
    def accuracy(self) -> float:
        """Share of right responses among those with a verdict, of which there is at least one."""
        return share_right(self.accuracies)

    @property
    def is_solved(self) -> bool:
        """Whether at least one response is right."""
        return any(accuracy > 0 for accuracy in self.accuracies)


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """The result of one prompt rollout.

    ``accuracies``, ``reasons`` (of verdicts) and ``trained_tokens`` are of the responses that train
    and were sampled, not given; ``bases`` and what follows of all that were sampled.
    """

    problem_id: str
    uid: str
    step: int
    rounds: tuple[RoundRecord, ...]
    rows: tuple[Place, ...]  # those that train; where nothing trains, all that are published
    rewards: tuple[float, ...]
    accuracies: tuple[float, ...]
    groups: tuple[str, ...] = ()  # that share a baseline, one a row; empty: one group
    trained_tokens: int = 0
    hint_calls: int = 0
    hint_tokens: int = 0
    hint_fault: str = ""  # why no hint was written, in a word
    leaked_levels: tuple[int, ...] = ()  # whose hint holds the final answer, sampled or not
    on_policy: bool = True  # no row trains under another prompt than it was sampled from
    reasons: dict[str, int] = field(default_factory=dict)
    is_off_schedule: bool = False  # the first round was (``Sample.is_off_schedule``)
    is_dropped: bool = False
    bases: dict[str, int] = field(default_factory=dict)
    num_ignored: int = 0  # verdicts that left a part of the answer out
    conversations: tuple[Conversation, ...] = ()

    @property
    def planned_level(self) -> int:
        """The level that the method asked for first."""
        return self.rounds[0].level

    @property
    def first_row_level(self) -> int:
        """The level of the first row that trains; ``accepted_level`` in the files."""
        return self.rounds[self.rows[0].round].level

    @property
    def highest_level(self) -> int:
        """The highest level among the rows that train."""
        return max(self.rounds[place.round].level for place in self.rows)

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of each round."""
        return tuple(each.level for each in self.rounds)

    @property
    def accuracy(self) -> float:
        """Share of right responses among those that train, if any of them has a verdict."""
        return share_right(self.accuracies)

    @property
    def has_signal(self) -> bool:
        """Whether some group has a gradient."""
        return not self.is_dropped and has_signal(self.rewards, self.groups)

    @property
    def num_injected(self) -> int:
        """Rows of a group that are of another round than its first row, sampled or given."""
        first: dict[str, int] = {}
        names = self.groups or ("",) * len(self.rows)
        return sum(
            place.round != first.setdefault(name, place.round)
            for name, place in zip(names, self.rows, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain values, as written to ``records.jsonl`` and carried by the rows."""
        return fields_of(self) | {
            "rounds": [fields_of(each) for each in self.rounds],
            "conversations": [fields_of(each) for each in self.conversations],
            "planned_level": self.planned_level,
            "accepted_level": self.first_row_level,
        }

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> PromptRecord:
        """Return the record that :meth:`as_json` gave, after a trip through JSON."""
        return _READER.validate_python(row)


_READER = TypeAdapter(PromptRecord)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One response as it is sent to the trainer, with the prompt that it trains under."""

    prompt_ids_T: Sequence[int]
    turn: Turn
    credit: CreditRow


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows, the record of how they came about, and a packed sample (``samples``)."""

    rows: tuple[PublishedRow, ...]
    record: PromptRecord
    sample: bytes = b""


def verdict_counts(rounds: Sequence[Round]) -> dict[str, Any]:
    """Return the fields of a record that say how all sampled responses were graded."""
    verdicts = [verdict for each in rounds if not each.request.given for verdict in each.verdicts]
    return {
        "bases": dict(Counter(verdict.basis for verdict in verdicts)),
        "num_ignored": sum(bool(verdict.ignored) for verdict in verdicts),
    }
