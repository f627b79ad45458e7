"""Check that the solution of a program row, where it is code, passes the row's tests."""

from __future__ import annotations

import ast
import os
from concurrent.futures import ThreadPoolExecutor

from tqdm import tqdm

from recipe.problems.prepare import Prepared, places_text
from recipe.run.errors import DataError
from recipe.verify.options import GradeOptions
from recipe.verify.programs.blocks import code_block
from recipe.verify.programs.run import layers_for, run_program

_DEFAULTS = GradeOptions()


def check_programs(prepared: Prepared, options: GradeOptions = _DEFAULTS) -> str:
    """Run every program row's solution against its tests.

    Returns:
        A warning where the rows could not be run at all; else an empty text.
    """
    numbers = [n for n, row in enumerate(prepared.rows) if row["reward_model"]["kind"] == "program"]
    if not numbers:
        return ""
    if layers_for(options.program_isolation) is None:
        return (
            f"warning: {prepared.path}: the tests of {len(numbers)} programs were not run, for this"
            " machine has no sandbox; prepare them on Linux, where solutions run"
        )
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        rows = (prepared.rows[number] for number in numbers)
        found = threads.map(lambda row: row_fault(row["answer"], row["solution"], options), rows)
        found = tqdm(found, "running programs", len(numbers), delay=2, disable=None)
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
    """Say why a row cannot be used, as column and what to do; ``None`` when it can."""
    code = reference_code(solution, tests)
    outcome = run_program(code or "pass", tests, options)
    if outcome.reason in ("error", "unsupported"):
        return "answer", f"the tests cannot be run: {outcome.detail}"
    if code and outcome.reason != "correct":
        what = f"fails the row's tests, {outcome.reason}: {outcome.detail}"
        return "solution", f"the program {what}; correct the tests or the program"
    if not code and outcome.reason == "correct":
        return "answer", "an empty program would pass the tests; add asserts on values"
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
