"""Groups of responses: requested from the rollout servers, and continued after a weight update."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from recipe.hint.schema import seed_at
from recipe.run.errors import StallError
from recipe.run.together import gather_or_cancel
from recipe.run.typed import fields_of

# Finish reason of a response that a weight update has stopped.
STOPPED = "abort"
# Before a response that a weight update has stopped is requested again.
_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of one kind of request; ``max_tokens`` bounds one response."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = -1

    def fields(self, seed: int | None) -> dict[str, Any]:
        """Return the fields of vLLM's SamplingParams; without a seed vLLM draws its own."""
        return fields_of(self) | {"seed": seed}


@dataclass(slots=True)
class PartialResponse:
    """One response, as far as it has been sampled.

    ``log_probs_T`` are those that each token was sampled with, under the weights at that time;
    ``min_step`` and ``max_step`` are the versions of the first and the last token's weights. Tokens
    are in arrays: the garbage collector walks every number of every list, for half a second where
    2,048 prompts are under way.
    """

    token_ids_T: array[int] = field(default_factory=lambda: array("q"))
    log_probs_T: array[float] = field(default_factory=lambda: array("d"))
    finish: str = STOPPED
    min_step: int = -1
    max_step: int = -1

    def add(self, group: dict[str, Any], number: int) -> None:
        """Append response ``number`` of what a server answered."""
        token_ids_T = group["token_ids"][number]
        if token_ids_T or not self.token_ids_T:
            self.max_step = group["global_steps"]
        if not self.token_ids_T:
            self.min_step = self.max_step
        self.token_ids_T.extend(token_ids_T)
        self.log_probs_T.extend(group["log_probs"][number])
        self.finish = group["finish"][number]


@dataclass(slots=True)
class PartialGroup:
    """The responses to one prompt, as far as they have been sampled."""

    prompt_ids: Sequence[int]
    sampling: Sampling
    seed: int
    responses: list[PartialResponse] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.responses = [PartialResponse() for _ in range(self.sampling.n)]

    def add(self, group: dict[str, Any]) -> None:
        """Append what a server answered."""
        for number, response in enumerate(self.responses):
            response.add(group, number)

    @property
    def is_unstarted(self) -> bool:
        """Whether a weight update stopped it before its first token: it can be requested again."""
        is_empty = not any(each.token_ids_T for each in self.responses)
        return is_empty and any(each.finish == STOPPED for each in self.responses)


class GroupClient:
    """Sends whole groups to the rollout servers; continues responses that a weight update stops.

    Args:
        llm_client: verl's client, which balances the load.
        max_model_len: Longest prompt and response together, in tokens.
        timeout_s: Longest time of one request in vLLM (``hint.watchdog.rollout_s``).
        is_seeded: Whether responses get seeds.
    """

    def __init__(
        self, llm_client: Any, *, max_model_len: int, timeout_s: float, is_seeded: bool = True
    ) -> None:
        self._client = llm_client
        self._max_model_len = max_model_len
        self._timeout_s = timeout_s
        self.is_seeded = is_seeded

    def has_room(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a response to this prompt could have one token."""
        return len(prompt_ids) < self._max_model_len

    async def sample_each(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[list[PartialResponse]]:
        """Sample a group for each prompt, in one call to one server.

        What a weight update stops is continued under the new weights.

        Raises:
            StallError: If no server answers within ``timeout_s``.
            ValueError: If a prompt leaves no room for a response.
        """
        groups = [
            PartialGroup(ids, self._within(ids, sampling), seed)
            for ids, seed in zip(prompts, seeds, strict=True)
        ]
        waiting = groups
        while waiting:
            asked = [
                (each.prompt_ids, each.sampling.fields(self._seed(each.seed))) for each in waiting
            ]
            for each, group in zip(waiting, await self._ask_each(asked), strict=True):
                each.add(group)
            waiting = [each for each in waiting if each.is_unstarted]
            if waiting:
                await asyncio.sleep(_PAUSE_S)
        # A stopped response continues after its own tokens, so each is a request of its own.
        await gather_or_cancel(
            self._continue(
                each.prompt_ids, response, replace(each.sampling, n=1), each.seed + number
            )
            for each in groups
            for number, response in enumerate(each.responses)
            if response.finish == STOPPED
        )
        return [each.responses for each in groups]

    def _within(self, prompt_ids: Sequence[int], sampling: Sampling) -> Sampling:
        """Return the settings with ``max_tokens`` limited to the room that the prompt leaves."""
        room = self._max_model_len - len(prompt_ids)
        if not self.has_room(prompt_ids):
            raise ValueError(
                f"a prompt of {len(prompt_ids)} tokens leaves no room in "
                f"actor_rollout_ref.rollout.max_model_len={self._max_model_len}; raise it, or "
                f"leave such prompts out"
            )
        return sampling if sampling.max_tokens <= room else replace(sampling, max_tokens=room)

    async def _continue(
        self, prompt_ids: Sequence[int], response: PartialResponse, sampling: Sampling, seed: int
    ) -> None:
        while response.finish == STOPPED:
            count = len(response.token_ids_T)
            if count == sampling.max_tokens:
                response.finish = "length"
                return
            rest = replace(sampling, max_tokens=sampling.max_tokens - count)
            # Not the same seed again: it would repeat the random draws of the first tokens.
            fields = rest.fields(self._seed(seed_at(seed, "after", count)))
            response.add(await self._ask([*prompt_ids, *response.token_ids_T], fields), 0)
            if response.finish == STOPPED:
                await asyncio.sleep(_PAUSE_S)

    def _seed(self, seed: int) -> int | None:
        return seed if self.is_seeded else None

    async def _ask(self, prompt_ids: Sequence[int], fields: dict[str, Any]) -> dict[str, Any]:
        """Send one request to the server that the balancer chooses."""
        [group] = await self._ask_each([(prompt_ids, fields)])
        return group

    async def _ask_each(
        self, asked: Sequence[tuple[Sequence[int], dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """Send requests to the server that the balancer chooses, in one call."""
        request_id = uuid4().hex
        # A router of the user's own may look at the prompt.
        prompt_ids = list(asked[0][0])
        server_id, server = await self._acquire(request_id, prompt_ids)
        try:
            if len(asked) == 1:
                [(prompt_ids, fields)] = asked
                return [
                    await server.generate_group.remote(
                        prompt_ids, fields, request_id, self._timeout_s
                    )
                ]
            named = [(*each, f"{request_id}-{number}") for number, each in enumerate(asked)]
            return await server.generate_groups.remote(named, self._timeout_s)
        except TimeoutError:
            count = sum(fields["n"] for _, fields in asked)
            raise StallError(
                f"vLLM server {server_id} did not finish a group of {count} responses within "
                f"hint.watchdog.rollout_s={self._timeout_s:g} s"
            ) from None
        finally:
            self._client._release_server(server_id, request_id=request_id)

    async def _acquire(self, request_id: str, prompt_ids: list[int]) -> tuple[str, Any]:
        """Return the balancer's choice; if cancelled meanwhile, give it back once it is there."""

        def give_back(choice: asyncio.Future[tuple[str, Any]]) -> None:
            if not choice.cancelled() and not choice.exception():
                self._client._release_server(choice.result()[0], request_id=request_id)

        choice = asyncio.ensure_future(
            self._client._acquire_server(request_id, prompt_ids=prompt_ids)
        )
        try:
            return await asyncio.shield(choice)
        except asyncio.CancelledError:
            choice.add_done_callback(give_back)
            raise
