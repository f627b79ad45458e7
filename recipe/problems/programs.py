"""Check that the tests of program rows reject programs that do nothing, by running them.

The solution of a row, where it is code, has to pass the row's tests, and programs that do nothing
must not.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Container, Iterator
from concurrent.futures import ThreadPoolExecutor

from recipe.problems.prepare import Prepared, places_text
from recipe.problems.progress import progress
from recipe.run.errors import DataError
from recipe.verify.options import GradeOptions
from recipe.verify.programs.blocks import code_block
from recipe.verify.programs.checklist import Checklist
from recipe.verify.programs.program import layers_for, run_program

_DEFAULTS = GradeOptions()
_CONSTANT = "def {{name}}(*_, **__):\n    return {}"
# What is expected may be worked out from an argument after the call, which may have changed it.
_SPOIL = """
def {{name}}(*given, **named):
    given = [each for each in (*given, *named.values()) if hasattr(each, "clear")]
    for each in given:
        items = list(each)
        keys = items{kept} if hasattr(each, "keys") else []
        items = [{item} for _ in items{kept}]
        each.clear()
        if hasattr(each, "keys"):
            each.update(dict(zip(keys, items)))
        elif hasattr(each, "extend"):
            each.extend(items)
        else:
            each.update(items)
    return {result}
"""


def _spoil(item: str, result: str, kept: str = "") -> str:
    return _SPOIL.format(item=item, result=result, kept=kept)


_IDLE = {
    "an empty program": "pass",
    "functions that return None": _CONSTANT.format(None),
    "functions that empty the list they are given and return it": _spoil(
        "0", "given[0] if given else None", "[:0]"
    ),
}
# Of a function that is given nothing, a constant may be the answer.
_CONSTANTS = {
    f"functions that return {each}": _CONSTANT.format(each)
    for each in ("True", "False", "0", "1", '""', "[]")
}
# Tried only where the tests can look at an argument again.
_SPOILING = {
    **{
        f"functions that empty what they are given and return {each}": _spoil("0", each, "[:0]")
        for each in ("0", "None", "False", '""')
    },
    "functions that set each item they are given to 0 and return 0": _spoil("0", "0"),
    "functions that set each item they are given to None and return None": _spoil("None", "None"),
    "functions that leave 0 in what they are given and return [0]": _spoil("0", "[0]", "[:1]"),
}
_CLASSES = {
    "classes whose methods return None": (
        "class {name}:\n    def __init__(self, *_, **__):\n        pass\n"
        "    def __getattr__(self, name):\n        return lambda *_, **__: None"
    ),
}


def check_programs(prepared: Prepared, options: GradeOptions = _DEFAULTS) -> str:
    """Run every program row's solution, and programs that do nothing, against its tests.

    Returns:
        A warning where the rows could not be run at all; else an empty text.

    Raises:
        DataError: Naming the first row whose tests do not, and how many others there are.
    """
    numbers = [n for n, row in enumerate(prepared.rows) if row["reward_model"]["kind"] == "program"]
    if not numbers:
        return ""
    if layers_for(options.program_isolation) is None:
        return (
            f"warning: {prepared.path}: the tests of {len(numbers)} programs were not run, for this"
            " machine has no sandbox; prepare them on Linux, where solutions and idle programs run"
        )
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        rows = (prepared.rows[number] for number in numbers)
        found = threads.map(lambda row: row_fault(row["answer"], row["solution"], options), rows)
        found = progress("running programs", found, total=len(numbers))
        faults = [(n, fault) for n, fault in zip(numbers, found, strict=True) if fault]
    if faults:
        number, (column, what) = faults[0]
        others = [prepared.places[each] for each, _ in faults[1:]]
        rest = f" (and other programs are at fault: {places_text(others)})" if others else ""
        raise DataError(
            f"{prepared.path}: {prepared.places[number]}, column `{column}`: {what}{rest}"
        )
    return ""


def row_fault(
    tests: str, solution: str, options: GradeOptions = _DEFAULTS
) -> tuple[str, str] | None:
    """Say why a row cannot be used, as column and what to do; ``None`` when it can.

    Raises:
        Unrunnable: The tests are none (the contract's check comes before this one).
    """
    code = reference_code(solution, tests)
    if code:
        outcome = run_program(code, tests, options)
        if outcome.reason == "error":
            return "answer", f"the tests cannot be run: {outcome.detail}"
        if outcome.reason != "correct":
            what = f"fails the row's tests, {outcome.reason}: {outcome.detail}"
            return "solution", f"the program {what}; correct the tests or the program"
    for what, program in idle_programs(tests):
        outcome = run_program(program, tests, options)
        if outcome.reason == "correct":
            return "answer", f"{what} would pass the tests; add asserts on values that they miss"
        if outcome.reason == "error" and not code:
            return "answer", f"the tests cannot be run: {outcome.detail}"
    return None


def reference_code(solution: str, tests: str = "") -> str:
    """Return the program in a solution: its code block, all of it if Python, or nothing."""
    block = code_block(solution, tests)
    if block.state == "closed":
        return block.code
    try:
        tree = ast.parse(solution)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign)
    return solution if any(isinstance(node, defines) for node in tree.body) else ""


def idle_programs(tests: str) -> Iterator[tuple[str, str]]:
    """Return programs that do nothing, each named; they define what the tests use."""
    names = Checklist(tests).names
    idle = {
        **_IDLE,
        **(_CONSTANTS if _passes_anything(tests, names) else {}),
        **(_SPOILING if _passes_names(tests) else {}),
        **(_CLASSES if any(name[:1].isupper() for name in names) else {}),
    }
    for what, text in idle.items():
        yield what, "\n".join(text.format(name=name) for name in names)


def _passes_anything(tests: str, names: Container[str]) -> bool:
    """Return whether a function that is not built in is given more than the program's own names."""

    def is_given(call: ast.Call) -> bool:
        if isinstance(call.func, ast.Name) and hasattr(builtins, call.func.id):
            return False
        own = [isinstance(each, ast.Name) and each.id in names for each in call.args]
        return bool(call.keywords) or not all(own)

    return any(isinstance(node, ast.Call) and is_given(node) for node in ast.walk(ast.parse(tests)))


def _passes_names(tests: str) -> bool:
    """Return whether a call is given something that has a name, or an item or attribute of it."""
    calls = [node for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Call)]
    functions = {id(call.func) for call in calls}
    given = [each for call in calls for each in (*call.args, *(kw.value for kw in call.keywords))]
    inside = (node for each in given for node in ast.walk(each))
    return any(isinstance(node, ast.Name) and id(node) not in functions for node in inside)
