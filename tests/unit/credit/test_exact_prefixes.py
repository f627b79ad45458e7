"""What PrefixRL ascends, where a prefix is a place that the bare prompt gets to as well."""

from dataclasses import replace

import pytest
import torch
from enumerated import LATE, PROBLEM, Policy, Words, bare, begun, every_outcome
from updates import EPSILON, expected_update, is_ascended, largest_difference

from recipe.hint.hints.dataset import DatasetHints
from recipe.hint.methods.prefix_rl import PrefixRl
from recipe.hint.schema import ProblemState

G = 3
# Two choices: only "b" leads on, and then "a" is right. The prefix is the first of them.
WORDS = Words({"c": 0.0, "ba": 1.0, "bb": 0.0})
ITEM = replace(PROBLEM, hints=(("b",),))
METHOD = PrefixRl(max_level=1)


def visit_at(level):
    """The first visit at which the level is drawn."""
    states = (ProblemState(visits=visits, step=LATE) for visits in range(100))
    return next(each for each in states if METHOD.open(ITEM, each).level == level)


def update_at(level, policy, item=ITEM):
    source = DatasetHints(max_level=1, seed=1)
    ways = every_outcome(
        *(METHOD, policy), group_size=G, state=visit_at(level), source=source, item=item
    )
    return expected_update(ways, policy, size=G)


def weighted(p):
    """G = 3: the weight of an accuracy is 2/3 / (sqrt(1/3) + 1e-6) for every p."""
    return 2 / 3 / ((1 / 3) ** 0.5 + EPSILON) * p


@pytest.mark.parametrize(("level", "conversation"), [(0, bare()), (1, begun("b"))])
def test_a_group_ascends_the_accuracy_from_where_it_begins(level, conversation):
    policy = Policy(WORDS)
    p = policy.prob(conversation, "a" if level else "ba")
    assert is_ascended(update_at(level, policy), policy, weighted(p))


def test_without_a_prefix_the_group_is_the_bare_one():
    policy = Policy(WORDS)
    item = replace(ITEM, hints=())
    found = [update_at(level, policy, item) for level in (0, 1)]
    assert largest_difference(*found) == 0


def test_what_a_prefix_teaches_raises_the_accuracy_of_the_bare_prompt():
    policy = Policy(WORDS)
    update = update_at(1, policy)
    # Of the two choices only the one after the prefix moves, and it is the bare prompt's own:
    # p(ba) = p(b) p(a | b), so that its accuracy grows by p(b) times what the prefix's does.
    assert set(update) == {(bare(), "b")}
    after = policy.moved(update, 0.1)
    with torch.no_grad():
        first = policy.prob(bare(), "ba") / policy.prob(begun("b"), "a")
        gains = [
            after.prob(conversation, word) - policy.prob(conversation, word)
            for conversation, word in ((bare(), "ba"), (begun("b"), "a"))
        ]
    assert gains[1] > 0.001
    assert gains[0] == pytest.approx(float(first * gains[1]))
