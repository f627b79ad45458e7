"""What SAGE and its relatives sample and keep, beyond the golden traces (test_all_traces)."""

import asyncio

import pytest
from fakes import LADDER, ScriptedEngine, make_rollout, problem, run
from hypothesis import given
from hypothesis import strategies as st
from records import statuses

from recipe.hint.methods import every_method, get_method
from recipe.hint.methods.fixed import Fixed, FixedSettings
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.methods.sage_light import SageLight, SageLightSettings, next_level
from recipe.hint.schema import ProblemState
from recipe.run.errors import ConfigError

WRONG, MIXED, RIGHT = [0, 0], [0, 1], [1, 1]


def sage():
    return Sage(max_level=3)


def light(**settings):
    return SageLight(max_level=3, settings=SageLightSettings(**settings))


def test_sage_asks_for_one_ladder_per_visit_not_one_per_level():
    engine = ScriptedEngine(dict.fromkeys(range(4), WRONG))
    run(sage(), {}, engine=engine)
    assert len(engine.write_seeds) == 1


def test_when_no_reply_parses_sage_trains_on_the_unhinted_group():
    outcome = run(sage(), {0: WRONG}, replies=["no json here"])
    assert outcome.record.levels == (0, 1)
    assert statuses(outcome.record) == ("none", "parse_failed")
    assert outcome.record.first_row_level == 0
    assert outcome.record.hint_calls == 3
    assert len(outcome.rows) == 2


def test_an_empty_reply_is_not_asked_for_again():
    record = run(sage(), {0: WRONG}, replies=[""]).record
    assert statuses(record) == ("none", "generation_failed")
    assert (record.first_row_level, record.hint_calls) == (0, 0)


def test_each_attempt_to_write_hints_has_a_seed_of_its_own():
    engine = ScriptedEngine({0: WRONG, 1: MIXED}, replies=["bad", "bad", LADDER])
    record = run(sage(), {}, engine=engine).record
    assert record.hint_calls == 3
    assert len(set(engine.write_seeds)) == 3
    assert record.first_row_level == 1


def test_a_prompt_without_a_solution_gets_no_hint_and_no_request():
    engine = ScriptedEngine({0: WRONG})
    record = run(sage(), {}, engine=engine, item=problem(solution="  ")).record
    assert statuses(record) == ("none", "missing_solution")
    assert record.first_row_level == 0
    assert engine.write_seeds == []


def test_a_level_that_does_not_fit_is_stepped_over():
    # The bare prompt has 28 characters; a hint adds 29 + its own length: 5, 10 or 17.
    bare = len("answer in a box" + "What is 1+1?")
    lead = len("\nHere is a hint to help you:\n")
    reply = '{"level_1": "way too long a hint", "level_2": "go. on", "level_3": "a. b. c"}'
    limit = bare + lead + 10
    outcome = run(
        sage(), {0: WRONG, 2: MIXED}, replies=[reply], prompt_length=limit, too_long="skip"
    )
    assert outcome.record.levels == (0, 1, 2)
    assert statuses(outcome.record) == ("none", "too_long", "ok")
    assert outcome.record.first_row_level == 2


def test_an_overlong_hint_is_cut_at_a_sentence_and_the_question_never():
    bare = len("answer in a box" + "What is 1+1?")
    lead = len("\nHere is a hint to help you:\n")
    reply = '{"level_1": "Add. Then carry on for long", "level_2": "b", "level_3": "c"}'
    engine = ScriptedEngine({0: WRONG, 2: MIXED}, replies=[reply], prompt_length=bare + lead + 6)
    record = run(sage(), {}, engine=engine).record
    assert statuses(record) == ("none", "cut")
    assert engine.prompts[-1].endswith("What is 1+1?\nHere is a hint to help you:\nAdd.")


@pytest.mark.parametrize(
    ("level", "accuracy", "expected"),
    [
        (0, 0.0, 1),  # 0.0 <= 0.1: up
        (1, 0.1, 2),  # 0.1 <= 0.1: up
        (1, 0.125, 1),  # 0.1 < 0.125 <= 0.35: stay
        (1, 0.35, 1),  # not above 0.35: stay
        (2, 0.375, 1),  # 0.375 > 0.35: down
        (0, 1.0, 0),  # already at the bottom
        (3, 0.0, 3),  # already at the top
        (2, None, 2),  # unknown: stay
    ],
)
def test_light_moves_one_level_by_the_last_accuracy(level, accuracy, expected):
    assert next_level(level, accuracy, 3, SageLightSettings()) == expected
    record = run(
        light(),
        dict.fromkeys(range(4), MIXED),
        state=ProblemState(visits=1, level=level, accuracy=accuracy),
    ).record
    assert record.planned_level == record.first_row_level == expected


def test_paper_mode_of_light_raises_below_its_threshold_and_never_lowers():
    paper = SageLightSettings(hint_accuracy_min_threshold=0.35, hint_accuracy_max_threshold=1.0)
    assert next_level(1, 0.34, 3, paper) == 2
    assert next_level(2, 1.0, 3, paper) == 2


def test_thresholds_in_the_wrong_order_are_refused():
    with pytest.raises(ConfigError, match="0.5 is above .* give min <= max"):
        SageLightSettings(hint_accuracy_min_threshold=0.5, hint_accuracy_max_threshold=0.35)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_fixed_always_samples_at_its_level(level):
    method = Fixed(max_level=3, settings=FixedSettings(level=level))
    assert run(method, dict.fromkeys(range(4), RIGHT)).record.levels == (level,)


def test_fixed_refuses_a_level_above_the_highest():
    with pytest.raises(ConfigError, match="hint.fixed.level=4 must be from 1 to"):
        Fixed(max_level=3, settings=FixedSettings(level=4))


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="'sagee' is not a method; choose one of archer"):
        get_method("sagee")


def test_the_same_place_in_a_run_draws_the_same_seeds_and_another_step_draws_others():
    def seeds(step, repeat=0, sent_step=0):
        engine = ScriptedEngine(dict.fromkeys(range(4), WRONG))
        state = ProblemState(repeat=repeat, sent_step=sent_step)
        run(sage(), {}, engine=engine, step=step, state=state)
        return engine.seeds

    assert seeds(5) == seeds(5)
    assert not set(seeds(5)) & set(seeds(6))
    # A step that holds a problem twice, at the end of an epoch, draws others for it too.
    assert not set(seeds(5)) & set(seeds(5, repeat=1))
    assert seeds(5) == seeds(5, sent_step=5)
    # A resumed run may send prompts of several steps again at one, with one problem in all of them.
    drawn = [seeds(5, repeat, sent) for repeat in (0, 1) for sent in (3, 4, 5)]
    assert len({seed for each in drawn for seed in each}) == 6 * 4


VARIANTS = {
    **{
        name: cls(max_level=3)
        for name, cls in every_method().items()
        if not cls(max_level=3).credit
    },
    "sage that probes": Sage(max_level=3, settings=SearchSettings(probe_n=1, start="remembered")),
    "ghpo that drops": Ghpo(max_level=3, settings=GhpoSettings(max_solved=1, on_all_failed="drop")),
}
OUTCOME = st.sampled_from([0, 1, "timeout", "error", "truncated"])


@given(
    st.sampled_from(sorted(VARIANTS)),
    st.lists(st.lists(OUTCOME, min_size=4, max_size=4), min_size=4, max_size=4),
    st.lists(st.sampled_from([LADDER, "garbage", '{"level_1": "x"}']), min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from([None, 0.0, 0.2, 1.0]),
    st.sampled_from([10_000, 60, 70]),
    st.integers(0, 1000),
)
def test_every_prompt_is_decided_once_with_a_whole_group_of_one_context(
    name, groups, replies, level, accuracy, prompt_length, order
):
    outcomes = dict(enumerate(groups))
    method = VARIANTS[name]

    async def step():
        visits = []
        for index in range(3):
            engine = ScriptedEngine(
                outcomes, replies=replies, prompt_length=prompt_length, shuffle=order + index
            )
            visit = make_rollout(
                method,
                engine,
                state=ProblemState(1, level, accuracy, worked_level=level, step=1000),
                item=problem(problem_id=f"p{index}"),
            )
            visits.append(visit.run(f"uid{index}", 1))
        return await asyncio.gather(*visits)

    results = asyncio.run(step())
    assert [outcome.record.uid for outcome in results] == ["uid0", "uid1", "uid2"]
    for outcome in results:
        record = outcome.record
        assert len(outcome.rows) == len(record.rows) == len(record.rewards) == 4
        assert len(record.accuracies) == 4
        assert all(0 <= level <= method.max_level for level in record.levels)
        for row, place in zip(outcome.rows, record.rows, strict=True):
            sampled_at = ScriptedEngine(outcomes).level_of(row.prompt_ids_T)
            assert row.turn.response.token_ids_T[0] == sampled_at == record.levels[place.round]
