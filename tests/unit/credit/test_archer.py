"""ArCHer's targets, doubles and replay, by hand."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from credit_rows import row

from recipe.hint.credit.archer import expectile_weights, q_targets, utterance_advantages
from recipe.hint.credit.metrics import credit_metrics
from recipe.hint.credit.replay import ReplayBuffer, Transition
from recipe.hint.credit.rows import DROPPED, CreditRow
from recipe.hint.methods.archer import Archer, ArcherSettings


def test_the_target_of_q_is_the_reward_and_the_discounted_value_of_the_next_state():
    found = q_targets(
        np.array([0.0, 1.0]),
        next_values_N2=np.array([[0.5, 0.7], [9.0, np.nan]]),
        is_done_N=np.array([False, True]),
        gamma=0.9,
    )
    # Each double follows its own target; what comes after the end is not read.
    assert found.tolist() == [pytest.approx([0.45, 0.63]), [1.0, 1.0]]


def test_a_single_turn_is_regression_on_the_reward():
    rewards = np.array([0.0, 1.0, 0.3])
    found = q_targets(rewards, np.full((3, 2), 5.0), np.ones(3, bool), gamma=0.95)
    assert found.tolist() == [[r, r] for r in rewards]


def test_the_advantage_takes_the_smaller_of_each_double():
    q, v = np.array([[1.0, 2.0], [0.3, 0.1]]), np.array([[0.5, 0.2], [0.0, 0.4]])
    # min(1, 2) - min(0.5, 0.2), min(0.3, 0.1) - min(0, 0.4).
    assert utterance_advantages(q, v).tolist() == pytest.approx([0.8, 0.1])


def test_the_values_are_measured_against_the_discounted_rewards_that_come():
    # Two conversations: 0 then 1; 1 then 1. V of the first states: 0.5 and 1.
    said = [(0, 0, 0.0, 0.5), (1, 0, 1.0, 1.0), (0, 1, 1.0, 1.0), (1, 1, 1.0, 0.5)]
    rows = [
        CreditRow("p", "u", f"turn{turn + 1}", "solver", turn, session, reward, value=value)
        for session, turn, reward, value in said
    ]
    found = Archer(settings=ArcherSettings(gamma=0.5)).credit.value_targets(rows)
    # First turns: 0 + 0.5 x 1 and 1 + 0.5 x 1.
    assert found.tolist() == [0.5, 1.5, 1.0, 1.0]
    metrics = credit_metrics(rows, np.zeros(4), np.zeros(4), found)
    # Variance of the targets 1/4; of what V leaves, 0 and 1/2, 1/16.
    assert metrics["credit/solver_t1/explained_variance"] == 0.75
    bandit = Archer(settings=ArcherSettings(variant="bandit"))
    assert bandit.credit.value_targets(rows[:2]).tolist() == [0.0, 1.0]


def test_dropped_rows_are_no_part_of_the_metrics():
    trained = [row(1.0, session=each, value=0.5) for each in (0, 1)]
    dropped = [row(0.0, uid="v", value=2.0, facts={DROPPED: 1.0}) for _ in range(2)]
    guides = [replace(each, role="guide") for each in dropped]
    rows = [*trained, *dropped, *guides]
    numbers = [np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]) for _ in range(3)]
    # Without them one target for all: nothing to explain, and a mean reward of 1, not 1/2.
    assert credit_metrics(rows, *numbers) == credit_metrics(trained, *(n[:2] for n in numbers))
    assert credit_metrics(dropped, *(n[2:4] for n in numbers)) == {}


def test_an_expectile_weighs_by_which_side_q_is_on():
    q, v = np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])
    assert expectile_weights(q, v, 0.9).tolist() == [[0.9, pytest.approx(0.1)]]
    assert expectile_weights(q, v, 0.5).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(("expectile", "expected"), [(0.5, 0.25), (0.75, 0.5), (0.9, 0.75)])
def test_the_value_that_minimises_the_weighted_errors_is_the_expectile(expectile, expected):
    # Q is 1 for a quarter of the actions and 0 for the rest. V where e (1-V) / 4 = (1-e) V 3/4:
    # V = e / (e + 3 (1-e)), 0.25, 0.5 and 0.75.
    q = np.array([1.0, 0.0, 0.0, 0.0])
    v = 0.0
    for _ in range(2000):
        weights = expectile_weights(np.stack([q, q], 1), np.full((4, 2), v), expectile)[:, 0]
        v += 0.1 * (weights * (q - v)).mean()
    assert v == pytest.approx(expected, abs=1e-6)


# -- replay ---------------------------------------------------------------------------------------


def transition(number, length=3):
    tokens = np.arange(number, number + length, dtype=np.int32)
    after = tokens[: number % 3]
    return Transition(tokens, tokens[:1], float(number), after, step=number)


def same(one, other):
    return (one.reward, one.step, one.is_done) == (other.reward, other.step, other.is_done) and all(
        getattr(one, name).tolist() == getattr(other, name).tolist()
        for name in ("state_T", "action_T", "next_state_T")
    )


def test_the_oldest_transitions_make_room():
    buffer = ReplayBuffer(3)
    buffer.add(map(transition, range(5)))
    assert len(buffer) == 3
    assert {each.step for each in buffer.draw(200, seed=0)} == {2, 3, 4}


def test_a_draw_is_that_of_its_seed_and_every_transition_is_as_likely():
    buffer = ReplayBuffer(10)
    buffer.add(map(transition, range(10)))
    drawn = [each.step for each in buffer.draw(20_000, seed=4)]
    assert drawn == [each.step for each in buffer.draw(20_000, seed=4)]
    shares = np.bincount(drawn) / 20_000
    # Standard error sqrt(0.1 x 0.9 / 20000) = 0.0021.
    assert np.abs(shares - 0.1).max() < 5 * 0.0021


def test_a_buffer_comes_back_from_its_state_as_it_was(tmp_path):
    buffer = ReplayBuffer(4)
    buffer.add(map(transition, range(6)))
    np.savez_compressed(tmp_path / "state.npz", **buffer.state_dict())
    other = ReplayBuffer(4)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        other.load_state_dict(dict(state))
    pairs = zip(buffer.draw(30, seed=1), other.draw(30, seed=1), strict=True)
    assert all(same(*pair) for pair in pairs)
    smaller = ReplayBuffer(2)
    smaller.load_state_dict(buffer.state_dict())
    assert {each.step for each in smaller.draw(50, seed=0)} == {4, 5}


def test_a_buffer_that_comes_back_shares_a_state_with_the_utterance_before_it():
    first, second = np.arange(5), np.arange(9)
    buffer, other = ReplayBuffer(2), ReplayBuffer(2)
    buffer.add(
        [
            Transition(first, first[:1], 0.0, second, step=1),
            Transition(second, second[:2], 1.0, second[:0], step=1),
        ]
    )
    other.load_state_dict(buffer.state_dict())
    one, two = sorted(other._kept, key=lambda each: each.reward)
    assert one.next_state_T is two.state_T
    assert (one.state_T.tolist(), two.state_T.tolist()) == (first.tolist(), second.tolist())
    assert two.is_done


def test_a_state_is_copied_once():
    # 3 x 100,000 tokens of 4 bytes are 1.2 MB; a second copy of a third of them adds 0.4 MB.
    tokens = np.zeros(100_000, np.int32)
    buffer = ReplayBuffer(1)
    buffer.add([Transition(tokens, tokens, 0.0, tokens, step=1)])
    tracemalloc.start()
    buffer.state_dict()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1.2e6 < peak < 1.4e6


def test_an_empty_buffer_comes_back_empty_and_says_so_when_asked():
    buffer = ReplayBuffer(2)
    buffer.load_state_dict(ReplayBuffer(2).state_dict())
    with pytest.raises(ValueError, match="the replay buffer is empty"):
        buffer.draw(1, seed=0)


def test_a_buffer_for_nothing_is_refused():
    with pytest.raises(ValueError, match="a replay buffer of 0 transitions"):
        ReplayBuffer(0)


def test_advantages_of_both_signs_do_not_cancel_in_their_size():
    # Mean of |1| and |-1|; of 1 and -1 it would be 0.
    rows = [row(1.0, session=0), row(0.0, session=1)]
    metrics = credit_metrics(rows, np.array([1.0, -1.0]), np.zeros(2), np.zeros(2))
    assert metrics["credit/solver_t1/advantage_abs"] == 1.0
