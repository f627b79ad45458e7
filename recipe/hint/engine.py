"""Declare what the rollout loop needs from its engine; ``adapter.engine`` provides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.hints.base import WrittenText
from recipe.hint.prompt import Message
from recipe.hint.schema import ProblemState, Response, seed_at
from recipe.hint.turns import Place, Round, Sample, Turn
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict


class Engine:
    """The model, the tokenizer and the verifier, as the rollout loop uses them.

    The defaults need no model: every prompt fits, nothing leaks.

    Attributes:
        group_size: Responses of a whole group, G.
    """

    group_size: int

    def render(self, messages: Sequence[Message], *, follows: Turn | None = None) -> Sequence[int]:
        """Return the tokens of a conversation, ready for the response.

        Args:
            messages: The conversation.
            follows: The turn that it continues; the tokens of its response stay as they are.
        """
        raise NotImplementedError(f"{type(self).__name__} renders nothing")

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a prompt is within ``rollout.prompt_length``."""
        return True

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        max_tokens: int = 0,
    ) -> list[list[Response]]:
        """Sample ``rows`` of each prompt's group: row i has the prompt's seed + i."""
        raise NotImplementedError(f"{type(self).__name__} samples nothing")

    def given_response(self, text: str) -> Response:
        """Return a given text as a response: its tokens and the end of its turn."""
        return Response([0] * len(text.split()), [], text, is_truncated=False, is_given=True)

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Grade responses to one problem, in order."""
        raise NotImplementedError(f"{type(self).__name__} grades nothing")

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        """Return whether each text gives the final answer away, in order."""
        return [False] * len(responses)

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Sample one text with the hint writer's settings."""
        raise NotImplementedError(f"{type(self).__name__} writes no hints")


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
        before = [each for each in rounds if _is_done_with_its_seeds(each)]
        return self.of_level(request.level, sum(each.level == request.level for each in before))


def _is_done_with_its_seeds(done: Round) -> bool:
    """Return whether a later group at the same level needs other seeds."""
    # A probe that was not completed leaves its seeds to the whole group, which begins alike.
    is_short_probe = done.request.is_probe and not done.is_whole
    return done.has_responses and done.request.parents is None and not is_short_probe
