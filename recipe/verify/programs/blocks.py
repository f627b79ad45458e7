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
from typing import Literal, NamedTuple

from recipe.verify.programs.tests import used_names

# At a line's start, or after a tag, a colon or the mark of a list. What follows is a language and
# its attributes (py, {.py}, py title="a.py"), or prose.
_FENCE = re.compile(r"(?P<before>[^`]*+)(?P<mark>`{3,}+)(?P<info>[^`]*+)")
_LANGUAGE = re.compile(r"\s*\{?\.?(?P<name>[\w+#.-]+)(?:\s+[\w-]+=.*)?\}?\s*")
_PYTHON = re.compile(r"py(?:thon)?[\d.]*", re.IGNORECASE)
# At a line's start, where a block's own names are; read as text, for the block may be anything.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)


class Block(NamedTuple):
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


def code_block(response: str, tests: str = "") -> Block:
    """Find the block."""
    blocks = _blocks(response.rpartition("</think>")[2])
    if not blocks:
        return Block("absent")
    used = used_names(tests) if len(blocks) > 1 else frozenset()
    codes = [textwrap.dedent("\n".join(block.lines)).strip("\n") for block in blocks]

    def rank(place: int) -> tuple[int, bool, int]:
        found = _DEFINED.finditer(codes[place]) if used else ()
        return len(used & {each[1] or each[2] for each in found}), blocks[place].is_python, place

    best = max(range(len(blocks)), key=rank)
    return Block("closed", codes[best]) if blocks[best].is_closed else Block("open")


def _blocks(text: str) -> list[_Fenced]:
    """Return all blocks in order."""
    blocks: list[_Fenced] = []
    current: _Fenced | None = None
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            if current:
                current.lines.append(line)
            continue
        before = fence["before"].expandtabs(4)
        margin, head = len(before) - len(before.lstrip()), before.strip()
        language = _LANGUAGE.fullmatch(fence["info"])
        is_plain = language is not None or not fence["info"].strip()
        opens = not head or (head[-1] in ":>*.)-" and is_plain)
        # A fence in a docstring is 4 columns deeper.
        is_code = current and (
            not fence["mark"].startswith(current.mark) or margin >= current.margin + 4
        )
        if not is_code and opens and (language or not current):  # one left open: the next begins
            is_python = language is not None and _PYTHON.fullmatch(language["name"]) is not None
            blocks.append(current := _Fenced(margin, fence["mark"], is_python))
        elif current and (is_code or head):
            current.lines.append(line)
        elif current:
            current.is_closed, current = True, None
    return blocks
