"""SAGE: search for the weakest hint under which some response is right."""

from __future__ import annotations

from collections.abc import Sequence

from recipe.hint.methods.base import Method, unhinted
from recipe.hint.methods.search import SearchSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Sample, at_level
from recipe.problems.schema import Problem


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
