"""What methods of several turns ascend, by enumeration of their own credit and verl's loss.

Notation: z the first response, y the second, x the problem, x2(z) the conversation before y.
``frozen`` values have no gradient. A mean is over conversations, so the loss divides by G.
"""

from dataclasses import replace

import pytest
from enumerated import THREE, Policy, bare, every_outcome, revised
from updates import (
    expected_update,
    is_ascended,
    largest,
    largest_difference,
    own_advantages,
    own_update,
)

from recipe.hint.methods.dialogue import SolverSettings
from recipe.hint.methods.score import Score
from recipe.hint.schema import ProblemState

G = 2
STAGE1, STAGE2 = ProblemState(step=1), ProblemState(step=9)


def score(**settings):
    return Score(settings=SolverSettings(stage1_steps=1, **settings))


# -- SCoRe ----------------------------------------------------------------------------------------

BASELINES = pytest.mark.parametrize("baseline", ["leave_one_out", "none"])


@BASELINES
def test_stage_one_ascends_the_second_reward_and_holds_both_turns_to_the_reference(baseline):
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = score(beta1=0.3, beta2=0.7, baseline=baseline)
    update = own_update(method, policy, state=STAGE1, reference=reference)
    objective = -0.7 * policy.kl(reference, bare()) + policy.over(
        bare(),
        lambda z: (
            policy.mean(revised(z), lambda y: THREE.scores[y])
            - 0.3 * policy.kl(reference, revised(z))
        ),
    )
    assert is_ascended(update, policy, objective)


@BASELINES
@pytest.mark.parametrize("alpha", [0.0, 10.0])
def test_stage_two_ascends_each_turns_own_reward(alpha, baseline):
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = score(alpha=alpha, beta1=0.3, baseline=baseline)
    update = own_update(method, policy, state=STAGE2, reference=reference)

    def second(z):
        def shaped(y):
            return THREE.scores[y] + alpha * (THREE.scores[y] - THREE.scores[z])

        return policy.mean(revised(z), shaped) - 0.3 * policy.kl(reference, revised(z))

    first = policy.mean(bare(), lambda z: THREE.scores[z]) - 0.3 * policy.kl(reference, bare())
    # The second reward has no gradient by z: credit stays in its turn.
    assert is_ascended(update, policy, first + policy.over(bare(), second))


def test_joint_credit_without_shaping_ascends_the_last_reward_through_both_turns():
    policy = Policy(THREE)
    method = score(alpha=0.0, beta1=0.0, solver_credit="joint")
    update = own_update(method, policy, state=STAGE2)
    last = policy.mean(bare(), lambda z: policy.mean(revised(z), lambda y: THREE.scores[y]))
    assert is_ascended(update, policy, last)


def test_a_conversation_that_ends_early_trains_what_it_has():
    """The second prompt fits for some first answers only; nobody's baseline changes by that."""
    policy = Policy(THREE)
    method = score(alpha=1.0, beta1=0.0)
    ways = every_outcome(method, policy, group_size=3, state=STAGE2, longest=len(revised("a")))
    update = expected_update(ways, policy, size=3, advantages=own_advantages, method=method)
    # After "ba" and "bb" the conversation is one token longer than after "a".
    a = policy.chances(bare())[0]
    objective = policy.mean(bare(), lambda z: THREE.scores[z])
    objective = objective + a * policy.mean(revised("a"), lambda y: 2 * THREE.scores[y])
    assert is_ascended(update, policy, objective)


# -- how the loss is divided ----------------------------------------------------------------------


def test_a_mean_over_all_tokens_ties_a_turns_gradient_to_the_length_of_the_others():
    # Acknowledged bias of loss_agg_mode=token-mean: E[X / L] in place of E[X] / E[L], that is
    # -Cov(X / L, L) / E[L], with X the sum that seq-mean-token-sum divides by a constant.
    policy = Policy(THREE)
    method = score(alpha=0.0, beta1=0.0)
    ways = every_outcome(method, policy, group_size=G, state=STAGE2)
    options = {"size": 1, "advantages": own_advantages, "method": method}
    summed = expected_update(ways, policy, mode="seq-mean-token-sum", **options)
    divided = expected_update(ways, policy, mode="token-mean", **options)
    tokens = [sum(len(each.turn.response.token_ids_T) for each in way.outcome.rows) for way in ways]
    mean = sum(way.probability * length for way, length in zip(ways, tokens, strict=True))
    spread = [
        replace(way, probability=way.probability * (length / mean - 1))
        for way, length in zip(ways, tokens, strict=True)
    ]
    bias = expected_update(spread, policy, mode="token-mean", **options)
    explained = {
        name: summed.get(name, 0) / mean - bias.get(name, 0) for name in summed.keys() | bias.keys()
    }
    assert largest_difference(divided, explained) < 1e-12
    assert largest(bias) > 1e-3
