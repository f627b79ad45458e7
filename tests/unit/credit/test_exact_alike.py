"""What RL-ZVP makes of groups whose rewards are all equal, by enumeration."""

import math

import pytest
from enumerated import THREE, Policy, bare, every_outcome
from updates import EPSILON, expected_update, is_ascended, largest_difference, own_advantages

from recipe.hint.methods.rl_zvp import RlZvp, RlZvpSettings

G = 3


def update_of(policy, alpha, words=THREE):
    method = RlZvp(settings=RlZvpSettings(alpha))
    ways = every_outcome(method, policy, group_size=G)
    return expected_update(ways, policy, size=G, advantages=own_advantages, method=method)


def solved(policy):
    return policy.mean(bare(), policy.words.scores.__getitem__)


def pushed(policy, alpha):
    """Return what groups without a difference add: a push on each token, its size frozen.

    A wrong word w stands in an all-wrong group with the chance p_w (1-p)^(G-1), a right one in an
    all-right group with p_w p^(G-1); of G rows each counts 1 / G.
    """
    p, total = solved(policy).item(), 0.0
    for word, score in policy.words.scores.items():
        entropies_T = policy.token_entropies(bare(), word)
        weights_T = entropies_T if score else -(entropies_T.max() - entropies_T)
        chance = policy.prob(bare(), word).item() * (p if score else 1 - p) ** (G - 1)
        log_probs_T = policy.token_log_probs(bare(), word)
        total = total + chance * alpha * (weights_T * log_probs_T).sum()
    return total


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_rl_zvp_is_grpo_and_a_push_on_the_tokens_of_groups_without_a_difference(alpha):
    policy = Policy(THREE)
    # G = 3: the weight of the accuracy is 2/3 / (sqrt(1/3) + 1e-6) for every p.
    accuracy = 2 / 3 / (math.sqrt(1 / 3) + EPSILON) * solved(policy)
    assert is_ascended(update_of(policy, alpha), policy, accuracy + pushed(policy, alpha))


def test_the_push_is_proportional_to_alpha_and_no_gradient_of_the_accuracy():
    policy = Policy(THREE)
    accuracy = policy.gradient(2 / 3 / (math.sqrt(1 / 3) + EPSILON) * solved(policy))
    by_alpha = [largest_difference(update_of(policy, alpha), accuracy) for alpha in (0.5, 1.0)]
    assert by_alpha[1] == pytest.approx(2 * by_alpha[0])
    assert by_alpha[0] > 0.001
