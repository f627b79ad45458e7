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
# What opens something that must not be cut, in the order in which it is tried at one place.
_OPENING = re.compile(
    r"""\\begin\{(?P<environment>[^{}]*)\}
    | (?P<display>\\\[ | \\\( | \$\$)
    | (?P<dollar>\$)
    | (?P<drawing>\[asy\])
    | (?P<command>\\(?:[A-Za-z]+\*?|.|$))""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"\\[": "\\]", "\\(": "\\)", "$$": "$$", "[asy]": "[/asy]"}
_BEGINS_FORMULA = re.compile(r"[\w\\({\[-]")
_DOLLAR = re.compile(r"(?<!\\)(?:\\\\)*(\$)")


class SafeEnds:
    r"""The places at which a prefix of ``text`` may end.

    Not inside ``$...$``, ``$$...$$``, ``\(...\)``, ``\[...\]``, an environment, an ``[asy]``
    drawing, or a command with its arguments. A dollar sign that is a price ("$5 each") opens
    nothing. What is never closed reaches to the end of the text.
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
    while match := _OPENING.search(text, place):
        end = _end_of(text, match)
        if end > match.start() + 1:
            yield match.start(), end
        place = max(end, match.start() + 1)


def _end_of(text: str, match: re.Match[str]) -> int:
    """Return the end of what opens at ``match``; the place of the match if it opens nothing."""
    kind = match.lastgroup
    if kind == "environment":
        return _end_of_environment(text, match)
    if kind == "dollar":
        return _end_of_dollar(text, match.start())
    if kind == "command":
        return _end_of_command(text, match.end())
    closing = _CLOSING[match[0]]
    found = text.find(closing, match.end())
    return found + len(closing) if found >= 0 else len(text)


def _end_of_environment(text: str, match: re.Match[str]) -> int:
    name, depth = re.escape(match["environment"]), 0
    for each in re.compile(rf"\\(begin|end)\{{{name}\}}").finditer(text, match.start()):
        depth += 1 if each[1] == "begin" else -1
        if depth == 0:
            return each.end()
    return len(text)


def _end_of_dollar(text: str, start: int) -> int:
    """Return the end of the formula that a dollar sign opens; ``start`` if it is a price.

    It is one when no sign closes it, when the next sign stands before a digit ("$5 and $6"), or
    when that one looks like an opening: white space before it and none after it.
    """
    closing = _DOLLAR.search(text, start + 1)
    if closing is None:
        return start
    end = closing.end()
    after = text[end : end + 1]
    is_spaced = text[end - 2].isspace() and not text[start + 1].isspace()
    if after.isdigit() or (is_spaced and _BEGINS_FORMULA.match(after)):
        return start
    return end


def _end_of_command(text: str, end: int) -> int:
    """Return ``end`` moved past the braces and brackets that follow at once."""
    while end < len(text) and text[end] in "{[":
        closed = _end_of_braces(text, end) if text[end] == "{" else text.find("]", end) + 1
        if not closed:
            return end if text[end] == "[" else len(text)
        end = closed
    return end


def _end_of_braces(text: str, start: int) -> int:
    """Return the place after the brace that closes the one at ``start``; 0 if there is none."""
    depth, place = 0, start
    while place < len(text):
        char = text[place]
        if char == "\\":
            place += 1
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return place + 1
        place += 1
    return 0
