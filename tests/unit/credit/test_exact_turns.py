"""What methods of several turns ascend, by enumeration of their own credit and verl's loss.

Notation: z the first response, y the second, x the problem, x2(z) the conversation before y.
``frozen`` values have no gradient. A mean is over conversations, so the loss divides by G.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from enumerated import PROBLEM, THREE, Policy, Words, bare, every_outcome, revised
from updates import expected_update, is_ascended, largest, largest_difference, own_advantages
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

from recipe.hint.credit.baselines import advantages, rewards_of
from recipe.hint.credit.turn_level import next_rows, turn_gae
from recipe.hint.methods.base import Method
from recipe.hint.methods.prompts import Revise
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Sample, Train, path, places

G = 2
STAGE1, STAGE2 = ProblemState(step=1), ProblemState(step=9)


def update_of(method, policy, *, state=STAGE2, item=PROBLEM, group_size=G, **outside):
    """Return the expected update of a method with credit of its own."""
    ways = every_outcome(method, policy, group_size=group_size, state=state, item=item)
    return expected_update(
        *(ways, policy),
        size=group_size,
        advantages=own_advantages,
        method=method,
        **outside,
    )


def kl(policy, reference, conversation):
    """KL(policy || reference) of a response, differentiable in the policy."""

    def log_ratio(word):
        other = reference.token_log_probs(conversation, word).sum().detach()
        return policy.token_log_probs(conversation, word).sum() - other

    return policy.mean(conversation, log_ratio)


def over_first(policy, value):
    """The mean of value(z) over first responses that are data: z has no gradient."""
    chances = dict(zip(policy.words.scores, policy.chances(bare()), strict=True))
    return sum(chances[z] * value(z) for z in chances)


def score(**settings):
    return Score(settings=ScoreSettings(stage1_steps=1, **settings))


def text(policy, word):
    return revised(policy.words.text(word))


# -- SCoRe ----------------------------------------------------------------------------------------

BASELINES = pytest.mark.parametrize("baseline", ["leave_one_out", "none"])


@BASELINES
def test_stage_one_ascends_the_second_reward_and_holds_both_turns_to_the_reference(baseline):
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = score(beta1=0.3, beta2=0.7, baseline=baseline)
    update = update_of(method, policy, state=STAGE1, reference=reference)
    objective = -0.7 * kl(policy, reference, bare()) + over_first(
        policy,
        lambda z: (
            policy.mean(text(policy, z), lambda y: THREE.scores[y])
            - 0.3 * kl(policy, reference, text(policy, z))
        ),
    )
    assert is_ascended(update, policy, objective)


@BASELINES
@pytest.mark.parametrize("alpha", [0.0, 10.0])
def test_stage_two_ascends_each_turns_own_reward(alpha, baseline):
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = score(alpha=alpha, beta1=0.3, baseline=baseline)
    update = update_of(method, policy, reference=reference)

    def second(z):
        def shaped(y):
            return THREE.scores[y] + alpha * (THREE.scores[y] - THREE.scores[z])

        return policy.mean(text(policy, z), shaped) - 0.3 * kl(policy, reference, text(policy, z))

    first = policy.mean(bare(), lambda z: THREE.scores[z]) - 0.3 * kl(policy, reference, bare())
    # The second reward has no gradient by z: credit stays in its turn.
    assert is_ascended(update, policy, first + over_first(policy, second))


def test_joint_credit_without_shaping_ascends_the_last_reward_through_both_turns():
    policy = Policy(THREE)
    method = score(alpha=0.0, beta1=0.0, solver_credit="joint")
    update = update_of(method, policy)
    last = policy.mean(bare(), lambda z: policy.mean(text(policy, z), lambda y: THREE.scores[y]))
    assert is_ascended(update, policy, last)


def test_given_first_attempts_add_second_turns_and_train_no_first_one():
    policy = Policy(THREE)
    given = ("seven", "eight")
    method = score(alpha=2.0, beta1=0.0, offline_attempts=2)
    update = update_of(method, policy, item=replace(PROBLEM, attempts=given))
    first = policy.mean(bare(), lambda z: THREE.scores[z])

    def second(conversation, before):
        return policy.mean(conversation, lambda y: THREE.scores[y] * 3 - 2 * before)

    objective = first + over_first(policy, lambda z: second(text(policy, z), THREE.scores[z]))
    # A given text is no word, so it is wrong; there is one of each in place of a mean over G.
    objective = objective + sum(second(revised(each), 0.0) for each in given) / G
    assert is_ascended(update, policy, objective)


def test_a_verifier_that_calls_everything_right_leaves_no_gradient():
    policy = Policy(Words({"a": 1.0, "ba": 1.0, "bb": 1.0}))
    for state in (STAGE1, STAGE2):
        update = update_of(score(beta1=0.0, beta2=0.0), policy, state=state)
        assert largest(update) < 1e-15


def test_the_second_turn_has_no_gradient_where_its_rewards_are_equal():
    # Whatever z is, y is right: the shaped rewards differ by r1 only, 1 + alpha and 1.
    words = Words({"a": 0.0, "b": 1.0})
    policy = Policy(words)
    for z in words.scores:
        policy.parameters[text(policy, z), ""] = torch.tensor(
            [-800.0, 0.0], dtype=torch.float64, requires_grad=True
        )
    update = update_of(score(beta1=0.0, alpha=0.0), policy)
    assert {name[0] for name in update} == {bare()}
    assert largest(update) > 0.01


@pytest.mark.parametrize("state", [STAGE1, STAGE2])
def test_with_reward_zero_the_parameters_move_to_the_reference(state):
    policy, reference = Policy(Words({"a": 0.0, "ba": 0.0, "bb": 0.0})), Policy(THREE, seed=1)
    update = update_of(score(beta1=0.1, beta2=0.1), policy, state=state, reference=reference)
    assert largest(update) > 1e-3
    after = policy.moved(update, 1.0)
    for conversation in (bare(), *(text(policy, z) for z in THREE.scores)):
        assert kl(after, reference, conversation) < kl(policy, reference, conversation)


def test_a_conversation_that_ends_early_trains_what_it_has():
    """The second prompt fits for some first answers only; nobody's baseline changes by that."""
    policy = Policy(THREE)
    method = score(alpha=1.0, beta1=0.0)
    ways = every_outcome(method, policy, group_size=3, state=STAGE2, longest=len(text(policy, "a")))
    update = expected_update(ways, policy, size=3, advantages=own_advantages, method=method)
    # After "ba" and "bb" the conversation is one token longer than after "a".
    a = policy.chances(bare())[0]
    objective = policy.mean(bare(), lambda z: THREE.scores[z])
    objective = objective + a * policy.mean(text(policy, "a"), lambda y: 2 * THREE.scores[y])
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


# -- turns that the policy ends itself ------------------------------------------------------------


class Stopping(Method):
    """Only a response of two tokens goes on; every turn earns its accuracy."""

    has_own_credit: ClassVar[bool] = True

    def react(self, problem, state, rounds):
        if len(rounds) == 1:
            turns = rounds[0].turns
            goes_on = tuple(p for p in places(rounds, 0) if len(turns[p.turn].response.text) > 1)
            return Sample(Revise(), n=1, parents=goes_on)
        rows = []
        for index in range(2):
            for place in places(rounds, index):
                rows.append(self.row(rounds, place, f"turn{index}"))
        return Train(tuple(rows))


class ReturnsToGo(Stopping):
    """What is still to come, minus the mean of that over the others that got to the same turn."""

    def advantages(self, rows):
        returns_N = turn_gae(rewards_of(rows), np.zeros(len(rows)), next_rows(rows), 1.0, 1.0)
        rows = [replace(row, reward=value) for row, value in zip(rows, returns_N, strict=True)]
        return advantages(rows)


class SumOfCentredTurns(Stopping):
    """Each turn's reward minus its turn's mean, then summed over the turns still to come."""

    def advantages(self, rows):
        centred_N = advantages(rows)
        return turn_gae(centred_N, np.zeros(len(rows)), next_rows(rows), 1.0, 1.0)


def total_reward(policy):
    """E[r1 + r2], through both turns."""

    def value(z):
        more = policy.mean(text(policy, z), lambda y: THREE.scores[y]) if len(z) > 1 else 0.0
        return THREE.scores[z] + more

    return policy.mean(bare(), value)


@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_returns_to_go_against_others_at_the_same_turn_are_exact_when_the_policy_stops(group_size):
    policy = Policy(THREE)
    update = update_of(ReturnsToGo(), policy, group_size=group_size)
    assert is_ascended(update, policy, total_reward(policy))


def test_summing_rewards_that_were_centred_turn_by_turn_pays_for_stopping():
    # verl #7244: the number of baselines that are subtracted is the policy's own choice. Each turn
    # more costs the expected reward of that turn, here where another conversation of G = 3 got to
    # it too: alone it is compared with nothing.
    policy = Policy(THREE)
    update = update_of(SumOfCentredTurns(), policy, group_size=3)
    chances = dict(zip(THREE.scores, policy.chances(bare()), strict=True))
    goes_on = policy.mean(bare(), lambda z: float(len(z) > 1))
    reached = {z: chances[z] for z in chances if len(z) > 1}
    expected = sum(
        chance * policy.mean(text(policy, z), lambda y: THREE.scores[y]).item()
        for z, chance in reached.items()
    ) / sum(reached.values())
    others = 1 - (1 - goes_on.item()) ** 2
    bias = -others * expected * goes_on
    assert is_ascended(update, policy, total_reward(policy) + bias)
    assert largest(policy.gradient(bias)) > 0.01


def test_verls_own_multi_turn_credit_ascends_the_last_reward_and_loses_the_others():
    """Keys uid_session_turn: the advantage of a session's last row goes to all of its rows."""
    policy = Policy(THREE)

    def verls(batch, policy):
        rows = {
            "token_level_rewards": batch.scores_NT.clone(),
            "response_mask": batch.mask_NT,
            "responses": batch.mask_NT,
        }
        uids = np.array([row.prompt_uid for row in batch.credit], dtype=object)
        keys = [f"{row.prompt_uid}_{row.session}_{row.turn}" for row in batch.credit]
        data = DataProto.from_dict(rows, non_tensors={"uid": uids})
        done = compute_advantage_for_multi_trajectories(
            data, keys, AdvantageEstimator.GRPO, norm_adv_by_std_in_grpo=False
        )
        return done.batch["advantages"]

    ways = every_outcome(Stopping(), policy, group_size=G, state=STAGE2)
    update = expected_update(ways, policy, size=G, advantages=verls)

    def last(z):
        if len(z) > 1:
            return policy.mean(text(policy, z), lambda y: THREE.scores[y])
        return THREE.scores[z]

    assert is_ascended(update, policy, (G - 1) / G * policy.mean(bare(), last))


# -- the critic as a baseline ---------------------------------------------------------------------


class Valued(Stopping):
    """The last reward for every turn, against the critic's value of the state before the turn."""

    def react(self, problem, state, rounds):
        decision = super().react(problem, state, rounds)
        if isinstance(decision, Sample):
            return decision
        last = {path(rounds, row.place)[0]: row.reward for row in decision.rows}
        return Train(
            tuple(replace(row, reward=last[path(rounds, row.place)[0]]) for row in decision.rows)
        )

    def advantages(self, rows):
        return advantages(rows, "value")


def arbitrary(*names):
    """A number of its own for each name, as wrong as a critic can be."""
    return float(np.sin(sum(map(ord, "".join(names)))) * 3)


def last_reward(policy):
    def value(z):
        if len(z) > 1:
            return policy.mean(text(policy, z), lambda y: THREE.scores[y])
        return THREE.scores[z]

    return policy.mean(bare(), value)


def test_any_value_of_the_state_before_a_turn_leaves_the_gradient_exact():
    policy = Policy(THREE)

    def critic(conversation, word):
        return {"value": arbitrary(conversation)}

    update = update_of(Valued(), policy, outside=critic)
    assert is_ascended(update, policy, last_reward(policy))


def test_a_value_that_sees_the_response_takes_its_own_gradient_away():
    # The reference repository's value net reads the refined answer: the update is that of
    # E[R] - E[V(y)], in each turn that V sees.
    policy = Policy(THREE)

    def critic(conversation, word):
        return {"value": arbitrary(conversation, word)}

    update = update_of(Valued(), policy, outside=critic)

    def seen(conversation):
        return policy.mean(conversation, lambda word: arbitrary(conversation, word))

    bias = seen(bare()) + over_first(policy, lambda z: seen(text(policy, z)) if len(z) > 1 else 0.0)
    assert is_ascended(update, policy, last_reward(policy) - bias)
    assert largest(policy.gradient(bias)) > 0.1


# -- turn-level GAE -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traces:
    gamma: float
    lam: float


class Gae(Stopping):
    """Each turn's own accuracy, traced over turns."""

    settings_cls = Traces

    def advantages(self, rows):
        values_N = np.array([row.value for row in rows])
        following_N = next_rows(rows)
        return turn_gae(
            rewards_of(rows), values_N, following_N, self.settings.gamma, self.settings.lam
        )


@pytest.mark.parametrize(("gamma", "lam"), [(1.0, 1.0), (0.9, 1.0), (0.9, 0.5), (1.0, 0.0)])
def test_turn_level_gae_ascends_the_lambda_return_of_the_critics_own_values(gamma, lam):
    # For z: r1 + gamma (lam r2 + (1 - lam) V(x2)), so V matters below lam = 1; for y: r2, without
    # the discount that its turn would have in E[r1 + gamma r2].
    policy = Policy(THREE)
    update = update_of(
        Gae(settings=Traces(gamma, lam)),
        policy,
        outside=lambda conversation, word: {"value": arbitrary(conversation)},
    )

    def first(z):
        if len(z) == 1:
            return THREE.scores[z]
        after = policy.mean(text(policy, z), lambda y: THREE.scores[y]).item()
        bootstrap = lam * after + (1 - lam) * arbitrary(text(policy, z))
        return THREE.scores[z] + gamma * bootstrap

    def second(z):
        if len(z) == 1:
            return 0.0
        return policy.mean(text(policy, z), lambda y: THREE.scores[y])

    objective = policy.mean(bare(), first) + over_first(policy, second)
    assert is_ascended(update, policy, objective)
    exact = largest_difference(update, policy.gradient(total_reward(policy)))
    assert (exact < 1e-9) == ((gamma, lam) == (1.0, 1.0))
