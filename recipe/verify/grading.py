"""One grade of any kind: the functions that the pool and its processes call."""

from __future__ import annotations

import importlib
from typing import Any

from recipe.verify.functions import check_call, function_verdict
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, Verdict

_DEFAULTS = GradeOptions()
# What grades a kind; imported with the first item of the kind, which takes a part of a second.
_VERIFIERS = {
    "maths": "recipe.verify.answer",
    "choice": "recipe.verify.answer",
    "program": "recipe.verify.programs.run",
    "reasoning_gym": "recipe.verify.gym",
}


def prepare(options: GradeOptions = _DEFAULTS) -> None:
    """Do once what every grade needs, before the process is copied: modules, units of measure.

    Raises:
        ConfigError: The user's own function cannot be loaded; and whatever its file raises.
    """
    if options.function_path:
        check_call(options)
    _verifier("program")
    grade(Item(r"\boxed{\sqrt{8}+x}", r"2\sqrt{2}+x"))


def quick_grade(item: Item, options: GradeOptions = _DEFAULTS) -> Verdict | None:
    """Return the verdict when it is cheap and safe in any thread, else ``None``.

    Raises:
        ValueError: The kind is not one of ``recipe.verify.schema.Kind``.
    """
    if options.function_path and item.row:
        return None
    return _verifier(item.kind).quick_verdict(item, options)


def grade(item: Item, options: GradeOptions = _DEFAULTS) -> Verdict:
    """Grade one item; may run for ever on hostile maths, so call it where it can be killed.

    Raises:
        Exception: As ``quick_grade``, and whatever a user's own function raises.
    """
    if options.function_path and item.row:
        return function_verdict(item, options)
    verifier = _verifier(item.kind)
    return verifier.quick_verdict(item, options) or verifier.full_verdict(item, options)


def _verifier(kind: str) -> Any:
    if kind not in _VERIFIERS:
        raise ValueError(f"{kind=} has no verifier; use {', '.join(_VERIFIERS)}")
    return importlib.import_module(_VERIFIERS[kind])
