"""Settings of SAGE's search, including options that make it cheaper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from recipe.hint.methods.base import MethodSettings, check_below_group
from recipe.hint.schema import ProblemState
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class SearchSettings(MethodSettings):
    """How the hint is escalated; the defaults are the paper's.

    Attributes:
        probe_n: Rollouts that probe a level below the highest; the group is completed if one of
            them is right. 0: the whole group at once.
        start: First level. ``zero``: 0. ``remembered``: one below the lowest level solved at the
            last visit.
        after_zero: Level after a failed level 0. ``next``: level 1. ``remembered``: the lowest
            level solved at the last visit, or the highest level if none was.
        unanimous_n: Rollouts that come first if the last visit predicts a group without signal
            below the highest level: all right, or none. The group is completed if one of them
            turns out otherwise. 0: the whole group at once.
        write_early: Write the hints while level 0 is sampled, if it failed at the last visit.
    """

    probe_n: int = 0
    unanimous_n: int = 0
    start: Literal["zero", "remembered"] = "zero"
    after_zero: Literal["next", "remembered"] = "next"
    write_early: bool = False

    def __post_init__(self) -> None:
        for name in ("probe_n", "unanimous_n"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"hint.search.{name}={getattr(self, name)} must be 0 (no probe) or a number of "
                    f"rollouts"
                )
        if self.unanimous_n == 1:
            raise ConfigError(
                "hint.search.unanimous_n=1 would train a single response, which has no baseline: "
                "verl takes its raw reward; give 2 or more, or 0"
            )

    def check_run(self, group_size: int, num_updates: int) -> None:
        """Refuse a probe that is a whole group, and unequal groups where a batch is split.

        verl pads a short batch at its end, so the last mini-batch would be almost all padding.

        Raises:
            ConfigError: Naming the setting and the run's.
        """
        for name in ("probe_n", "unanimous_n"):
            check_below_group(f"hint.search.{name}", getattr(self, name), group_size)
        if self.unanimous_n and num_updates > 1:
            raise ConfigError(
                f"hint.search.unanimous_n={self.unanimous_n} makes groups of unequal size and "
                f"needs one update a batch, got {num_updates}; set "
                f"actor_rollout_ref.actor.ppo_mini_batch_size to the batch size, or unanimous_n=0"
            )

    def expected(self, level: int, state: ProblemState) -> Literal["wrong", "right"] | None:
        """Return what the last visit predicts for all responses; ``None``: both, or unknown."""
        if not self.unanimous_n or not state.visits or state.level:
            return None
        if level == 0 and state.accuracy == 1:
            return "right"
        is_below = state.worked_level is None or level < state.worked_level
        return "wrong" if state.accuracy == 0 and is_below else None
