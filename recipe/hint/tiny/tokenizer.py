"""The embedded world's tokenizer: bytes, plus one token for each fixed piece of text.

The vocabulary is written down, not trained: the 256 bytes, and the pieces that problems,
solutions, hints and the project's own prompts are made of. The prompts' pieces are cut from
``recipe.hint.prompt``, so that a change of wording there changes the tokenizer here (and the
base must be built again). Text outside the world is spelled byte by byte, without loss.
"""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from recipe.hint.prompt import (
    ANSWER_SYSTEM_PROMPT,
    HINT_LEAD,
    HINT_SYSTEM_PROMPT,
    HINT_USER_PROMPT_TEMPLATE,
)
from recipe.hint.tiny import task

PAD, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
ROLES = ("system", "user", "assistant")
MAX_LENGTH = 2048
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def _prompt_pieces() -> list[str]:
    """Return the project's prompts, cut at blank lines and at the fields of the template."""
    paragraphs = re.findall(r".+?(?:\n\n|\Z)", HINT_SYSTEM_PROMPT, re.DOTALL)
    frame = re.split(r"\{problem\}|\{solution\}", HINT_USER_PROMPT_TEMPLATE)
    return [ANSWER_SYSTEM_PROMPT, f"\n{HINT_LEAD}\n", *paragraphs, *frame]


def _response_pieces() -> list[str]:
    """Return what stands around the hints of a response, cut from a real one."""
    marks = [f"<{level}>" for level in range(task.NUM_LEVELS)]
    return re.split("|".join(marks), task.hint_response(marks))


def _problem_pieces() -> list[str]:
    operations = [op.name for family in task.FAMILIES.values() for op in family.operations]
    labels = [form for label in task.LABELS for form in (f"\n{label}: ", f"{label}=")]
    inputs = [f" {digit}, " for digit in range(10)]
    fixed = [task.PROBLEM_OPENING, f"\n{task.PROBLEM_CLOSING}", f"\n{task.BOX_OPENING}", ", "]
    return [*operations, *labels, f"{task.LABELS[0]}: ", *inputs, *fixed]


def pieces() -> list[str]:
    """Return every fixed text that is one token, in vocabulary order, without repeats."""
    roles = [f"{role}\n" for role in ROLES]
    found = [*roles, *_prompt_pieces(), *_response_pieces(), *_problem_pieces()]
    return list(dict.fromkeys(piece for piece in found if piece))


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer; the same on every call."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    spelled = [byte_level.pre_tokenize_str(piece)[0][0] for piece in pieces()]
    names = [PAD, TURN_START, TURN_END, *sorted(byte_level.alphabet()), *spelled]
    vocabulary = {name: index for index, name in enumerate(dict.fromkeys(names))}
    # Without merges a piece is looked up whole (ignore_merges) or spelled in bytes.
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    longest_first = sorted(pieces(), key=len, reverse=True)
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


def save_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Build the tokenizer and write its files into ``folder``."""
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(folder)
    return tokenizer
