"""GRPO: no hint, ever."""

from recipe.hint.methods.base import Method


class Grpo(Method):
    """The baseline: one un-hinted group per prompt rollout.

    Source: Shao et al. 2024, arXiv:2402.03300 (the group-relative advantage is verl's own).
    """
