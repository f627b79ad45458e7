"""Find the code block of a response that counts as its program.

The last block that defines most of what the tests use is graded, so an example or a test below
the program changes nothing. Where no block defines any of it, the last one marked ``python``
counts, or the last of any language when none is marked. A draft before the last ``</think>`` is
no answer.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from typing import Literal

from recipe.verify.programs.tests import used_names

# At a line's start, or after a tag, a colon or the mark of a list. What follows is a language and
# its attributes (py, {.py}, py title="a.py"), or prose.
_FENCE = re.compile(r"(?P<before>[^`~]*+)(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`]*+)")
_INFO = re.compile(r"\s*\{?\.?(?P<language>[\w+#.-]+)(?:\s+[\w-]+=.*)?\}?\s*")
_PYTHON = re.compile(r"py(?:thon)?[\d.]*", re.IGNORECASE)
# At a line's start, where a block's own names are; read as text, for the block may be anything.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """The code block of a response that counts; ``code`` is empty unless ``closed``."""

    state: Literal["absent", "open", "closed"]
    code: str = ""


@dataclass(slots=True)
class _Fenced:
    """A block, open until its end has been seen."""

    margin: int
    mark: str
    is_python: bool
    lines: list[str] = field(default_factory=list)
    is_closed: bool = False

    @property
    def code(self) -> str:
        return textwrap.dedent("\n".join(self.lines)).strip("\n")


def code_block(response: str, tests: str = "") -> Block:
    """Find the block."""
    blocks = _blocks(response.rpartition("</think>")[2])
    if not blocks:
        return Block("absent")
    used = used_names(tests) if len(blocks) > 1 else frozenset()

    def rank(block: _Fenced) -> tuple[int, bool]:
        found = _DEFINED.finditer(block.code) if used else ()
        return len(used & {each[1] or each[2] for each in found}), block.is_python

    best = max(reversed(blocks), key=rank)  # of several that are equal, the first
    return Block("closed", best.code) if best.is_closed else Block("open")


def _blocks(text: str) -> list[_Fenced]:
    """Return all blocks in order."""
    blocks: list[_Fenced] = []
    current: _Fenced | None = None
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        opened = _opened(fence) if fence else None
        if current is None:
            if opened:
                blocks.append(current := opened)
        # A fence in a docstring is 4 columns deeper.
        elif (
            fence is None
            or not fence["mark"].startswith(current.mark)
            or _margin(fence) >= current.margin + 4
        ):
            current.lines.append(line)
        elif opened and _INFO.fullmatch(fence["info"]):  # left open: the next one begins
            blocks.append(current := opened)
        elif fence["before"].strip():
            current.lines.append(line)
        else:
            current.is_closed, current = True, None
    return blocks


def _opened(fence: re.Match[str]) -> _Fenced | None:
    """Return the block that a fence begins, if it can begin one."""
    info = _INFO.fullmatch(fence["info"])
    is_python = info is not None and _PYTHON.fullmatch(info["language"]) is not None
    if not is_python and "~" in fence["mark"]:  # tildes also underline titles and errors
        return None
    head = fence["before"].strip()
    if head and not (head[-1] in ":>*.)-" and (info or not fence["info"].strip())):
        return None
    return _Fenced(_margin(fence), fence["mark"], is_python)


def _margin(fence: re.Match[str]) -> int:
    before = fence["before"].expandtabs(4)
    return len(before) - len(before.lstrip())
