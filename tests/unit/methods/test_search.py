"""The options of the search, hint dropout, conditioning, log-prob gain; all off by default."""

import asyncio

import pytest
from fakes import LADDER, Numbered, ScriptedEngine, make_rollout, problem, run
from records import responses, statuses

from recipe.hint.methods import METHODS
from recipe.hint.methods.base import Draws
from recipe.hint.methods.fixed import Fixed, FixedSettings
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.methods.sage_light import SageLight
from recipe.hint.schema import ProblemState
from recipe.run.errors import ConfigError

WRONG, MIXED, RIGHT = [0] * 4, [0, 0, 0, 1], [1] * 4
PROBE_FINDS = [1, 0, 0, 0]


def sage(**settings):
    return Sage(max_level=3, settings=SearchSettings(**settings))


def test_a_probe_that_finds_nothing_is_not_completed():
    engine = ScriptedEngine({0: WRONG, 1: PROBE_FINDS})
    record = run(sage(probe_n=1), {}, engine=engine).record
    assert record.levels == (0, 1)
    assert [len(each.accuracies) for each in record.rounds] == [1, 4]
    assert engine.num_sampled == 1 + 1 + 3  # without probes: 4 + 4


def test_a_completed_probe_is_the_group_that_one_request_would_have_given():
    outcomes = {0: WRONG, 1: [0, 1, 0, 0]}
    whole = run(sage(), outcomes)
    probed = run(sage(probe_n=2), outcomes)
    tokens = [
        [response.token_ids_T for response in responses(outcome)] for outcome in (whole, probed)
    ]
    assert tokens[0] == tokens[1]
    assert probed.record.accuracies == (0.0, 1.0, 0.0, 0.0)


def test_a_probe_may_miss_what_the_whole_group_would_have_shown():
    record = run(sage(probe_n=1), {0: MIXED, 1: PROBE_FINDS}).record
    assert record.levels == (0, 1)  # the right answer of level 0 is its fourth


def test_the_highest_level_is_never_probed():
    record = run(sage(probe_n=1), dict.fromkeys(range(4), WRONG)).record
    assert [len(each.accuracies) for each in record.rounds] == [1, 1, 1, 4]


def test_a_failed_verifier_completes_the_probe_and_ends_the_search():
    record = run(sage(probe_n=1), {0: ["timeout", 0, 0, 0]}).record
    assert record.levels == (0,)
    assert len(record.rounds[0].accuracies) == 4


def test_a_probe_is_made_whole_when_the_ladder_then_fails():
    record = run(sage(probe_n=1), {0: WRONG}, replies=["no hints"]).record
    assert record.levels == (0, 1, 0)
    assert statuses(record) == ("none", "parse_failed", "none")
    assert [len(each.accuracies) for each in record.rounds] == [1, 0, 4]
    assert {place.round for place in record.rows} == {2}


def test_a_probe_as_large_as_the_group_is_the_group():
    record = run(sage(probe_n=9), {0: WRONG, 1: MIXED}).record
    assert [len(each.accuracies) for each in record.rounds] == [4, 4]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, [(0, None)] * 4),
        ({"probe_n": 2}, [(2, "wrong")] * 3 + [(0, None)]),  # the highest level is no probe
    ],
)
def test_only_a_probe_says_when_to_stop(settings, asked):
    made = make_rollout(sage(**settings), ScriptedEngine(dict.fromkeys(range(4), WRONG)))
    asyncio.run(made.run("uid", 1))
    assert [(each.request.n, each.request.stop_if_all) for each in made.rounds] == asked


def test_a_probe_is_smaller_than_the_group():
    sage(probe_n=7).check_run(group_size=8, use_kl_in_reward=True)
    with pytest.raises(ConfigError, match=r"hint\.search\.probe_n=8 must be below .*rollout\.n=8"):
        sage(probe_n=8).check_run(group_size=8, use_kl_in_reward=False)


@pytest.mark.parametrize(
    ("worked", "first"),
    [
        (None, 0),  # nothing worked, or a first visit
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
    ],
)
def test_a_remembered_search_starts_one_below_the_level_that_worked(worked, first):
    state = ProblemState(visits=1, worked_level=worked)
    record = run(sage(start="remembered"), dict.fromkeys(range(4), MIXED), state=state).record
    assert record.levels == (first,)
    assert record.planned_level == first


def test_a_search_that_starts_with_a_hint_falls_back_to_none_when_it_has_none():
    state = ProblemState(visits=1, worked_level=3)
    record = run(sage(start="remembered"), {0: WRONG}, state=state, replies=["no hints"]).record
    assert record.levels == (2, 0)
    assert record.first_row_level == 0


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        (ProblemState(visits=1, worked_level=2), 1),
        (ProblemState(visits=1, worked_level=None), 1),
        (ProblemState(visits=1, worked_level=0), 0),
        (ProblemState(), 0),
    ],
)
def test_hints_are_written_early_where_level_0_failed_before(state, calls):
    # Level 0 is solved this time: an early hints were for nothing, and is counted.
    record = run(sage(write_early=True), {0: MIXED}, state=state).record
    assert record.levels == (0,)
    assert record.hint_calls == calls


def test_an_early_ladder_is_the_one_that_would_have_been_written_later():
    def seeds(early):
        engine = ScriptedEngine({0: WRONG, 1: MIXED}, replies=["bad", LADDER])
        state = ProblemState(visits=1, worked_level=1)
        run(sage(write_early=early), {}, engine=engine, state=state)
        return engine.write_seeds, engine.prompts

    assert seeds(True) == seeds(False)


def test_dropout_leaves_out_the_hint_of_a_problem_that_trained_with_one():
    hinted, plain = (
        ProblemState(visits=1, level=1, highest_level=2),
        ProblemState(visits=1, level=1),
    )
    for method in (
        Fixed(max_level=3, settings=FixedSettings(2), draws=Draws(hint_dropout=1.0)),
        SageLight(max_level=3, draws=Draws(hint_dropout=1.0)),
    ):
        record = run(method, dict.fromkeys(range(4), MIXED), state=hinted).record
        assert (record.levels, record.is_off_schedule) == ((0,), True)
        record = run(method, dict.fromkeys(range(4), MIXED), state=plain).record
        assert record.levels != (0,)
        assert not record.is_off_schedule


def test_the_share_of_dropped_hints_is_that_of_the_setting_and_its_draw_repeats():
    method = Fixed(max_level=3, settings=FixedSettings(2), draws=Draws(hint_dropout=0.25, seed=7))

    def draws():
        states = (ProblemState(visits=visits, highest_level=2) for visits in range(400))
        return [method.open(problem(), state).level == 0 for state in states]

    assert draws() == draws()
    assert 0.18 < sum(draws()) / 400 < 0.32  # 0.25, three standard deviations of 0.022


def test_unhinted_conditioning_keeps_answers_and_probabilities_and_changes_the_prompt():
    outcomes = {0: WRONG, 1: MIXED}
    hinted, bare = (
        run(sage(), outcomes),
        run(sage(), outcomes, settings={"conditioning": "unhinted"}),
    )
    assert responses(hinted) == responses(bare)  # the hint was there when sampling
    text = "".join(map(chr, bare.rows[0].prompt_ids_T))
    assert text == "answer in a boxWhat is 1+1?"
    assert (hinted.record.on_policy, bare.record.on_policy) == (True, False)


def test_unhinted_conditioning_of_an_unhinted_group_is_on_policy():
    assert run(sage(), {0: MIXED}, settings={"conditioning": "unhinted"}).record.on_policy


def test_by_default_nothing_of_this_happens():
    assert SearchSettings() == SearchSettings(probe_n=0, start="zero", write_early=False)
    assert not Draws().drops_hint(problem(), ProblemState(visits=1, highest_level=2))


@pytest.mark.parametrize("state", [{"level": 1}, {"highest_level": 1}, {"worked_level": 2}])
@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if cls.uses_hints])
def test_what_a_run_with_more_levels_remembered_asks_for_none_that_is_not_there(name, state):
    """A checkpoint may go on with fewer levels (``trainer.resume_from_path``)."""
    method = METHODS[name](max_level=2)
    state = {each: level + method.max_level for each, level in state.items()}
    before = ProblemState(visits=2, accuracy=0.25, **state)
    outcomes = dict.fromkeys(range(method.max_level + 1), WRONG)
    record = run(method, outcomes, state=before, source=Numbered(method.max_level), step=99).record
    assert record.highest_level <= method.max_level


def test_an_accuracy_at_a_level_that_is_gone_is_unknown():
    known = ProblemState(visits=2, level=2, accuracy=0.5)
    assert known.within(2) == known
    assert known.within(1) == ProblemState(visits=2, level=1, accuracy=None)


@pytest.mark.parametrize(
    ("worked", "levels"),
    [
        (None, (0, 3)),  # nothing ever worked: the strongest
        (3, (0, 3)),
        (2, (0, 2, 3)),
        (1, (0, 1, 2, 3)),
        (0, (0, 1, 2, 3)),  # solved without a hint the last time: from the weakest on
    ],
)
def test_where_level_0_fails_the_level_that_worked_last_is_next(worked, levels):
    outcomes = dict.fromkeys(range(4), WRONG)
    state = ProblemState(visits=1, worked_level=worked)
    method = sage(after_zero="remembered")
    assert run(method, outcomes, state=state).record.levels == levels
    solved = run(method, outcomes | {0: MIXED}, state=state).record
    assert solved.levels == (0,)  # level 0 is always asked first
    assert run(sage(), outcomes, state=state).record.levels == (0, 1, 2, 3)


# -- what was unanimous the last time --------------------------------------------------------------

SOLVED = ProblemState(visits=1, level=0, accuracy=1.0, worked_level=0)
AT_TWO = ProblemState(visits=1, level=0, accuracy=0.0, worked_level=2)
NOWHERE = ProblemState(visits=1, level=0, accuracy=0.0, worked_level=None)


@pytest.mark.parametrize(
    ("state", "outcomes", "sampled"),
    [
        # All right the last time: two rollouts, and no more while both are.
        (SOLVED, {0: RIGHT}, [2]),
        (SOLVED, {0: [1, 0, 1, 1]}, [4]),
        # One is wrong, and so are all: the search goes on as ever.
        (SOLVED, {0: WRONG, 1: MIXED}, [4, 4]),
        # A grade that failed is neither right nor wrong.
        (SOLVED, {0: ["timeout", 1, 1, 1]}, [4]),
        # Nobody was right at levels 0 and 1; at 2 somebody was.
        (AT_TWO, {0: WRONG, 1: WRONG, 2: MIXED}, [2, 2, 4]),
        (AT_TWO, {0: WRONG, 1: [0, 1, 0, 0]}, [2, 4]),
        (AT_TWO, {0: [1, 0, 0, 0]}, [4]),
        # Nobody anywhere; the highest level is a whole group.
        (NOWHERE, {0: WRONG, 1: WRONG, 2: WRONG, 3: MIXED}, [2, 2, 2, 4]),
        # Right and wrong ones the last time, or no last time.
        (ProblemState(visits=1, accuracy=0.5, worked_level=0), {0: RIGHT}, [4]),
        (ProblemState(), {0: RIGHT}, [4]),
        # Of levels above one that was solved nothing is known.
        (SOLVED, {0: WRONG, 1: WRONG, 2: MIXED}, [4, 4, 4]),
    ],
)
def test_a_group_that_was_unanimous_is_whole_only_where_it_is_not_so_again(
    state, outcomes, sampled
):
    record = run(sage(unanimous_n=2), outcomes, state=state).record
    assert [len(each.accuracies) for each in record.rounds] == sampled
    assert record.levels == tuple(range(len(sampled)))


def test_a_part_of_a_group_that_is_right_again_trains_without_signal():
    outcome = run(sage(unanimous_n=2), {0: RIGHT}, state=SOLVED)
    assert [row.credit.reward for row in outcome.rows] == [1.0, 1.0]
    assert not outcome.record.has_signal and not outcome.record.is_dropped


def test_what_was_unanimous_is_completed_to_the_group_that_one_request_would_have_given():
    outcomes = {0: [1, 0, 1, 1]}
    found = [
        [each.token_ids_T for each in responses(run(method, outcomes, state=SOLVED))]
        for method in (sage(), sage(unanimous_n=2))
    ]
    assert found[0] == found[1]


def test_groups_of_unequal_size_are_refused_where_a_batch_has_several_mini_batches():
    """128 prompts x 8, of which 85 all right with two rows each: 514 rows, and a last one of 2."""
    with pytest.raises(ConfigError, match=r"unanimous_n=2 .* got 2; set .*ppo_mini_batch_size"):
        sage(unanimous_n=2).check_run(group_size=8, use_kl_in_reward=False, num_updates=2)
    sage(unanimous_n=2).check_run(group_size=8, use_kl_in_reward=False, num_updates=1)
    sage().check_run(group_size=8, use_kl_in_reward=False, num_updates=2)


def test_a_single_response_that_stands_for_its_group_is_refused():
    """A group of one has no baseline: verl's GRPO takes mean 0, so the reward is the advantage."""
    with pytest.raises(ConfigError, match="unanimous_n=1 would train a single response"):
        SearchSettings(unanimous_n=1)
    SearchSettings(probe_n=1)  # completed to its group before it trains


def test_an_unanimous_n_of_a_whole_group_is_refused():
    with pytest.raises(ConfigError, match="unanimous_n=4"):
        sage(unanimous_n=4).check_run(group_size=4, use_kl_in_reward=False)
