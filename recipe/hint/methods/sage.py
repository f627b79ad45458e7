"""SAGE: search for the weakest hint that gives some success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method
from recipe.hint.schema import Attempt, Keep, Plan, Problem, ProblemState


@dataclass(frozen=True)
class SearchSettings:
    """How the hint levels is climbed; the defaults are the paper's search.

    Attributes:
        probe_n: Rollouts that probe a level below the highest; the group is completed where one
            of them is right. 0: the whole group at once.
        start: ``zero``, or ``remembered``: one below the level that worked at the last visit.
        write_early: Write the hints while level 0 is sampled, where it failed at the last visit.

    Raises:
        ConfigError: If ``probe_n`` is negative.
    """

    probe_n: int = 0
    start: Literal["zero", "remembered"] = "zero"
    write_early: bool = False

    def __post_init__(self) -> None:
        if self.probe_n < 0:
            raise ConfigError(
                f"hint.search.probe_n={self.probe_n} must be 0 (no probe) or a number of rollouts"
            )


class Sage(Method):
    """Climb the hint hint levels until a rollout is correct; train on the last group.

    Source: Liao et al. 2026, arXiv:2602.03143, rule (13). Deviations: groups are keyed by
    problem id, and a hint that fails leaves the un-hinted group instead of ending the run
    (docs/deviations.md#sage).
    """

    settings_cls = SearchSettings
    uses_hints = True

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """Level 0, or where the last visit says that the search will end."""
        level = 0
        if self.settings.start == "remembered":
            level = min(max(state.worked_level - 1, 0), self.max_level)
        will_fail = level == 0 and state.visits > 0 and state.worked_level != 0
        return self._plan(level, writes_early=self.settings.write_early and will_fail)

    def react(self, problem: Problem, attempts: Sequence[Attempt]) -> Plan | Keep:
        """Next level while nobody is right; a verifier failure is no reason to climb."""
        last = attempts[-1]
        return self._end(attempts) if self._is_climb_over(last) else self._plan(last.plan.level + 1)

    def _plan(self, level: int, *, writes_early: bool = False) -> Plan:
        probe_n = self.settings.probe_n if level < self.max_level else 0
        return Plan(level, rollouts=probe_n, completes=True, writes_early=writes_early)

    def _end(self, attempts: Sequence[Attempt]) -> Plan | Keep:
        """The newest group; a whole one is sampled where there was none or only its probe."""
        sampled = [attempt for attempt in attempts if attempt.is_sampled]
        if not sampled:
            return Plan(level=0, is_plain=True)
        if not sampled[-1].is_whole:
            return Plan(sampled[-1].plan.level, is_plain=True)
        return Keep.last_sampled(attempts)
