"""Random weights in the shape of a real model: for trying a stack, not for learning anything.

Vocabulary sizes, token ids, names and defaults are facts of the published models; the templates are
written here to behave as theirs do: a default system text, a thinking block, several ends of a
response, a date, system text that moves into a user turn, a template that refuses it. Tokens are
learned from this package's own sources, and unused ones fill up the vocabulary. SentencePiece's way
to cut a text is not covered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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

_TURNS = """
{%- for turn in turns %}
    {{- '<|im_start|>' + turn.role + '\n' + turn.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}"""
_QWEN25 = (
    """
{%- set turns = messages %}
{%- if messages[0].role != 'system' %}
    {%- set turns = [{'role': 'system', 'content': 'You are Qwen, created by Alibaba Cloud. \
You are a helpful assistant.'}] + messages %}
{%- endif %}"""
    + _TURNS
)
# Thoughts of earlier responses are left out; thinking switched off is an empty block.
_QWEN3 = """
{%- for turn in messages %}
    {%- set text = turn.content %}
    {%- if turn.role == 'assistant' and '</think>' in text %}
        {%- set text = text.split('</think>')[-1].lstrip('\n') %}
    {%- endif %}
    {{- '<|im_start|>' + turn.role + '\n' + text + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""
_LLAMA32 = """
{%- if date_string is not defined %}
    {%- set date_string = strftime_now('%d %b %Y') if strftime_now is defined else '26 Jul 2024' %}
{%- endif %}
{%- set given = messages[0].content | trim if messages[0].role == 'system' else '' %}
{{- '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n' }}
{{- 'Cutting Knowledge Date: December 2023\nToday Date: ' + date_string + '\n\n' }}
{{- given + '<|eot_id|>' }}
{%- for turn in messages if turn.role != 'system' %}
    {{- '<|start_header_id|>' + turn.role + '<|end_header_id|>\n\n' }}
    {{- turn.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}"""
# The system text stands in the last user turn.
_MISTRAL = """
{%- set given = messages[0].content if messages[0].role == 'system' else '' %}
{%- set turns = messages[1:] if given else messages %}
{{- '<s>' }}
{%- for turn in turns %}
    {%- if (turn.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('user and assistant must take turns') }}
    {%- elif turn.role == 'user' %}
        {{- '[INST]' + (given + '\n\n' if given and loop.last else '') + turn.content + '[/INST]' }}
    {%- else %}
        {{- turn.content + '</s>' }}
    {%- endif %}
{%- endfor %}"""
_GEMMA_TURNS = """
{{- '<bos>' }}
{%- for turn in turns %}
    {%- if (turn.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('user and model must take turns') }}
    {%- endif %}
    {{- '<start_of_turn>' + ('model' if turn.role == 'assistant' else turn.role) + '\n' }}
    {{- (given if loop.first else '') + turn.content | trim + '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\n' }}{% endif %}"""
_GEMMA2 = (
    """
{%- if messages[0].role == 'system' %}{{- raise_exception('no system role here') }}{% endif %}
{%- set turns, given = messages, '' %}"""
    + _GEMMA_TURNS
)
_GEMMA3 = (
    """
{%- set turns, given = messages, '' %}
{%- if messages[0].role == 'system' %}
    {%- set turns, given = messages[1:], messages[0].content + '\n\n' %}
{%- endif %}"""
    + _GEMMA_TURNS
)
# How a text is cut before the merges. Digits one by one, or up to three together.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SINGLE, _THREE = _WORDS.replace("DIGITS", ""), _WORDS.replace("DIGITS", "{1,3}")
_LINES = r"[^\s]+|\n+| +"  # SentencePiece models cut at spaces alone


@dataclass(frozen=True)
class Family:
    """One family of models.

    ``vocab_size`` counts rows of the embedding, more than ``num_tokens`` for Qwen; ``special`` are
    tokens that a template or a stop needs, with ids; the first of ``stops`` is the tokenizer's eos;
    ``pattern`` cuts a text into words; tokens that are not special begin at ``first_learned``;
    ``defaults`` are sampling defaults, which a run must not follow.
    """

    model_type: str
    vocab_size: int
    num_tokens: int
    special: Mapping[str, int]
    stops: tuple[str, ...]
    pad: str
    template: str
    pattern: str
    is_tied: bool = True
    first_learned: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


_QWEN: dict[str, Any] = {
    "special": {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
    "stops": ("<|im_end|>", "<|endoftext|>"),
    "pad": "<|endoftext|>",
    "pattern": _SINGLE,
    "defaults": {"temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.05},
}
_GEMMA: dict[str, Any] = {"pad": "<pad>", "pattern": _LINES, "defaults": {"top_k": 64}}
_GEMMA_BASE = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}
_ROPE = {"rope_type": "default", "rope_theta": 1e6}
FAMILIES = {
    "qwen25": Family(
        "qwen2", 151936, 151665, template=_QWEN25, config={"rope_parameters": _ROPE}, **_QWEN
    ),
    "qwen3": Family(
        "qwen3",
        151936,
        151669,
        template=_QWEN3,
        config={"rope_parameters": _ROPE},
        **_QWEN | {"special": _QWEN["special"] | {"<think>": 151667, "</think>": 151668}},
    ),
    "llama32": Family(
        "llama",
        128256,
        128256,
        special={
            "<|begin_of_text|>": 128000,
            "<|end_of_text|>": 128001,
            "<|finetune_right_pad_id|>": 128004,
            "<|start_header_id|>": 128006,
            "<|end_header_id|>": 128007,
            "<|eom_id|>": 128008,
            "<|eot_id|>": 128009,
        },
        stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
        pad="<|finetune_right_pad_id|>",
        template=_LLAMA32,
        pattern=_THREE,
        config={
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 5e5,
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            }
        },
        defaults={"temperature": 0.6, "top_p": 0.9},
    ),
    "mistral": Family(
        "mistral",
        131072,
        131072,
        special={"<unk>": 0, "<s>": 1, "</s>": 2, "[INST]": 3, "[/INST]": 4, "<pad>": 10},
        stops=("</s>",),
        pad="<pad>",
        template=_MISTRAL,
        pattern=_THREE,
        is_tied=False,
        first_learned=1000,
        config={"sliding_window": None, "rope_parameters": _ROPE},
    ),
    # Attention and output are soft-capped; every second layer sees a window.
    "gemma2": Family(
        "gemma2",
        256000,
        256000,
        special=_GEMMA_BASE | {"<start_of_turn>": 106, "<end_of_turn>": 107},
        stops=("<eos>", "<end_of_turn>"),
        template=_GEMMA2,
        config={"sliding_window": 128, "query_pre_attn_scalar": 32},
        **_GEMMA,
    ),
    "gemma3": Family(
        "gemma3_text",
        262144,
        262144,
        special=_GEMMA_BASE | {"<start_of_turn>": 105, "<end_of_turn>": 106},
        stops=("<eos>", "<end_of_turn>"),
        template=_GEMMA3,
        config={"sliding_window": 128, "query_pre_attn_scalar": 32},
        **_GEMMA,
    ),
}

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


# Sizes of the decoder, under transformers' names.
_SIZE = {
    **{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2},
    **{"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32},
}


def build_model(folder: Path, family_name: str) -> None:
    """Write a model of random fp32 weights with its tokenizer into ``folder``.

    Its responses end after some 20 tokens.
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
        **_SIZE,
        **family.config,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    text = " ".join(f"{a} rows of {b} make {a * b}." for a in range(2, 14) for b in range(2, 14))
    ids = tokenizer(text, add_special_tokens=False)["input_ids"][:512]
    _sharpen(model, family, stop_ids, torch.tensor(ids).view(4, 128))
    model.generation_config = GenerationConfig(
        do_sample=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=stop_ids,
        pad_token_id=tokenizer.pad_token_id,
        **family.defaults,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


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
    learned, merges = _learned_vocabulary(cut)
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


def _learned_vocabulary(
    cut: pre_tokenizers.Sequence,
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Learn merges from the sources of this package."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = cut
    sources = sorted((Path(__file__).parents[1] / "recipe").rglob("*.py"))
    trainer = trainers.BpeTrainer(
        vocab_size=_LEARNED,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train([str(path) for path in sources], trainer)
    saved = json.loads(learner.to_str())["model"]
    return saved["vocab"], [tuple(pair) for pair in saved["merges"]]
