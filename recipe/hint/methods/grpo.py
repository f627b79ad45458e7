"""GRPO: never use a hint."""

from recipe.hint.methods.base import Method


class Grpo(Method):
    """The baseline: one group without a hint.

    Source: Shao et al. 2024, arXiv:2402.03300 (the group-relative advantage is verl's own).
    """
