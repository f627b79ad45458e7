"""What a base model of an embedded world is made with: tokenizer, pre-training, sampling."""

from __future__ import annotations

import itertools
import logging
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from recipe.hint.prompt import Message, Texts

logger = logging.getLogger(__name__)
TEXTS = Texts()
PAD, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
MAX_LENGTH = 2048
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# The same up to the last end token, with the responses marked: nobody generates a line break
# behind them.
_LEARNT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}"
    "{{ '' if loop.last else '\\n' }}{% endfor %}"
)
IGNORED = -100
LOG_EVERY = 100

TokenRow = tuple[list[int], list[int]]  # ids, and 1 for those of a response (its end token too)


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation whose assistant turns are learnt; ``kind`` says what they teach."""

    kind: str
    messages: list[Message]


Draw = Callable[[random.Random], Example]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Every choice of the pre-training run; the defaults made the base of the one-turn world."""

    seed: int = 0
    steps: int = 1800
    batch_size: int = 64
    learning_rate: float = 3e-3
    warmup_steps: int = 100
    final_share: float = 0.02
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0


def followed(messages: list[Message], *texts: str) -> list[Message]:
    """Return the conversation with further turns, of assistant and user by turns."""
    roles = itertools.cycle(("assistant", "user"))
    more = [{"role": role, "content": text} for text, role in zip(texts, roles, strict=False)]
    return [*messages, *more]


def build_tokenizer(pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a world with these pieces; the same on every call.

    The vocabulary is written down: bytes, the roles of the chat template, and the pieces.
    """
    fixed = list(dict.fromkeys(["system\n", "user\n", "assistant\n", *pieces]))
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


def _new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Return an untrained model of 0.9 million parameters.

    The architecture is Llama and not Qwen2: for Qwen2 folders Transformers 5 replaces the
    tokenizer's own splitting rules by those of Qwen2.
    """
    ends: Any = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=MAX_LENGTH,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        bos_token_id=None,
        dtype="float32",
        **ends,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for name, weight in model.named_parameters():
            # The library's 0.02 is meant for wide models; at width 128 it starts too quiet.
            if weight.dim() > 1 and "embed" not in name:
                torch.nn.init.normal_(weight, std=0.6 * weight.shape[1] ** -0.5)
    # Plain sampling at T=1.
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, **ends
    )
    return model


def batches(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, draw: Draw
) -> Iterator[list[TokenRow]]:
    """Yield batches without end, the shortest row first."""
    rng = random.Random(f"corpus/{recipe.seed}")
    while True:
        found: Any = tokenizer.apply_chat_template(
            [draw(rng).messages for _ in range(recipe.batch_size)],
            chat_template=_LEARNT_TEMPLATE,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        rows = zip(found["input_ids"], found["assistant_masks"], strict=True)
        yield sorted(rows, key=lambda row: len(row[0]))


def pretrain(tokenizer: PreTrainedTokenizerFast, recipe: Recipe, draw: Draw) -> LlamaForCausalLM:
    """Train from random weights; the loss is logged."""
    model = _new_model(tokenizer, recipe.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    for step, rows in zip(range(recipe.steps), batches(tokenizer, recipe, draw), strict=False):
        # Warm up linearly, then follow a cosine down.
        warm = min(1.0, (step + 1) / recipe.warmup_steps)
        cosine = 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
        share = recipe.final_share + (1 - recipe.final_share) * cosine
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * warm * share
        num_tokens = sum(sum(is_response_T) for _, is_response_T in rows)
        half, loss_of_step = len(rows) // 2, 0.0
        for part in (rows[:half], rows[half:]):  # rows of like length, so little padding
            # Padding is on the right, where causal attention never looks back to: no mask needed.
            ids, is_response = (
                pad_sequence([*map(torch.tensor, each)], batch_first=True)
                for each in zip(*part, strict=True)
            )
            labels = ids.where(is_response > 0, IGNORED)
            loss = model(input_ids=ids, labels=labels, num_items_in_batch=num_tokens).loss
            loss.backward()
            loss_of_step += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % LOG_EVERY == 0:
            logger.info("step %5d  loss %.4f nats/token", step + 1, loss_of_step)
    return model.eval()
