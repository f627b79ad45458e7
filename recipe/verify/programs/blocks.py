"""Find the code block of a response that counts as its program.

The last block that defines most of what the tests use is graded, so an example or a test below
the program changes nothing. Where no block defines any of it, the last one marked ``python``
counts, or the last of any language when none is marked. A draft before the last ``</think>`` is
no answer.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal

from recipe.verify.programs.tests import used_names
from recipe.verify.programs.wire import visible

LINE_END = re.compile(r"\r\n?|\n")  # of Python; str.splitlines knows others
_FENCE = re.compile(r"`{3,}|~{3,}")
# All that may follow a fence that opens a block: py, {.py}, python3.11, py title="a.py".
_INFO = re.compile(r"\{?\.?[\w+#-]+(?:\.\d+)?(?:\s+[\w-]+=.*)?\}?")
_BEFORE = (":", ">", "*", ".", ")", "-")  # the code: <answer> **Code** 1. 1) -
_LANGUAGE = re.compile(r"[ \t{.]*([\w+#-]*)")
_LANGUAGES = frozenset({"python", "python3", "py", "py3"})
# At a line's start or end; where the line is indented it is a program's.
_THOUGHT_END = re.compile(r"^(?:</think>|[^\s#][^#\n]*</think>[ \t]*$)", re.MULTILINE)
# At a line's start, where a block's own names are; read as text, for the block may be anything.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """The code block of a response that counts; ``code`` is empty unless ``closed``."""

    state: Literal["absent", "open", "closed"]
    code: str = ""


class _Fence:
    """A line with a fence: its margin, the text before the fence, its mark, the rest."""

    def __init__(self, line: str, found: re.Match[str]) -> None:
        head = visible(line[: found.start()]).expandtabs(4)
        self.margin, self.head = len(head) - len(head.lstrip()), head.strip()
        self.mark, self.info = found[0], line[found.end() :].strip()
        language = _LANGUAGE.match(self.info)
        self.is_python = language is not None and language[1].lower() in _LANGUAGES
        # After a fence, one word is a language, and more is prose.
        self.has_language = _INFO.fullmatch(self.info) is not None
        # Tildes also underline titles and errors.
        self.opens = (self.is_python or "`" in self.mark) and "`" not in self.info
        if self.head:
            self.opens &= self.head.endswith(_BEFORE) and (self.has_language or not self.info)


@dataclass(slots=True)
class _Fenced:
    """A block, open until its end has been seen."""

    begin: _Fence
    lines: list[str] = field(default_factory=list)
    is_closed: bool = False

    @property
    def code(self) -> str:
        """The code as far as it goes, without the margin that its lines share."""
        filled = [line for line in self.lines if line.strip()]
        margin = os.path.commonprefix([line[: len(line) - len(line.lstrip())] for line in filled])
        return "\n".join(line.removeprefix(margin) for line in self.lines).strip("\n")

    def ends_at(self, fence: _Fence) -> bool:
        """Return whether it ends here, closed or not; a fence in a docstring is 4 deeper."""
        is_near = fence.mark.startswith(self.begin.mark) and fence.margin < self.begin.margin + 4
        is_next = fence.opens and fence.has_language and "#" not in fence.head
        self.is_closed = is_near and not is_next and not fence.head
        return is_near and (is_next or self.is_closed)


def code_block(response: str, tests: str = "") -> Block:
    """Find the block; its fences begin a line, or follow a tag, a colon or the like."""
    blocks = _blocks(_THOUGHT_END.split(response)[-1])
    used = used_names(tests) if len(blocks) > 1 else frozenset()

    def rank(block: _Fenced) -> tuple[int, bool]:
        found = _DEFINED.finditer(visible(block.code)) if used else ()
        return len(used & {each[1] or each[2] for each in found}), block.begin.is_python

    if not blocks:
        return Block("absent")
    best = max(reversed(blocks), key=rank)  # of several that are equal, the first
    return Block("closed", best.code) if best.is_closed else Block("open")


def _blocks(text: str) -> list[_Fenced]:
    """Return all blocks in order."""
    blocks: list[_Fenced] = []
    is_inside = False
    for line in LINE_END.split(text):
        found = _FENCE.search(line)
        fence = _Fence(line, found) if found else None
        if is_inside and (fence is None or not blocks[-1].ends_at(fence)):
            blocks[-1].lines.append(line)
        elif is_inside and blocks[-1].is_closed:
            is_inside = False
        elif fence is not None and fence.opens:
            is_inside = True
            blocks.append(_Fenced(fence))
        else:
            is_inside = False
    return blocks
