"""What the two-turn base can do: both responses graded, and how the second comes about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recipe.worlds.corpus import followed
from recipe.worlds.measure import GROUP_SIZE, Sampler, mean
from recipe.worlds.two_turn.corpus import COMPARE, REVISE, question
from recipe.worlds.two_turn.task import Puzzle, boxed_digit, worked_digit


@dataclass(frozen=True, slots=True)
class Play:
    """One conversation: the problem, the first response, the second."""

    puzzle: Puzzle
    first: str
    second: str

    @property
    def boxes(self) -> tuple[int | None, int | None]:
        """The boxed digit of each response."""
        return boxed_digit(self.first), boxed_digit(self.second)

    @property
    def are_right(self) -> tuple[bool, bool]:
        """Whether each response is."""
        first, second = self.boxes
        return first == self.puzzle.results[-1], second == self.puzzle.results[-1]

    @property
    def could_be_read(self) -> bool:
        """Whether the first response's work says another digit than its box."""
        return worked_digit(self.first) not in (None, self.boxes[0])

    @property
    def is_read(self) -> bool:
        """Whether the second response boxes what the first one's work says."""
        return self.boxes[1] == worked_digit(self.first)


def play(sampler: Sampler, puzzles: Sequence[Puzzle], instruction: str = REVISE) -> list[Play]:
    """Play ``GROUP_SIZE`` conversations of every puzzle, sampled at T=1."""
    asked = [puzzle for puzzle in puzzles for _ in range(GROUP_SIZE)]
    conversations = [question(puzzle.problem) for puzzle in asked]
    firsts = sampler.responses(conversations)
    asked_again = [
        followed(messages, first, instruction)
        for messages, first in zip(conversations, firsts, strict=True)
    ]
    # With the seed of the first turn the second would draw the same digits again.
    seconds = replace(sampler, seed=sampler.seed + 1).responses(asked_again)
    return [Play(*each) for each in zip(asked, firsts, seconds, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``turn_1``, ``turn_2`` and ``delta``: accuracies and their difference. ``wrong_to_right``,
    ``right_to_wrong`` and ``same_box``: what the revision did, of all conversations. ``fix``:
    revisions that box what the work says, of those where the first box differs from it.
    ``work``: first responses whose work is right.
    """
    right = [play.are_right for play in plays]
    turn_1, turn_2 = (mean([each[turn] for each in right]) for turn in (0, 1))
    return {
        "turn_1": turn_1,
        "turn_2": turn_2,
        "delta": turn_2 - turn_1,
        "wrong_to_right": mean([not first and second for first, second in right]),
        "right_to_wrong": mean([first and not second for first, second in right]),
        "same_box": mean([play.boxes[0] == play.boxes[1] for play in plays]),
        "fix": mean([play.is_read for play in plays if play.could_be_read]),
        "work": mean([worked_digit(play.first) == play.puzzle.results[-1] for play in plays]),
    }


def quality(sampler: Sampler, puzzles: Mapping[str, Sequence[Puzzle]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` by difficulty.

    ``compare_turn_2`` is the accuracy of hard problems where the second turn asks to compare.
    """
    report = {
        f"{difficulty}_{name}": value
        for difficulty, those in puzzles.items()
        for name, value in rates(play(sampler, those)).items()
    }
    report["compare_turn_2"] = rates(play(sampler, puzzles["hard"], COMPARE))["turn_2"]
    return {name: round(value, 4) for name, value in report.items()}
