"""What is asked of the rollout servers and what came back so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# How a server calls a response that a weight update has stopped.
STOPPED = "abort"


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of one kind of request; ``max_tokens`` bounds one response."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = -1

    def fields(self, seed: int | None) -> dict[str, Any]:
        """Return the fields of vLLM's SamplingParams; without a seed vLLM draws as it likes."""
        return {
            "n": self.n,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "seed": seed,
        }


@dataclass(slots=True)
class Sampled:
    """One response, as far as it is there.

    ``log_probs_T`` are those that each token was sampled with, under the weights of its time;
    ``min_step`` and ``max_step`` are the versions of the first and the last token's weights.
    """

    token_ids_T: list[int] = field(default_factory=list)
    log_probs_T: list[float] = field(default_factory=list)
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
        self.token_ids_T += token_ids_T
        self.log_probs_T += group["log_probs"][number]
        self.finish = group["finish"][number]


@dataclass(slots=True)
class SampledGroup:
    """The responses to one prompt, as far as they are there."""

    prompt_ids: list[int]
    sampling: Sampling
    seed: int
    responses: list[Sampled] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.responses = [Sampled() for _ in range(self.sampling.n)]

    def add(self, group: dict[str, Any]) -> None:
        """Append what a server answered."""
        for number, response in enumerate(self.responses):
            response.add(group, number)

    @property
    def is_unbegun(self) -> bool:
        """Whether a weight update stopped it before its first token: it can be asked anew."""
        is_empty = not any(each.token_ids_T for each in self.responses)
        return is_empty and any(each.finish == STOPPED for each in self.responses)
