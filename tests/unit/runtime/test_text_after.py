"""The text of a response that goes on from one that its prompt begins."""

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from recipe.hint.adapter.chat_template import text_after

PIECES = ["<unk>", "▁return", "▁a", "▁plus", "▁b", "p", ":", "\n", "▁", "def", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in "é".encode()]


@pytest.fixture(scope="module")
def sentence_piece():
    """A tokenizer with the decoder of Llama 2 and Mistral."""
    vocabulary = {piece: number for number, piece in enumerate([*PIECES, *BYTES])}
    made = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Sequence([])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*steps, decoders.Strip(content=" ", left=1, right=0)])
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="</s>")


def ids(*pieces):
    return [[*PIECES, *BYTES].index(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("before", "pieces", "text"),
    [
        ("▁a", ["▁plus", "▁b"], " plus b"),  # alone "plus b", which would make "aplus b"
        ("▁a", ["p", "▁b"], "p b"),
        (":", ["\n", "▁return"], "\n return"),
        ("▁a", ["▁b", "</s>"], " b"),
        ("▁a", [], ""),
        ("▁a", BYTES, "é"),
    ],
)
def test_it_keeps_its_first_space(sentence_piece, before, pieces, text):
    assert text_after(sentence_piece, ids(before)[0], ids(*pieces)) == text


def test_a_character_in_two_tokens_is_as_much_as_can_be_read(sentence_piece):
    first, second = ids(*BYTES)
    text = text_after(sentence_piece, first, [second, *ids(":")])
    assert text == "\N{REPLACEMENT CHARACTER}:"
