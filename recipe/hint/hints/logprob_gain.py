"""How much likelier a hint makes the response that was given under it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from recipe.run.together import gather_or_cancel

# (prompt, response) in tokens -> log-probabilities of the response's, as many as fit
LogProbs = Callable[[Sequence[int], list[int]], Coroutine[Any, Any, list[float]]]


async def logprob_gains(
    responses: Sequence[tuple[Sequence[int], list[int]]],
    bare_ids_T: Sequence[int],
    log_probs: LogProbs,
) -> tuple[float, ...]:
    """Return the mean over tokens of log p(token | hinted prompt) - log p(token | bare prompt).

    Both are computed in the same way, at temperature 1, so that 0 means: the hint changes nothing.

    Args:
        responses: Hinted prompt and response of each rollout.
        bare_ids_T: The prompt without a hint.
        log_probs: Returns the policy's log-probabilities.

    Returns:
        One number per response that has tokens, in nats per token.
    """

    async def one(prompt_ids_T: Sequence[int], token_ids_T: list[int]) -> float:
        hinted, bare = await gather_or_cancel(
            log_probs(ids_T, token_ids_T) for ids_T in (prompt_ids_T, bare_ids_T)
        )
        # The hinted prompt is the longer one and may leave less room at the end.
        return round(statistics.fmean(a - b for a, b in zip(hinted, bare, strict=False)), 6)

    return tuple(await gather_or_cancel(one(*response) for response in responses if response[1]))
