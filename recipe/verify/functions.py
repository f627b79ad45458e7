"""A user's own reward function: found and called as verl does, its result read as a verdict.

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
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, Verdict

_MAX_EXTRACTED_CHARS = 2000
# What verl's manager adds to extra_info: a question and an answer, and no score of the rollout's.
_VERLS = ("data_source", "solution_str", "ground_truth", "extra_info")  # verl's arguments
_TURNS: dict[str, Any] = {"num_turns": 2, "rollout_reward_scores": {}}


@functools.cache
def load_function(path: str, name: str) -> Callable[..., Any]:
    """Return the function ``name`` of a file, or of a package given as ``pkg://package.module``.

    Raises:
        ConfigError: If there is no such file, or no such function in it.
    """
    if path.startswith("pkg://"):
        module = importlib.import_module(path.removeprefix("pkg://").replace("/", "."))
    else:
        module = _load_file(Path(path.removeprefix("file://")))
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"the file has no function {name!r}")
    return function


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("own_reward_function", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError("no such file of Python")
    # Modules beside it may be imported, after all others.
    sys.path.append(str(path.resolve().parent))
    # By name, as dataclasses and pickle look for it.
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    # A check leaves nothing beside a user's file.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def check_call(options: GradeOptions) -> None:
    """Load the function, and see that it takes verl's arguments.

    Raises:
        ConfigError: If it cannot be called.
    """
    function = load_function(options.function_path, options.function_name)
    call: dict[str, Any] = dict.fromkeys(_VERLS)
    call.update(options.function_kwargs)
    try:
        inspect.signature(function).bind(**call)
    except TypeError as problem:
        name = options.function_name
        raise ConfigError(f"{name} cannot be called with {', '.join(call)}: {problem}") from problem


def function_verdict(item: Item, options: GradeOptions) -> Verdict:
    """Ask the function.

    Raises:
        ValueError: If it gives no finite number; and whatever it raises itself.
    """
    function = load_function(options.function_path, options.function_name)
    call = {"solution_str": item.response, **json.loads(item.row)}
    call["extra_info"] = {**call["extra_info"], **_TURNS}
    result = function(**{**call, **options.function_kwargs})
    return read_result(asyncio.run(_wait(result)) if inspect.isawaitable(result) else result)


def read_result(result: Any) -> Verdict:
    """Return what the function gave, as a verdict.

    Accuracy is ``acc`` (or ``accuracy``) where the result has it, else the score cut to 0..1. One
    between 0 and 1 has the reason ``wrong``, though it counts as right.

    Raises:
        ValueError: If the score is not a finite number, or the accuracy is not from 0 to 1.
    """
    fields = result if isinstance(result, Mapping) else {"score": result}
    reward = _number(fields, "score")
    name = next((name for name in ("acc", "accuracy") if name in fields), "")
    accuracy = _number(fields, name) if name else min(max(reward, 0.0), 1.0)
    if not 0 <= accuracy <= 1:
        raise ValueError(f"{name}={accuracy} is not an accuracy; give a number from 0 to 1")
    texts = (fields[name] for name in ("extracted", "pred") if fields.get(name) is not None)
    text = str(next(texts, ""))[:_MAX_EXTRACTED_CHARS]
    reason = "correct" if accuracy == 1 else "wrong"
    return Verdict(accuracy, reason, text, basis="function", reward=reward)


def _number(fields: Mapping[str, Any], name: str) -> float:
    value: Any = fields.get(name)
    # float() reads texts, which are not scores; numpy's and torch's numbers are welcome.
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"{name}={str(value)[:80]!r} ({type(value).__name__}) is not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={number} is not finite")
    return number


async def _wait(result: Awaitable[Any]) -> Any:
    return await result
