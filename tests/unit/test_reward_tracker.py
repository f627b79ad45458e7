"""What is remembered of a problem between its visits."""

import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from records import record

from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.schema import ProblemState


def tracker_of(*records):
    tracker = RewardTracker()
    tracker.update(records)
    return tracker


def test_a_new_problem_has_the_empty_history():
    assert RewardTracker().state("p") == ProblemState(visits=0, level=0, accuracy=None)


def test_the_accuracy_is_that_of_the_planned_level():
    tracker = tracker_of(record(groups=[(2, [0, 1, 1, 0])]))
    assert tracker.state("p") == ProblemState(
        visits=1, level=2, accuracy=0.5, worked_level=2
    )  # 2 of 4


def test_a_group_that_is_thrown_away_was_not_trained_on():
    """Its outcome is known all the same: what it would have trained is not."""
    tracker = RewardTracker()
    tracker.update([record(groups=[(2, [0, 1, 1, 0])])], train=False)
    assert tracker.state("p") == ProblemState(visits=1, level=2, accuracy=0.5, worked_level=2)
    assert tracker.metrics()["pct_never_mixed"] == 100.0


def test_a_failed_hint_leaves_the_accuracy_unknown_and_the_level_planned():
    failed = record(groups=[(2, []), (0, [1, 1])], statuses=("parse_failed", "none"))
    assert tracker_of(failed).state("p") == ProblemState(
        visits=1, level=2, accuracy=None, worked_level=0
    )


def test_a_verifier_failure_leaves_the_accuracy_unknown():
    undecided = record(groups=[(0, [0, 0])], ungraded=(1,))
    assert tracker_of(undecided).state("p").accuracy is None


def test_the_lowest_level_that_worked_at_the_last_visit_is_remembered_and_then_forgotten():
    tracker = tracker_of(record(groups=[(0, [0, 0]), (2, [0, 1])]))
    assert tracker.state("p").worked_level == 2
    tracker.update([record(groups=[(1, [0, 0])])])
    assert tracker.state("p").worked_level is None


def test_a_visit_outside_the_schedule_leaves_level_and_accuracy_as_they_were():
    tracker = tracker_of(record(groups=[(2, [0, 1])]))
    tracker.update([record(groups=[(0, [0, 0])], is_off_schedule=True)])
    state = tracker.state("p")
    assert (state.visits, state.level, state.accuracy) == (2, 2, 0.5)


def test_shares_are_counted_over_the_problems_seen():
    tracker = tracker_of(
        record("zero", groups=[(0, [0, 0, 0, 0])]),
        record("one", groups=[(0, [1, 1, 1, 1])]),
        record("half", groups=[(0, [1, 1, 0, 0])]),
        record("fifth", groups=[(0, [1, 0, 0, 0, 0])]),
    )
    metrics = tracker.metrics()
    assert metrics["num_total_indexes"] == 4
    assert metrics["pct_indexes_in_0"] == 25.0
    assert metrics["pct_indexes_in_(0.0,0.2]"] == pytest.approx(25.0)  # 1/5 = 0.2
    assert metrics["pct_indexes_in_(0.4,0.6]"] == 25.0
    assert metrics["pct_indexes_in_1"] == 25.0
    assert metrics["pct_never_solved"] == 25.0
    assert metrics["pct_never_mixed"] == 50.0  # all wrong, all right


def test_never_solved_stays_false_once_a_rollout_was_right_at_any_level():
    tracker = tracker_of(record(groups=[(0, [0, 0]), (1, [0, 1])]))
    tracker.update([record(groups=[(0, [0, 0])])])
    assert tracker.metrics()["pct_never_solved"] == 0.0
    assert tracker.metrics()["pct_never_solved_unhinted"] == 100.0
    tracker.update([record(groups=[(0, [0, 1])])])
    assert tracker.metrics()["pct_never_solved_unhinted"] == 0.0


def through_a_file(tracker):
    """A tracker that has loaded what another one saved."""
    file = io.BytesIO()
    np.savez_compressed(file, **tracker.state_dict())
    file.seek(0)
    copy = RewardTracker()
    copy.load_state_dict(dict(np.load(file, allow_pickle=False)))
    return copy


@given(st.lists(st.text(max_size=6), unique=True, max_size=5))
@example(["a", "a\0", "a\0\0", "", "\0", "\ud800"])
def test_every_id_keeps_its_own_state_through_a_file(ids):
    saved = tracker_of(*(record(each, groups=[(n, [0, 1])]) for n, each in enumerate(ids)))
    loaded = through_a_file(saved)
    assert len(loaded) == len(ids)
    assert loaded.metrics() == saved.metrics()
    assert [loaded.state(each).level for each in ids] == list(range(len(ids)))


def test_a_state_of_another_version_is_refused_and_changes_nothing():
    kept = tracker_of(record("c", groups=[(3, [1])]))
    saved = tracker_of(record("a", groups=[(2, [1])])).state_dict()
    with pytest.raises(ValueError, match="tracker state"):
        kept.load_state_dict(saved | {"version": np.int64(3)})
    assert kept.state("c").level == 3
