"""What a reward takes into account besides the verdict: the length of the response."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.run.errors import ConfigError


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
