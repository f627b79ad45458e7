"""SAGE: search for the weakest hint under which some response is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.methods.base import (
    Method,
    MethodSettings,
    Steps,
    check_below_group,
    unhinted,
)
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Sample, at_level
from recipe.problems.schema import Problem
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

    probe_n: Steps = 0
    unanimous_n: Steps = 0
    start: Literal["zero", "remembered"] = "zero"
    after_zero: Literal["next", "remembered"] = "next"
    write_early: bool = False

    def __post_init__(self) -> None:
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


class Sage(Method):
    """Escalate the hint level until a response is right; train on the last group.

    Source: Liao et al. 2026, arXiv:2602.03143, rule (13). Deviations: groups are keyed by
    problem id, and a hint that fails leaves the un-hinted group instead of ending the run
    (docs/lab/deviations.md#sage).
    """

    settings_cls = SearchSettings
    settings_node = "hint.search"
    uses_hints = True

    def check_run(self, *, group_size: int, use_kl_in_reward: bool, num_updates: int = 1) -> None:
        """Refuse a search that does not fit the run."""
        self.settings.check_run(group_size, num_updates)

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return level 0, or one below the level that worked last (``start=remembered``)."""
        level = 0
        if self.settings.start == "remembered":
            level = min(max((state.worked_level or 0) - 1, 0), self.max_level)
        will_fail = level == 0 and state.visits > 0 and state.worked_level != 0
        writes_early = self.settings.write_early and will_fail
        return self._request(level, state, writes_early=writes_early)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Escalate while no response is right, then train on the newest group, sampled whole."""
        last = rounds[-1]
        if not self.ends_escalation(last):
            return self._request(self._next_level(last.level, state), state)
        sampled = [each for each in rounds if each.has_responses]
        if not sampled:
            return unhinted()
        newest = sampled[-1]
        if not newest.is_whole and newest.request.stop_if_all == "wrong":
            return Sample(newest.request.prompt, is_off_schedule=True)
        return self.train_last_sampled(rounds)

    def _next_level(self, level: int, state: ProblemState) -> int:
        """Return the level to try after this one has failed."""
        if level or self.settings.after_zero == "next":
            return level + 1
        return self.max_level if state.worked_level is None else max(state.worked_level, 1)

    def _request(self, level: int, state: ProblemState, *, writes_early: bool = False) -> Sample:
        probe_n = self.settings.probe_n if level < self.max_level else 0
        expected = self.settings.expected(level, state) if level < self.max_level else None
        return Sample(
            at_level(level),
            n=self.settings.unanimous_n if expected else probe_n,
            stop_if_all=expected or ("wrong" if probe_n else None),
            writes_hints_early=writes_early,
        )
