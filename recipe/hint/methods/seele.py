"""SEELE: show as much of the solution as makes about half of the responses right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.methods.base import Method, MethodSettings, check_below_group, unhinted
from recipe.hint.methods.item_response import Observation, level_for
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.turns import Decision, Round, Sample, at_level
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class SeeleSettings(MethodSettings):
    """The search for the level.

    Attributes:
        target: Accuracy that the group should have.
        probes: Rounds of ``probe_n`` responses before the group, each at the level that the
            earlier rounds suggest.
        probe_n: Responses per probe.
    """

    target: float = 0.5
    probes: int = 2
    probe_n: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ConfigError(f"hint.seele.target={self.target} must be above 0 and below 1")
        for name in ("probes", "probe_n"):
            if getattr(self, name) < 1:
                raise ConfigError(f"hint.seele.{name}={getattr(self, name)} must be at least 1")


class Seele(Method):
    """Probe levels, fit the accuracy over them, and train where about half would be right.

    Source: Li et al. 2025, arXiv:2509.06923. Deviations: docs/lab/deviations.md#seele.
    """

    settings_cls = SeeleSettings
    settings_node = "hint.seele"
    uses_hints = True
    source = "solution_prefix"

    def check_run(self, *, group_size: int, use_kl_in_reward: bool, num_updates: int = 1) -> None:
        """Refuse a probe that is a whole group."""
        check_below_group("hint.seele.probe_n", self.settings.probe_n, group_size)

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return a probe at the level that the problem's last accuracy suggests."""
        return self._probe(state, ())

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Probe, then train on one group at the level found.

        A level that cannot be shown is left out; without any hint a bare group trains.
        """
        last = rounds[-1]
        num_sampled = sum(each.has_responses for each in rounds)
        if last.request.is_off_schedule or num_sampled > self.settings.probes:
            return self.train_last_sampled(rounds)
        if last.hint_status in FINAL_HINT_FAILURES or len(_missing(rounds)) == self.max_level:
            return unhinted()
        if num_sampled < self.settings.probes:
            return self._probe(state, rounds)
        return Sample(at_level(self._level(state, rounds)))

    def _probe(self, state: ProblemState, rounds: Sequence[Round]) -> Sample:
        return Sample(at_level(self._level(state, rounds)), n=self.settings.probe_n)

    def _level(self, state: ProblemState, rounds: Sequence[Round]) -> int:
        """Return the level that the last visit and the probes ask for; a failed grade says nothing.

        The last visit's accuracy is that of its first probe, or of a group at the same level.
        """
        seen = []
        if state.accuracy is not None:
            seen.append(Observation(state.level, state.accuracy, self.settings.probe_n))
        for each in rounds:
            if each.has_responses and not each.num_ungraded:
                seen.append(Observation(each.level, each.accuracy, len(each.turns)))
        return level_for(self.settings.target, seen, self.max_level, _missing(rounds))


def _missing(rounds: Sequence[Round]) -> set[int]:
    """Return the levels that could not be shown."""
    return {each.level for each in rounds if not each.has_responses}
