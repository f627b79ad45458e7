"""What GHPO samples, keeps and rewards, beyond the golden traces (test_all_traces)."""

import pytest
from fakes import Numbered, run

from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.run.errors import ConfigError

WRONG, MIXED, RIGHT = [0, 0], [0, 1], [1, 1]
FORMED = "<think>a</think><answer>b</answer>"
WARM = 21  # the first step after the cold start


def ghpo(**settings):
    return Ghpo(max_level=3, settings=GhpoSettings(**settings))


def visit(outcomes, *, method=None, step=WARM, **more):
    return run(method or ghpo(), outcomes, step=step, source=Numbered(3), **more)


def levels(outcomes, **settings):
    return visit(outcomes, method=ghpo(**settings)).record.levels


@pytest.mark.parametrize(
    ("on_all_failed", "level", "is_dropped"),
    [("keep_last", 3, False), ("keep_level0", 0, False), ("drop", 3, True)],
)
def test_what_trains_when_every_prefix_fails_is_a_setting(on_all_failed, level, is_dropped):
    method = ghpo(on_all_failed=on_all_failed)
    record = visit(dict.fromkeys(range(4), WRONG), method=method).record
    assert record.levels == (0, 1, 2, 3)
    assert (record.first_row_level, record.is_dropped) == (level, is_dropped)


def test_the_first_steps_are_plain_and_the_next_one_is_not():
    outcomes = dict.fromkeys(range(4), WRONG)
    for step in (1, 20):
        record = visit(outcomes, step=step).record
        assert (record.levels, record.is_off_schedule) == ((0,), True)
    record = visit(outcomes, step=21).record
    assert (record.levels, record.is_off_schedule) == ((0, 1, 2, 3), False)


def test_the_reward_is_the_accuracy_and_half_the_form():
    # Row 0: wrong and in form, 0 + 0.5; row 1: right and in form, 1 + 0.5.
    outcome = visit({0: MIXED}, texts={0: FORMED})
    assert outcome.record.rewards == (0.5, 1.5)
    # Without the tags the form adds nothing: 0 and 1.
    assert visit({0: MIXED}).record.rewards == (0.0, 1.0)


def test_form_never_makes_a_group_easy():
    # Level 0 scores 0.5 each for its form, and nobody is right.
    outcome = visit({0: WRONG, 1: MIXED}, texts={0: FORMED})
    assert outcome.record.levels == (0, 1)
    assert outcome.record.rounds[0].accuracies == (0.0, 0.0)


def test_form_alone_can_give_a_group_a_gradient():
    # All right (accuracy 1, 1): equal rewards, no signal. The records keep what trained.
    record = visit({0: RIGHT}, texts={0: FORMED}).record
    assert record.rewards == (1.5, 1.5)
    assert not record.has_signal


def test_a_group_with_as_many_right_answers_as_max_solved_is_difficult():
    assert levels({0: MIXED, 1: RIGHT}, max_solved=1) == (0, 1)  # 1 of 2 right, 1 <= 1
    assert levels({0: RIGHT}, max_solved=1) == (0,)  # 2 > 1


def test_a_verifier_timeout_is_no_reason_for_a_hint():
    record = visit({0: [0, "timeout"]}).record
    assert record.levels == (0,)
    assert not record.is_dropped


def test_a_group_without_any_verdict_is_dropped():
    outcome = visit({0: ["error", "error"]}, texts={0: FORMED})
    assert outcome.record.levels == (0,)
    assert outcome.record.is_dropped
    assert outcome.record.rewards == (0.0, 0.0)  # its form is not rewarded either


def test_a_group_whose_failed_grades_may_hold_enough_right_ones_is_not_called_difficult():
    unsure = [1, "timeout", 0, 0]
    # One right and one unknown: perhaps two, above max_solved=1.
    assert levels({0: unsure, **dict.fromkeys((1, 2, 3), [0] * 4)}, max_solved=1) == (0,)
    assert levels({0: [1, 0, 0, 0], **dict.fromkeys((1, 2, 3), [1] * 4)}, max_solved=1) == (0, 1)


def test_drop_drops_no_group_with_something_right():
    scarce = dict.fromkeys(range(4), [1, 0, 0, 0])
    method = ghpo(max_solved=1, on_all_failed="drop")
    assert not visit(scarce, method=method).record.is_dropped
    no_hint = Numbered(3, "missing_solution")
    assert not run(method, scarce, step=WARM, source=no_hint).record.is_dropped
    assert visit(dict.fromkeys(range(4), [0] * 4), method=method).record.is_dropped


def test_max_solved_is_below_the_group():
    ghpo(max_solved=3).check_run(group_size=4, use_kl_in_reward=False)
    with pytest.raises(ConfigError, match=r"hint.ghpo.max_solved=4 must be below the group size"):
        ghpo(max_solved=4).check_run(group_size=4, use_kl_in_reward=False)


def test_a_cold_start_leaves_steps_to_the_method():
    ghpo(cold_start_steps=9).check_steps(10)
    with pytest.raises(ConfigError, match="cold_start_steps=10 leaves no step of the run.s 10"):
        ghpo(cold_start_steps=10).check_steps(10)
