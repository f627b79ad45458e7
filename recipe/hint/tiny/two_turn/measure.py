"""What the two-turn base can do: both responses graded, and how the second comes about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recipe.hint.prompt import Message, feedback_request, fill
from recipe.hint.tiny.corpus import TEXTS
from recipe.hint.tiny.measure import GROUP_SIZE, Sampler, mean
from recipe.hint.tiny.task import boxed_code
from recipe.hint.tiny.two_turn.corpus import CHECK_SYSTEM, COMPARE, REVISE, question
from recipe.hint.tiny.two_turn.slips import (
    NO_SLIP,
    Steps,
    named_step,
    slips_of,
    stated_results,
)
from recipe.hint.tiny.two_turn.task import Puzzle, boxed_digit, worked_digit


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
    followed = _followed(conversations, firsts, [instruction] * len(asked))
    # With the seed of the first turn the second would draw the same digits again.
    seconds = replace(sampler, seed=sampler.seed + 1).responses(followed)
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


@dataclass(frozen=True, slots=True)
class GuidedPlay:
    """One conversation of three turns: attempt, feedback, refinement."""

    steps: Steps
    attempt: str
    feedback: str
    refined: str

    @property
    def slips(self) -> list[int]:
        """The steps that the attempt has wrong."""
        return slips_of(self.steps, self.attempt)

    @property
    def names(self) -> bool:
        """Whether the feedback names a step."""
        return named_step(self.feedback) is not None


def play_guided(
    sampler: Sampler, problems: Sequence[Steps], guide_system: str = TEXTS.guide_system
) -> list[GuidedPlay]:
    """Play ``GROUP_SIZE`` conversations of three turns on every problem, sampled at T=1."""
    asked = [steps for steps in problems for _ in range(GROUP_SIZE)]
    conversations = [question(steps.problem) for steps in asked]
    attempts = sampler.responses(conversations)
    texts = replace(TEXTS, guide_system=guide_system)
    requests = [
        feedback_request(texts, steps.problem, attempt)
        for steps, attempt in zip(asked, attempts, strict=True)
    ]
    feedback = replace(sampler, seed=sampler.seed + 1).responses(requests)
    instructions = [fill(TEXTS.refine, feedback=text) for text in feedback]
    followed = _followed(conversations, attempts, instructions)
    refined = replace(sampler, seed=sampler.seed + 2).responses(followed)
    return [GuidedPlay(*each) for each in zip(asked, attempts, feedback, refined, strict=True)]


def guided_rates(plays: Sequence[GuidedPlay]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``turn_1``, ``turn_2`` and ``delta``: accuracies of attempt and refinement; their difference.
    ``named``: feedback that names the slip, of attempts with one. ``false_alarm``: feedback that
    names a step, of attempts without. ``obeyed``: refinements with the named step right and the
    others as they were, of those with feedback that names one. ``leaked``: feedback that holds the
    answer. ``well_formed``: feedback that names a step or finds nothing.
    """
    turn_1 = mean([boxed_code(play.attempt) == play.steps.answer for play in plays])
    turn_2 = mean([boxed_code(play.refined) == play.steps.answer for play in plays])
    slipped = [play for play in plays if len(play.slips) == 1]
    sound = [play for play in plays if not play.slips]
    return {
        "turn_1": turn_1,
        "turn_2": turn_2,
        "delta": turn_2 - turn_1,
        "named": mean([[named_step(play.feedback)] == play.slips for play in slipped]),
        "false_alarm": mean([play.names for play in sound]),
        "obeyed": mean(
            [_is_obeyed(play) for play in plays if named_step(play.feedback) is not None]
        ),
        "leaked": mean([play.steps.answer in play.feedback for play in plays]),
        "well_formed": mean([play.feedback == NO_SLIP or play.names for play in plays]),
    }


def _is_obeyed(play: GuidedPlay) -> bool:
    wanted = stated_results(play.attempt)
    step = named_step(play.feedback)
    if step is None or step >= len(wanted):
        return False
    wanted[step] = play.steps.results[step]
    return stated_results(play.refined) == wanted


def _followed(
    conversations: Sequence[list[Message]], responses: Sequence[str], instructions: Sequence[str]
) -> list[list[Message]]:
    """Return the conversations with their responses and one more user turn each."""
    return [
        [
            *messages,
            {"role": "assistant", "content": response},
            {"role": "user", "content": instruction},
        ]
        for messages, response, instruction in zip(
            conversations, responses, instructions, strict=True
        )
    ]


def quality(sampler: Sampler, items: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` and :func:`guided_rates`.

    ``compare_turn_2`` is the accuracy of hard problems where the second turn asks to compare,
    ``check_named`` the share of slips that are named where the guide is asked to check.
    """
    report = {
        f"{difficulty}_{name}": value
        for difficulty in ("easy", "hard")
        for name, value in rates(play(sampler, items[difficulty])).items()
    }
    report["compare_turn_2"] = rates(play(sampler, items["hard"], COMPARE))["turn_2"]
    guided = guided_rates(play_guided(sampler, items["steps"]))
    report |= {f"steps_{name}": value for name, value in guided.items()}
    checked = guided_rates(play_guided(sampler, items["steps"], CHECK_SYSTEM))
    report["check_named"] = checked["named"]
    return {name: round(value, 4) for name, value in report.items()}
