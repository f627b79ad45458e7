"""Random weights in the shape of a real model: for trying a stack, not for learning anything.

Sizes, special tokens, stops and templates are the family's. The vocabulary is the true one where an
installed package holds it; elsewhere it has the true size: merges learned from this package's own
sources, and unused tokens for the rest. Not covered: SentencePiece's way to cut a text.
"""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.integrations.mistral import MistralConverter

from recipe.worlds.architectures import FAMILIES, Family

_LEARNED = 4096
# Standard deviation of the logits: with it the likeliest of 150,000 tokens has about a tenth of
# the probability. Near uniform, every probability would be below any tolerance.
_LOGIT_STD = 4.0
# Mean chance that a token ends the response.
_STOP_SHARE = 0.05
# Of rows that no token has, as training leaves them: verl keeps vLLM from sampling them, and the
# trainer's softmax counts them.
_UNUSED_LOGIT = -30.0
_ROUNDS = 6
# How much larger than its input's scale a layer writes.
_LAYER_GAIN = 8.0
_SEED = 0


@dataclass(frozen=True)
class Size:
    """Sizes of a decoder, under transformers' names."""

    hidden_size: int = 64
    intermediate_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    num_key_value_heads: int = 1
    head_dim: int = 32


SMALL = Size()
# Qwen2.5-0.5B.
HALF_BILLION = Size(896, 4864, 24, 14, 2, 64)


def build_model(folder: Path, family_name: str, size: Size = SMALL) -> None:
    """Write a model of random weights with its tokenizer into ``folder``.

    Small sizes are written in fp32 and end their responses after some 20 tokens; larger ones are
    in bf16 and end none, so that a measurement of speed knows its tokens.
    """
    family = FAMILIES[family_name]
    tokenizer = build_tokenizer(family)
    torch.manual_seed(_SEED)
    stop_ids = [family.special[name] for name in family.stops]
    config = AutoConfig.for_model(
        family.model_type,
        vocab_size=family.vocab_size,
        tie_word_embeddings=family.is_tied,
        max_position_embeddings=32768,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=stop_ids[0],
        pad_token_id=tokenizer.pad_token_id,
        **asdict(size),
        **family.config,
    )
    dtype = torch.float32 if size == SMALL else torch.bfloat16
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    if size == SMALL:
        _sharpen(model, family, stop_ids, _fixed_text(tokenizer))
    model.generation_config = GenerationConfig(
        do_sample=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=stop_ids,
        pad_token_id=tokenizer.pad_token_id,
        **family.defaults,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _fixed_text(tokenizer: PreTrainedTokenizerFast) -> torch.Tensor:
    """Return 4 x 128 tokens of a text that never changes."""
    text = " ".join(f"{a} rows of {b} make {a * b}." for a in range(2, 14) for b in range(2, 14))
    return torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"][:512]).view(4, 128)


def _sharpen(
    model: PreTrainedModel, family: Family, stop_ids: list[int], ids: torch.Tensor
) -> None:
    """Give the tokens unequal chances, and each stop its share after the tokens of a text.

    What the layers write outweighs the embedding: tied to the output, it would make every token
    repeat itself. The first hidden unit is the same for every token but the stops, no layer writes
    to it, and the output layer reads it as a bias: of the stops, and of rows without a token.
    """
    layers: Any = (model.get_input_embeddings(), model.get_output_embeddings())
    embedding, output = (layer.weight for layer in layers)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("_proj.weight"):
                weight.normal_(std=weight.shape[1] ** -0.5)
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight *= _LAYER_GAIN
                weight[0] = 0.0
            if "post_" in name and "gemma" in family.model_type:
                weight.fill_(_LAYER_GAIN)
        std = _LOGIT_STD / embedding.shape[1] ** 0.5
        embedding.normal_(std=std)
        embedding[:, 0] = std
        if not family.is_tied:
            output.normal_(std=std)
            output[:, 0] = 0.0
        output[stop_ids, 1:] *= 0.1
        # Repeated: a capped logit follows the bias less than one to one, and their sum changes.
        for _ in range(_ROUNDS):
            found = model(ids, output_hidden_states=True)
            bias_unit = found.hidden_states[-1][..., 0].mean()
            output[family.num_tokens :, 0] = _UNUSED_LOGIT / bias_unit
            shares = found.logits.softmax(-1)[..., stop_ids].mean((0, 1))
            output[stop_ids, 0] += torch.log(_STOP_SHARE / len(stop_ids) / shares) / bias_unit


def build_tokenizer(family: Family) -> PreTrainedTokenizerFast:
    """Return a byte-level tokenizer with the family's sizes, special tokens and template."""
    split = pre_tokenizers.Split(Regex(family.pattern), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cut = pre_tokenizers.Sequence([split, byte_level])
    learned, merges = _true_vocabulary(family) or _own_vocabulary(cut)
    used = set(family.special.values())
    free = (index for index in range(family.first_learned, family.num_tokens) if index not in used)
    vocabulary = dict(family.special)
    vocabulary |= {token: next(free) for token in sorted(learned, key=learned.__getitem__)}
    taken = set(vocabulary.values())
    missing = (index for index in range(family.num_tokens) if index not in taken)
    vocabulary |= {f"<unused_{index}>": index for index in missing}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    backend.pre_tokenizer, backend.decoder = cut, decoders.ByteLevel()
    names = sorted(family.special, key=family.special.__getitem__)
    thoughts = [name for name in names if "think" in name]  # ordinary text, but one token each
    backend.add_tokens([AddedToken(name, normalized=False) for name in thoughts])
    backend.add_special_tokens(
        [AddedToken(name, normalized=False) for name in names if name not in thoughts]
    )
    bos = next((name for name in ("<|begin_of_text|>", "<s>", "<bos>") if name in names), None)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=bos,
        eos_token=family.stops[0],
        pad_token=family.pad,
        chat_template=family.template,
        clean_up_tokenization_spaces=False,
    )


def _own_vocabulary(
    cut: pre_tokenizers.Sequence,
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Learn merges from the sources of this package."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = cut
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    trainer = trainers.BpeTrainer(
        vocab_size=_LEARNED,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train([str(path) for path in sources], trainer)
    saved = json.loads(learner.to_str())["model"]
    return saved["vocab"], [tuple(pair) for pair in saved["merges"]]


def _true_vocabulary(family: Family) -> tuple[dict[str, int], list[tuple[str, str]]] | None:
    """Return tokens with their ranks, and merges, from an installed package's file."""
    package, name = family.package
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    ranks = _read_ranks(Path(spec.submodule_search_locations[0]) / name)
    room = family.num_tokens - family.first_learned
    ranks = {token: rank for token, rank in ranks.items() if rank < room}
    converter: Any = MistralConverter(additional_special_tokens=())  # its types are of a path
    return converter.extract_vocab_merges_from_model(ranks)


def _read_ranks(path: Path) -> Mapping[bytes, int]:
    """Read a file of tiktoken's or Mistral's form, in the order of the ranks."""
    if path.suffix == ".json":
        entries = json.loads(path.read_text(encoding="utf-8"))["vocab"]
        return {base64.b64decode(each["token_bytes"]): each["rank"] for each in entries}
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}
