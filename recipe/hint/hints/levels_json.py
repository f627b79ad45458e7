r"""Find a set of hints in a model's response: JSON, or what a model takes for it.

*Which object.* Drop everything up to the last ``</think>``. Of the objects that hold all levels
with text in them the last one counts, so drafts and an echo of the asked form lose. Objects that
the ``json`` module reads come first; ``json_repair`` mends the others (single quotes, quotes that
are not escaped, missing commas or braces), and a text that it made up or did not see the end of is
refused. Backslashes are hidden from both.

*Backslashes.* ``\nu`` is a newline and a ``u`` in JSON, and a letter in LaTeX, so the strings of
one object are read together. They are **escaped**, and decoded as JSON, when a doubled backslash
stands before two letters or more, or around brackets (``\\frac``, ``\\( .. \\)``), or four stand in
a row, and no escape is invalid in JSON; also when nothing looks like LaTeX with single backslashes.
They are **unescaped** when an escape is invalid in JSON (``\sqrt``), or when none is doubled and
``\n \r \t`` begins a known command or ``\b \f`` any word. Then every command keeps its backslash,
``\n`` before anything else is a newline, and ``\\`` stays a LaTeX line break, except before two
letters or more: such a writer doubled some and forgot others. Not covered: a writer who doubled
some commands and forgot only ones that JSON can read (``\\frac .. \theta``); the second becomes a
tab. Valid JSON is never changed for its sake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_EXCERPT_CHARS = 200
_MAX_CHARS = 20_000  # of the end of a response; mending is slow
_MAX_OBJECTS, _MAX_OPEN = 16, 64  # the last ones are tried, without many braces left open
_LEVEL = re.compile(r"\s*(?:hint[\s_-]?)?level[\s_-]{0,3}(\d{1,2})(?:[\s_-]?hint)?\s*", re.I)
_Q = "\"'“”"
_OBJECT = re.compile(rf"\{{\s*(?:[{_Q}][^{_Q}\n{{}}]{{1,60}}[{_Q}]|[\w-]{{1,60}})\s*:")
# Neither reader sees a backslash: `\"` (or `\'`) and any other are one letter each.
_BACKSLASH, _DOUBLE, _SINGLE = "\ue000", "\ue001", "\ue002"
_HIDDEN = {'\\"': _DOUBLE, "\\'": _SINGLE}
_ESCAPED = re.compile(r"\\[\"'\\]?")
_DECODER = json.JSONDecoder(strict=False)  # with line breaks in strings


class _Unreadable(Exception):
    """A value that is no text, or no whole one."""


def parse_hint_levels(text: str, max_level: int = 3) -> tuple[str, ...] | str:
    """Return ``level_1`` .. ``level_<max_level>`` of a response.

    The module's docstring has the rules. Where there are none: the reason, a colon and an excerpt
    of the object or, without one, of the response. Reasons are ``no_object`` (no object with a
    key), ``missing_level``, ``empty_level`` (blank, null or just dots) and ``malformed`` (a value
    has no end).
    """
    body = text.rpartition("</think>")[2][-_MAX_CHARS:]
    hidden = re.sub(f"[{_BACKSLASH}{_DOUBLE}{_SINGLE}]", "\ufffd", body)
    hidden = _ESCAPED.sub(lambda each: _HIDDEN.get(each[0], _BACKSLASH * len(each[0])), hidden)
    starts = [match.start() for match in _OBJECT.finditer(hidden)][-_MAX_OBJECTS:]
    if not starts:
        return f"no_object: {body.strip()[:_EXCERPT_CHARS]}"
    failure = ""
    for start, found, is_mended in _objects(hidden, starts):
        reason, hints_L = _check(found, max_level, hidden[start:] if is_mended else "")
        if not reason:
            return hints_L
        if not failure and any(map(_LEVEL.fullmatch, found)):
            failure = f"{reason}: {_shown(hidden[start:])[:_EXCERPT_CHARS]}"
    return failure or f"missing_level: {_shown(hidden[starts[-1] :])[:_EXCERPT_CHARS]}"


def _shown(text: str) -> str:
    text = text.replace(_DOUBLE, '\\"').replace(_SINGLE, "\\'")
    return text.replace(_BACKSLASH, "\\")


def _objects(text: str, starts: Sequence[int]) -> Iterator[tuple[int, dict[str, Any], bool]]:
    whole: set[int] = set()
    for start in reversed(starts):
        try:
            found, _ = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        whole.add(start)
        yield start, found, False
    import json_repair  # where it is needed

    for start, end in reversed(list(zip(starts, [*starts[1:], len(text)], strict=True))):
        num_open = text.count("{", start, end) - text.count("}", start, end)
        if start in whole or num_open > _MAX_OPEN:
            continue
        try:
            found = json_repair.loads(text[start:end], skip_json_loads=True)
        except (ValueError, RecursionError):
            continue
        for each in found if isinstance(found, list) else [found]:
            if isinstance(each, dict):
                yield start, each, True


def _check(found: dict[str, Any], max_level: int, source: str) -> tuple[str, tuple[str, ...]]:
    levels = {int(name[1]): each for key, each in found.items() if (name := _LEVEL.fullmatch(key))}
    if not {*range(1, max_level + 1)} <= levels.keys():
        return "missing_level", ()
    try:
        texts = [_text(levels[level], source) for level in range(1, max_level + 1)]
    except _Unreadable:
        return "malformed", ()
    style = _style_of(texts)  # one holds for all of them
    hints_L = tuple(_decode(text, style) for text in texts)
    if any(not hint.strip() or hint.strip() in ("...", "…") for hint in hints_L):
        return "empty_level", ()
    return "", hints_L


def _text(value: Any, source: str) -> str:
    if isinstance(value, list):
        return "\n".join(_text(each, source) for each in value)
    if value is None:
        return ""
    if isinstance(value, str):
        own = rf"\s*{re.escape(value)}\s*"
        if source and not re.search(rf"([\"']){own}\1|[“”]{own}[“”]", source):
            raise _Unreadable
        return _shown(value)
    if isinstance(value, dict | bool):
        raise _Unreadable
    return str(value)


# The commands of everyday mathematics that begin with n, r or t, where JSON has escapes; after b
# and f any word is taken for one.
_COMMANDS = frozenset(
    """
    nabla natural ncong ne nearrow neg neq newline nexists ngeq ngtr ni nleftarrow nleq nless nmid
    nolimits nonumber norm normalsize not notag notin nparallel nprec nrightarrow nsim nsubseteq
    nsucc nsupseteq nu nwarrow raisebox rangle rbrace rbrack rceil ref rfloor rho right rightarrow
    rightharpoonup rightleftharpoons risingdotseq rm root rtimes rule rvert tag tan tanh tau tbinom
    text textbf textcolor textit textnormal textrm textsf textstyle texttt textup tfrac therefore
    theta thickapprox thicksim thinspace tilde times to top triangle triangleleft triangleq
    triangleright tt twoheadrightarrow
    """.split()
)
_ESCAPE = re.compile(r"\\(\\\\\\|\\|u[0-9a-fA-F]{4}|[A-Za-z]+|.)", re.DOTALL)
_HEX = re.compile(r"u[0-9a-fA-F]{4}")
_WORD = re.compile(r"[A-Za-z]+|.", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Style(NamedTuple):
    """How the strings of one object use backslashes; ``delimiters`` are written doubled."""

    is_json: bool
    is_doubled: bool
    delimiters: frozenset[str]


def _style_of(parts: Sequence[str]) -> _Style:
    # By the evidence of the module's docstring.
    after_double: set[str] = set()
    is_doubled = is_invalid = is_like_latex = False
    for part in parts:
        for match in _ESCAPE.finditer(part):
            body = match[1]
            if body == "\\":
                after_double.add(_word_at(part, match.end()))
            elif body == "\\\\\\":
                is_doubled = True
            elif body[0] in _CONTROL:
                is_like_latex |= _is_command(body)
            elif body[0] not in "\"'/" and not _HEX.fullmatch(body):
                is_invalid = True
    pairs = ("()", "[]", "{}")
    delimiters = frozenset(char for pair in pairs if after_double >= set(pair) for char in pair)
    is_doubled |= bool(delimiters) or any(len(word) > 1 for word in after_double)
    return _Style(not is_invalid and (is_doubled or not is_like_latex), is_doubled, delimiters)


def _decode(part: str, style: _Style) -> str:
    def resolve(match: re.Match[str]) -> str:
        body = match[1]
        if body == "\\\\\\":
            return "\\\\" if style.is_json or style.is_doubled else match[0]
        if body == "\\":
            word = _word_at(part, match.end())
            is_one = style.is_json or len(word) > 1 or word in style.delimiters
            return "\\" if is_one else match[0]
        if _HEX.fullmatch(body):
            return chr(int(body[1:], 16))
        if body in "\"'/":
            return body
        if body[0] in _CONTROL and (style.is_json or not _is_command(body)):
            return _CONTROL[body[0]] + body[1:]
        return match[0]

    text = _ESCAPE.sub(resolve, part)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _word_at(text: str, at: int) -> str:
    match = _WORD.match(text, at)
    return match[0] if match else ""


def _is_command(body: str) -> bool:
    return body in _COMMANDS or (body[0] in "bf" and len(body) > 1)
