"""What a reward takes into account beside the verdict: a response's form, and its length."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recipe.hint.errors import ConfigError

_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_FORM = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)


def format_score(response: str) -> float:
    """Return 1.0 for ``<think>...</think><answer>...</answer>`` and nothing around it, else 0.0.

    Each tag stands exactly once, and both parts hold more than white space.

    Source: the format reward of GHPO (Liu et al. 2025, arXiv:2507.10628).
    """
    if any(response.count(tag) != 1 for tag in _TAGS):
        return 0.0
    match = _FORM.fullmatch(response)
    return float(match is not None and all(part.strip() for part in match.groups()))


@dataclass(frozen=True, slots=True)
class Overlong:
    """Soft punishment of over-long responses, added to what a response trains with.

    Source: DAPO (Yu et al. 2025, arXiv:2503.14476, eq. 13), as verl's reward manager ``dapo`` has
    it. Nothing up to ``max_tokens - buffer_tokens``; from there it grows in a straight line, and is
    ``-factor`` at ``max_tokens``.

    Raises:
        ConfigError: If the buffer is empty or longer than the longest response.
    """

    max_tokens: int
    buffer_tokens: int
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.buffer_tokens <= self.max_tokens:
            raise ConfigError(
                f"reward.reward_kwargs.overlong_buffer_cfg.len={self.buffer_tokens} must be above "
                f"0 and at most reward.reward_kwargs.max_resp_len={self.max_tokens}"
            )

    def penalty(self, num_tokens: int) -> float:
        """Return what to add to the reward, at most 0."""
        excess = num_tokens - (self.max_tokens - self.buffer_tokens)
        return min(-excess / self.buffer_tokens * self.factor, 0.0)
