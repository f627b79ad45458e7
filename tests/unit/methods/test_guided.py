"""Score-guided and MLMT: who sees what, who earns what, who trains when."""

from dataclasses import replace

import pytest
from talks import GUIDE, TurnEngine, play

from recipe.hint.adapter import store
from recipe.hint.methods.dialogue import PARENT_TURN, GuideSettings
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.schema import ProblemState, Response
from recipe.hint.turns import Place, Round, Sample, Turn
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.verify.schema import Verdict

STAGE1 = 10
WITHOUT_CRITIC = {"baseline": "leave_one_out", "value_bonus": 0.0, "value_grad": "stop"}
RIGHT = Verdict(1.0, "correct", "2")


def guided(**settings):
    return ScoreGuided(settings=GuideSettings(stage1_steps=STAGE1, **settings))


def mlmt(**settings):
    return Mlmt(settings=MlmtSettings(**(WITHOUT_CRITIC | settings)))


def talk(method, right, *, step=STAGE1 + 1, **more):
    return play(method, TurnEngine(right, group_size=len(right[0]), **more), step=step)


def credits(outcome, role=None):
    found = [row.credit for row in outcome.rows]
    return [each for each in found if role in (None, each.role)]


def rewards(outcome, role):
    return [each.reward for each in credits(outcome, role)]


def text(row):
    return "".join(map(chr, row.prompt_ids_T))


def test_a_conversation_without_room_trains_its_first_turn_also_where_another_was_left_unanswered():
    """Turn 1 finds no prompt for feedback and turn 2 no answer: 0 and 1 train, 2 does not."""
    method = guided(guide="teacher", train_guide=False)
    first = tuple(Turn((), [1], Response([1], [0.0], "", False), RIGHT) for _ in range(3))
    asked = method.next_turn(Problem("p", (), "", "", "1"), [Round(Sample(), first)])
    feedback = Turn((), [1], Response([], [], "look", False), None, Place(0, 0))
    refined = Turn((), [1], Response([1], [0.0], "", False), RIGHT, Place(1, 0))
    rounds = [
        Round(Sample(), first),
        Round(asked, (feedback,), "generation_failed", without_prompt=(Place(0, 1),)),
        Round(Sample(parents=(Place(1, 0),)), (refined,)),
    ]
    rows = method._solver_rows(ProblemState(step=STAGE1 + 1), rounds)
    assert [row.place for row in rows] == [Place(0, 0), Place(0, 1), Place(2, 0)]


def test_the_guide_sees_the_problem_and_the_attempt_and_the_solver_sees_the_feedback():
    outcome = talk(guided(), {0: [0, 1], GUIDE: [0, 0], 1: [1, 1]})
    kinds = [(each.prompt, each.role) for each in outcome.record.rounds]
    assert kinds == [("bare", "solver"), ("feedback", "guide"), ("refine", "solver")]
    guide = next(row for row in outcome.rows if row.credit.role == "guide")
    assert "Problem:\nWhat is 1+1?\n\nThe student's attempt:\nanswer 0" in text(guide)
    refined = next(row for row in outcome.rows if row.credit.turn == 2)
    begin = "[system]answer in a box[user]What is 1+1?[assistant]answer 0[user]A tutor"
    assert text(refined).startswith(begin)
    assert f"answer {GUIDE}" in text(refined)


def test_the_solver_earns_as_in_score_and_the_guide_what_the_refinement_is_worth():
    outcome = talk(guided(), {0: [0, 1, 1], GUIDE: [0, 0, 0], 1: [1, 1, 0]})
    # alpha = 10: wrong-right 1 + 10, right-right 1, right-wrong -10. The guide earns R.
    assert rewards(outcome, "solver") == [0.0, 1.0, 1.0, 11.0, 1.0, -10.0]
    assert rewards(outcome, "guide") == [1.0, 1.0, 0.0]
    assert [(each.turn, each.session) for each in credits(outcome, "guide")] == [
        *((1, 0), (1, 1), (1, 2))
    ]
    assert {each.kl_coef for each in credits(outcome, "guide")} == {0.05}
    # The others' means: 1/2, 1/2, 1.
    found = guided().credit.advantages(credits(outcome, "guide"))
    assert found == pytest.approx([0.5, 0.5, -1.0])


def test_stage_one_holds_the_first_turn_while_the_guide_trains():
    outcome = talk(guided(), {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}, step=1)
    assert rewards(outcome, "solver") == [0.0, 0.0, 1.0, 0.0]
    assert rewards(outcome, "guide") == [1.0, 0.0]


def test_roles_that_do_not_train_have_no_rows():
    right = {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}
    assert not credits(talk(guided(train_guide=False), right), "guide")
    assert not credits(talk(guided(train_solver=False), right), "solver")


def test_of_a_role_that_never_trains_the_critic_learns_only_what_a_bonus_reads():
    right = {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}
    frozen = {"train_solver": False, "baseline": "value"}
    assert not credits(talk(guided(**frozen), right), "solver")
    assert not credits(talk(mlmt(**frozen), right), "solver")
    assert not credits(talk(mlmt(train_guide=False, baseline="value"), right), "guide")
    # The guide's bonus is V before a refinement, which earns R: no stage and no alpha shapes it.
    method = mlmt(**frozen, value_bonus=0.5, value_grad="full")
    assert method.needs.critic_rows
    found = credits(talk(method, right), "solver")
    assert [(each.turn, each.reward, each.weight) for each in found] == [(2, 1.0, 0), (2, 0.0, 0)]


def test_what_a_solver_that_never_trains_would_earn_decides_nothing():
    """Each grade of the first turns failed: the change that alpha weighs is unknown, R is not."""

    class Broken(TurnEngine):
        async def grade(self, problem, responses):
            found = await super().grade(problem, responses)
            is_first = responses[0].token_ids_T[0] == 0
            return [replace(each, reason="error") if is_first else each for each in found]

    for solver_credit in ("score", "joint"):
        method = guided(train_solver=False, solver_credit=solver_credit)
        outcome = play(method, Broken({0: [0, 0], GUIDE: [0, 0], 1: [0, 1]}), step=STAGE1 + 1)
        assert rewards(outcome, "guide") == [0.0, 1.0]
        assert method.solver_never_trains
    # Served by main_alternate.py, it trains in another phase.
    assert not mlmt(solver="teacher", train_solver=False).solver_never_trains


@pytest.mark.parametrize(("penalty", "earned"), [(0.0, [1.0, 0.0]), (2.0, [-1.0, 0.0])])
def test_feedback_that_gives_the_answer_away_is_counted_and_may_cost(penalty, earned):
    method = guided(leak_penalty=penalty)
    outcome = talk(method, {0: [0, 0], GUIDE: [1, 0], 1: [1, 0]})
    assert outcome.record.rounds[1].leaks == 1
    assert rewards(outcome, "guide") == earned


def test_feedback_that_repeats_a_right_answer_gives_nothing_away():
    outcome = talk(guided(leak_penalty=2.0), {0: [1, 0], GUIDE: [1, 1], 1: [1, 1]})
    assert outcome.record.rounds[1].leaks == 1
    assert rewards(outcome, "guide") == [1.0, -1.0]


def test_feedback_whose_refinement_has_no_grade_does_not_train():
    class Broken(TurnEngine):
        async def grade(self, problem, responses):
            first, *rest = await super().grade(problem, responses)
            is_last = responses[0].token_ids_T[0] == 1
            return [replace(first, reason="error") if is_last else first, *rest]

    outcome = play(guided(), Broken({0: [0, 0], GUIDE: [0, 0], 1: [0, 1]}), step=STAGE1 + 1)
    assert rewards(outcome, "guide") == [1.0]


def test_the_guide_has_its_own_length():
    engine = TurnEngine({0: [0, 1], GUIDE: [0, 0], 1: [1, 0]})
    play(guided(train_guide=False, guide_max_tokens=5), engine, step=1)
    assert engine.max_tokens == [0, 5, 5, 0, 0]


def test_a_tree_gives_each_turn_the_mean_of_what_follows_and_each_level_its_baseline():
    # Two attempts, two feedbacks each, two refinements each.
    outcome = talk(
        mlmt(feedbacks=2, refinements=2),
        {0: [0, 0], GUIDE: [0, 0, 0, 0], 1: [1, 1, 1, 0, 0, 0, 0, 0]},
    )
    solver = credits(outcome, "solver")
    assert [each.reward for each in solver[:2]] == [0.75, 0.0]
    assert [each.reward for each in solver[2:]] == [1, 1, 1, 0, 0, 0, 0, 0]
    assert rewards(outcome, "guide") == [1.0, 0.5, 0.0, 0.0]
    guide = credits(outcome, "guide")
    assert [each.group for each in guide] == ["guide-0.0"] * 2 + ["guide-0.1"] * 2
    # 1 against 1/2 and back; 0 against 0.
    assert mlmt().credit.advantages(guide).tolist() == [0.5, -0.5, 0.0, 0.0]
    # Under one feedback: 1 against 1; 1 against 0 and back; 0 against 0.
    assert mlmt().credit.advantages(solver[2:]).tolist() == [0, 0, 1, -1, 0, 0, 0, 0]
    assert len({each.group for each in solver[2:]}) == 4


def test_a_tree_of_single_refinements_compares_those_of_one_attempt():
    outcome = talk(mlmt(feedbacks=2), {0: [0, 0], GUIDE: [0] * 4, 1: [1, 0, 0, 0]})
    last = [each for each in credits(outcome, "solver") if each.turn == 2]
    assert [each.group for each in last] == ["turn2-0.0"] * 2 + ["turn2-0.1"] * 2


def test_every_response_of_a_tree_has_a_seed_of_its_own():
    engine = TurnEngine({0: [0, 0], GUIDE: [0] * 4, 1: [0] * 8})
    play(mlmt(feedbacks=2, refinements=2), engine)
    assert len(engine.seeds) == len(set(engine.seeds)) == 2 + 4 + 8


def test_the_roles_take_turns_in_phases():
    method = mlmt(t_low=2, t_high=1)
    trained = []
    for step in range(1, 7):
        outcome = talk(method, {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}, step=step)
        trained.append({each.role for each in credits(outcome)})
    assert trained == [{"solver"}, {"solver"}, {"guide"}] * 2


def test_a_record_has_the_accuracies_and_tokens_of_the_rows_that_train():
    """The solver's phase; a critic also needs the guide's rows, which have weight 0."""
    method = mlmt(t_low=1, t_high=1, baseline="value")
    outcome = talk(method, {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}, step=1)
    solver = [row for row in outcome.rows if row.credit.role == "solver"]
    assert len(outcome.rows) == 6 and len(solver) == 4
    record = outcome.record
    assert len(record.rows) == len(record.accuracies) == sum(record.reasons.values()) == 4
    assert record.trained_tokens == sum(len(row.turn.response.token_ids_T) for row in solver)


def test_a_prompt_with_rows_for_the_critic_alone_is_one_without_a_signal():
    """No refinement has a grade in the guide's phase; the solver's first turns have weight 0."""

    class Broken(TurnEngine):
        async def grade(self, problem, responses):
            found = await super().grade(problem, responses)
            is_last = responses[0].token_ids_T[0] == 1
            return [replace(each, reason="error") if is_last else each for each in found]

    method = mlmt(baseline="value", t_low=1, t_high=1, solver_credit="score", alpha=0.0)
    outcome = play(method, Broken({0: [0, 1], GUIDE: [0, 0], 1: [1, 0]}), step=2)
    assert {(each.role, each.weight) for each in credits(outcome)} == {("solver", 0.0)}
    assert rewards(outcome, "solver") == [0.0, 1.0]
    assert outcome.record.is_dropped
    assert not outcome.record.has_signal
    # Their KL is a sum over their tokens, as that of any row.
    for _, fields, _ in store.rows_of(outcome, {"uid": "uid", "global_steps": 2}):
        assert fields["response_mask"].all()


def test_a_guide_of_weight_zero_trains_by_its_kl_alone():
    outcome = talk(
        guided(guide_weight=0.0, baseline="value"), {0: [0, 0], GUIDE: [0, 0], 1: [1, 0]}
    )
    assert [each.round for each in outcome.record.rows] == [0, 0, 2, 2, 1, 1]


def test_validation_has_one_conversation_per_sample_even_of_a_tree():
    method = mlmt(feedbacks=3, refinements=2).validation()
    outcome = talk(method, {0: [0, 1], GUIDE: [0, 0], 1: [1, 0]})
    assert [(each.turn, each.reward) for each in credits(outcome)] == [(2, 1.0), (2, 0.0)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train_guide": False, "train_solver": False}, "nothing would train"),
        ({"t_low": 5}, "t_low=5 and t_high=0 take turns"),
        ({"t_low": 1, "t_high": 1, "train_guide": False}, "take turns between two roles"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        MlmtSettings(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"train_guide": False},
        {"solver": "teacher", "train_solver": False},
        {"solver_credit": "score"},
        {"value_bonus": 0.0},
    ],
)
def test_by_default_the_guide_earns_the_critics_value_too_where_it_predicts_the_reward(settings):
    assert MlmtSettings().bonus == 0.1 and MlmtSettings().value_grad == "full"
    assert MlmtSettings(**settings).bonus == 0.0


def test_a_stage_of_a_solver_that_does_not_train_may_be_longer_than_the_run():
    with pytest.raises(ConfigError, match="stage1_steps=250 leaves no step of the run.s 100"):
        ScoreGuided(settings=GuideSettings()).check_steps(100)
    ScoreGuided(settings=GuideSettings(train_solver=False)).check_steps(100)


def test_a_refinement_names_the_feedback_that_it_follows():
    """2 attempts with 2 feedbacks each: the refinements follow feedback 0, 1, 2 and 3."""
    right = {0: [0, 1], GUIDE: [0] * 4, 1: [1, 0, 1, 0]}
    rows = credits(talk(mlmt(feedbacks=2), right), "solver")
    assert [row.facts[PARENT_TURN] for row in rows if row.turn == 2] == [0.0, 1.0, 2.0, 3.0]
