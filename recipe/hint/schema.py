"""The frozen values that travel between the layers.

Shapes: ``G`` rollouts of one problem, ``L`` hint levels (0 means no hint), ``T`` tokens.
A failure is one of these values too, with a reason; nothing here is ever ``None`` to mean "failed".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal["maths", "choice", "program"]
Reason = Literal["correct", "wrong", "no_answer", "malformed", "timeout", "error", "truncated"]
HintStatus = Literal[
    "none",  # level 0: no hint was asked for
    "ok",
    "cut",  # too long, used after cutting at a sentence
    "parse_failed",
    "leaked",
    "too_long",
    "missing_solution",
    "missing_hint",  # the row has no text for the level
    "generation_failed",
]
# These end the hint levels: no level of this visit can have a hint.
FINAL_HINT_FAILURES: frozenset[str] = frozenset(
    {"parse_failed", "missing_solution", "missing_hint", "generation_failed"}
)
# What a verdict rests on.
Basis = Literal[
    "none",  # nothing was compared
    "text",  # the same normalised text, or two texts that differ and could not be read
    "number",  # exact arithmetic on numbers, alone or in lists, sets, intervals, matrices
    "algebra",  # formulas, compared by value
    "letter",  # the letter of a choice
    "tests",  # a program was run
    "function",  # the user's own reward function
]
# What the second judge says about a verdict; `none`: it could not tell.
Opinion = Literal["not_asked", "none", "agrees", "disagrees"]
# A verdict with one of these reasons says nothing about the answer.
UNGRADED: frozenset[str] = frozenset({"timeout", "error"})


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of a training file, as methods and hint sources see it.

    ``hints[k - 1]`` are the texts that the file gives for level k, several of them to choose from.
    ``row`` is JSON: the row's ``data_source``, ``ground_truth`` and ``extra_info`` as they stand
    there, for a user's own reward function.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    text: str
    solution: str
    answer: str
    data_source: str = ""
    kind: Kind = "maths"
    hints: tuple[tuple[str, ...], ...] = ()
    row: str = ""


class Item(NamedTuple):
    """One response to grade; ``kind`` names the verifier, ``answer`` is what it compares with.

    ``problem`` is the problem's text, empty where there is none: a counted noun such as "apples"
    may be left out of an answer only when the problem has it. ``row`` is what a user's own reward
    function is called with, as ``Problem.row``; without it the project's verifier judges the item.
    """

    response: str
    answer: str
    is_truncated: bool = False
    kind: Kind = "maths"
    problem: str = ""
    row: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier says about one response.

    Attributes:
        score: Accuracy, 1.0 or 0.0 (a user's own function may give values between): what the hint
            search, the records and every reported number use.
        reason: Why.
        extracted: The text that was compared, empty when there was none.
        basis: What the verdict rests on.
        ignored: The part of ``extracted`` that was understood and left out of the comparison,
            such as a unit that the gold answer does not have.
        reward: What the response trains with where a user's own function or the over-long penalty
            says so; ``None``: the score.
    """

    score: float
    reason: Reason
    extracted: str = ""
    basis: Basis = "none"
    ignored: str = ""
    reward: float | None = None

    @property
    def is_ungraded(self) -> bool:
        """True when the verifier failed, so the answer may be right or wrong."""
        return self.reason in UNGRADED

    @property
    def trained(self) -> float:
        """What the response trains with."""
        return self.score if self.reward is None else self.reward


@dataclass(frozen=True, slots=True)
class HintLevels:
    """The hint texts of one problem at one visit; ``at(1)`` is the weakest."""

    hints_L: tuple[str, ...]

    def at(self, level: int) -> str:
        """Text of ``level`` in 1..L."""
        if not 1 <= level <= len(self.hints_L):
            raise ValueError(f"hint level {level} is outside 1..{len(self.hints_L)}")
        return self.hints_L[level - 1]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why a reply holds no hints; ``excerpt`` is at most 200 characters of it."""

    reason: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to sample next: one group of rollouts under hint ``level`` (0: no hint).

    Attributes:
        level: The hint level.
        rollouts: How many; 0 is the whole group, G.
        completes: Fill the group up to G when one of ``rollouts`` is right or not decided.
        writes_early: Have the hints written while this group is being sampled.
        is_plain: Outside the method's search or schedule: the group is kept whatever it brings,
            and the level remembered of the problem stays what it was.
    """

    level: int
    rollouts: int = 0
    completes: bool = False
    writes_early: bool = False
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One group that was sampled, or whose hint failed (then ``rewards_G`` is empty).

    ``rewards_G`` are accuracies: 1 for right and 0 for wrong, whatever a method adds to them for
    training. ``is_whole`` tells whether there are G of them.
    """

    plan: Plan
    hint_status: HintStatus = "none"
    rewards_G: tuple[float, ...] = ()
    num_ungraded: int = 0
    rollout_tokens: int = 0
    seconds: float = 0.0
    is_whole: bool = True

    @property
    def is_sampled(self) -> bool:
        """False when the hint failed and nothing was rolled out."""
        return bool(self.rewards_G)

    @property
    def is_solved(self) -> bool:
        """True when at least one rollout is right."""
        return any(reward > 0 for reward in self.rewards_G)

    @property
    def is_ungraded(self) -> bool:
        """True when nothing was right but the verifier failed on some rollout."""
        return not self.is_solved and self.num_ungraded > 0

    @property
    def is_mixed(self) -> bool:
        """True when the rewards differ, so the group carries a gradient."""
        return len(set(self.rewards_G)) > 1


@dataclass(frozen=True, slots=True)
class Keep:
    """The decision: rollouts ``rows`` of ``attempts[attempt]`` are trained on.

    Attributes:
        attempt: Place of the group in the attempts.
        rows: Its rollouts that train.
        borrowed: (attempt, row) of rollouts from other attempts that train in the same group:
            one advantage for all, each with the prompt of its own attempt.
        is_dropped: The group is published without any signal, so that it changes nothing.
    """

    attempt: int
    rows: tuple[int, ...]
    borrowed: tuple[tuple[int, int], ...] = ()
    is_dropped: bool = False

    @classmethod
    def group(cls, attempts: Sequence[Attempt], index: int) -> Keep:
        """Keep one whole group."""
        index = index % len(attempts)
        return cls(index, tuple(range(len(attempts[index].rewards_G))))

    @classmethod
    def last_sampled(cls, attempts: Sequence[Attempt]) -> Keep:
        """Keep the newest group that has rollouts, stepping over failed hints."""
        for index in reversed(range(len(attempts))):
            if attempts[index].is_sampled:
                return cls.group(attempts, index)
        raise ValueError("no attempt was sampled; a method must sample one group before it keeps")


@dataclass(frozen=True, slots=True)
class ProblemState:
    """What the tracker remembers of one problem, of fixed size, and the step of this visit.

    Attributes:
        visits: How many there were before this one.
        level: The level planned at the last visit that followed the method's rule.
        accuracy: That of the last visit at ``level``; -1.0 when it is unknown
            (first visit, the hint failed, or the verifier did).
        accepted_level: The highest level among the rollouts that the last visit trained on.
        worked_level: The lowest level at which a rollout of the last visit was right; -1: none.
        step: The training step of this visit, from 1.
    """

    visits: int = 0
    level: int = 0
    accuracy: float = -1.0
    accepted_level: int = 0
    worked_level: int = -1
    step: int = 0


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """What one problem's visit came to; the only source of metrics, tracker and report.

    The lists run over the attempts in the order they were made.

    Attributes:
        rewards: Accuracies, per attempt and rollout.
        kept: (attempt, row) of the rollouts that train; empty: the whole accepted group.
        trained_rewards: What they train with; empty: their accuracies.
        trained_tokens: Their length; -1: that of the accepted group.
        leaked_levels: Levels whose hint holds the final answer, tried or not.
        on_policy: False when some rollout trains under another prompt than it was sampled from.
        reliance: Per right and hinted rollout that trains, the mean over its tokens of
            log p(token | hinted prompt) - log p(token | un-hinted prompt), where it was measured.
        bases: Verdicts of all attempts, by what they rest on.
        earning_bases: What those above 0 rest on.
        num_ignored: Verdicts that left a part of the answer out.
        num_second: Verdicts that the second judge had an opinion on.
        num_disagreed: Those where it was another one.
        shapes: Forms of right answers that are not their gold answer's form.
    """

    problem_id: str
    uid: str
    step: int
    planned_level: int
    accepted_level: int
    levels: tuple[int, ...]
    hint_statuses: tuple[HintStatus, ...]
    rewards: tuple[tuple[float, ...], ...]
    num_ungraded: tuple[int, ...]
    rollout_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    accepted: int
    hint_calls: int = 0
    hint_tokens: int = 0
    hint_seconds: float = 0.0
    leaked_levels: tuple[int, ...] = ()
    on_policy: bool = True
    reasons: dict[str, int] = field(default_factory=dict)
    kept: tuple[tuple[int, int], ...] = ()
    trained_rewards: tuple[float, ...] = ()
    trained_tokens: int = -1
    is_plain: bool = False
    is_dropped: bool = False
    reliance: tuple[float, ...] = ()
    bases: dict[str, int] = field(default_factory=dict)
    earning_bases: tuple[str, ...] = ()
    num_ignored: int = 0
    num_second: int = 0
    num_disagreed: int = 0
    shapes: tuple[str, ...] = ()

    @property
    def hint_level(self) -> int:
        """The highest level among the rollouts that train."""
        return max((self.levels[attempt] for attempt, _ in self.kept), default=self.accepted_level)

    @property
    def accuracies(self) -> tuple[float, ...]:
        """Of the rollouts that train: 1 for right, 0 for wrong."""
        if not self.kept:
            return self.rewards[self.accepted]
        return tuple(self.rewards[attempt][row] for attempt, row in self.kept)

    @property
    def has_signal(self) -> bool:
        """Whether the rewards that train differ, so that the group has a gradient."""
        return not self.is_dropped and len(set(self.trained_rewards or self.accuracies)) > 1

    def as_json(self) -> dict[str, Any]:
        """Plain values, as written to ``records.jsonl`` and carried by the rows."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> PromptRecord:
        """Inverse of :meth:`as_json` after a trip through JSON."""
        flat = ("levels", "hint_statuses", "num_ungraded", "rollout_tokens", "seconds")
        flat += ("trained_rewards", "reliance", "leaked_levels", "earning_bases", "shapes")
        nested = ("rewards", "kept")
        return cls(
            **{
                **row,
                **{name: tuple(row[name]) for name in flat if name in row},
                **{name: tuple(map(tuple, row[name])) for name in nested if name in row},
            }
        )
