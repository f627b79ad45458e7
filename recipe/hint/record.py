"""What a prompt rollout came to: the rows that train, and the record for metrics and tracker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from recipe.hint.conversations import Conversation
from recipe.hint.credit.rows import CreditRow
from recipe.hint.schema import HintStatus
from recipe.hint.turns import Place, Round, Turn


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round: its prompt, its grades and what it cost.

    Attributes:
        prompt: Kind of the prompt: ``bare``, ``hinted``, ``follow_up``, ...
        accuracies: Of the graded responses; empty when nothing was sampled or graded.
        num_ungraded: Responses on which the verifier failed.
        tokens: Length of all responses.
        parents: The turn that each turn goes on from; empty where that is the problem itself.
        leaks: Turns that hold the final answer, where that was looked for.
    """

    prompt: str
    level: int
    hint_status: HintStatus
    accuracies: tuple[float, ...]
    num_ungraded: int
    tokens: int
    seconds: float
    role: str = "solver"
    parents: tuple[Place, ...] = ()
    leaks: int = 0

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
            seconds=round(done.seconds, 4),
            role=done.request.role,
            parents=tuple(turn.parent for turn in done.turns if turn.parent),
            leaks=sum(turn.leaks for turn in done.turns),
        )

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> RoundRecord:
        """Return the record that ``asdict`` gave, after a trip through JSON."""
        parents = tuple(Place(*place) for place in row.get("parents", ()))
        return cls(**{**row, "accuracies": tuple(row["accuracies"]), "parents": parents})


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """What the rollout of one prompt came to.

    Attributes:
        rounds: What was sampled, in order; a round without accuracies had no prompt, or no grades.
        rows: (round, turn) of the responses that train.
        rewards: What they train with.
        accuracies: 1 for right and 0 for wrong, of those that are graded.
        groups: Names of the groups that share a baseline; empty: one group.
        trained_tokens: Length of what trains.
        leaked_levels: Levels whose hint holds the final answer, sampled or not.
        on_policy: False when some row trains under another prompt than it was sampled from.
        reasons: Verdicts of what trains.
        is_off_schedule: The method left its search or schedule at this prompt.
        logprob_gains: Per right and hinted response that trains, the mean over its tokens of
            log p(token | hinted prompt) - log p(token | bare prompt), where it was measured.
        bases: Verdicts of all rounds, by what they rest on.
        earning_bases: What those above 0 rest on.
        num_ignored: Verdicts that left a part of the answer out.
        num_second: Verdicts that the second judge had an opinion on.
        num_disagreed: Those where it was another one.
        shapes: Forms of right answers that are not their gold answer's form.
        conversations: First and last turn of each conversation that has several graded ones.
    """

    problem_id: str
    uid: str
    step: int
    rounds: tuple[RoundRecord, ...]
    rows: tuple[Place, ...]
    rewards: tuple[float, ...]
    accuracies: tuple[float, ...]
    groups: tuple[str, ...] = ()
    trained_tokens: int = 0
    hint_calls: int = 0
    hint_tokens: int = 0
    hint_seconds: float = 0.0
    leaked_levels: tuple[int, ...] = ()
    on_policy: bool = True
    reasons: dict[str, int] = field(default_factory=dict)
    is_off_schedule: bool = False
    is_dropped: bool = False
    logprob_gains: tuple[float, ...] = ()
    bases: dict[str, int] = field(default_factory=dict)
    earning_bases: tuple[str, ...] = ()
    num_ignored: int = 0
    num_second: int = 0
    num_disagreed: int = 0
    shapes: tuple[str, ...] = ()
    conversations: tuple[Conversation, ...] = ()

    @property
    def planned_level(self) -> int:
        """The level that the method asked for first."""
        return self.rounds[0].level

    @property
    def accepted_level(self) -> int:
        """The level of the first row that trains."""
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
    def has_signal(self) -> bool:
        """Whether rewards differ within some group, so that it has a gradient."""
        return not self.is_dropped and any(len(set(each)) > 1 for each in self._by_group())

    @property
    def num_injected(self) -> int:
        """Rows that stand in a group that began with another prompt."""
        first: dict[str, int] = {}
        names = self.groups or ("",) * len(self.rows)
        return sum(
            place.round != first.setdefault(name, place.round)
            for name, place in zip(names, self.rows, strict=True)
        )

    def _by_group(self) -> Sequence[Sequence[float]]:
        if not self.groups:
            return [self.rewards]
        by_group: dict[str, list[float]] = {}
        for name, reward in zip(self.groups, self.rewards, strict=True):
            by_group.setdefault(name, []).append(reward)
        return list(by_group.values())

    def as_json(self) -> dict[str, Any]:
        """Return plain values, as written to ``records.jsonl`` and carried by the rows."""
        levels = {"planned_level": self.planned_level, "accepted_level": self.accepted_level}
        return asdict(self) | levels

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> PromptRecord:
        """Return the record that :meth:`as_json` gave, after a trip through JSON."""
        known = {item.name for item in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in row.items()
            if name in known
        }
        values["rounds"] = tuple(map(RoundRecord.from_json, row["rounds"]))
        values["rows"] = tuple(Place(*place) for place in row["rows"])
        talks = row.get("conversations", ())
        values["conversations"] = tuple(map(Conversation.from_json, talks))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class TrainedRow:
    """One response that trains, under ``prompt_ids_T``."""

    prompt_ids_T: list[int]
    turn: Turn
    credit: CreditRow


@dataclass(frozen=True, slots=True)
class Outcome:
    """What trains, the record of how it came about, and excerpts of all that was sampled."""

    rows: tuple[TrainedRow, ...]
    record: PromptRecord
    sample: bytes = b""
