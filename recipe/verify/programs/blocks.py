"""Find the code block of a response that counts as its program.

The last block that defines most of what the tests use is graded, so an example or a test below
the program changes nothing; functions without a body count less. Where no block defines any of it,
the last one marked ``python`` counts, or the last of any language when none is marked.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Literal

from recipe.verify.programs.checklist import used_names
from recipe.verify.programs.source import visible

LINE_END = re.compile(r"\r\n?|\n")  # of Python; str.splitlines knows others
_FENCE = re.compile(r"`{3,}|~{3,}")
# All that may follow a fence that opens a block: py, {.py}, python3.11, py title="a.py".
_INFO = re.compile(r"\{?\.?[\w+#-]+(?:\.\d+)?(?:\s+[\w-]+=.*)?\}?")
_BEFORE = (":", ">", "*", ".", ")", "-")  # the code: <answer> **Code** 1. 1) -
_THOUGHT_END = re.compile(r"</think>|[^\s#][^#]*</think>\s*\Z")  # indented it is a program's
_LANGUAGE = re.compile(r"[ \t{.]*([\w+#-]*)")
_LANGUAGES = frozenset({"python", "python3", "py", "py3"})
_TEXT_LANGUAGES = frozenset({"markdown", "md", "text"})  # a whole response may be fenced as one
# At a line's start, where a block's own names are; read as text, for the block may be anything.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)
_HEADER = r"[^\S\n]*(?:\((?:[^()]|\([^()]*\))*\))?[^\S\n]*(?:->[^\n:]*)?:"
_TEXT = re.compile(r"\"{3}.*?\"{3}|'{3}.*?'{3}|#[^\n]*", re.DOTALL)
_STUB = re.compile(rf"{_HEADER}\s*(?:(?:\.\.\.|pass|raise NotImplementedError(?:\([^\n]*\))?)\s*)?")
_MAX_STUB = 600  # characters; a longer one has a body
_END = re.compile(r"\n(?=[^\s)#\]])")


@dataclass(frozen=True, slots=True)
class Block:
    """The code block of a response that counts; ``code`` is empty unless ``closed``."""

    state: Literal["absent", "open", "closed"]
    code: str = ""


def code_block(response: str, tests: str = "") -> Block:
    """Find the block; its fences begin a line, or follow a tag, a colon or the like."""
    blocks = [part for block in _blocks(response) for part in _unwrapped(block)]
    used = used_names(tests) if len(blocks) > 1 else frozenset()

    def rank(block: _Fenced) -> tuple[int, int, bool]:
        own, stubs = _defined(visible(block.code), used) if used else (set(), set())
        if not block.is_closed:  # it may go on
            own |= stubs
        return len(own), len(stubs), block.language in _LANGUAGES

    if not blocks:
        return Block("absent")
    best = max(reversed(blocks), key=rank)  # of several that are equal, the first
    return Block("closed", best.code) if best.is_closed else Block("open")


def _defined(code: str, used: frozenset[str]) -> tuple[set[str], set[str]]:
    """Return which of the names a block defines, and which only as functions without a body."""
    last = {match[1] or match[2]: match for match in _DEFINED.finditer(code)}
    found = {name: last[name] for name in used & last.keys()}
    stubs = {name for name, match in found.items() if match[1] and _is_stub(code, match.end())}
    return found.keys() - stubs, stubs


def _is_stub(code: str, start: int) -> bool:
    """Return whether a header and at most ``...``, ``pass`` or a text follow a function's name."""
    part = code[start : start + _MAX_STUB]
    part = _TEXT.sub("", part)
    return _STUB.fullmatch(_END.split(part, maxsplit=1)[0]) is not None


class _Line:
    """A line split at its first fence: its margin, the text before that, the fence, the rest."""

    __slots__ = ("head", "info", "margin", "mark", "text")

    def __init__(self, text: str) -> None:
        self.text, self.head, self.mark, self.info, self.margin = text, "", "", "", 0
        if match := _FENCE.search(text):
            head = visible(text[: match.start()]).expandtabs(4)
            self.margin, self.head = len(head) - len(head.lstrip()), head.strip()
            self.mark, self.info = match[0], text[match.end() :].strip()

    @property
    def language(self) -> str:
        """The first word after the fence: python, of ``{.python title="a"}`` too."""
        match = _LANGUAGE.match(self.info)
        return match[1].lower() if match else ""

    @property
    def opens(self) -> bool:
        """Whether a block may begin here; tildes also underline titles and errors."""
        is_known = "`" in self.mark or self.language in _LANGUAGES
        is_after = self.head.endswith(_BEFORE) and (not self.info or _INFO.fullmatch(self.info))
        return is_known and "`" not in self.info and (not self.head or bool(is_after))

    @property
    def opens_next(self) -> bool:
        """Whether a block begins here though another was not closed.

        A comment may mention fences. After a fence, one word is a language, and more is prose.
        """
        return self.opens and "#" not in self.head and _INFO.fullmatch(self.info) is not None


@dataclass(slots=True)
class _Fenced:
    """A block, open until its end has been seen.

    Python has fences only in triple-quoted texts: there only a bare fence ends the block, and not
    one that is deeper by 4, as in a docstring.
    """

    begin: _Line
    lines: list[str] = field(default_factory=list)
    is_text: bool = False
    is_closed: bool = False

    @property
    def language(self) -> str:
        return self.begin.language

    @property
    def code(self) -> str:
        """The code as far as it goes, without the margin that its lines share."""
        margins = [
            line[: len(line) - len(line.lstrip(" \t"))] for line in self.lines if line.strip()
        ]
        margin = os.path.commonprefix(margins)
        return "\n".join(line.removeprefix(margin) for line in self.lines).strip("\n")

    def add(self, text: str) -> None:
        self.is_text ^= (text.count('"""') + text.count("'''")) % 2 == 1
        self.lines.append(text)

    def ends_at(self, line: _Line) -> bool:
        """Return whether its own closing fence is here."""
        if line.head or not self._is_near(line):
            return False
        return not line.info or not (self.is_text or line.opens_next or line.mark in line.info)

    def is_left_at(self, line: _Line) -> bool:
        """Return whether it will not be closed: the next begins here, or a thought has ended."""
        is_next = self._is_near(line) and line.opens_next and not self.is_text
        return is_next or _THOUGHT_END.match(line.text) is not None

    def _is_near(self, line: _Line) -> bool:
        return line.mark.startswith(self.begin.mark) and line.margin < self.begin.margin + 4


def _blocks(response: str) -> list[_Fenced]:
    """Return all blocks in order."""
    blocks: list[_Fenced] = []
    is_inside = False
    for line in map(_Line, LINE_END.split(response)):
        if is_inside and blocks[-1].ends_at(line):
            blocks[-1].is_closed, is_inside = True, False
        elif is_inside and not blocks[-1].is_left_at(line):
            blocks[-1].add(line.text)
        elif is_inside := line.opens:
            blocks.append(_Fenced(line))
    return blocks


def _unwrapped(block: _Fenced) -> list[_Fenced]:
    """Return the blocks in a block of text where one is Python, else the block itself."""
    if block.language not in _TEXT_LANGUAGES:
        return [block]
    inner = _blocks("\n".join(block.lines))
    return inner if any(each.language in _LANGUAGES for each in inner) else [block]
