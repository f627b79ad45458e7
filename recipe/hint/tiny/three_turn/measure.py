"""What the three-turn base can do: attempt and refinement graded, and the feedback between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recipe.hint.prompt import fill
from recipe.hint.tiny.corpus import TEXTS
from recipe.hint.tiny.measure import GROUP_SIZE, Sampler, mean
from recipe.hint.tiny.task import boxed_code
from recipe.hint.tiny.three_turn.corpus import CHECK_SYSTEM, feedback_request, question
from recipe.hint.tiny.three_turn.task import (
    NO_SLIP,
    Steps,
    named_step,
    slips_of,
    stated_results,
)


@dataclass(frozen=True, slots=True)
class Play:
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


def play(
    sampler: Sampler, problems: Sequence[Steps], guide_system: str = TEXTS.guide_system
) -> list[Play]:
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
    followed = [
        [
            *messages,
            {"role": "assistant", "content": attempt},
            {"role": "user", "content": instruction},
        ]
        for messages, attempt, instruction in zip(
            conversations, attempts, instructions, strict=True
        )
    ]
    refined = replace(sampler, seed=sampler.seed + 2).responses(followed)
    return [Play(*each) for each in zip(asked, attempts, feedback, refined, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
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


def _is_obeyed(play: Play) -> bool:
    wanted = stated_results(play.attempt)
    step = named_step(play.feedback)
    if step is None or step >= len(wanted):
        return False
    wanted[step] = play.steps.results[step]
    return stated_results(play.refined) == wanted


def quality(sampler: Sampler, items: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates`.

    ``check_named`` is the share of slips that are named where the guide is asked to check.
    """
    report = rates(play(sampler, items["steps"]))
    report["check_named"] = rates(play(sampler, items["steps"], CHECK_SYSTEM))["named"]
    return {name: round(value, 4) for name, value in report.items()}
