"""A user's own reward function, called as verl does, and verl's over-long penalty.

verl's interface: ``compute_score(data_source, solution_str, ground_truth, extra_info, **kwargs)``,
a plain or an ``async`` function, that gives a number or a mapping with ``score``.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, Verdict

_MAX_EXTRACTED_CHARS = 2000
_VERLS = ("data_source", "solution_str", "ground_truth", "extra_info")  # verl's arguments
# What verl's manager adds to extra_info: a question and an answer, and no score of the rollout's.
_TURNS: dict[str, Any] = {"num_turns": 2, "rollout_reward_scores": {}}


def overlong_penalty(num_tokens: int, max_tokens: int, buffer_tokens: int, factor: float) -> float:
    """Return the soft punishment of an over-long response, to be added to what it trains with.

    Source: DAPO (Yu et al. 2025, arXiv:2503.14476, eq. 13), as verl's reward manager ``dapo`` has
    it. Nothing up to ``max_tokens - buffer_tokens``; from there it grows in a straight line, and is
    ``-factor`` at ``max_tokens``.
    """
    excess = num_tokens - (max_tokens - buffer_tokens)
    return min(-excess / buffer_tokens * factor, 0.0)


@functools.cache
def load_function(path: str, name: str) -> Callable[..., Any]:
    """Return the function ``name`` of a file, or of a package given as ``pkg://package.module``."""
    if path.startswith("pkg://"):
        module = importlib.import_module(path.removeprefix("pkg://").replace("/", "."))
    else:
        file = Path(path.removeprefix("file://"))
        spec = importlib.util.spec_from_file_location("own_reward_function", file)
        if not file.is_file() or spec is None or spec.loader is None:
            raise ConfigError("no such file of Python")
        sys.path.append(str(file.resolve().parent))  # modules beside it, after all others
        # By name, as dataclasses and pickle look for it.
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"the file has no function {name!r}")
    return function


def check_call(options: GradeOptions) -> None:
    """Load the function, and see that it takes verl's arguments; ``ConfigError`` if it does not."""
    function = load_function(options.function_path, options.function_name)
    call = dict.fromkeys(_VERLS) | dict(options.function_kwargs)
    try:
        inspect.signature(function).bind(**call)
    except TypeError as problem:
        name = options.function_name
        raise ConfigError(f"{name} cannot be called with {', '.join(call)}: {problem}") from problem


def function_verdict(item: Item, options: GradeOptions) -> Verdict:
    """Ask the function, which may raise anything."""
    function = load_function(options.function_path, options.function_name)
    call = {"solution_str": item.response, **json.loads(item.row)}
    call["extra_info"] = {**call["extra_info"], **_TURNS}
    result = function(**{**call, **options.function_kwargs})
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    return read_result(result)


def read_result(result: Any) -> Verdict:
    """Return what the function gave, as a verdict.

    Accuracy is ``acc`` where the result has it, else the score cut to 0..1. One between 0 and 1 has
    the reason ``wrong``, though it counts as right. ``ValueError`` for a score that is no finite
    number, or an accuracy outside of 0 to 1.
    """
    fields = result if isinstance(result, Mapping) else {"score": result}
    reward = _number(fields, "score")
    accuracy = _number(fields, "acc") if "acc" in fields else min(max(reward, 0.0), 1.0)
    if not 0 <= accuracy <= 1:
        raise ValueError(f"acc={accuracy} is not an accuracy; give a number from 0 to 1")
    text = str(fields.get("pred", ""))[:_MAX_EXTRACTED_CHARS]
    reason = "correct" if accuracy == 1 else "wrong"
    return Verdict(accuracy, reason, text, basis="function", reward=reward)


def _number(fields: Mapping[str, Any], name: str) -> float:
    value: Any = fields.get(name)
    # float() reads texts, which are not scores; numpy's and torch's numbers are welcome.
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"{name}={str(value)[:80]!r} ({type(value).__name__}) is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{name}={float(value)} is not finite")
    return float(value)
