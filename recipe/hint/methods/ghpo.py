"""GHPO: show longer prefixes of the reference solution until the group is no longer difficult."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from recipe.hint.methods.base import Coefficient, Method, MethodSettings, Needs, Steps
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.turns import Decision, Hinted, Round, Sample, Turn
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_FORM = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)


@dataclass(frozen=True)
class GhpoSettings(MethodSettings):
    """When a group is difficult, and what it trains with.

    Attributes:
        cold_start_steps: First steps of the run without hints.
        max_solved: A group is difficult if at most this many of its rollouts are right.
        on_all_failed: What trains when the highest level is difficult too.
        accuracy_weight: Weight of the accuracy in the reward.
        format_weight: Factor of the form in the reward.
    """

    cold_start_steps: Steps = 20
    max_solved: Steps = 0
    on_all_failed: Literal["keep_last", "keep_level0", "drop"] = "keep_last"
    accuracy_weight: Annotated[float, Field(gt=0)] = 1.0
    format_weight: Coefficient = 0.5


class Ghpo(Method):
    """Sample without a hint; while no response is right, show more of the solution.

    Source: Liu et al. 2025, arXiv:2507.10628. Accuracy alone decides what is difficult; the form
    only adds to the reward. Every group trains under the prompt it was sampled from
    (docs/lab/deviations.md#ghpo).
    """

    settings_cls = GhpoSettings
    settings_node = "hint.ghpo"
    uses_hints = True
    source = "solution_prefix"
    below_group = "max_solved"
    first_phase = "cold_start_steps"

    def __init__(self, *, max_level: int = 3, **given: Any) -> None:
        super().__init__(max_level=max_level, **given)
        self.needs = Needs(closed_prompt=self.settings.format_weight > 0)

    def check_run(self, *, group_size: int, use_kl_in_reward: bool) -> None:
        """Refuse to drop groups if verl's KL penalty would make them train after all."""
        super().check_run(group_size=group_size, use_kl_in_reward=use_kl_in_reward)
        if self.settings.on_all_failed == "drop" and use_kl_in_reward:
            raise ConfigError(
                "hint.ghpo.on_all_failed=drop does not work with algorithm.use_kl_in_reward=true: "
                "a dropped group has equal rewards, so no gradient, but verl takes each response's "
                "KL from its reward afterwards, and the rewards differ again; give "
                "actor_rollout_ref.actor.use_kl_loss=true in its place, or "
                "hint.ghpo.on_all_failed=keep_last"
            )

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return a request without a hint."""
        return Sample(is_off_schedule=state.schedule_step <= self.settings.cold_start_steps)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Extend the prefix while the group is difficult; a failed verifier decides nothing."""
        last = rounds[-1]
        if last.turns and last.num_ungraded == len(last.turns):
            return self.dropped(self.train_last_sampled(rounds))
        may_be_easy = last.num_right + last.num_ungraded > self.settings.max_solved
        if last.request.is_off_schedule or may_be_easy:
            return self.train_last_sampled(rounds)
        if last.hint_status not in FINAL_HINT_FAILURES and last.level < self.max_level:
            return Sample(Hinted(last.level + 1))
        if self.settings.on_all_failed == "keep_level0":
            return self.train_round(rounds, 0)
        train = self.train_last_sampled(rounds)
        has_right = rounds[train.rows[0].place.round].is_solved
        is_dropped = self.settings.on_all_failed == "drop" and not has_right
        return self.dropped(train) if is_dropped else train

    def reward(self, turn: Turn) -> float:
        """Return accuracy and form, weighted."""
        weights = self.settings
        form = format_score(turn.response.text)
        return weights.accuracy_weight * super().reward(turn) + weights.format_weight * form


def format_score(response: str) -> float:
    """Return 1.0 for ``<think>...</think><answer>...</answer>`` and nothing around it, else 0.0.

    Each tag stands exactly once, and both parts hold more than white space.
    """
    if any(response.count(tag) != 1 for tag in _TAGS):
        return 0.0
    match = _FORM.fullmatch(response)
    return float(match is not None and all(part.strip() for part in match.groups()))
