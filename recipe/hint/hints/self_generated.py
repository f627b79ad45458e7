r"""Self-hints: the policy reads the reference solution and writes hints; find them in its response.

The response is never evaluated and never handed to a JSON library: it is read key by key, so
fences, prose, trailing commas and a missing last brace need no special case. The rules:

*Which object.* Drop everything up to the last ``</think>``. Of the objects that hold all levels
with text in them the last one counts, so drafts and an echo of the asked form lose. Without one,
the reason is that of the last object that names a level.

*Where a string ends.* At the first unescaped quote, if what follows it can follow a value. If
not, the writer forgot to escape, and inner double quotes are taken in pairs.

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

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.prompt import Message, Texts, fill
from recipe.hint.schema import HintLevels, ParseFailure
from recipe.problems.schema import Problem


class SelfGenerated:
    """Ask up to ``attempts`` times; every attempt is a new sample.

    Source: Liao et al. 2026, arXiv:2602.03143. The authors' release repeats one greedy text;
    here each attempt has a seed of its own (docs/lab/deviations.md#sage).
    """

    def __init__(self, *, texts: Texts, attempts: int, max_level: int) -> None:
        self._texts = texts
        self._attempts = attempts
        self._max_level = max_level

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the first response that parses.

        The final answer alone is never shown as a solution. A response without tokens means that
        the request did not fit: asking again would not help.
        """
        if not problem.solution.strip():
            return HintResult("missing_solution")
        request = hint_request(self._texts, problem.text, problem.solution)
        tokens, detail = 0, ""
        for attempt in range(self._attempts):
            written = await generate(request, attempt)
            if written.tokens == 0:
                return HintResult("generation_failed", calls=attempt, tokens=tokens)
            tokens += written.tokens
            parsed = parse_hint_levels(written.text, self._max_level)
            if not isinstance(parsed, ParseFailure):
                return HintResult("ok", parsed, attempt + 1, tokens)
            detail = f"{parsed.reason}: {parsed.excerpt}"
        return HintResult("parse_failed", calls=self._attempts, tokens=tokens, detail=detail)


def hint_request(texts: Texts, problem: str, solution: str) -> list[Message]:
    """Return the conversation that asks the policy for a set of hints."""
    return [
        {"role": "system", "content": texts.hint_system},
        {"role": "user", "content": fill(texts.hint_user, problem=problem, solution=solution)},
    ]


_EXCERPT_CHARS, _MAX_ITEMS = 200, 100
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
_SURELY_LAST = re.compile(r"\s*(?:,\s*)?\}\s*(?:\Z|```|~~~)")
_SCALAR = re.compile(r"null\b|None\b|-?\d[\d.eE+-]*")
_GAP = re.compile(r"\s*(?:,\s*)?")
_SPACE = re.compile(r"\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_QUOTE = re.compile(r"\\.|[\"“”„'‘’]", re.DOTALL)
_FAMILY = {**dict.fromkeys('"“”„', '"'), **dict.fromkeys("'‘’", "'")}
_CLOSES = {'"': '"', "'": "'", **dict.fromkeys("“”„", '”“"'), **dict.fromkeys("‘’", "’‘'")}


@dataclass(frozen=True, slots=True)
class _Value:
    """Undecoded text of one value: its strings, and where reading continues."""

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
        failure = failure or ParseFailure(reason, body[found.start : found.start + _EXCERPT_CHARS])
    if failure is None and objects:
        return ParseFailure("missing_level", body[objects[-1].start :][:_EXCERPT_CHARS])
    return failure or ParseFailure("no_object", body.strip()[:_EXCERPT_CHARS])


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
        """Return the undecoded string whose quote is at ``at``, and the position after it."""
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


# The commands of everyday mathematics that begin with b, f, n, r, t or u, where JSON has escapes.
_COMMANDS = frozenset(
    """
    backslash bar barwedge because begin beta beth between bf big bigcap bigcirc bigcup bigg biggl
    biggr bigl bigm bigoplus bigotimes bigr bigsqcup bigstar biguplus bigvee bigwedge binom
    blacksquare bm bmatrix bmod boldsymbol bot bowtie boxed bra brace brack breve bullet bumpeq
    fallingdotseq fbox fcolorbox flat floor footnote footnotesize forall frac frown
    nabla natural ncong ne nearrow neg neq newline nexists ngeq ngtr ni nleftarrow nleq nless nmid
    nolimits nonumber norm normalsize not notag notin nparallel nprec nrightarrow nsim nsubseteq
    nsucc nsupseteq ntriangleleft ntriangleright nu nvdash nwarrow
    raisebox rangle rbrace rbrack rceil ref rfloor rgroup rho right rightarrow rightarrowtail
    rightharpoondown rightharpoonup rightleftarrows rightleftharpoons rightrightarrows
    rightsquigarrow risingdotseq rm root rtimes rule rvert
    tag tan tanh tau tbinom tfrac text textbf textcolor textit textnormal textrm textsf textstyle
    texttt textup therefore theta thickapprox thicksim thinspace tilde times to top triangle
    triangledown triangleleft trianglelefteq triangleq triangleright trianglerighteq tt
    twoheadrightarrow
    underbrace underline underset uparrow updownarrow uplus upsilon
    """.split()
)

_ESCAPE = re.compile(r"\\(\\\\\\|\\|u[0-9a-fA-F]{4}|[A-Za-z]+|.)", re.DOTALL)
_HEX = re.compile(r"u[0-9a-fA-F]{4}")
_WORD = re.compile(r"[A-Za-z]+|.", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Style:
    """How the strings of one object use backslashes; ``delimiters`` are written doubled."""

    is_json: bool
    is_doubled: bool
    delimiters: frozenset[str]


def decode_together(strings: Sequence[str]) -> list[str]:
    """Return the texts the writer of ``strings`` meant; one style holds for all of them.

    Linear time. A surrogate without its partner becomes U+FFFD.
    """
    style = _style_of(strings)
    return [_decode(string, style) for string in strings]


def _style_of(parts: Iterable[str]) -> _Style:
    """Decide by the evidence of the module's docstring."""
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
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _word_at(text: str, at: int) -> str:
    match = _WORD.match(text, at)
    return match[0] if match else ""


def _is_command(body: str) -> bool:
    r"""Return whether a single backslash begins LaTeX here; ``\b`` and ``\f`` are never meant."""
    return body in _COMMANDS or (body[0] in "bf" and len(body) > 1)
