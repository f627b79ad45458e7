"""SAGE: search for the weakest hint under which some response is correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.methods.base import Method, MethodSettings, Steps
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Sample, at_level
from recipe.problems.schema import Problem


@dataclass(frozen=True)
class SearchSettings(MethodSettings):
    """How the hint is escalated; the defaults are the paper's.

    Attributes:
        probe_n: Rollouts that probe a level below the highest; the group is completed if one of
            them is right. 0: the whole group at once.
        start: First level. ``zero``: 0. ``remembered``: one below the lowest level solved at the
            last visit.
    """

    probe_n: Steps = 0
    start: Literal["zero", "remembered"] = "zero"


class Sage(Method):
    """Escalate the hint level until a response is right; train on the last group.

    Source: Liao et al. 2026, arXiv:2602.03143, rule (13). Deviations: groups are keyed by
    problem id, and a hint that fails leaves the un-hinted group instead of ending the run
    (docs/lab/deviations.md#sage).
    """

    settings_cls = SearchSettings
    settings_node = "hint.search"
    uses_hints = True
    below_group = "probe_n"

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return level 0, or one below the level that worked last (``start=remembered``)."""
        level = 0
        if self.settings.start == "remembered":
            level = min(max((state.worked_level or 0) - 1, 0), self.max_level)
        return self._request(level)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Escalate while no response is right, then train on the newest group, sampled whole."""
        last = rounds[-1]
        if not self.ends_escalation(last):
            return self._request(last.level + 1)
        sampled = [each for each in rounds if each.turns]
        if not sampled:
            return Sample(is_off_schedule=True)
        newest = sampled[-1]
        if not newest.is_whole and newest.request.is_probe:
            return Sample(newest.request.prompt, is_off_schedule=True)
        return self.train_last_sampled(rounds)

    def _request(self, level: int) -> Sample:
        probe_n = self.settings.probe_n if level < self.max_level else 0
        return Sample(at_level(level), n=probe_n, is_probe=probe_n > 0)
