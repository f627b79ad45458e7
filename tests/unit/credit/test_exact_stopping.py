"""What a method ascends whose policy decides how many turns there are, and what a critic adds.

Notation: z the first response, y the second, x the problem, x2(z) the conversation before y; a
response of one token ends the conversation. A mean is over conversations.
"""

from dataclasses import replace

import numpy as np
import pytest
from enumerated import THREE, Policy, bare, revised
from updates import is_ascended, largest, own_update

from recipe.hint.credit.archer import next_rows, returns_to_go
from recipe.hint.credit.base import Credit
from recipe.hint.credit.baselines import minus_baseline, rewards_of
from recipe.hint.methods.base import Method
from recipe.hint.turns import Revise, Sample, Train, conversation_to, places

G = 2


class Stopping(Method, Credit):
    """Only a response of two tokens goes on; every turn earns its accuracy."""

    credit = property(lambda self: self)

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
        returns_N = returns_to_go(rewards_of(rows), next_rows(rows), 1.0)
        rows = [replace(row, reward=value) for row, value in zip(rows, returns_N, strict=True)]
        return minus_baseline(rows)


class SumOfCentredTurns(Stopping):
    """Each turn's reward minus its turn's mean, then summed over the turns still to come."""

    def advantages(self, rows):
        centred_N = minus_baseline(rows)
        return returns_to_go(centred_N, next_rows(rows), 1.0)


def total_reward(policy):
    """E[r1 + r2], through both turns."""

    def value(z):
        more = policy.mean(revised(z), lambda y: THREE.scores[y]) if len(z) > 1 else 0.0
        return THREE.scores[z] + more

    return policy.mean(bare(), value)


@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_returns_to_go_against_others_at_the_same_turn_are_exact_when_the_policy_stops(group_size):
    policy = Policy(THREE)
    update = own_update(ReturnsToGo(), policy, group_size=group_size)
    assert is_ascended(update, policy, total_reward(policy))


def test_summing_rewards_that_were_centred_turn_by_turn_pays_for_stopping():
    # verl #7244: the number of baselines that are subtracted is the policy's own choice. Each turn
    # more costs the expected reward of that turn, here where another conversation of G = 3 got to
    # it too: alone it is compared with nothing.
    policy = Policy(THREE)
    update = own_update(SumOfCentredTurns(), policy, group_size=3)
    chances = dict(zip(THREE.scores, policy.chances(bare()), strict=True))
    goes_on = policy.mean(bare(), lambda z: float(len(z) > 1))
    reached = {z: chances[z] for z in chances if len(z) > 1}
    expected = sum(
        chance * policy.mean(revised(z), lambda y: THREE.scores[y]).item()
        for z, chance in reached.items()
    ) / sum(reached.values())
    others = 1 - (1 - goes_on.item()) ** 2
    bias = -others * expected * goes_on
    assert is_ascended(update, policy, total_reward(policy) + bias)
    assert largest(policy.gradient(bias)) > 0.01


# -- the critic as a baseline ---------------------------------------------------------------------


class Valued(Stopping):
    """The last reward for every turn, against the critic's value of the state before the turn."""

    def react(self, problem, state, rounds):
        decision = super().react(problem, state, rounds)
        if isinstance(decision, Sample):
            return decision
        last = {conversation_to(rounds, row.place)[0]: row.reward for row in decision.rows}
        return Train(
            tuple(
                replace(row, reward=last[conversation_to(rounds, row.place)[0]])
                for row in decision.rows
            )
        )

    def advantages(self, rows):
        return minus_baseline(rows, "value")


def arbitrary(*names):
    """A number of its own for each name, as wrong as a critic can be."""
    return float(np.sin(sum(map(ord, "".join(names)))) * 3)


def last_reward(policy):
    def value(z):
        if len(z) > 1:
            return policy.mean(revised(z), lambda y: THREE.scores[y])
        return THREE.scores[z]

    return policy.mean(bare(), value)


def test_any_value_of_the_state_before_a_turn_leaves_the_gradient_exact():
    policy = Policy(THREE)

    def critic(conversation, word):
        return {"value": arbitrary(conversation)}

    update = own_update(Valued(), policy, outside=critic)
    assert is_ascended(update, policy, last_reward(policy))


def test_a_value_that_sees_the_response_takes_its_own_gradient_away():
    # The reference repository's value net reads the refined answer: the update is that of
    # E[R] - E[V(y)], in each turn that V sees.
    policy = Policy(THREE)

    def critic(conversation, word):
        return {"value": arbitrary(conversation, word)}

    update = own_update(Valued(), policy, outside=critic)

    def seen(conversation):
        return policy.mean(conversation, lambda word: arbitrary(conversation, word))

    bias = seen(bare()) + policy.over(bare(), lambda z: seen(revised(z)) if len(z) > 1 else 0.0)
    assert is_ascended(update, policy, last_reward(policy) - bias)
    assert largest(policy.gradient(bias)) > 0.1
