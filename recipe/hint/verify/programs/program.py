"""Judges a program: the last Python code block of a response against asserts.

The gold answer is plain Python, imports and asserts. The block is the last one marked
``python``, or the last one of any language when none is marked; a block that is not closed is
``malformed`` and never falls back to an earlier one.
"""

from __future__ import annotations

import logging
import re
import textwrap
from dataclasses import dataclass
from typing import Literal

from recipe.hint.schema import Verdict
from recipe.hint.verify.options import GradeOptions
from recipe.hint.verify.programs.runner import run_program

_FENCE = re.compile(r"[ \t]*(`{3,})[ \t]*([^`\n]*)")
_LANGUAGES = frozenset({"python", "python3", "py"})
_MAX_CODE_CHARS = 200_000
_DEFAULTS = GradeOptions()


@dataclass(frozen=True, slots=True)
class Block:
    """The code block of a response that counts; ``code`` is empty unless ``closed``."""

    state: Literal["absent", "open", "closed"]
    code: str = ""


def code_block(response: str) -> Block:
    """Find the block; fences stand on lines of their own and may be indented."""
    blocks: list[tuple[str, Block]] = []
    fence, language, lines = "", "", []
    for line in response.splitlines():
        match = _FENCE.fullmatch(line)
        if not fence and match:
            fence, language, lines = match[1], match[2].strip().lower(), []
        elif fence and match and len(match[1]) >= len(fence) and not match[2].strip():
            code = textwrap.dedent("\n".join(lines)).strip("\n")
            blocks.append((language, Block("closed", code)))
            fence = ""
        elif fence:
            lines.append(line)
    if fence:
        blocks.append((language, Block("open")))
    marked = [block for language, block in blocks if language in _LANGUAGES]
    return (marked or [block for _, block in blocks] or [Block("absent")])[-1]


def quick_verdict(response: str, answer: str, *, is_truncated: bool = False) -> Verdict | None:
    """The verdict when nothing has to be run, else ``None``."""
    block = code_block(response)
    if block.state != "closed" or not block.code.strip():
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if block.state == "open" else "no_answer")
    if len(block.code) > _MAX_CODE_CHARS:
        return Verdict(0.0, "malformed", block.code[:200])
    return None if answer.strip() else Verdict(0.0, "error", block.code)


def grade_program(
    response: str,
    answer: str,
    *,
    is_truncated: bool = False,
    options: GradeOptions = _DEFAULTS,
) -> Verdict:
    """Run the program and its asserts; ends within ``options.program_wall_s``, about.

    ``wrong`` is a failed assert or any exception; ``timeout`` is the processor, or the wall clock
    behind it; ``error`` means that the sandbox failed, or that the asserts cannot be run or cannot
    tell.
    """
    verdict = quick_verdict(response, answer, is_truncated=is_truncated)
    if verdict is not None:
        return verdict
    code = code_block(response).code
    outcome = run_program(code, answer, options)
    if outcome.reason == "error":
        logging.getLogger(__name__).warning("no verdict on a program: %s", outcome.detail)
    return Verdict(float(outcome.reason == "correct"), outcome.reason, code, "tests")
