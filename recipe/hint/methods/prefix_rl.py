"""PrefixRL: continue a prefix of an earlier success, or start from the bare prompt."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Sample, at_level
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class PrefixRlSettings(MethodSettings):
    """How the prompts are mixed.

    Attributes:
        bare_share: Share of a problem's prompt rollouts without a prefix, in [0, 1); the others
            are spread evenly over the levels.
    """

    bare_share: float = 0.25

    def __post_init__(self) -> None:
        if not 0 <= self.bare_share < 1:
            raise ConfigError(
                f"hint.prefix_rl.bare_share={self.bare_share} must be at least 0 and below 1; "
                f"trainer.method=grpo is 1"
            )


class PrefixRl(Method):
    """Continue the beginning of a right response, of a length drawn at each visit.

    Level k of the hints is a prefix. It stands in the policy's own turn, so that responses are
    sampled and trained from a state that the bare prompt can reach. Some visits draw no prefix, and
    a problem without a prefix always trains bare.

    Source: Setlur et al. 2026, arXiv:2601.18795. Deviations: docs/lab/deviations.md#prefix-rl.
    """

    settings_cls = PrefixRlSettings
    settings_node = "hint.prefix_rl"
    uses_hints = True
    source = "dataset"
    style = "prefill"

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return a group at the drawn level; level 0 is the bare prompt."""
        draw = self.draws.uniform("prefix", problem, state)
        share = (draw - self.settings.bare_share) / (1 - self.settings.bare_share)
        return Sample(at_level(0 if share < 0 else 1 + int(share * self.max_level)))
