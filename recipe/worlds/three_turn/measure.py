"""What the three-turn base can do: attempt and refinement graded, and the feedback between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recipe.hint.prompt import fill
from recipe.worlds.corpus import TEXTS, followed
from recipe.worlds.measure import GROUP_SIZE, Sampler, mean
from recipe.worlds.three_turn.corpus import FEEDBACK, KEEP, READ, feedback_request
from recipe.worlds.two_turn.corpus import question
from recipe.worlds.two_turn.task import Puzzle, boxed_digit, worked_digit


@dataclass(frozen=True, slots=True)
class Play:
    """One conversation of three turns: attempt, feedback, refinement."""

    puzzle: Puzzle
    attempt: str
    feedback: str
    refined: str

    @property
    def truth(self) -> int:
        """The right digit."""
        return self.puzzle.results[-1]

    @property
    def is_obeyed(self) -> bool:
        """Whether the refinement boxes what the feedback asks for."""
        first, second = boxed_digit(self.attempt), boxed_digit(self.refined)
        if self.feedback == READ:
            return second == worked_digit(self.attempt)
        return (second == first) == (self.feedback == KEEP)


def play(sampler: Sampler, puzzles: Sequence[Puzzle]) -> list[Play]:
    """Play ``GROUP_SIZE`` conversations of three turns on every problem, sampled at T=1."""
    asked = [puzzle for puzzle in puzzles for _ in range(GROUP_SIZE)]
    conversations = [question(puzzle.problem) for puzzle in asked]
    attempts = sampler.responses(conversations)
    requests = [
        feedback_request(puzzle.problem, attempt)
        for puzzle, attempt in zip(asked, attempts, strict=True)
    ]
    # With the seed of the turn before it a turn would draw the same digits again.
    feedback = replace(sampler, seed=sampler.seed + 1).responses(requests)
    asked_again = [
        followed(messages, attempt, fill(TEXTS.refine, feedback=text))
        for messages, attempt, text in zip(conversations, attempts, feedback, strict=True)
    ]
    refined = replace(sampler, seed=sampler.seed + 2).responses(asked_again)
    return [Play(*each) for each in zip(asked, attempts, feedback, refined, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``turn_1``, ``turn_2`` and ``delta``: accuracies of attempt and refinement; their difference.
    ``work``: attempts whose work is right. ``read``: feedback that says to box what the work says.
    ``obeyed``: refinements that do what the feedback says. ``well_formed``: feedback that is one
    of the three that the base knows.
    """
    turn_1 = mean([boxed_digit(play.attempt) == play.truth for play in plays])
    turn_2 = mean([boxed_digit(play.refined) == play.truth for play in plays])
    known = [play for play in plays if play.feedback in FEEDBACK]
    return {
        "turn_1": turn_1,
        "turn_2": turn_2,
        "delta": turn_2 - turn_1,
        "work": mean([worked_digit(play.attempt) == play.truth for play in plays]),
        "read": mean([play.feedback == READ for play in plays]),
        "obeyed": mean([play.is_obeyed for play in known]),
        "well_formed": mean([play.feedback in FEEDBACK for play in plays]),
    }


def quality(sampler: Sampler, puzzles: Mapping[str, Sequence[Puzzle]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` by difficulty."""
    return {
        f"{difficulty}_{name}": round(value, 4)
        for difficulty, those in puzzles.items()
        for name, value in rates(play(sampler, those)).items()
    }
