"""Templates and tokenizers of the families: what the recipe promises of prompts holds for each."""

import pytest

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import Texts
from recipe.hint.runtime.chat_template import Renderer, end_of_turn, refuses_system, unfixed_date
from recipe.hint.tiny.architectures import FAMILIES
from recipe.hint.tiny.random_model import build_tokenizer
from recipe.hint.turns import with_hint

SYSTEM = {"role": "system", "content": "Put the answer in a box."}
# Ends in spaces, which some templates trim, and where a line break may join the last token.
QUESTIONS = ("How many jars?", "Simplify $x^2 \\cdot x$. ", "Ω or 12345\n\n?\n", "x")
HINT = "Count the shelves first:\n\n1. rows\n2. jars per row"


class Template:
    """As verl's builder renders a first prompt."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def build_initial_tokens(self, messages):
        return self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def tokenizer(family):
    return build_tokenizer(family)


@pytest.fixture(scope="module")
def renderer(tokenizer):
    return Renderer(tokenizer, Template(tokenizer), 1024, refuses_system(tokenizer, {}))


def test_the_vocabulary_has_the_size_and_the_special_tokens_of_the_family(family, tokenizer):
    assert len(tokenizer) == family.num_tokens <= family.vocab_size
    for name, index in family.special.items():
        assert tokenizer.convert_tokens_to_ids(name) == index
        assert tokenizer(f"a{name}b", add_special_tokens=False)["input_ids"].count(index) == 1


def test_text_survives_the_tokenizer(tokenizer):
    for text in (*QUESTIONS, HINT, "naïve 数学 🙂\ttabs"):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text


@pytest.mark.parametrize("system", [[], [SYSTEM]], ids=["no system", "system"])
def test_a_hint_is_inserted_behind_the_question_and_nothing_else_changes(
    renderer, tokenizer, system
):
    for question in QUESTIONS:
        bare = [*system, {"role": "user", "content": question}]
        plain, hinted = (
            tokenizer.decode(renderer.render(messages))
            for messages in (bare, with_hint(bare, HINT, Texts()))
        )
        before, found, after = plain.rpartition(question.strip())
        assert found and all(turn["content"] in before for turn in system)
        # A template may trim what ends the question; what follows the turn stays.
        assert hinted.startswith(before + found)
        assert hinted.endswith(HINT + after.lstrip())
        assert Texts().hint_lead in hinted[len(before + found) : -len(HINT + after.lstrip())]


def test_the_request_for_hints_renders_with_all_its_parts(renderer, tokenizer):
    request = hint_request(Texts(), "How many jars?", "3 rows of 2 are 6.")
    text = tokenizer.decode(renderer.render(request))
    for turn in request:
        assert turn["content"].strip() in text


def test_what_ends_a_turn_is_a_stop_of_the_family(family, tokenizer):
    stops = [family.special[name] for name in family.stops]
    assert end_of_turn(tokenizer, {}) in stops
    assert tokenizer.eos_token_id == stops[0]


def test_only_a_template_that_refuses_the_system_turn_is_said_to(family, tokenizer):
    assert refuses_system(tokenizer, {}) == (family.model_type == "gemma2")


def test_a_date_in_the_template_is_found_until_it_is_given(family, tokenizer):
    assert unfixed_date(tokenizer, {}) == (family.model_type == "llama")
    assert not unfixed_date(tokenizer, {"date_string": "26 Jul 2024"})


def test_thoughts_of_earlier_responses_are_left_out_and_thinking_can_be_off():
    tokenizer = build_tokenizer(FAMILIES["qwen3"])
    turns = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\n2"},
        {"role": "user", "content": "Sure?"},
    ]

    def text(**options):
        return tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, tokenize=False, **options
        )

    assert "hm" not in text() and "assistant\n2<|im_end|>" in text()
    assert text(enable_thinking=False) == text() + "<think>\n\n</think>\n\n"
