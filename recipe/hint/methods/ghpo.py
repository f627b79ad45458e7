"""GHPO: show longer prefixes of the reference solution until the group is no longer difficult."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from recipe.hint.methods.base import (
    Coefficient,
    Method,
    MethodSettings,
    Needs,
    Steps,
    check_below_group,
    unhinted,
)
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.turns import Decision, Hinted, Round, Sample, Turn, at_level
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_FORM = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)


@dataclass(frozen=True)
class GhpoSettings(MethodSettings):
    """The decision of GHPO and of the baselines it is compared with.

    Attributes:
        mode: ``adaptive`` is GHPO; ``fixed_difficult`` hints difficult groups once, at ``level``;
            ``fixed_all`` hints every group at ``level``; ``none`` never hints.
        level: Level of the fixed modes.
        cold_start_steps: First steps of the run without hints.
        max_solved: A group is difficult if at most this many of its rollouts are right.
        on_all_failed: What trains when the highest level is difficult too.
        accuracy_weight: Weight of the accuracy in the reward.
        format_weight: Factor of the form in the reward.
    """

    mode: Literal["adaptive", "fixed_difficult", "fixed_all", "none"] = "adaptive"
    level: int = 2
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

    def __init__(self, *, max_level: int = 3, **given: Any) -> None:
        super().__init__(max_level=max_level, **given)
        mode, level = self.settings.mode, self.settings.level
        if mode.startswith("fixed") and not 1 <= level <= max_level:
            raise ConfigError(
                f"hint.ghpo.level={level} must be from 1 to {max_level}, the number of levels "
                f"(that of hint.prefix.ratios)"
            )
        self.needs = Needs(closed_prompt=self.settings.format_weight > 0)

    def check_run(self, *, group_size: int, use_kl_in_reward: bool) -> None:
        """Refuse to drop groups if verl's KL penalty would make them train after all."""
        check_below_group("hint.ghpo.max_solved", self.settings.max_solved, group_size)
        if self.settings.on_all_failed == "drop" and use_kl_in_reward:
            raise ConfigError(
                "hint.ghpo.on_all_failed=drop does not work with algorithm.use_kl_in_reward=true: "
                "a dropped group has equal rewards, so no gradient, but verl takes each response's "
                "KL from its reward afterwards, and the rewards differ again; give "
                "actor_rollout_ref.actor.use_kl_loss=true in its place, or "
                "hint.ghpo.on_all_failed=keep_last"
            )

    @property
    def first_phase(self) -> tuple[str, int]:
        """The cold start, after which something differs only if the mode hints."""
        hints = self.settings.mode != "none"
        return "cold_start_steps", self.settings.cold_start_steps if hints else 0

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return a request without a hint, except in ``fixed_all``, which hints every group."""
        if self.settings.mode != "none" and state.schedule_step <= self.settings.cold_start_steps:
            return unhinted()
        return Sample(at_level(self.settings.level if self.settings.mode == "fixed_all" else 0))

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Extend the prefix while the group is difficult; a failed verifier decides nothing."""
        last, mode = rounds[-1], self.settings.mode
        if last.has_responses and last.num_ungraded == len(last.turns):
            return self.dropped(self.train_last_sampled(rounds))
        if mode in ("fixed_all", "none"):
            return super().react(problem, state, rounds)
        may_be_easy = last.num_right + last.num_ungraded > self.settings.max_solved
        if last.request.is_off_schedule or may_be_easy:
            return self.train_last_sampled(rounds)
        end = self.max_level if mode == "adaptive" else self.settings.level
        if last.hint_status not in FINAL_HINT_FAILURES and last.level < end:
            return Sample(Hinted(last.level + 1 if mode == "adaptive" else end))
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
