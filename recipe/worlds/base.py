"""What a base model of an embedded world is made with: tokenizer, pre-training, sampling.

The vocabulary is written down, not trained: the 256 bytes, the roles of the chat template, and a
world's fixed pieces of text. Other text is spelled byte by byte, without loss.
"""

from __future__ import annotations

import itertools
import logging
import math
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional
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
IGNORED = -100
LOG_EVERY = 100
GROUP_SIZE = 8
MAX_RESPONSE_TOKENS = 64
CHUNK = 400

TokenRow = tuple[list[int], list[bool]]  # ids, and whether each is of a response (end token too)


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


def mean(values: Sequence[float]) -> float:
    """Return the mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def build_tokenizer(pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """Return the tokenizer of a world with these pieces; the same on every call."""
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
        eos_token_id=tokenizer.convert_tokens_to_ids(TURN_END),
        pad_token_id=tokenizer.convert_tokens_to_ids(PAD),
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for name, weight in model.named_parameters():
            # The library's 0.02 is meant for wide models; at width 128 it starts too quiet.
            if weight.dim() > 1 and "embed" not in name:
                torch.nn.init.normal_(weight, std=0.6 * weight.shape[1] ** -0.5)
    return model


def rendered(tokenizer: PreTrainedTokenizerFast, example: Example) -> list[tuple[str, bool]]:
    """Cut the example's text, as the chat template renders it, into prompts and responses.

    Returns:
        (text, whether it is a response) in order; a response has its end token.
    """
    parts: list[tuple[str, bool]] = []
    text = ""
    for turn, message in enumerate(example.messages):
        if message["role"] == "assistant":
            prompt: Any = tokenizer.apply_chat_template(
                example.messages[:turn], tokenize=False, add_generation_prompt=True
            )
            assert prompt.startswith(text), "the template changes what it rendered before"
            response = message["content"] + TURN_END
            parts += [(prompt[len(text) :], False), (response, True)]
            text = prompt + response
    return parts


def batches(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, draw: Draw
) -> Iterator[list[TokenRow]]:
    """Yield batches without end, the shortest row first."""
    rng = random.Random(f"corpus/{recipe.seed}")
    while True:
        rows = []
        for parts in [rendered(tokenizer, draw(rng)) for _ in range(recipe.batch_size)]:
            ids: list[int] = []
            is_response: list[bool] = []
            for part_ids, (_, is_learnt) in zip(
                tokenizer([text for text, _ in parts])["input_ids"], parts, strict=True
            ):
                ids += part_ids
                is_response += [is_learnt] * len(part_ids)
            rows.append((ids, is_response))
        yield sorted(rows, key=lambda row: len(row[0]))


def _response_loss(model: LlamaForCausalLM, rows: list[TokenRow]) -> torch.Tensor:
    """Return the summed negative log-likelihood of the responses, in nats."""
    length = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    labels = torch.full((len(rows), length), IGNORED)
    for row, (ids_T, is_response_T) in enumerate(rows):
        filled = torch.tensor(ids_T)
        ids[row, : len(ids_T)] = filled
        labels[row, : len(ids_T)] = filled.where(torch.tensor(is_response_T), IGNORED)
    # Padding is on the right, where causal attention never looks back to: no mask needed.
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    targets = labels[:, 1:]
    is_target = targets != IGNORED
    logits = model.lm_head(hidden[is_target])
    return functional.cross_entropy(logits, targets[is_target], reduction="sum")


def pretrain(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, draw: Draw
) -> tuple[LlamaForCausalLM, list[str]]:
    """Train from random weights.

    Returns:
        The model, and the loss curve as lines of text.
    """
    model = _new_model(tokenizer, recipe.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    curve, losses, began = [], [], time.monotonic()
    for step, rows in zip(range(recipe.steps), batches(tokenizer, recipe, draw), strict=False):
        # Warm up linearly, then follow a cosine down.
        warm = min(1.0, (step + 1) / recipe.warmup_steps)
        cosine = 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
        share = recipe.final_share + (1 - recipe.final_share) * cosine
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * warm * share
        num_tokens = sum(sum(is_response_T) for _, is_response_T in rows)
        half, total = len(rows) // 2, 0.0
        for part in (rows[:half], rows[half:]):  # rows of like length, so little padding
            loss = _response_loss(model, part) / num_tokens
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
        if (step + 1) % LOG_EVERY == 0 or step + 1 == recipe.steps:
            seconds = time.monotonic() - began
            curve.append(
                f"step {step + 1:5d}  loss {mean(losses):.4f} nats/token  {seconds:5.0f} s"
            )
            logger.info(curve[-1])
            losses.clear()
    # Plain sampling at T=1.
    model.generation_config = GenerationConfig(
        eos_token_id=model.config.eos_token_id,
        pad_token_id=model.config.pad_token_id,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
    )
    return model.eval(), curve


@dataclass(frozen=True, slots=True)
class Sampler:
    """A model with its tokenizer; sampling is at the full distribution unless greedy."""

    model: Any  # a transformers model that generates
    tokenizer: PreTrainedTokenizerFast

    @torch.inference_mode()
    def responses(
        self, conversations: Sequence[list[Message]], *, seed: int = 0, greedy: bool = False
    ) -> list[str]:
        """Return one response per conversation, of at most ``MAX_RESPONSE_TOKENS`` tokens.

        Turns of one conversation need seeds of their own, or they draw the same numbers again.
        """
        choice: dict[str, Any] = {"do_sample": False} if greedy else {"do_sample": True, "top_k": 0}
        texts: list[str] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for first in range(0, len(conversations), CHUNK):
                inputs: Any = self.tokenizer.apply_chat_template(
                    list(conversations[first : first + CHUNK]),
                    add_generation_prompt=True,
                    padding=True,
                    return_tensors="pt",
                    return_dict=True,
                )
                ids = self.model.generate(**inputs, **choice, max_new_tokens=MAX_RESPONSE_TOKENS)
                response_ids = ids[:, inputs["input_ids"].shape[1] :]
                texts += self.tokenizer.batch_decode(response_ids, skip_special_tokens=True)
        return texts
