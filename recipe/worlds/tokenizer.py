"""The tokenizer of an embedded world: bytes, plus one token for each fixed piece of text.

The vocabulary is written down, not trained: the 256 bytes, the roles of the chat template, and
the pieces of the world (:mod:`recipe.worlds.pieces`). Text outside the world is spelled byte
by byte, without loss.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ROLES = ("system", "user", "assistant")
MAX_LENGTH = 2048
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def build_tokenizer(pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a world with these pieces; the same on every call."""
    roles = [f"{role}\n" for role in ROLES]
    fixed = list(dict.fromkeys([*roles, *pieces]))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    spelled = [byte_level.pre_tokenize_str(piece)[0][0] for piece in fixed]
    names = [PAD, TURN_START, TURN_END, *sorted(byte_level.alphabet()), *spelled]
    vocabulary = {name: index for index, name in enumerate(dict.fromkeys(names))}
    # Without merges a piece is looked up whole (ignore_merges) or spelled in bytes.
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    longest_first = sorted(fixed, key=len, reverse=True)
    pattern = "|".join(re.escape(piece) for piece in longest_first)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior="isolated"), byte_level]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in (PAD, TURN_START, TURN_END)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=TURN_END,
        pad_token=PAD,
        padding_side="left",
        model_max_length=MAX_LENGTH,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_tokenizer(folder: Path, pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """Build the tokenizer and write its files into ``folder``."""
    tokenizer = build_tokenizer(pieces)
    tokenizer.save_pretrained(folder)
    return tokenizer
