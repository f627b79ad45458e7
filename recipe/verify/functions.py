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

_PACKAGE, _FILE = "pkg://", "file://"
# The mapping's names for accuracy, and for the text that was compared.
_ACCURACIES = ("acc", "accuracy")
_EXTRACTED = ("extracted", "pred")
_MAX_EXTRACTED_CHARS = 2000
# What verl's manager adds to extra_info: a question and an answer, and no score of the rollout's.
_TURNS: dict[str, Any] = {"num_turns": 2, "rollout_reward_scores": {}}


@functools.cache
def load_function(path: str, name: str) -> Callable[..., Any]:
    """Return the function ``name`` of a file, or of a package given as ``pkg://package.module``.

    Raises:
        ConfigError: If there is no such file, or no such function in it.
    """
    if path.startswith(_PACKAGE):
        module = importlib.import_module(path.removeprefix(_PACKAGE).replace("/", "."))
    else:
        module = _load_file(Path(path.removeprefix(_FILE)))
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"the file has no function {name!r}")
    return function


def check_call(options: GradeOptions) -> None:
    """Load the function, and see that it takes verl's arguments.

    Raises:
        ConfigError: If it cannot be called.
    """
    function = load_function(options.function_path, options.function_name)
    call = dict.fromkeys(("data_source", "solution_str", "ground_truth", "extra_info"))
    try:
        inspect.signature(function).bind(**{**call, **options.function_kwargs})
    except TypeError as problem:
        given = ", ".join({**call, **options.function_kwargs})
        raise ConfigError(
            f"{options.function_name} cannot be called with {given}: {problem}"
        ) from problem


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
    if "score" not in fields:
        raise ValueError(f"the result has no 'score': {str(result)[:80]}")
    reward = _number(fields["score"], "score")
    name = next((name for name in _ACCURACIES if name in fields), "")
    accuracy = _number(fields[name], name) if name else min(max(reward, 0.0), 1.0)
    if not 0 <= accuracy <= 1:
        raise ValueError(f"{name}={accuracy} is not an accuracy; give a number from 0 to 1")
    text = next((fields[name] for name in _EXTRACTED if fields.get(name) is not None), "")
    return Verdict(
        accuracy,
        "correct" if accuracy == 1 else "wrong",
        str(text)[:_MAX_EXTRACTED_CHARS],
        basis="function",
        reward=reward,
    )


def _number(value: Any, name: str) -> float:
    # float() reads texts, which are not scores; numpy's and torch's numbers are welcome.
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise ValueError(f"{name}={str(value)[:80]!r} ({type(value).__name__}) is not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={number} is not finite")
    return number


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise ConfigError("no such file")
    spec = importlib.util.spec_from_file_location("own_reward_function", path)
    if spec is None or spec.loader is None:
        raise ConfigError("is not a Python file; its name must end in .py")
    # Modules beside it may be imported, after all others.
    sys.path.append(str(path.resolve().parent))
    module = importlib.util.module_from_spec(spec)
    # By name, as dataclasses and pickle look for it.
    sys.modules[spec.name] = module
    # A check leaves nothing beside a user's file.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


async def _wait(result: Awaitable[Any]) -> Any:
    return await result
