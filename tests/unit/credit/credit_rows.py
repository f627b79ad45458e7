"""Rows of credit as the tests write them."""

from recipe.hint.credit.base import CreditRow


def row(reward=0.0, *, uid="u", group="g", turn=0, session=0, role="solver", **others):
    return CreditRow("p", uid, group, role, turn, session, reward, **others)
