r"""The leak guard: count, drop or redact hints that give the final answer away.

An answer that is a number is looked for in one scan (digits, fractions, words such as forty-eight).
A common or given number counts only where it is presented as a result: after ``=``, "is", "leaves"
and the like, in a box, or as the whole hint. Any other answer is looked for as its own text, and in
formulas, which the verifier compares. Options count by their letter, programs where a code block
passes the tests. Operands (the 3 of ``3x`` or ``3 + 4``) do not count. The work is linear in the
hint. docs/hints.md has precision and recall.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.schema import HintLevels
from recipe.problems.schema import Problem
from recipe.verify.schema import Item, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (problem, candidates) -> whether each of them equals the answer, or is a program that passes.
Equal = Callable[[Problem, Sequence[str]], Awaitable[list[bool]]]
GradeMany = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"
_MOST_CANDIDATES, _MOST_CHARS, _WINDOW_CHARS = 32, 200, 60
_MOST_BLOCKS = 6  # of a hint that are tried, each for as long as a program may run
# Numbers that stand in too many hints by chance.
_COMMON = {*map(Fraction, range(13)), *map(Fraction, (60, 90, 100, 180, 360, 1000)), Fraction(1, 2)}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: number for number, word in enumerate(_ONES)}
_WORDS |= {ten: 20 + 10 * number for number, ten in enumerate(_TENS)}
_WORDS |= {"dozen": 12, "one hundred": 100, "one half": Fraction(1, 2), "half": Fraction(1, 2)}
_WORDS |= {
    f"{one} {part}": Fraction(_WORDS[one], parts)
    for parts, part in ((3, "third"), (4, "quarter"), (5, "fifth"), (6, "sixth"), (8, "eighth"))
    for one in _ONES[1:8]
    for part in (part, f"{part}s")
}
_WORDS |= {f"{ten}-{one}": _WORDS[ten] + _WORDS[one] for ten in _TENS for one in _ONES[1:10]}
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)}\]\s])-|(?<=\s)-(?=\d)|^-)?(?:"
    r"\\[dt]?frac\s?(?:\{(?P<top>-?\d{1,9})\}\s?\{(?P<bottom>-?\d{1,9})\}|(?P<one>\d)(?P<two>\d))"
    r"|(?P<digits>\d{1,3}(?:(?:,|\{,\}|\\,)\d{3}){1,5}(?!\d)|\d{1,18})(?P<decimals>\.\d{1,18})?"
    r"(?:\s?/\s?(?P<over>\d{1,9})(?![\d/]))?"
    rf"|\b(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b)"
    r"(?P<percent>\s?(?:\\?%|percent\b))?",
    re.I,
)
_OPERATOR = r"[-+*/^×÷·•−]|\\(?:times|cdot|div|pm)|(?:times|plus|minus|divided|over)\b"
_OPERAND_BEFORE = re.compile(rf"(?:[\w)}}](?:\s*(?:{_OPERATOR})\s*)|\w|\^\s*|\^\{{|_)$", re.I)
_OPERAND_AFTER = re.compile(rf"\s*(?:{_OPERATOR})\s*[\w\\(]|[a-z]\b|\^", re.I)
_PRESENTED = re.compile(
    r"(?:=|≈|≡|→|\\equiv|\\to|\\implies|\\Rightarrow|:|\b(?:is|are|be|equals?|gives?|giving|leaves?|leaving|"
    r"left with|makes?|making|gets?|got|yields?|totals?|result|remain|answer|becomes?|comes? to|"
    r"costs?|has|have|needs?|takes?|exactly|altogether|therefore|so|then|find|obtain|reach(?:es)?|"
    r"to|by|of|for|at)\b)[\s$*_(\\\[{]*(?:(?:text|mathbf|boxed|only|just|exactly|the|about|"
    r"number|value)[\s{:]*)*\$?$",
    re.I,
)
_MODULUS = re.compile(r"mod(?:\}|\s|\{)*$")
_STRONG = re.compile(
    r"(?:answer|result|solution|boxed|final)\b[^.\n]{0,30}$|=\s*\$?\s*$|\bequals?\s*$", re.I
)
_ENDS = re.compile(
    r"[\s$*_)}\]%°]*(?:\\%|\\text\{|[a-z]+\s*){0,3}[\s$*_)}\]]*(?:[.,;!?\n]|$)", re.I
)
_FORMULA = re.compile(
    r"\\boxed\{((?:[^{}]|\{[^{}]*\}){1,200})\}|\$\$?([^$]{1,400})\$|\\[(\[](.{1,300}?)\\[)\]]", re.S
)
_VALUE = re.compile(r"(?:\bis|\bare|\bbe|:|=)\s+([^.;!?\n$]{1,80})")
_BLOCK = re.compile(r"(?:```|~~~).*?(?:```|~~~)", re.S)


@dataclass(frozen=True, slots=True)
class Leak:
    """The answer at ``start:end`` of a hint."""

    start: int
    end: int


class LeakGuard:
    """A source of hints whose every level is checked for the final answer.

    Levels that hold it are named in ``leaked``. ``measure`` changes nothing. ``drop`` empties their
    text: a round at such a level has the status ``leaked`` and no turns. ``redact`` puts ``[...]``
    for each leaking value and leaves every other character as it is.
    """

    def __init__(self, source: HintSource, policy: LeakPolicy, equal: Equal) -> None:
        self._source = source
        self._equal = equal
        self._used = {
            "measure": lambda hint, leaks: hint,
            "drop": lambda hint, leaks: "" if leaks else hint,
            "redact": redact,
        }[policy]

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the source's hint levels as the policy lets them be used."""
        result = await self._source.write(problem, generate, num_before=num_before)
        hints_L = result.hint_levels.hints_L
        found_L = await find_leaks(hints_L, problem, self._equal)
        return replace(
            result,
            hint_levels=HintLevels(tuple(map(self._used, hints_L, found_L))),
            leaked=tuple(level for level, leaks in enumerate(found_L, 1) if leaks),
        )


def redact(hint: str, leaks: Sequence[Leak]) -> str:
    """Replace the leaking spans, which do not overlap."""
    for leak in sorted(leaks, key=lambda each: each.start, reverse=True):
        hint = hint[: leak.start] + REDACTED + hint[leak.end :]
    return hint


def graded_equal(grade: GradeMany) -> Equal:
    """Return equality by a verifier of boxed answers and of programs; ungraded is not equal."""

    async def equal(problem: Problem, candidates: Sequence[str]) -> list[bool]:
        shape = "{}" if problem.kind == "program" else r"\boxed{{{}}}"
        kind = "program" if problem.kind == "program" else "maths"
        items = [Item(shape.format(each), problem.answer, kind=kind) for each in candidates]
        return [verdict.score > 0 for verdict in await grade(items)]

    return equal


async def find_leaks(
    hints: Sequence[str], problem: Problem, equal: Equal
) -> list[tuple[Leak, ...]]:
    """Return the leaking spans of each hint of a problem; the verifier is asked once for all."""
    answer = _unwrapped(problem.answer)
    if not answer:
        return [()] * len(hints)
    if problem.kind == "program":
        found_L = (itertools.islice(_BLOCK.finditer(hint), _MOST_BLOCKS) for hint in hints)
        spans = [[each.span() for each in found] for found in found_L]
    elif problem.kind == "choice" or re.fullmatch(r"\([A-Z]\)", answer):
        # An answer of one letter; the texts of the options are not looked for.
        found = [_options(hint, answer.strip("()")) for hint in hints]
        return [_apart(row) for row in found]
    elif (value := _value_of(answer)) is not None:
        is_rare = value not in _COMMON and value not in {each for _, each in _numbers(problem.text)}
        return [_apart(_number_leaks(hint, value, is_rare=is_rare)) for hint in hints]
    else:
        spans = [list(_formulas(hint)) for hint in hints]
    texts = [
        [hint[start:end] for start, end in row] for hint, row in zip(hints, spans, strict=True)
    ]
    unique = list(dict.fromkeys(text for row in texts for text in row))
    same = await equal(problem, unique) if unique else []
    passing = {text for text, is_same in zip(unique, same, strict=True) if is_same}
    given = _squeezed(problem.text)
    passing = {
        text for text in passing if problem.kind == "program" or _squeezed(text) not in given
    }
    own = [] if problem.kind == "program" else [_own_text(hint, answer, problem) for hint in hints]
    return [
        _apart([span for span, text in zip(row, row_texts, strict=True) if text in passing] + more)
        for row, row_texts, more in zip(spans, texts, own or [[]] * len(hints), strict=True)
    ]


@functools.lru_cache(maxsize=64)
def _value_of(answer: str) -> Fraction | None:
    """Return the answer where it is one number, with a unit or without."""
    if len(answer) > _MOST_CHARS:
        return None
    found = [each for _, each in _numbers(answer)]
    rest = _NUMBER.sub("", answer)
    is_alone = not re.search(
        r"^[A-Z]|[A-Za-z]\w*\s*[-+^=(]|[-+*^=,;:()\[\]{}\\|<>]", rest.rstrip("\\% ")
    )
    return found[0] if len(found) == 1 and is_alone and len(rest.split()) <= 2 else None


def _numbers(text: str) -> Iterator[tuple[re.Match[str], Fraction]]:
    for match in _NUMBER.finditer(text):
        if match["word"]:
            value = Fraction(_WORDS[match["word"].lower()])
        elif top := match["top"] or match["one"]:
            value = Fraction(int(top), int(match["bottom"] or match["two"]) or 1)
        else:
            digits = re.sub(r"\D", "", match["digits"])
            value = Fraction(digits + (match["decimals"] or "")) / (int(match["over"] or 1) or 1)
        yield match, (-value if match["sign"] else value) / (100 if match["percent"] else 1)


def _number_leaks(hint: str, value: Fraction, *, is_rare: bool) -> Iterator[tuple[int, int]]:
    size = sum(map(str.isalnum, hint))
    for match, found in _numbers(hint):
        if found != value and not (match["percent"] and found * 100 == value):
            continue
        start, end = match.span()
        before = hint[max(0, start - _WINDOW_CHARS) : start]
        after = hint[end : end + _WINDOW_CHARS]
        is_whole = sum(map(str.isalnum, match[0])) == size and "=" not in hint
        is_operand = (
            _MODULUS.search(before) or _OPERAND_AFTER.match(after) or _OPERAND_BEFORE.search(before)
        )
        is_said = _STRONG.search(before) or (_PRESENTED.search(before) and _ENDS.match(after))
        if is_whole or (not is_operand and (is_rare or is_said)):
            yield start, end


def _formulas(hint: str) -> Iterator[tuple[int, int]]:
    """Yield what may be the answer: formulas, what stands right of their last ``=``, values."""
    count = 0
    for match in (*_FORMULA.finditer(hint), *_VALUE.finditer(hint)):
        group = match.lastindex or 0
        start, end = match.span(group)
        starts = {start, start + match[group].rfind("=") + 1}
        for place in sorted(starts):
            if count < _MOST_CANDIDATES and hint[place:end].strip() and end - place < _MOST_CHARS:
                count += 1
                yield place, end


def _own_text(hint: str, answer: str, problem: Problem) -> list[tuple[int, int]]:
    """Return where the answer's own text stands; one common word counts where it is presented."""
    pieces = re.findall(r"\w+|[^\w\s]", answer)
    if not 2 <= len(answer) <= _MOST_CHARS or not pieces or len(pieces) > _MOST_CANDIDATES:
        return []
    pattern = r"(?<!\w)" + r"[\s$]{0,3}".join(map(re.escape, pieces)) + r"(?!\w)"
    is_plain = answer.isalpha() and not answer[0].isupper()
    is_given = is_plain or re.search(pattern, problem.text) is not None
    return [
        each.span()
        for each in re.finditer(pattern, hint)
        if not is_given or _STRONG.search(hint[max(0, each.start() - _WINDOW_CHARS) : each.start()])
    ]


def _options(hint: str, letter: str) -> list[tuple[int, int]]:
    """Return where the letter is named as the answer."""
    letter = re.escape(letter)
    said = rf"""(?:\b(?i:answer|option|choice|choose|pick|select|it|that)\b
          (?:\ (?i:is|must\ be)|['’]s)?
        |\b(?i:so|thus|leaves|only)\b|boxed\{{)[\s:({{\$*]{{0,6}}(?:\\text\{{)?(?P<one>{letter})\b
        (?!\s*(?:,|and\b|or\b|with\b|is\ (?:wrong|not|out)\b|cannot\b|can't\b))
        |^[ (]{{0,3}}(?P<two>{letter})[ ).]{{0,3}}$
        |\((?P<three>{letter})\)(?=\ is\ (?:right|correct|the)\b)"""
    return [
        each.span(each.lastgroup or 0)
        for each in re.finditer(said, hint, re.VERBOSE | re.MULTILINE)
    ]


def _unwrapped(answer: str) -> str:
    return re.sub(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}", r"\1", answer).strip(" $\n")


def _squeezed(text: str) -> str:
    return re.sub(r"[\s$]", "", text)


def _apart(spans: Sequence[tuple[int, int]] | Iterator[tuple[int, int]]) -> tuple[Leak, ...]:
    """Return them in order, and of two that overlap the inner or the first one."""
    kept: list[Leak] = []
    for start, end in sorted(spans, key=lambda each: (each[1], -each[0])):
        if not kept or start >= kept[-1].end:
            kept.append(Leak(start, end))
    return tuple(kept)
