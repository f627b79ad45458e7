"""Pre-training of the base model: a small Llama, from random weights, on the corpus."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from recipe.run.errors import DataError
from recipe.worlds.corpus import Example
from recipe.worlds.tokenizer import MAX_LENGTH

logger = logging.getLogger(__name__)
IGNORED = -100
LOG_EVERY = 100
Draw = Callable[[random.Random], Example]
TokenRow = tuple[list[int], list[bool]]  # ids, and whether each is of a response (end token too)


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


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Return an untrained model of 0.9 million parameters.

    The architecture is Llama and not Qwen2: for Qwen2 folders Transformers 5 replaces the
    tokenizer's own splitting rules by those of Qwen2.
    """
    end, padding = _token_ids(tokenizer)
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
        eos_token_id=end,
        pad_token_id=padding,
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


def _token_ids(tokenizer: PreTrainedTokenizerFast) -> tuple[int, int]:
    end, padding = tokenizer.eos_token_id, tokenizer.pad_token_id
    assert isinstance(end, int) and isinstance(padding, int)
    return end, padding


def rendered(tokenizer: PreTrainedTokenizerFast, example: Example) -> list[tuple[str, bool]]:
    """Cut the example's text, as the chat template renders it, into prompts and responses.

    Returns:
        (text, whether it is a response) in order; a response has its end token.
    """
    parts: list[tuple[str, bool]] = []
    text = ""
    for turn, message in enumerate(example.messages):
        if message["role"] != "assistant":
            continue
        prompt: Any = tokenizer.apply_chat_template(
            example.messages[:turn], tokenize=False, add_generation_prompt=True
        )
        assert prompt.startswith(text), "the template changes what it rendered before"
        response = message["content"] + str(tokenizer.eos_token)
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


def response_loss(model: LlamaForCausalLM, rows: list[TokenRow]) -> torch.Tensor:
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


def learning_rate(recipe: Recipe, step: int) -> float:
    """Warm up linearly, then follow a cosine down to ``final_share`` of the peak."""
    warm = min(1.0, (step + 1) / recipe.warmup_steps)
    cosine = 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
    return recipe.learning_rate * warm * (recipe.final_share + (1 - recipe.final_share) * cosine)


def train_step(
    model: LlamaForCausalLM,
    optimizer: torch.optim.Optimizer,
    rows: list[TokenRow],
    max_grad_norm: float,
) -> float:
    """Make one update; return the loss in nats per response token."""
    num_tokens = sum(sum(is_response_T) for _, is_response_T in rows)
    half, total = len(rows) // 2, 0.0
    for part in (rows[:half], rows[half:]):  # rows of like length, so little padding
        loss = response_loss(model, part) / num_tokens
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    optimizer.step()
    optimizer.zero_grad()
    return total


def pretrain(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, draw: Draw
) -> tuple[LlamaForCausalLM, list[str]]:
    """Train from random weights.

    Returns:
        The model in evaluation mode, and the loss curve as lines of text.
    """
    model = new_model(tokenizer, recipe.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )
    curve, losses, began = [], [], time.monotonic()
    for step, rows in zip(range(recipe.steps), batches(tokenizer, recipe, draw), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        losses.append(train_step(model, optimizer, rows, recipe.max_grad_norm))
        if (step + 1) % LOG_EVERY == 0 or step + 1 == recipe.steps:
            mean, seconds = sum(losses) / len(losses), time.monotonic() - began
            curve.append(f"step {step + 1:5d}  loss {mean:.4f} nats/token  {seconds:5.0f} s")
            logger.info(curve[-1])
            losses.clear()
    return model.eval(), curve


def save_model(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write weights, configuration and generation settings (plain sampling at T=1).

    Raises:
        DataError: If the disk refuses.
    """
    end, padding = _token_ids(tokenizer)
    model.generation_config = GenerationConfig(
        eos_token_id=end,
        pad_token_id=padding,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
    )
    try:
        model.save_pretrained(folder)
    except SafetensorError as error:  # a full disk is no OSError to this library
        raise DataError(
            f"{folder.parent}: the weights cannot be written there: {error}; make room on its disk"
        ) from error
