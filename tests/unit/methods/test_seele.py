"""SEELE's search for the level at which half of the responses are right."""

import random

import numpy as np
import pytest
from fakes import Numbered, ScriptedEngine, run

from recipe.hint.hints.base import HintResult
from recipe.hint.methods.item_response import Observation, accuracy_curve, level_for
from recipe.hint.methods.seele import Seele, SeeleSettings
from recipe.hint.schema import HintLevels, ProblemState
from recipe.run.errors import ConfigError


def test_the_curve_grows_with_the_level_whatever_was_seen():
    draw = random.Random(0)
    for _ in range(300):
        levels = draw.randint(1, 9)
        seen = [
            Observation(draw.randint(0, levels), draw.random(), draw.randint(1, 16))
            for _ in range(draw.randint(0, 5))
        ]
        curve = accuracy_curve(seen, levels)
        assert curve.shape == (levels + 1,)
        assert (np.diff(curve) > 0).all()
        assert 0 < curve[0]
        assert curve[-1] < 1


def test_with_many_observations_the_level_of_a_known_curve_is_found():
    # The true accuracies cross 1/2 between levels; the nearest one is asked for.
    for place, level in ((0.2, 2), (0.5, 5), (0.8, 8)):
        truth = 1 / (1 + np.exp(-8 * (np.arange(11) / 10 - place)))
        seen = [Observation(each, float(truth[each]), 50) for each in range(11)]
        assert level_for(0.5, seen, 10) == level
        assert accuracy_curve(seen, 10) == pytest.approx(truth, abs=0.03)


def test_failure_asks_for_more_and_success_for_less():
    start = level_for(0.5, [], 9)
    more = level_for(0.5, [Observation(start, 0.0, 2)], 9)
    less = level_for(0.5, [Observation(start, 1.0, 2)], 9)
    assert less < start < more
    # Half of them right: stay.
    assert abs(level_for(0.5, [Observation(start, 0.5, 8)], 9) - start) <= 1


def played(outcomes, *, levels=3, state=None, status="ok", **settings):
    method = Seele(max_level=levels, settings=SeeleSettings(**settings))
    engine = ScriptedEngine(outcomes)
    source = Numbered(levels, status)
    return engine, run(method, {}, engine=engine, source=source, state=state).record


def test_probes_come_before_one_whole_group_at_the_level_that_they_ask_for():
    engine, record = played({level: [0] * 4 for level in range(4)})
    assert [len(each.accuracies) for each in record.rounds] == [2, 2, 4]
    assert list(record.levels) == [1, 3, 3]  # of two as near to 1/2 the weaker; wrong: more
    assert {place.round for place in record.rows} == {2}
    assert engine.num_sampled == 2 + 2 + 4


@pytest.mark.parametrize("num_levels", range(1, 13))
def test_a_first_visit_begins_at_the_weaker_of_two_middle_levels(num_levels):
    """The prior curve is symmetric about 1/2: with 3 levels, 1 and 2 are as near to it."""
    assert level_for(0.5, [], num_levels) == num_levels // 2


def test_a_level_that_is_right_throughout_gives_way_to_a_weaker_one():
    _, record = played({level: [int(level == 3)] * 4 for level in range(4)})
    assert list(record.levels) == [1, 3, 2]


def test_a_level_that_is_probed_again_draws_anew():
    engine, record = played({level: [1, 0, 1, 0] for level in range(4)}, probe_n=2, probes=3)
    assert len(set(record.levels)) == 1
    assert len(set(engine.seeds)) == 4


def test_the_last_visit_is_remembered():
    hard = {level: [0] * 4 for level in range(4)}
    _, new = played(hard, probes=1)
    _, wrong = played(hard, probes=1, state=ProblemState(visits=1, level=3, accuracy=0.0))
    _, right = played(hard, probes=1, state=ProblemState(visits=1, level=0, accuracy=1.0))
    assert right.levels[0] < new.levels[0] < wrong.levels[0]


def test_without_a_hint_one_bare_group_trains():
    _, record = played({level: [0, 1, 0, 0] for level in range(4)}, status="missing_solution")
    assert record.levels[-1] == 0
    assert record.is_off_schedule is False
    assert {place.round for place in record.rows} == {len(record.levels) - 1}
    assert len(record.rows) == 4


def test_failed_grades_move_nothing():
    _, record = played({level: ["timeout"] * 4 for level in range(4)})
    assert len(set(record.levels)) == 1


@pytest.mark.parametrize("wrong", [{"target": 1.0}, {"probes": 0}, {"probe_n": 0}])
def test_a_search_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError, match=rf"hint\.seele\.{next(iter(wrong))}="):
        SeeleSettings(**wrong)


class Fitting(Numbered):
    """Hints of which those of some levels are too long for the prompt."""

    def __init__(self, count, too_long):
        super().__init__(count)
        self.too_long = too_long

    async def write(self, problem, generate, *, num_before=0):
        levels = range(1, self.count + 1)
        texts = [f"{'x' * 500 * (k in self.too_long)}hint {k}" for k in levels]
        return HintResult("ok", HintLevels(tuple(texts)))


@pytest.mark.parametrize(
    ("too_long", "trained"),
    [({3}, {2}), ({3, 2}, {1}), ({2}, {3}), ({1, 2, 3}, {0}), ({1}, {3})],
)
def test_a_level_that_cannot_be_shown_is_left_out_and_the_next_best_is_taken(too_long, trained):
    engine = ScriptedEngine(dict.fromkeys(range(4), [0] * 4), prompt_length=200)
    source = Fitting(3, too_long)
    record = run(Seele(max_level=3), {}, engine=engine, source=source, too_long="skip").record
    assert {record.rounds[place.round].level for place in record.rows} == trained
    assert len({each.level for each in record.rounds if each.accuracies} & too_long) == 0


def test_a_probe_is_smaller_than_the_group():
    method = Seele(max_level=3, settings=SeeleSettings(probe_n=8))
    method.check_run(group_size=9, use_kl_in_reward=False)
    with pytest.raises(ConfigError, match=r"hint\.seele\.probe_n=8 must be below .*rollout\.n=8"):
        method.check_run(group_size=8, use_kl_in_reward=False)
