"""One grade of any kind: the functions that the pool and its processes call."""

from __future__ import annotations

from recipe.verify.answer import answer_in_box
from recipe.verify.choice import choice_verdict
from recipe.verify.functions import check_call, function_verdict
from recipe.verify.golds import is_placeholder
from recipe.verify.maths import grade as maths
from recipe.verify.options import GradeOptions
from recipe.verify.programs import run as program
from recipe.verify.schema import Item, Verdict

_DEFAULTS = GradeOptions()


def prepare(options: GradeOptions = _DEFAULTS) -> None:
    """Do once what every grade needs, before the process is copied: modules, units of measure.

    Raises:
        ConfigError: The user's own function cannot be loaded; and whatever its file raises.
    """
    if options.function_path:
        check_call(options)
    maths.grade_maths(r"\boxed{\sqrt{8}+x}", r"2\sqrt{2}+x")


def quick_grade(item: Item, options: GradeOptions = _DEFAULTS) -> Verdict | None:
    """Return the verdict when it is cheap and safe in any thread, else ``None``.

    Raises:
        ValueError: The kind is not one of ``recipe.verify.schema.Kind``.
    """
    if options.function_path and item.row:
        return None
    if item.kind == "program":
        return program.quick_verdict(item)
    response = _answered(item, options)
    if item.kind == "choice":
        return choice_verdict(response, item.answer, item.problem, is_truncated=item.is_truncated)
    if item.kind == "maths":
        if is_placeholder(item.answer):
            return Verdict(0.0, "wrong", detail=f"the gold answer {item.answer!r} is no answer")
        return maths.quick_verdict(response, item.answer, item.is_truncated, item.problem)
    raise ValueError(f"kind={item.kind!r} has no verifier; use maths, choice or program")


def grade(item: Item, options: GradeOptions = _DEFAULTS) -> Verdict:
    """Grade one item; may run for ever on hostile maths, so call it where it can be killed.

    Raises:
        Exception: As ``quick_grade``, and whatever a user's own function raises.
    """
    if verdict := quick_grade(item, options):
        return verdict
    if options.function_path and item.row:
        return function_verdict(item, options)
    if item.kind == "program":
        return program.grade_program(item, options)
    return maths.grade_maths(
        _answered(item, options), item.answer, is_truncated=item.is_truncated, problem=item.problem
    )


def _answered(item: Item, options: GradeOptions) -> str:
    """Return the response with its answer in a box."""
    return answer_in_box(
        item.response, options.answer_format, item.asked, is_truncated=item.is_truncated
    )
