"""What the search expects of a level from the last visit, and what it does not."""

import pytest
from fakes import run

from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.schema import ProblemState

WRONG, MIXED, RIGHT = [0] * 4, [0, 0, 0, 1], [1] * 4


def sampled(outcomes, state, **settings):
    """Rollouts of each round."""
    method = Sage(max_level=3, settings=SearchSettings(**settings))
    rounds = run(method, outcomes, state=state).record.rounds
    return [len(each.accuracies) for each in rounds]


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_an_accuracy_under_a_hint_says_nothing_of_level_0(accuracy):
    """The last search began at level 2 (``start=remembered``): all right or none, but there."""
    state = ProblemState(visits=1, level=2, accuracy=accuracy, worked_level=2)
    outcomes = {0: RIGHT if accuracy else WRONG, 1: MIXED}
    expected = [4] if accuracy else [4, 4]
    assert sampled(outcomes, state, unanimous_n=2) == expected


def test_what_was_solved_without_a_hint_is_not_expected_to_be_right_under_one():
    """Level 0 was all right and is all wrong now: level 1 is asked for the whole group."""
    state = ProblemState(visits=1, level=0, accuracy=1.0, worked_level=0)
    assert sampled({0: WRONG, 1: RIGHT}, state, unanimous_n=2) == [4, 4]


@pytest.mark.parametrize("accuracy", [0.0, 1.0])
def test_without_unanimous_n_a_probe_stays_a_probe_whatever_the_last_visit_gave(accuracy):
    """One wrong rollout of level 0 ends its probe, and level 1 has its own, made whole."""
    state = ProblemState(visits=1, level=0, accuracy=accuracy, worked_level=2)
    assert sampled({0: WRONG, 1: [1, 0, 0, 0]}, state, probe_n=1) == [1, 4]
