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

STOPPED = "abort"  # finish reason of a response that a weight update has stopped
_PAUSE_S = 0.2  # before it is requested again


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of one kind of request; ``max_tokens`` bounds one response."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = -1


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


class GroupClient:
    """Sends whole groups to the rollout servers; continues responses that a weight update stops.

    ``llm_client`` is verl's, which balances the load; prompt and response have ``max_model_len``
    tokens at most, a request in vLLM ``timeout_s``. Without seeds vLLM draws its own.
    """

    def __init__(
        self, llm_client: Any, *, max_model_len: int, timeout_s: float, is_seeded: bool = True
    ) -> None:
        self._client, self._timeout_s, self.is_seeded = llm_client, timeout_s, is_seeded
        self._max_model_len = max_model_len

    def room(self, prompt_ids: Sequence[int]) -> int:
        """Return how many tokens a response to this prompt can have."""
        return self._max_model_len - len(prompt_ids)

    async def sample_each(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[list[PartialResponse]]:
        """Sample a group for each prompt, in one call to one server.

        What a weight update stops is continued under the new weights. A prompt must leave room for
        a response.

        Raises:
            StallError: If no server answers within ``timeout_s``.
        """
        limited = [
            replace(sampling, max_tokens=min(sampling.max_tokens, self.room(ids)))
            for ids in prompts
        ]
        answers = await self._ask(list(zip(prompts, limited, seeds, strict=True)))
        groups = [[PartialResponse() for _ in range(sampling.n)] for _ in prompts]
        for group, answer in zip(groups, answers, strict=True):
            for number, response in enumerate(group):
                response.add(answer, number)
        # A stopped response continues after its own tokens, so each is a request of its own.
        await gather_or_cancel(
            self._continue(ids, response, replace(settings, n=1), seed + number)
            for ids, group, settings, seed in zip(prompts, groups, limited, seeds, strict=True)
            for number, response in enumerate(group)
            if response.finish == STOPPED
        )
        return groups

    async def _continue(
        self, prompt_ids: Sequence[int], response: PartialResponse, sampling: Sampling, seed: int
    ) -> None:
        while response.finish == STOPPED:
            count = len(response.token_ids_T)
            if count == sampling.max_tokens:
                response.finish = "length"
                return
            await asyncio.sleep(_PAUSE_S)
            rest = replace(sampling, max_tokens=sampling.max_tokens - count)
            # Not the same seed again: it would repeat the random draws of the first tokens.
            own_seed = seed_at(seed, "after", count) if count else seed
            asked = [*prompt_ids, *response.token_ids_T], rest, own_seed
            response.add((await self._ask([asked]))[0], 0)

    async def _ask(
        self, asked: Sequence[tuple[Sequence[int], Sampling, int]]
    ) -> list[dict[str, Any]]:
        """Send prompts with settings and seed to the server that the balancer chooses."""
        request_id = uuid4().hex
        # A router of the user's own may look at the prompt.
        first_ids = list(asked[0][0])
        server_id, server = await self._client._acquire_server(request_id, prompt_ids=first_ids)
        requests = []
        for number, (ids, sampling, seed) in enumerate(asked):
            fields = fields_of(sampling) | {"seed": seed if self.is_seeded else None}
            requests.append((list(ids), fields, f"{request_id}-{number}"))
        try:
            return await server.generate_groups.remote(requests, self._timeout_s)
        except TimeoutError:
            raise StallError(
                f"vLLM server {server_id} did not finish a group of "
                f"{sum(each.n for _, each, _ in asked)} responses within "
                f"hint.watchdog.rollout_s={self._timeout_s:g} s"
            ) from None
        finally:
            self._client._release_server(server_id, request_id=request_id)
