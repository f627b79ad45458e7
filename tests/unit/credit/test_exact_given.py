"""What the methods that train on given solutions ascend, by enumeration.

Notation: G sampled responses, p the chance that one is right, y the solution, p_t the policy's
probability of its token t, f(p) = p / (p + gamma).
"""

import math
from dataclasses import replace

import pytest
from enumerated import PROBLEM, THREE, Policy, bare, every_outcome
from updates import EPSILON, expected_update, is_ascended, own_advantages

from recipe.hint.methods.luffy import Luffy, LuffySettings
from recipe.hint.methods.sft import Sft, SftSettings
from recipe.hint.schema import ProblemState

G = 3
SOLUTION = "ba"  # the right word of THREE
SOLVED = replace(PROBLEM, solution=SOLUTION)


def solved(policy):
    return policy.mean(bare(), policy.words.scores.__getitem__)


def shaped(policy, gamma):
    """Return sum_t f(p_t) over the tokens of the solution."""
    probs_T = policy.token_log_probs(bare(), SOLUTION).exp()
    return (probs_T / (probs_T + gamma)).sum()


def luffy_update(policy, item=SOLVED, size=G + 1, **settings):
    method = Luffy(settings=LuffySettings(**settings))
    ways = every_outcome(method, policy, group_size=G, item=item)
    return expected_update(ways, policy, size=size, advantages=own_advantages, method=method)


@pytest.mark.parametrize("gamma", [0.1, 0.5, 2.0])
def test_luffy_ascends_the_accuracy_and_the_shaped_solution_as_often_as_responses_fail(gamma):
    policy = Policy(THREE)
    update = luffy_update(policy, gamma=gamma, norm_adv_by_std=False)
    # k of G are right, k + 1 of n = G + 1. Right ones have the advantage (G-k)/n and pull with
    # grad p / p, wrong ones -(k+1)/n and pull with -grad p / (1-p): E[k (G-k)] = G (G-1) p (1-p)
    # and E[(k+1) (G-k)] = G (G-1) p (1-p) + G (1-p), so together G^2 / n grad p.
    # The solution: E[(G-k)/n] = G (1-p) / n times the gradient of sum_t f(p_t).
    p = solved(policy)
    failing = 1 - p.item()
    objective = G / (G + 1) * (G * p + failing * shaped(policy, gamma)) / (G + 1)
    assert is_ascended(update, policy, objective)


def test_luffy_divided_by_the_deviation_still_ascends_both_with_other_weights():
    policy = Policy(THREE)
    update = luffy_update(policy)
    p, n = solved(policy), G + 1
    on, off = 0.0, 0.0
    for k in range(G):  # with k = G all n are right and nothing differs
        chance = math.comb(G, k) * p.item() ** k * (1 - p.item()) ** (G - k)
        share = (k + 1) / n
        s = math.sqrt(n / (n - 1) * share * (1 - share)) + EPSILON
        pulls = k * (1 - share) / p.item() + (G - k) * share / (1 - p.item())
        on += chance * pulls / s
        off += chance * (1 - share) / s
    assert is_ascended(update, policy, (on * p + off * shaped(policy, 0.1)) / n)


@pytest.mark.parametrize("solution", ["bb", "a", ""], ids=["wrong", "wrong and short", "none"])
def test_a_solution_that_is_not_right_leaves_luffy_the_group_alone(solution):
    policy = Policy(THREE)
    item = replace(PROBLEM, solution=solution)
    update = luffy_update(policy, item, size=G, norm_adv_by_std=False)
    assert is_ascended(update, policy, (G - 1) / G * solved(policy))


def test_sft_ascends_the_log_likelihood_of_the_solution():
    policy, method = Policy(THREE), Sft()
    ways = every_outcome(method, policy, group_size=G, item=SOLVED)
    assert len(ways) == 1  # nothing is sampled
    update = expected_update(ways, policy, size=1, advantages=own_advantages, method=method)
    assert is_ascended(update, policy, policy.token_log_probs(bare(), SOLUTION).sum())


def test_after_its_steps_sft_is_grpo():
    policy, method = Policy(THREE), Sft(settings=SftSettings(steps=5))
    for step, size in ((5, 1), (6, G)):
        state = ProblemState(step=step)
        ways = every_outcome(method, policy, group_size=G, item=SOLVED, state=state)
        update = expected_update(ways, policy, size=size, advantages=own_advantages, method=method)
        log_likelihood = policy.token_log_probs(bare(), SOLUTION).sum()
        # G = 3: the weight of the accuracy is 2/3 / (sqrt(1/3) + 1e-6) for every p.
        accuracy = 2 / 3 / (math.sqrt(1 / 3) + EPSILON) * solved(policy)
        assert is_ascended(update, policy, log_likelihood if step == 5 else accuracy)
