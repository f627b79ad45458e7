"""Finding the hint levels in what a model really writes.

The response is never evaluated and never handed to a JSON library: it is read key by key, so
fences, prose, trailing commas and a missing last brace need no special case. The rules:

*Which object.* Everything up to the last ``</think>`` is dropped. Of the objects that hold all
levels with text in them the last one counts, so drafts and an echo of the asked form lose.
Without one, the reason is that of the last object that names a level.

*Where a string ends.* At the first unescaped quote, if what follows it can follow a value. If
not, the writer forgot to escape, and inner double quotes are taken in pairs.

*Backslashes* are the business of :mod:`recipe.hint.hints.escapes`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from recipe.hint.hints.escapes import decode_together
from recipe.hint.schema import HintLevels, ParseFailure

_EXCERPT_CHARS = 200
_MAX_ITEMS = 100

_Q = "\"'“”„‘’`"
_NAME = r"(?:hint[\s_-]?)?level[\s_-]{0,3}\d{1,2}(?:[\s_-]?hint)?"
_KEY = re.compile(
    rf"[{{,]\s*[{_Q}](?P<any>[^{_Q}\\\n{{}}]{{1,60}})[{_Q}]\s*:"
    rf"|(?<!\\)[{_Q}](?P<quoted>{_NAME})[{_Q}]\s*:"
    rf"|(?<=[{{,\s])(?P<bare>{_NAME})\s*:",
    re.IGNORECASE,
)
_LEVEL_KEY = re.compile(
    rf"(?<!\\)[{_Q}]\s?{_NAME}\s?[{_Q}]\s*:|(?<=[{{,\s]){_NAME}\s*:", re.IGNORECASE
)
_LEVEL = re.compile(rf"\s*{_NAME}\s*", re.IGNORECASE)
# What can follow a value of an object, an item of a list, and surely the last value.
_ANY_KEY = rf'(?:"(?:[^"\\]|\\.){{0,200}}"|[{_Q}][^{_Q}\n]{{1,60}}[{_Q}]|{_NAME})\s*:'
_AFTER_VALUE = re.compile(
    rf"\s*(?:\}}|\Z|```|~~~|,\s*(?:\}}|\Z|```|~~~|{_ANY_KEY})|[{_Q}]?\s?{_NAME}\s?[{_Q}]?\s*:)",
    re.IGNORECASE | re.DOTALL,
)
_AFTER_ITEM = re.compile(rf"\s*(?:[\])]|,\s*(?:[\])]|[{_Q}]|[-\d]))")
_SURELY_LAST = re.compile(r"\s*,?\s*\}\s*(?:\Z|```|~~~)")
_SCALAR = re.compile(r"null\b|None\b|-?\d[\d.eE+-]*")
_GAP = re.compile(r"\s*,?\s*")
_SPACE = re.compile(r"\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_QUOTE = re.compile(r"\\.|[\"“”„'‘’]", re.DOTALL)
_FAMILY = {**dict.fromkeys('"“”„', '"'), **dict.fromkeys("'‘’", "'")}
_CLOSES = {'"': '"', "'": "'", **dict.fromkeys("“”„", '”“"'), **dict.fromkeys("‘’", "’‘'")}


@dataclass(frozen=True, slots=True)
class _Value:
    """Undecoded text of one value: its strings, and where the reader goes on."""

    parts: tuple[str, ...]
    end: int
    is_verbatim: bool = False


@dataclass(slots=True)
class _Object:
    """Values by level of one object; a level whose value could not be read holds None."""

    start: int
    levels: dict[int, _Value | None] = field(default_factory=dict)


def parse_hint_levels(text: str, max_level: int = 3) -> HintLevels | ParseFailure:
    """Return ``level_1`` .. ``level_<max_level>`` of a response, in linear time.

    Accepted: JSON or a Python dict with any of its quotes (triple and typographic ones too), keys
    in any case and with spaces, other keys, numbers, and lists (joined by newlines). The module's
    docstring has the rules.

    Returns:
        The hint levels, or a failure whose reason is ``no_object`` (no object with a key),
        ``missing_level``, ``empty_level`` (blank, null or just dots) or ``malformed`` (a value has
        no end), with at most 200 characters of the object or, without one, of the response.
    """
    body = text.rpartition("</think>")[2]
    wanted = range(1, max_level + 1)
    objects = sorted(_objects(body), key=lambda item: item.start)
    failure = None
    for found in reversed([item for item in objects if item.levels]):
        reason, hints_L = _check(found, wanted)
        if not reason:
            return HintLevels(hints_L)
        failure = failure or ParseFailure(reason, _excerpt(body, found.start))
    if failure is None and objects:
        return ParseFailure("missing_level", _excerpt(body, objects[-1].start))
    return failure or ParseFailure("no_object", _excerpt(body.strip(), 0))


def _excerpt(text: str, start: int) -> str:
    return text[start : start + _EXCERPT_CHARS]


def _check(found: _Object, wanted: range) -> tuple[str, tuple[str, ...]]:
    """Return why an object holds no hints (empty: it does) and its texts."""
    values = {level: value for level, value in found.levels.items() if level in wanted}
    if None in values.values():
        return "malformed", ()
    if len(values) < len(wanted):
        return "missing_level", ()
    hints_L = _texts([value for level in wanted if (value := values[level])])
    if any(not hint.strip() or hint.strip() in ("...", "…") for hint in hints_L):
        return "empty_level", ()
    return "", hints_L


def _texts(values: list[_Value]) -> tuple[str, ...]:
    written = [part for value in values if not value.is_verbatim for part in value.parts]
    decoded = iter(decode_together(written))
    return tuple(
        "\n".join(part if value.is_verbatim else next(decoded) for part in value.parts)
        for value in values
    )


def _objects(text: str) -> Iterator[_Object]:
    """Yield every object with at least one key, inner ones before the outer one they are in."""
    reader = _Reader(text)
    # An int is the position of a brace that has shown no key yet.
    open_braces: list[int | _Object] = []
    at = 0
    while key := _KEY.search(text, at):
        kind = key.lastgroup or "any"
        yield from _follow_braces(text, (at, key.start(kind)), open_braces)
        at = key.end()
        if not open_braces:
            continue
        top = open_braces[-1]
        found = top if isinstance(top, _Object) else _Object(top)
        open_braces[-1] = found
        is_level = kind != "any" or bool(_LEVEL.fullmatch(key[kind]))
        value = reader.value(at, is_level)
        if is_level and (value or kind != "bare"):
            found.levels[int("".join(filter(str.isdecimal, key[kind])))] = value
        at = value.end if value else at
    yield from (item for item in open_braces if isinstance(item, _Object))


def _follow_braces(
    text: str, span: tuple[int, int], open_braces: list[int | _Object]
) -> Iterator[_Object]:
    """Open and close objects over ``span``, which holds no value; yields the closed ones."""
    for brace in _BRACE.finditer(text, *span):
        if brace[0] == "{":
            open_braces.append(brace.start())
        elif brace[0] == "}" and open_braces:
            closed = open_braces.pop()
            if isinstance(closed, _Object):
                yield closed


class _Reader:
    """Reads values; the positions of all quotes are known, so no search is made twice."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._quotes: dict[str, list[int]] = {'"': [], "'": []}
        for match in _QUOTE.finditer(text):
            if match[0] in _FAMILY:
                self._quotes[_FAMILY[match[0]]].append(match.start())

    def value(self, at: int, is_level: bool) -> _Value | None:
        """Return the value that begins at or after ``at``; only a level's is worth a repair."""
        at = self._skip(_SPACE, at)
        is_verbatim = self._text[at : at + 1] in ("r", "R") and self._is_quote(at + 1)
        at += is_verbatim
        if self._is_quote(at):
            limit = self._next_level(at) if is_level else at
            string = self._string(at, _AFTER_VALUE, limit)
            return string and _Value((string[0],), string[1], is_verbatim)
        if is_level and self._text[at : at + 1] in ("[", "("):
            return self._list(at + 1)
        scalar = _SCALAR.match(self._text, at)
        if scalar and _AFTER_VALUE.match(self._text, scalar.end()):
            is_null = scalar[0] in ("null", "None")
            return _Value(("" if is_null else scalar[0],), scalar.end(), is_verbatim=True)
        return None

    def _skip(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self._text, at)
        return match.end() if match else at

    def _is_quote(self, at: int) -> bool:
        return self._text[at : at + 1] in _FAMILY

    def _next_level(self, at: int) -> int:
        match = _LEVEL_KEY.search(self._text, at)
        return match.start() if match else len(self._text)

    def _list(self, at: int) -> _Value | None:
        items: list[str] = []
        limit = self._next_level(at)
        at = self._skip(_SPACE, at)
        while self._text[at : at + 1] not in ("]", ")"):
            if self._is_quote(at):
                string = self._string(at, _AFTER_ITEM, limit)
            else:
                scalar = _SCALAR.match(self._text, at)
                string = scalar and (scalar[0], scalar.end())
            if not string or len(items) == _MAX_ITEMS:
                return None
            items.append(string[0])
            at = self._skip(_GAP, string[1])
        return _Value(tuple(items), at + 1)

    def _string(self, at: int, after: re.Pattern[str], limit: int) -> tuple[str, int] | None:
        """Return the undecoded string that opens at ``at``, and the position behind it."""
        text, quote = self._text, self._text[at]
        triple = quote * 3
        if quote in "\"'" and text.startswith(triple, at):
            close = text.find(triple, at + 3)
            return None if close < 0 else (text[at + 3 : close], close + 3)
        places = self._quotes[_FAMILY[quote]]
        first = bisect_right(places, at)
        near, closing = first, _CLOSES[quote]
        while near < len(places) and text[places[near]] not in closing:
            near += 1
        close = places[near] if near < len(places) else -1
        if close < 0 or not after.match(text, close + 1):
            close = self._repair(places[first : bisect_left(places, limit)], after, quote)
        return None if close < 0 else (text[at + 1 : close], close + 1)

    def _repair(self, places: list[int], after: re.Pattern[str], quote: str) -> int:
        """Return the closing quote of a string with unescaped quotes in it, or -1."""
        doubtful, is_paired = -1, True
        for place in places:
            if after.match(self._text, place + 1):
                # An apostrophe has no partner, so single quotes cannot be counted.
                is_sure = is_paired or _FAMILY[quote] == "'"
                if is_sure or _SURELY_LAST.match(self._text, place + 1):
                    return place
                doubtful = place if doubtful < 0 else doubtful
            is_paired = not is_paired
        return doubtful
