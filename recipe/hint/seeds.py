"""Seeds of a prompt rollout: its requests share none, except a probe with the group it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.schema import ProblemState, seed_at
from recipe.hint.turns import Place, Round, Sample


@dataclass(frozen=True, slots=True)
class RolloutSeeds:
    """Seeds of one problem at one step.

    Attributes:
        seed: ``hint.seed``.
        step: Training step.
        problem_id: The problem.
        state: What is known of it: a prompt that is sent again gets seeds of its own.
    """

    seed: int
    step: int
    problem_id: str
    state: ProblemState

    def at(self, *coordinates: object) -> int:
        """Return the seed of what these coordinates name within the prompt rollout."""
        repeat, sent = self.state.repeat, self.state.sent_step
        again: tuple[object, ...] = ("repeat", repeat) if repeat else ()
        # A resumed run sends prompts of several steps again at one.
        again += ("sent", sent) if sent not in (0, self.step) else ()
        return seed_at(self.seed, self.step, self.problem_id, *coordinates, *again)

    def of_level(self, level: int, num_before: int = 0) -> int:
        """Return the seed of a level's group after ``num_before`` others; its row i has i more."""
        return self.at(level, "again", num_before) if num_before else self.at(level)

    def of_request(self, request: Sample, parent: Place | None, rounds: Sequence[Round]) -> int:
        """Return the seed of a request that follows ``rounds``, for the problem or for a parent."""
        if parent:
            return self.at(request.level, request.prompt.kind, len(rounds), *parent)
        alike = [
            each
            for each in rounds
            if each.level == request.level and each.has_responses and each.request.parents is None
        ]
        # A probe that was not completed leaves its seeds to the whole group, which begins alike.
        num_before = sum(each.is_whole or not each.request.is_probe for each in alike)
        return self.of_level(request.level, num_before)
