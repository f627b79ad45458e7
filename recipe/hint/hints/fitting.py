"""Where a text may be cut: between sentences or pieces, never inside mathematics or a command."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator

# Letters of scripts that put no spaces between words: Thai to Khmer, kana, Chinese characters.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# A sentence ends at . ! ? or the like before white space (a closing dollar or bracket may come
# between), at a full-width one at once, or at a line break; 3.14 does not end one.
_CLOSERS = r")\]）」』】》”’»"
_SENTENCE_END = re.compile(
    rf"[.!?।॥۔؟][$\"'{_CLOSERS}]*(?=\s)|(?:[。！？｡]|．(?!\d))[。！？｡{_CLOSERS}]*|\n+"
)
# A word, or a letter of such a script with the marks after it.
_WORD_END = re.compile(rf"[{UNSPACED}][^\w\s$\\(\[{{（「『【《“‘]*|[^\s{UNSPACED}]+")
# A command's arguments, with braces in braces; what is never closed reaches to the end.
_BRACED = r"\{(?:[^{}\\]|\\.)*+(?:\}|\Z)"
for _ in range(5):
    _BRACED = rf"\{{(?:[^{{}}\\]|\\.|{_BRACED})*+(?:\}}|\Z)"
# What must not be cut.
_ATOM = re.compile(
    r"""\\begin\{([^{}]*)\}.*?(?:\\end\{\1\}|\Z)
    | \\\[.*?(?:\\\]|\Z) | \\\(.*?(?:\\\)|\Z) | \$\$.*?(?:\$\$|\Z) | \[asy\].*?(?:\[/asy\]|\Z)
    | (?P<dollar>\$(?:[^$\\]|\\.)*+\$)
    | \\(?:[A-Za-z]+\*?|.|\Z)"""
    + rf"(?:\[[^\]]{{0,300}}+\]|{_BRACED})*+",
    re.VERBOSE | re.DOTALL,
)
_BEGINS_FORMULA = re.compile(r"[\w\\({\[-]")


class SafeEnds:
    r"""The places at which a prefix of ``text`` may end.

    Not inside ``$...$``, ``$$...$$``, ``\(...\)``, ``\[...\]``, an environment, an ``[asy]``
    drawing, or a command with its arguments. A dollar sign that is a price ("$5 each") opens
    nothing.
    """

    def __init__(self, text: str) -> None:
        self._spans = list(_spans(text))
        self._starts = [start for start, _ in self._spans]

    def before(self, end: int) -> int:
        """Return the last place at or before ``end``."""
        start, stop = self._around(end)
        return start if start < end < stop else end

    def after(self, end: int) -> int:
        """Return the first place at or after ``end``."""
        start, stop = self._around(end)
        return stop if start < end < stop else end

    def _around(self, end: int) -> tuple[int, int]:
        index = bisect.bisect_left(self._starts, end) - 1
        return self._spans[index] if index >= 0 else (0, 0)


def sentence_ends(text: str) -> list[int]:
    """Return the ends of a text's sentences, in order; the last one may be unfinished."""
    ends, safe = [0], SafeEnds(text)
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        if safe.before(end) == end and text[ends[-1] : end].strip():
            ends.append(end)
    return ends[1:]


def cut_at_sentence(hint: str, fits: Callable[[str], bool]) -> str:
    """Return the longest run of leading sentences for which ``fits`` holds; may be empty.

    ``fits`` must be monotone: if a text fits, so does every prefix of it. It is called
    O(log sentences) times.
    """
    if fits(hint):
        return hint
    ends = [end for end in sentence_ends(hint) if end < len(hint)]
    count = bisect.bisect_left(ends, True, key=lambda end: not fits(hint[:end].rstrip()))
    return hint[: ends[count - 1]].rstrip() if count else ""


def cut_into(text: str, pieces: int) -> tuple[str, ...]:
    """Return ``pieces`` beginnings, each about one piece longer; the last is the whole text.

    They end after whole words (in a script without spaces: after letters), and where a command or a
    formula ends. A text with fewer words than pieces gives some beginnings twice.
    """
    safe = SafeEnds(text)
    ends = [match.end() for match in _WORD_END.finditer(text)]
    ends = [end for end in ends if safe.before(end) == end] or [len(text)]
    count = len(ends)
    chosen = [ends[max(-(-count * number // pieces), 1) - 1] for number in range(1, pieces)]
    return (*(text[:end] for end in chosen), text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    while match := _ATOM.search(text, place):
        start, end = match.span()
        if match["dollar"]:
            # The first of two dollar signs opens no formula where the second one stands before a
            # digit ("$5 and $6") or looks like an opening: white space before it and none after it.
            after = text[end : end + 1]
            is_spaced = text[end - 2].isspace() and not text[start + 1].isspace()
            if after.isdigit() or (is_spaced and _BEGINS_FORMULA.match(after)):
                end = start
        if end > start + 1:
            yield start, end
        place = max(end, start + 1)
