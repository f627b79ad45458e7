"""The options of the search and of conditioning; all off by default."""

import pytest
from fakes import Numbered, ScriptedEngine, run
from records import responses, statuses

from recipe.hint.methods import every_method, get_method
from recipe.hint.methods.sage import Sage, SearchSettings
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


@pytest.mark.parametrize("state", [{"level": 1}, {"worked_level": 2}])
@pytest.mark.parametrize("name", [name for name, cls in every_method().items() if cls.uses_hints])
def test_what_a_run_with_more_levels_remembered_asks_for_none_that_is_not_there(name, state):
    """A checkpoint may go on with fewer levels (``trainer.resume_from_path``)."""
    method = get_method(name)(max_level=2)
    state = {each: level + method.max_level for each, level in state.items()}
    before = ProblemState(visits=2, accuracy=0.25, **state)
    outcomes = dict.fromkeys(range(method.max_level + 1), WRONG)
    record = run(method, outcomes, state=before, source=Numbered(method.max_level), step=99).record
    assert record.highest_level <= method.max_level


def test_an_accuracy_at_a_level_that_is_gone_is_unknown():
    known = ProblemState(visits=2, level=2, accuracy=0.5)
    assert known.within(2) == known
    assert known.within(1) == ProblemState(visits=2, level=1, accuracy=None)
