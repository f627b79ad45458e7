"""The verifier as a reward function of other trainers: verl's and TRL's interfaces."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from recipe.verify.golds import gold_text, plain
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item, read_prompt

# Processes that can be killed, one set for all calls.
_pool = functools.cache(VerifierPool)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
) -> float:
    """Return 1.0 or 0.0, as verl's ``custom_reward_function`` wants it.

    Args:
        data_source: Name of the data set, for the log.
        solution_str: The response.
        ground_truth: The gold answer, as a row of a data file has it: a text, number or list.
        extra_info: May have ``kind``, ``question``, and ``prompt``, the conversation, which
            says in what format the answer is, and without ``question`` what is asked.
    """
    info = extra_info or {}
    kind = info.get("kind") or "maths"
    problem, asked = read_prompt(info.get("prompt"))
    problem = str(info.get("question") or problem)
    gold = gold_text(ground_truth, kind, info)
    row = json.dumps({"extra_info": info}, default=plain) if kind == "reasoning_gym" else ""
    item = Item(solution_str, gold, kind=kind, problem=problem, row=row, asked=asked)
    return _pool().grade_many_blocking([item], [data_source])[0].score


def reward_function(
    prompts: Sequence[Any], completions: Sequence[Any], *, answer: Sequence[Any], **_: Any
) -> list[float]:
    """Return 1.0 or 0.0 per completion, for ``reward_funcs`` of TRL's GRPOTrainer.

    Args:
        prompts: Conversations as texts or turns; what is asked, and in what format.
        completions: The responses, likewise.
        answer: The data set's column of gold answers of mathematics.
        _: The other columns, which are not read.
    """
    texts = [each if isinstance(each, str) else str(each[-1]["content"]) for each in completions]
    read = map(read_prompt, prompts)
    items = [
        Item(text, gold_text(gold), problem=problem, asked=asked)
        for (problem, asked), text, gold in zip(read, texts, answer, strict=True)
    ]
    return [verdict.score for verdict in _pool().grade_many_blocking(items)]
