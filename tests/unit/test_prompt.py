"""The texts, and how a hint enters a conversation."""

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT, Texts, with_hint
from recipe.hint.schema import seed_at

CHAT = [{"role": "system", "content": "S"}, {"role": "user", "content": "Q {x} $\\frac{1}{2}$"}]


def test_a_hint_is_appended_to_the_last_user_turn_and_changes_nothing_else():
    hinted = with_hint(CHAT, "H", Texts())
    assert hinted[0] == CHAT[0]
    assert hinted[1]["content"] == CHAT[1]["content"] + "\nHere is a hint to help you:\nH"
    assert CHAT[1]["content"] == "Q {x} $\\frac{1}{2}$"


def test_the_release_form_replaces_the_system_prompt_and_names_the_question():
    hinted = with_hint(CHAT, "H", Texts(), style="release")
    assert hinted[0]["content"] == ANSWER_SYSTEM_PROMPT
    assert hinted[1]["content"] == (
        "Question:\nQ {x} $\\frac{1}{2}$\n\nHere is a hint to help you:\nH"
    )


def test_the_request_shows_question_and_solution_literally():
    request = hint_request(Texts(), "say {solution}", "\\boxed{2} {problem}")
    assert request[1]["content"] == "Question:\nsay {solution}\nSolution:\n\\boxed{2} {problem}"


def test_seeds_depend_on_every_coordinate_and_on_nothing_else():
    assert seed_at(1, 2, "p", 3) == seed_at(1, 2, "p", 3)
    assert len({seed_at(1, 2, "p", level) for level in range(100)}) == 100
    assert seed_at(1, "1x") != seed_at(11, "x")
    assert 0 <= seed_at("a") < 2**31
