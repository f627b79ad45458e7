"""A guide behind an endpoint: a real HTTP server gives the feedback, the solver's turns train."""

import asyncio

import pytest
from asking import always, teacher
from chat_server import ChatServer, completion
from fakes import problem
from talks import GUIDE, TurnEngine

from recipe.hint.adapter import store
from recipe.hint.conversations import mean_facts
from recipe.hint.methods.dialogue import GuideSettings
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.prompt import Texts
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import HintSettings, unread_settings
from recipe.run.errors import ConfigError, TeacherSilentError
from recipe.verify.schema import Verdict

LOOK = "Look at line 2."
METHODS = {"score-guided": (ScoreGuided, GuideSettings), "mlmt": (Mlmt, MlmtSettings)}
ALL = pytest.mark.parametrize("name", METHODS)
FROZEN = {"guide": "teacher", "train_guide": False, "guide_max_tokens": 32}


class SolverEngine(TurnEngine):
    """The solver alone: a guide's text has no tokens here, and whether it leaks is in its words."""

    async def leaks(self, problem, responses):
        return ["is 4" in each.text for each in responses]


class GuideEngine(SolverEngine):
    """Grades a solver whose texts have no tokens by what they say."""

    async def grade(self, problem, responses):
        right = [float("{4}" in each.text) for each in responses]
        return [Verdict(each, "correct" if each else "wrong") for each in right]


def play(
    name,
    tmp_path,
    script,
    right,
    *,
    retries=0,
    engine_cls=SolverEngine,
    settings=FROZEN,
    is_validation=False,
    **more,
):
    """The outcome, the server's requests, and the engine."""
    cls, settings_cls = METHODS[name]
    method = cls(settings=settings_cls(stage1_steps=0, **settings, **more))
    method = method.validation() if is_validation else method

    async def run():
        async with ChatServer(script).running() as server:
            one = teacher(server, tmp_path, num_retries=retries)
            engine = engine_cls(right, group_size=len(right.get(0, "ab")))
            parts = RolloutParts(method, None, engine, HintSettings(), Texts(), one)
            outcome = await PromptRollout(problem(), ProblemState(step=1), parts).run("uid", 1)
            return outcome, server.requests, engine

    return asyncio.run(run())


@ALL
def test_the_teacher_gives_the_feedback_and_the_solvers_turns_train(name, tmp_path):
    right = {0: [0, 1], 1: [1, 0]}
    outcome, requests, _ = play(name, tmp_path, always(completion(LOOK)), right)
    assert [each.role for each in outcome.record.rounds] == ["solver", "guide", "solver"]
    # Two conversations, two turns each; the guide's have no tokens to train on.
    assert [row.credit.role for row in outcome.rows] == ["solver"] * 4
    assert [row.credit.turn for row in outcome.rows] == [0, 0, 2, 2]
    assert all(row.turn.response.token_ids_T for row in outcome.rows)
    assert all(LOOK in row.turn.messages[-1]["content"] for row in outcome.rows[2:])
    assert [body["max_tokens"] for body in requests] == [32, 32]
    # The attempts are the same text here: two requests all the same, of two seeds.
    assert len({body["seed"] for body in requests}) == 2
    assert [each["role"] for each in requests[0]["messages"]] == ["system", "user"]


@ALL
@pytest.mark.parametrize("is_validation", [False, True])
def test_of_an_endpoint_that_gives_nothing_the_prompt_fails_by_its_name(
    name, is_validation, tmp_path
):
    """Where most prompts do, the run ends; trained on, they would be another method's."""
    with pytest.raises(TeacherSilentError, match=r"no answer to .* of the guide"):
        play(*(name, tmp_path, always("500"), {0: [0, 1]}), retries=1, is_validation=is_validation)


@ALL
def test_a_conversation_without_feedback_does_not_train_and_the_others_do(name, tmp_path):
    told = iter(["400", completion(LOOK)])
    outcome, _, _ = play(name, tmp_path, lambda body, number: next(told), {0: [0, 0], 1: [1]})
    assert [row.credit.turn for row in outcome.rows] == [0, 2]
    assert outcome.rows[0].credit.session == outcome.rows[1].credit.session
    assert outcome.record.rounds[1].hint_status == "generation_failed"
    # The one that ended revised its answer; what the other would have done is unknown.
    lost, ended = outcome.record.conversations
    assert (lost.is_known, ended.is_known) == (False, True)
    assert [facts["unchanged"] for facts in mean_facts((lost, ended))] == [0.0]
    tracker = RewardTracker()
    tracker.update([outcome.record])
    assert tracker.state(outcome.record.problem_id).accuracy is None


@ALL
@pytest.mark.parametrize("blank", [None, ""])
def test_an_answer_that_ends_before_its_text_is_no_feedback_and_is_asked_for_again(
    name, blank, tmp_path
):
    """A model that thinks apart came to its limit of 32 tokens before it wrote."""
    usage = {"prompt_tokens": 10, "completion_tokens": 32, "total_tokens": 42}
    thought = {**completion(blank, finish="length"), "usage": usage}
    for calls in (2, 1):  # of the two questions, the second time the first one alone
        told = iter([thought, completion(LOOK)])
        outcome, requests, _ = play(
            name, tmp_path, lambda body, number, told=told: next(told), {0: [0, 0], 1: [1]}
        )
        assert outcome.record.rounds[1].hint_status == "generation_failed"
        assert [row.credit.turn for row in outcome.rows] == [0, 2]
        assert len(requests) == calls


@ALL
@pytest.mark.parametrize("is_validation", [False, True])
@pytest.mark.parametrize("end", ["stop", "length"])
def test_a_policy_behind_the_endpoint_that_writes_nothing_has_answered_wrongly(
    name, end, is_validation, tmp_path
):
    """Its second answers end at once, or are 64 breaks of line; the guide earns 0 for them."""
    blank = completion("" if end == "stop" else "\n" * 64, finish=end)

    def script(body, number):
        is_first = all(turn["role"] != "assistant" for turn in body["messages"])
        return completion("\\boxed{5}") if is_first else blank

    for _ in range(2):  # asked, and from the cache
        outcome, _, _ = play(
            *(name, tmp_path, script, {GUIDE: [0, 0]}),
            engine_cls=GuideEngine,
            settings={"solver": "teacher", "train_solver": False},
            is_validation=is_validation,
        )
        assert [each.acc_last for each in outcome.record.conversations] == [0.0, 0.0]
        if not is_validation:
            assert [row.credit.reward for row in outcome.rows] == [0.0, 0.0]


@ALL
def test_a_validation_counts_no_conversation_that_a_teacher_left(name, tmp_path):
    told = iter(["400", completion(LOOK)])
    with pytest.raises(TeacherSilentError):
        play(
            *(name, tmp_path, lambda body, number: next(told), {0: [0, 0], 1: [1]}),
            is_validation=True,
        )


def test_feedback_of_a_teacher_that_leaks_is_counted(tmp_path):
    script = always(completion("The answer is 4."))
    right = {0: [0, 0], 1: [0, 0]}
    outcome, _, _ = play("score-guided", tmp_path, script, right)
    assert outcome.record.rounds[1].leaks == 2


def test_the_tree_asks_for_each_branch_with_a_seed_of_its_own(tmp_path):
    right = {0: [0, 1], 1: [1, 0] * 4}
    script = always(completion(LOOK))
    outcome, requests, _ = play("mlmt", tmp_path, script, right, feedbacks=2, refinements=2)
    assert len(requests) == len({body["seed"] for body in requests}) == 2 * 2
    assert len(outcome.rows) == 2 + 2 * 2 * 2


@ALL
def test_a_guide_trains_beside_a_solver_behind_the_endpoint(name, tmp_path):
    """One first answer is right and one wrong; each refinement is what its first answer is not."""
    first = iter(["\\boxed{5}", "\\boxed{4}"])

    def script(body, number):
        earlier = [turn["content"] for turn in body["messages"] if turn["role"] == "assistant"]
        if not earlier:
            return completion(next(first))
        return completion("\\boxed{4}" if "5" in earlier[0] else "\\boxed{5}")

    frozen = {"solver": "teacher", "train_solver": False}
    outcome, requests, _ = play(
        name,
        tmp_path,
        script,
        {GUIDE: [0, 0]},
        engine_cls=GuideEngine,
        settings=frozen,
    )
    assert [each.role for each in outcome.record.rounds] == ["solver", "guide", "solver"]
    assert [(row.credit.role, row.credit.turn) for row in outcome.rows] == [("guide", 1)] * 2
    # The guide earns whether its refinement is right.
    assert sorted(row.credit.reward for row in outcome.rows) == [0.0, 1.0]
    talks = outcome.record.conversations
    assert [each.acc_first + each.acc_last for each in talks] == [1.0, 1.0]
    assert [body["max_tokens"] for body in requests] == [64] * 4  # the policy's own limit


def test_a_validation_of_the_guide_keeps_the_grades_of_texts_without_tokens(tmp_path):
    right = iter(["\\boxed{4}", "\\boxed{4}", "\\boxed{5}", "\\boxed{4}"])

    outcome, _, _ = play(
        "score-guided",
        tmp_path,
        lambda body, number: completion(next(right)),
        {GUIDE: [0, 0]},
        engine_cls=GuideEngine,
        settings={"solver": "teacher", "train_solver": False},
        is_validation=True,
    )
    rows = list(store.rows_of(outcome, {"uid": "uid", "global_steps": 1}))
    info = [fields["extra_fields"]["reward_extra_info"] for _, fields, _ in rows]
    assert sorted(each["acc_t2"] for each in info) == [0.0, 1.0]
    assert [each["acc"] for each in info] == [each["acc_t2"] for each in info]
    for _, fields, tag in rows:  # verl takes no row without a response
        assert len(fields["responses"]) == len(fields["response_mask"]) == tag["response_len"] == 1
        assert len(fields["input_ids"]) == tag["seq_len"] == tag["prompt_len"] + 1


def test_of_a_solver_that_gives_nothing_the_prompt_fails_with_the_reason(tmp_path):
    frozen = {"solver": "teacher", "train_solver": False}
    with pytest.raises(TeacherSilentError, match=r"no answer to .* of the solver"):
        play("score-guided", tmp_path, always("400"), {}, settings=frozen)


@pytest.mark.parametrize("role", ["guide", "solver"])
def test_a_teacher_that_would_train_is_refused(role):
    with pytest.raises(ConfigError, match=f"{role}=teacher needs .*train_{role}=false"):
        GuideSettings(**{role: "teacher"})


def test_the_teachers_settings_are_read_where_it_guides_and_nowhere_else():
    given = ["hint.teacher.model"]
    for guide in ("teacher", "policy"):
        settings = HintSettings(methods={"score_guided": FROZEN | {"guide": guide}})
        is_read = guide == "teacher"
        assert unread_settings("score-guided", given, settings) == ([] if is_read else given)
