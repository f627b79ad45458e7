"""Templates and tokenizers of the families: what the recipe promises of prompts holds for each."""

import json
import random

import pytest
from random_model import FAMILIES, build_tokenizer
from transformers import PreTrainedTokenizerFast

from recipe.hint.adapter.chat_template import (
    Renderer,
    end_of_turn,
    refuses_system,
)
from recipe.hint.prompt import Texts, with_hint
from recipe.hint.schema import Response
from recipe.hint.turns import Turn

SYSTEM = {"role": "system", "content": "Put the answer in a box."}
# Ends in spaces, which some templates trim, and where a line break may join the last token.
QUESTIONS = ("How many jars?", "Simplify $x^2 \\cdot x$. ", "Ω or 12345\n\n?\n", "x")
HINT = "Count the shelves first:\n\n1. rows\n2. jars per row"


def plain_ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]


def rendered(renderer, messages, **turns):
    """Return the prompt's tokens as a list, which a failed comparison shows whole."""
    return list(renderer.render(messages, **turns))


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def tokenizer(family):
    return build_tokenizer(family)


@pytest.fixture(scope="module")
def renderer(tokenizer):
    return Renderer(tokenizer, 1024, refuses_system(tokenizer, {}))


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
            tokenizer.decode(rendered(renderer, messages))
            for messages in (bare, with_hint(bare, HINT, Texts()))
        )
        before, found, after = plain.rpartition(question.strip())
        assert found and all(turn["content"] in before for turn in system)
        # A template may trim what ends the question; what follows the turn stays.
        assert hinted.startswith(before + found)
        assert hinted.endswith(HINT + after.lstrip())
        assert Texts().hint_lead in hinted[len(before + found) : -len(HINT + after.lstrip())]


def test_stops_and_refused_system_turns_are_read_from_the_template(family, tokenizer):
    stops = [family.special[name] for name in family.stops]
    assert end_of_turn(tokenizer, {}) in stops and tokenizer.eos_token_id == stops[0]
    assert refuses_system(tokenizer, {}) == (family.model_type == "gemma2")


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


ASKED = ({"role": "user", "content": "What is 2+2?"},)
RESPONSES = (
    *("It is \\boxed{4}.", "", " ", "\n", "  lead", "trail ", "\nlead", "trail\n\n", "1234 56 7"),
    *("naïve 数学 🙂\ttabs", "e\u0301", "\u200bzero", "a\r\nb", "{{ 7 }}", "▁x", "\ufffd"),
    *("<think>\nhm\n</think>\n4", "</think>4", "<think>"),
)


def followed(renderer, ids, text=None, **facts):
    """The turn that responded with ``ids``, the tokens of the next prompt, and those made anew."""
    text = renderer.tokenizer.decode(ids, skip_special_tokens=True) if text is None else text
    turn = Turn(ASKED, rendered(renderer, ASKED), Response(ids, [], text, False, **facts))
    reply = {"role": "assistant", "content": text}
    messages = [*ASKED, reply, {"role": "user", "content": "Read your solution again."}]
    return (
        turn,
        rendered(renderer, messages, follows=turn),
        renderer.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        ),
    )


def test_a_response_in_the_tokenizers_own_tokens_is_followed_as_the_template_renders_it(
    renderer, tokenizer
):
    for text in RESPONSES:
        ids = plain_ids(tokenizer, text)
        for end in ([], [end_of_turn(tokenizer, {})]):  # at the limit of its length, or by itself
            _, ours, anew = followed(renderer, [*ids, *end])
            assert ours == anew, text


def test_whatever_is_sampled_is_followed_token_by_token_and_reads_as_the_template_has_it(
    renderer, tokenizer
):
    rng = random.Random(7)
    stop, words = end_of_turn(tokenizer, {}), sorted(set(range(1, 2_000)) | {len(tokenizer) - 1})
    num_kept = num_other = 0
    for _ in range(300):
        ids = [rng.choice(words) for _ in range(rng.randint(1, 8))]
        turn, ours, anew = followed(renderer, [*ids, stop])
        # Halves of characters, special tokens in the middle, words that are cut in another way.
        assert tokenizer.decode(ours) == tokenizer.decode(anew)
        is_kept = ours[: len(turn.prompt_ids_T) + len(ids)] == [*turn.prompt_ids_T, *ids]
        assert is_kept or ours == anew
        num_kept += is_kept
        num_other += ours != anew
    assert num_kept > 100 and num_other > 10


def test_what_begins_and_ends_turns_is_no_text_whatever_its_mark(family, tokenizer, tmp_path):
    """DeepSeek's distilled models do not mark the tokens of roles as special."""
    tokenizer.save_pretrained(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    for token in content["added_tokens"]:
        token["special"] = token["special"] and token["content"] == tokenizer.eos_token
    path.write_text(json.dumps(content))
    other = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token=tokenizer.eos_token)
    other.chat_template = tokenizer.chat_template
    renderer = Renderer(other, 1024, refuses_system(other, {}))
    talk = [*ASKED, {"role": "assistant", "content": "4"}, {"role": "user", "content": "x"}]
    around = set(rendered(renderer, talk)) & set(other.added_tokens_decoder)
    assert around - set(other.all_special_ids), "some of them are not marked"
    for index in around:
        name = other.decode([index])
        if name in ("<think>", "</think>"):
            continue
        for place in range(len(talk)):
            text = talk[place]["content"] + f" {name} b"
            named = [*talk[:place], talk[place] | {"content": text}, *talk[place + 1 :]]
            assert rendered(renderer, named).count(index) == rendered(renderer, talk).count(index)
        assert index not in renderer.response(f"a{name}b")[:-1]
        prefilled = [*ASKED, {"role": "assistant", "content": f"a{name}b"}]
        assert rendered(renderer, prefilled).count(index) == rendered(renderer, ASKED).count(index)
        turn = Turn(
            tuple(ASKED), rendered(renderer, ASKED), Response([index, index], [], "", False)
        )
        assert not renderer._sampled(turn)


def test_no_text_of_a_message_becomes_a_special_token(family, renderer, tokenizer):
    """In a problem, a hint or an attempt, alone, side by side or one inside the other."""
    rng = random.Random(11)
    specials = {
        index: str(token)
        for index, token in tokenizer.added_tokens_decoder.items()
        if token.special and len(str(token)) > 1
    }
    names = [name for name in family.special if name in specials.values()]
    pieces = [*names, *(name[:-1] for name in names), *(name[1:] for name in names), "\n", "x"]

    def counts(text):
        for content in ([text], ["Attempt.", text, "Again?"]):
            roles = ("user", "assistant", "user")
            turns = [{"role": r, "content": c} for r, c in zip(roles, content, strict=False)]
            ids = rendered(renderer, turns)
            yield [ids.count(index) for index in specials], tokenizer.decode(ids)

    harmless = [each for each, _ in counts("harmless")]
    for _ in range(100):
        text = f"a{''.join(rng.choice(pieces) for _ in range(6))}b"
        for (found, shown), expected in zip(counts(text), harmless, strict=True):
            assert found == expected, text
            assert text in shown


def test_a_response_whose_tokens_are_not_its_whole_text_is_rendered_anew(renderer, tokenizer):
    ids = plain_ids(tokenizer, "It is 4.")
    for number, special in enumerate(tokenizer.all_special_ids):
        turn, ours, anew = followed(renderer, [*ids, special, *ids])
        assert ours == anew, number
    _, ours, anew = followed(renderer, [], text="A teacher says 4.")
    assert ours == anew
    _, ours, anew = followed(renderer, ids[:2], text="It is 4.", is_given=True)
    assert ours == anew
