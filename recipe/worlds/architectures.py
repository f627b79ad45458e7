"""What tells the families of models apart for a run: sizes, special tokens, stops, templates.

Vocabulary sizes, token ids, names and defaults are facts of the published models; the templates are
written here to behave as theirs do. Covered: a default system text, a thinking block, several ends
of a response, a date, system text that moves into a user turn, a template that refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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

    Attributes:
        model_type: transformers' name of the architecture.
        vocab_size: Rows of the embedding; more than the tokenizer has tokens for Qwen.
        num_tokens: Tokens of the tokenizer.
        special: Special tokens that a template or a stop needs, and their ids.
        stops: Tokens that end a response; the first is the tokenizer's own eos.
        pad: The tokenizer's padding token.
        template: The chat template.
        pattern: Regular expression that cuts a text into words.
        is_tied: Whether the embedding is the output layer too.
        first_learned: Id of the first token that is not a special one.
        package: Installed package and file in it that hold the true vocabulary.
        config: Further fields of the model's configuration.
        defaults: Sampling defaults of ``generation_config.json``, which a run must not follow.
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
    package: tuple[str, str] = ("", "")
    config: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


_QWEN: dict[str, Any] = {
    "special": {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
    "stops": ("<|im_end|>", "<|endoftext|>"),
    "pad": "<|endoftext|>",
    "pattern": _SINGLE,
    "package": ("dashscope", "resources/qwen.tiktoken"),
    "defaults": {"temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.05},
}
_GEMMA: dict[str, Any] = {"pad": "<pad>", "pattern": _LINES, "defaults": {"top_k": 64}}
_GEMMA_BASE = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3}
_ROPE = {"rope_type": "default", "rope_theta": 1e6}
FAMILIES = {
    "qwen25": Family(
        "qwen2", 151936, 151665, template=_QWEN25, config={"rope_parameters": _ROPE}, **_QWEN
    ),
    "qwen25-untied": Family(
        "qwen2",
        152064,
        151665,
        template=_QWEN25,
        is_tied=False,
        config={"rope_parameters": _ROPE},
        **_QWEN,
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
        package=("llama_models", "llama3/tokenizer.model"),
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
        package=("mistral_common", "data/tekken_240718.json"),
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
