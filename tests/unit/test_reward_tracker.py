"""What is remembered of a problem between its visits."""

import io
import tracemalloc

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
        visits=1, level=2, accuracy=0.5, highest_level=2, worked_level=2
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


def test_groups_are_found_by_id_in_whatever_order_they_come():
    first = record("a", groups=[(0, [1, 1])])
    second = record("b", groups=[(1, [0, 0])])
    for order in ([first, second], [second, first]):
        tracker = tracker_of(*order)
        assert tracker.state("a") == ProblemState(1, 0, 1.0, worked_level=0)
        assert tracker.state("b") == ProblemState(1, 1, 0.0, highest_level=1)


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
    assert state.highest_level == 0  # so that it is not left out twice in a row


def test_a_guided_rollout_counts_as_signal_and_as_a_hint():
    rows = ((0, 0), (1, 0))
    mixed = record(groups=[(0, [0, 0]), (3, [1])], accepted=0, rows=rows)
    tracker = tracker_of(mixed)
    assert tracker.state("p").highest_level == 3
    assert tracker.metrics()["pct_never_mixed"] == 0.0


def test_of_two_groups_at_the_planned_level_the_whole_one_counts():
    # A probe of one, then the whole group, because the hint levels failed.
    probed = record(groups=[(0, [0]), (1, []), (0, [0, 1])], accepted=2)
    assert tracker_of(probed).state("p").accuracy == 0.5


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


def test_the_state_survives_a_file_and_equals_the_original():
    tracker = tracker_of(record("ä/1", groups=[(3, [0, 1])]), record("b", groups=[(0, [0, 0])]))
    copy = through_a_file(tracker)
    assert copy.state("ä/1") == tracker.state("ä/1")
    assert copy.metrics() == tracker.metrics()
    again = copy.state_dict()
    for name, column in tracker.state_dict().items():
        assert np.array_equal(column, again[name]), name


def test_a_state_that_uses_the_earlier_names_of_its_columns_is_read():
    tracker = tracker_of(record("a", groups=[(2, [0, 1])]), record("b", groups=[(0, [0, 0])]))
    saved = tracker.state_dict()
    saved["was_mixed"] = saved.pop("had_signal")
    saved["accepted_level"] = saved.pop("highest_level")
    loaded = RewardTracker()
    loaded.load_state_dict(saved)
    assert [loaded.state(each).highest_level for each in "ab"] == [2, 0]
    assert loaded.metrics() == tracker.metrics()
    assert loaded.state_dict().keys() == tracker.state_dict().keys()


def test_a_state_of_another_version_is_refused():
    state = RewardTracker().state_dict() | {"version": np.int64(99)}
    with pytest.raises(ValueError, match="version 99, this code reads 3"):
        RewardTracker().load_state_dict(state)


@given(st.lists(st.text(max_size=6), unique=True, max_size=5))
@example(["a", "a\0", "a\0\0", "", "\0", "\ud800"])
def test_every_id_keeps_its_own_state_through_a_file(ids):
    saved = tracker_of(*(record(each, groups=[(n, [0, 1])]) for n, each in enumerate(ids)))
    loaded = through_a_file(saved)
    assert len(loaded) == len(ids)
    assert [loaded.state(each).level for each in ids] == list(range(len(ids)))


def test_one_long_id_does_not_widen_the_others():
    ids = [*map(str, range(2000)), "x" * 4000]
    state = tracker_of(*(record(each, groups=[(0, [1])]) for each in ids)).state_dict()
    # 2000 ids of 4 digits with quotes, comma and blank: 16 kB; padded to 4000 characters, 32 MB.
    assert state["ids"].nbytes < 8 * 2000 + 4010


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": np.frombuffer(b'["a","a"]', np.uint8)}, "the id 'a' twice, expected each id once"),
        ({"level": np.array([1], np.uint8)}, r"`level` is of shape \(1,\), expected one .* of 2"),
        ({"level": np.uint8(1)}, r"`level` is of shape \(\), expected one value"),
        ({"visits": np.ones((2, 1))}, r"`visits` is of shape \(2, 1\)"),
    ],
)
def test_a_state_whose_columns_and_ids_do_not_fit_is_refused_and_changes_nothing(change, message):
    tracker = tracker_of(record("a", groups=[(2, [1])]), record("b", groups=[(1, [1])]))
    kept = tracker_of(record("c", groups=[(3, [1])]))
    with pytest.raises(ValueError, match=message):
        kept.load_state_dict(tracker.state_dict() | change)
    without = tracker.state_dict()
    del without["accuracy"]
    with pytest.raises(ValueError, match="`accuracy` is missing, expected one value"):
        kept.load_state_dict(without)
    assert kept.state("c").level == 3


def test_the_tracker_does_not_grow_with_the_number_of_visits():
    tracker = RewardTracker()
    step = [record(f"p{index}", groups=[(0, [0] * 8), (1, [1] + [0] * 7)]) for index in range(128)]
    tracker.update(step)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(200):
        tracker.update(step)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 25600 visits; a list of them would take 8 bytes each, 200 kB.
    assert after - before < 20_000
    assert tracker.state("p0").visits == 201


def test_a_prompt_that_is_sent_again_keeps_its_place_in_the_schedule():
    found = ProblemState.from_queue({"visits": 1, "step": 0, "sent_step": 4}, step=7)
    assert (found.step, found.schedule_step) == (7, 4)
    assert ProblemState.from_queue({}, step=7).schedule_step == 7


def test_a_prompt_in_a_queue_of_an_earlier_version_has_its_unknowns():
    old = {"visits": 1, "level": 2, "accuracy": -1.0, "worked_level": -1}
    assert ProblemState.from_queue(old, step=7) == ProblemState(visits=1, level=2, step=7)


def test_one_right_response_of_ten_is_an_accuracy_of_a_tenth():
    # In 4 bytes 0.1 would be 0.10000000149, above a threshold of 0.1.
    tracker = tracker_of(record(groups=[(0, [1] + [0] * 9)]))
    assert tracker.state("p").accuracy == 0.1


def test_more_problems_than_there_was_room_for_begin_as_the_first_ones_did():
    tracker = tracker_of(*(record(str(number), groups=[(0, [0, 0])]) for number in range(65)))
    assert tracker.metrics()["pct_never_solved"] == 100.0


def test_a_problem_that_gave_signal_once_has_had_it_for_ever():
    tracker = tracker_of(record(groups=[(0, [0, 1])]))
    tracker.update([record(groups=[(0, [0, 0])])])
    assert tracker.metrics()["pct_never_mixed"] == 0.0
