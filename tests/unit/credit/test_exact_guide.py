"""What methods with a guide ascend, by enumeration of their own credit and verl's loss.

z is the first response, g the feedback on it, y the refinement; r1 and R are the accuracies of z
and y. A mean is over first turns, so the loss divides by G.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from enumerated import (
    THREE,
    TWO,
    Policy,
    Words,
    asked_of_guide,
    bare,
    every_outcome,
    refined,
)
from updates import is_ascended, largest_difference, own_update

from recipe.hint.methods.dialogue import GuideSettings
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.schema import ProblemState

STAGE1, STAGE2 = ProblemState(step=1), ProblemState(step=9)
NO_KL = {"beta1": 0.0, "beta2": 0.0, "guide_kl_coef": 0.0}
WITHOUT_CRITIC = {"baseline": "leave_one_out", "value_bonus": 0.0, "value_grad": "stop"}


def guided(**settings):
    return ScoreGuided(settings=GuideSettings(stage1_steps=1, **settings))


def mlmt(**settings):
    return Mlmt(settings=MlmtSettings(**(NO_KL | WITHOUT_CRITIC | settings)))


@dataclass
class Talk:
    """Expectations over the three turns; what is not named has no gradient."""

    policy: Policy

    def first(self, value):
        """E over z, through z."""
        return self.policy.mean(bare(), value)

    def guide(self, z, value):
        """E over g on z, through g."""
        return self.policy.mean(asked_of_guide(z), value)

    def last(self, z, g, value):
        """E over y after z and g, through y."""
        return self.policy.mean(refined(z, g), value)

    def right(self, z, g):
        """The chance that y is right, through y."""
        return self.last(z, g, lambda y: self.policy.words.scores[y])

    def over_zg(self, value):
        return self.policy.over(
            bare(), lambda z: self.policy.over(asked_of_guide(z), lambda g: value(z, g))
        )

    def worth(self, z):
        """E of R after z, a number."""
        return self.policy.over(asked_of_guide(z), lambda g: self.right(z, g).item())

    def guide_objective(self, reward=lambda R: R):
        """E over z of what the guide's text is worth, through the guide."""
        return self.policy.over(
            bare(), lambda z: self.guide(z, lambda g: reward(self.right(z, g).item()))
        )


BASELINES = pytest.mark.parametrize("baseline", ["leave_one_out", "none"])


@BASELINES
def test_stage_two_with_a_guide_ascends_three_rewards_and_three_kls(baseline):
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = guided(alpha=2.0, beta1=0.3, guide_kl_coef=0.7, guide_weight=0.5, baseline=baseline)
    update = own_update(method, policy, state=STAGE2, reference=reference)
    talk, scores = Talk(policy), THREE.scores
    objective = (
        talk.first(scores.__getitem__)
        - 0.3 * policy.kl(reference, bare())
        + 0.5 * talk.guide_objective()
        - 0.7 * policy.over(bare(), lambda z: policy.kl(reference, asked_of_guide(z)))
        + talk.over_zg(
            lambda z, g: (
                talk.last(z, g, lambda y: 3 * scores[y] - 2 * scores[z])
                - 0.3 * policy.kl(reference, refined(z, g))
            )
        )
    )
    assert is_ascended(update, policy, objective)


def test_stage_one_with_a_guide_trains_guide_and_last_turn():
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    method = guided(beta1=0.3, beta2=0.9, guide_kl_coef=0.0)
    update = own_update(method, policy, state=STAGE1, reference=reference)
    talk = Talk(policy)
    objective = (
        -0.9 * policy.kl(reference, bare())
        + talk.guide_objective()
        + talk.over_zg(lambda z, g: talk.right(z, g) - 0.3 * policy.kl(reference, refined(z, g)))
    )
    assert is_ascended(update, policy, objective)


@pytest.mark.parametrize("baseline", ["leave_one_out", "none", "value"])
def test_mlmt_ascends_the_last_reward_through_every_turn(baseline):
    policy = Policy(THREE)
    update = own_update(mlmt(baseline=baseline), policy, state=STAGE2, outside=critic)
    talk = Talk(policy)
    # Through all three turns at once: the gradient of E[R] itself.
    objective = talk.first(lambda z: talk.guide(z, lambda g: talk.right(z, g)))
    assert is_ascended(update, policy, objective)


def critic(conversation, word):
    """As wrong as it can be, but of the state before the turn."""
    return {"value": float(np.sin(sum(map(ord, conversation))) * 3)}


@pytest.mark.parametrize("baseline", ["leave_one_out", "value"])
def test_the_guides_bonus_is_the_value_of_the_state_that_its_feedback_leads_to(baseline):
    policy = Policy(THREE)
    update = own_update(
        mlmt(baseline=baseline, value_bonus=0.5), policy, state=STAGE2, outside=critic
    )
    talk = Talk(policy)

    def worth(z, g):
        return talk.right(z, g).item() + 0.5 * critic(refined(z, g), "")["value"]

    objective = talk.first(talk.worth) + talk.over_zg(talk.right)
    objective = objective + policy.over(bare(), lambda z: talk.guide(z, lambda g: worth(z, g)))
    assert is_ascended(update, policy, objective)


def test_the_critics_value_is_a_number_for_each_text_that_the_guide_writes():
    # V has no gradient by the guide's weights: the policy's update is the same.
    policy = Policy(TWO)
    stop, full = (
        own_update(mlmt(value_bonus=0.5, value_grad=each), policy, state=STAGE2, outside=critic)
        for each in ("stop", "full")
    )
    assert largest_difference(stop, full) == 0.0


def test_the_full_gradient_raises_what_the_critic_regresses_on_after_the_feedback_alone():
    policy = Policy(TWO)
    for value_grad, more in (("stop", 0.0), ("full", 0.5)):
        method = mlmt(value_bonus=0.5, value_grad=value_grad)
        rows = [row.credit for way in every_outcome(method, policy) for row in way.outcome.rows]
        found = method.credit.value_targets(rows)
        for row, target in zip(rows, found, strict=True):
            assert target == row.reward + more * (row.role == "solver" and row.turn == 2)


def test_as_a_baseline_the_critic_learns_what_the_feedback_earns_with_its_bonus():
    """Else every feedback would be above its baseline for ever, by the bonus."""
    method = mlmt(baseline="value", value_bonus=0.5)
    rows = [row.credit for way in every_outcome(method, Policy(TWO)) for row in way.outcome.rows]
    valued = [replace(row, value=0.25) for row in rows]
    for row, target in zip(valued, method.credit.value_targets(valued), strict=True):
        assert target == row.reward + 0.5 * 0.25 * (row.role == "guide")


@pytest.mark.parametrize("step", [1, 3])
def test_the_role_that_waits_for_its_phase_still_teaches_the_critic(step):
    policy = Policy(TWO)
    method = mlmt(t_low=2, t_high=1, value_bonus=0.5)
    state = ProblemState(step=step)
    update = own_update(method, policy, state=state, outside=critic)
    places = {bare()} if step == 1 else {asked_of_guide(z) for z in TWO.scores}
    assert places <= {name[0] for name in update}
    waits = {asked_of_guide(z) for z in TWO.scores} if step == 1 else {bare()}
    assert not waits & {name[0] for name in update}
    roles = {
        each.credit.role for each in every_outcome(method, policy, state=state)[0].outcome.rows
    }
    assert roles == {"solver", "guide"}


@pytest.mark.parametrize(("group_size", "m", "k"), [(2, 2, 1), (1, 2, 2), (1, 1, 2)])
def test_a_tree_counts_each_of_its_turns(group_size, m, k):
    policy = Policy(TWO)
    update = own_update(
        mlmt(feedbacks=m, refinements=k), policy, state=STAGE2, group_size=group_size
    )
    talk = Talk(policy)
    objective = (
        talk.first(talk.worth) + m * talk.guide_objective() + m * k * talk.over_zg(talk.right)
    )
    assert is_ascended(update, policy, objective)


@pytest.mark.parametrize(
    ("step", "trains"), [(1, "solver"), (2, "solver"), (3, "guide"), (4, "solver")]
)
def test_phases_train_one_role_at_a_time(step, trains):
    policy = Policy(TWO)
    method = mlmt(t_low=2, t_high=1)
    update = own_update(method, policy, state=ProblemState(step=step))
    talk = Talk(policy)
    parts = {
        "solver": talk.first(talk.worth) + talk.over_zg(talk.right),
        "guide": talk.guide_objective(),
    }
    assert is_ascended(update, policy, parts[trains])


def test_with_reward_zero_every_role_moves_to_the_reference():
    policy, reference = Policy(THREE), Policy(THREE, seed=1)
    policy.words = Words(dict.fromkeys(THREE.scores, 0.0))
    method = mlmt(beta1=0.2, beta2=0.2, guide_kl_coef=0.2)
    update = own_update(method, policy, state=STAGE2, reference=reference)
    after = policy.moved(update, 1.0)
    for z in THREE.scores:
        for place in (bare(), asked_of_guide(z), *(refined(z, g) for g in THREE.scores)):
            before_kl, after_kl = (each.kl(reference, place) for each in (policy, after))
            assert after_kl < before_kl
