"""What ArCHer ascends, by enumeration: the critic's Q, whatever its V.

z is the first response, y the second, x2(z) the conversation before y.
"""

import numpy as np
import pytest
from enumerated import THREE, Policy, bare, revised
from updates import is_ascended, largest, own_update

from recipe.hint.methods.archer import Archer, ArcherSettings
from recipe.hint.schema import ProblemState

STATE = ProblemState(step=1)


def archer(**settings):
    return Archer(settings=ArcherSettings(**settings))


def heads(q, v):
    """What a critic says of each row: two Q and two V."""

    def said(conversation, word):
        (q1, q2), (v1, v2) = q(conversation, word), v(conversation)
        return {"facts": {"q1": q1, "q2": q2, "v1": v1, "v2": v2}}

    return said


def arbitrary(*names):
    """Numbers of their own for each name, as wrong as a critic can be."""
    seed = sum(map(ord, "".join(names)))
    return float(np.sin(seed) * 3), float(np.cos(seed) * 3)


def after(policy, z):
    """The chance that y is right after z, differentiable."""
    return policy.mean(revised(z), THREE.scores.__getitem__)


def right_in_the_end(policy, gamma):
    """What Q is of the present policy, when only y earns."""

    def q(conversation, word):
        if conversation == bare():
            return (gamma * after(policy, word).item(),) * 2
        return (THREE.scores[word],) * 2

    return q


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_with_the_policys_own_q_any_v_leaves_the_gradient_exact(gamma):
    policy = Policy(THREE)
    update = own_update(
        archer(gamma=gamma), policy, outside=heads(right_in_the_end(policy, gamma), arbitrary)
    )
    # The discount weighs the first turn: gamma E[R] through z, E[R] through y.
    through_first = policy.mean(bare(), lambda z: gamma * after(policy, z).item())
    through_last = policy.over(bare(), lambda z: after(policy, z))
    assert is_ascended(update, policy, through_first + through_last)


def test_an_error_of_q_is_ascended_as_if_it_were_reward():
    policy = Policy(THREE)
    exact = right_in_the_end(policy, 1.0)

    def wrong(conversation, word):
        return tuple(np.add(exact(conversation, word), arbitrary(conversation, word)))

    update = own_update(archer(gamma=1.0), policy, state=STATE, outside=heads(wrong, arbitrary))

    # The smaller of both is the one that counts.
    def error(conversation):
        return policy.mean(conversation, lambda word: min(arbitrary(conversation, word)))

    bias = error(bare()) + policy.over(bare(), lambda z: error(revised(z)))
    exact_objective = policy.mean(bare(), lambda z: after(policy, z))
    assert is_ascended(update, policy, exact_objective + bias)
    assert largest(policy.gradient(bias)) > 0.1


def test_a_bandit_ascends_what_its_critic_says_of_single_answers():
    policy = Policy(THREE)
    update = own_update(
        archer(variant="bandit"),
        policy,
        outside=heads(lambda conversation, word: (THREE.scores[word],) * 2, arbitrary),
    )
    assert is_ascended(update, policy, policy.mean(bare(), THREE.scores.__getitem__))
