"""Credit across turns, by hand."""

import numpy as np
import pytest
from credit_rows import row

from recipe.hint.credit.turn_level import LAST, next_rows, turn_gae


def test_the_turns_of_a_conversation_follow_each_other_in_any_order_of_rows():
    rows = [
        row(uid="u", session=0, turn=1),
        row(uid="v", session=0, turn=0),
        row(uid="u", session=0, turn=0),
        row(uid="u", session=1, turn=0),
        row(uid="v", session=0, turn=2),  # turn 1 did not train
    ]
    assert next_rows(rows).tolist() == [LAST, 4, 0, LAST, LAST]


def test_two_rows_of_one_turn_are_no_chain():
    rows = [row(turn=0), row(turn=1), row(turn=1)]
    with pytest.raises(ValueError, match="conversation 0 of problem 'p' has two rows of turn 1"):
        next_rows(rows)


def test_gae_over_two_turns():
    rows = [row(0.0, turn=0), row(1.0, turn=1), row(0.5, session=1, turn=0)]
    found = turn_gae(
        np.array([0.0, 1.0, 0.5]), np.array([0.4, 0.6, 0.2]), next_rows(rows), gamma=0.9, lam=0.5
    )
    # Turn 2: 1 - 0.6 = 0.4. Turn 1: 0 + 0.9 x 0.6 - 0.4 + 0.45 x 0.4 = 0.14 + 0.18 = 0.32.
    # The other conversation has one turn: 0.5 - 0.2.
    assert found.tolist() == pytest.approx([0.32, 0.4, 0.3])


@pytest.mark.parametrize("seed", range(5))
def test_with_lambda_one_the_advantage_is_the_discounted_return_minus_the_value(seed):
    drawn = np.random.default_rng(seed)
    rows = [row(session=s, turn=t) for s in range(4) for t in range(1 + s)]
    order = drawn.permutation(len(rows))
    rows = [rows[each] for each in order]
    rewards, values = drawn.normal(size=(2, len(rows)))
    found = turn_gae(rewards, values, next_rows(rows), gamma=0.9, lam=1.0)
    for index, one in enumerate(rows):
        rest = sum(
            0.9 ** (each.turn - one.turn) * reward
            for each, reward in zip(rows, rewards, strict=True)
            if each.session == one.session and each.turn >= one.turn
        )
        assert found[index] == pytest.approx(rest - values[index])


def test_no_rows_have_no_credit():
    empty = np.zeros(0)
    assert turn_gae(empty, empty, next_rows([]), 1.0, 1.0).shape == (0,)
