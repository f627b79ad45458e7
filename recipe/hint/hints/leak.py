r"""The leak guard: count or drop hints that give the final answer away.

An answer that is a number is looked for in one scan (digits, fractions, words such as forty-eight).
A common or given number counts only where it is presented as a result: after ``=``, "is", "leaves"
and the like where a clause ends, in a box, or as the whole hint. Any other answer is looked for as
its own text, and in formulas, which the verifier compares. Options count by their letter; hints of
programs are not looked at. The work is linear in the hint. docs/hints.md has precision and recall.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.problems.schema import Problem
from recipe.verify.maths.units import NUMBERS
from recipe.verify.schema import Item, Verdict

LeakPolicy = Literal["measure", "drop"]
# (answer, candidates) -> whether each of them equals it.
Equal = Callable[[str, Sequence[str]], Awaitable[list[bool]]]

_MOST_CANDIDATES, _MOST_CHARS, _WINDOW_CHARS = 32, 200, 60
# Numbers that stand in too many hints by chance.
_COMMON = {*map(Fraction, range(13)), *map(Fraction, (60, 90, 100, 180, 360, 1000)), Fraction(1, 2)}
_ONES = [word for word, number in NUMBERS.items() if 0 < number < 10]
_TENS = [word for word, number in NUMBERS.items() if number >= 20]
_WORDS: dict[str, int | Fraction] = dict(NUMBERS)
_WORDS |= {f"{ten}-{one}": NUMBERS[ten] + NUMBERS[one] for ten in _TENS for one in _ONES}
_WORDS |= {"dozen": 12, "one hundred": 100, "one half": Fraction(1, 2), "half": Fraction(1, 2)}
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)}\]\s])-|(?<=\s)-(?=\d)|^-)?(?:"
    r"\\[dt]?frac\s?(?:\{(?P<top>-?\d{1,9})\}\s?\{(?P<bottom>-?\d{1,9})\}|(?P<one>\d)(?P<two>\d))"
    r"|(?P<digits>\d{1,3}(?:(?:,|\{,\}|\\,)\d{3}){1,5}(?!\d)|\d{1,18})(?P<decimals>\.\d{1,18})?"
    r"(?:\s?/\s?(?P<over>\d{1,9})(?![\d/]))?"
    rf"|\b(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b)"
    r"(?P<percent>\s?(?:\\?%|percent\b))?",
    re.I,
)
_PRESENTED = re.compile(
    r"(?:[=≈≡→:]|\\(?:equiv|to|implies|Rightarrow)|\b(?:is|are|be|equals?|giv(?:es?|ing)|"
    r"leav(?:es?|ing)|left with|mak(?:es?|ing)|gets?|got|yields?|totals?|result|remain|answer|"
    r"becomes?|comes? to|costs?|has|have|needs?|takes?|exactly|altogether|therefore|so|then|find|"
    r"obtain|reach(?:es)?)\b)[\s$*_(\\\[{]*(?:(?:text|mathbf|boxed|only|just|"
    r"exactly|the|about|number|value)[\s{:]*)*\$?$",
    re.I,
)
_STRONG = re.compile(
    r"(?:answer|result|solution|boxed|final)\b[^.\n]{0,30}$|=\s*\$?\s*$|\bequals?\s*$", re.I
)
_ENDS = re.compile(
    r"[\s$*_)}\]%°]*(?:\\%|\\text\{|[a-z]+\s*){0,3}[\s$*_)}\]]*(?:[.,;!?\n]|$)", re.I
)
_FORMULA = re.compile(
    r"\\boxed\{((?:[^{}]|\{[^{}]*\}){1,200})\}|\$\$?([^$]{1,400})\$|\\[(\[](.{1,300}?)\\[)\]]"
    r"|(?:\bis|\bare|\bbe|:|=)\s+([^.;!?\n$]{1,80})",
    re.S,
)
_BLANK = re.compile(r"[\s$]")
_OPTION = (
    r"(?:\b(?i:answer|option|choice|choose|pick|select|it|that)\b(?: (?i:is|must be)|['’]s)?"
    r"|\b(?i:so|thus|leaves|only)\b|boxed{{)[\s:({{\$*]{{0,6}}(?:\\text{{)?({letter})\b"
    r"(?!\s*(?:,|and\b|or\b|with\b|is (?:wrong|not|out)\b|can(?:no|')t\b))|^[ (]*({letter})[ ).]*$"
)


@dataclass(frozen=True)
class LeakGuard:
    """A source of hints whose every level is checked for the final answer.

    Levels that hold it are named in ``leaked``. ``measure`` changes nothing. ``drop`` empties their
    text: a round at such a level has the status ``leaked`` and no turns.
    """

    source: HintSource
    policy: LeakPolicy
    equal: Equal

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the source's hint levels as the policy lets them be used."""
        result = await self.source.write(problem, generate, num_before=num_before)
        hints_L = result.hints_L
        leaks_L = await find_leaks(hints_L, problem, self.equal)
        leaked = tuple(level for level, leaks in enumerate(leaks_L, 1) if leaks)
        if self.policy == "drop":
            hints_L = tuple("" if n in leaked else hint for n, hint in enumerate(hints_L, 1))
        return replace(result, hints_L=hints_L, leaked=leaked)


def graded_equal(grade: Callable[[Sequence[Item]], Awaitable[list[Verdict]]]) -> Equal:
    """Return equality by a verifier of boxed answers; ungraded is not equal."""

    async def equal(answer: str, candidates: Sequence[str]) -> list[bool]:
        verdicts = await grade([Item(rf"\boxed{{{each}}}", answer) for each in candidates])
        return [verdict.score > 0 for verdict in verdicts]

    return equal


async def find_leaks(hints: Sequence[str], problem: Problem, equal: Equal) -> list[bool]:
    """Return whether each hint of a problem leaks; the verifier is asked once for all."""
    answer = re.sub(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}", r"\1", problem.answer).strip(" $\n")
    if not answer or problem.kind == "program":
        return [False] * len(hints)
    if problem.kind == "choice" or re.fullmatch(r"\([A-Z]\)", answer):
        named = re.compile(_OPTION.format(letter=re.escape(answer.strip("()"))), re.MULTILINE)
        return [bool(named.search(hint)) for hint in hints]
    if (value := _value_of(answer)) is not None:
        is_rare = value not in _COMMON and value not in {each for _, each in _numbers(problem.text)}
        return [_gives_number(hint, value, is_rare) for hint in hints]
    formulas_H = [_formulas(hint) for hint in hints]
    unique = sorted(set().union(*formulas_H))
    same = await equal(problem.answer, unique) if unique else []
    given = _BLANK.sub("", problem.text)
    leaking = {text for text, is_same in zip(unique, same, strict=True) if is_same}
    leaking = {text for text in leaking if _BLANK.sub("", text) not in given}
    return [
        not leaking.isdisjoint(formulas) or _gives_text(hint, answer, problem.text)
        for hint, formulas in zip(hints, formulas_H, strict=True)
    ]


def _value_of(answer: str) -> Fraction | None:
    found = [each for _, each in _numbers(answer[: _MOST_CHARS + 1])]
    rest = _NUMBER.sub("", answer[:_MOST_CHARS]).rstrip("\\% ")
    is_more = re.search(r"^[A-Z]|[A-Za-z]\w*\s*[-+^=(]|[-+*^=,;:()\[\]{}\\|<>]", rest)
    is_one = len(found) == 1 and len(answer) <= _MOST_CHARS and len(rest.split()) <= 2
    return found[0] if is_one and not is_more else None


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


def _gives_number(hint: str, value: Fraction, is_rare: bool) -> bool:
    size = sum(map(str.isalnum, hint))
    for match, found in _numbers(hint):
        if found != value and not (match["percent"] and found * 100 == value):
            continue
        start, end = match.span()
        before, after = hint[max(0, start - _WINDOW_CHARS) : start], hint[end : end + _WINDOW_CHARS]
        is_whole = sum(map(str.isalnum, match[0])) == size and "=" not in hint
        is_said = _STRONG.search(before) or (_PRESENTED.search(before) and _ENDS.match(after))
        if is_rare or is_whole or is_said:
            return True
    return False


def _formulas(hint: str) -> list[str]:
    # What may be the answer: formulas, and what stands right of their last `=`.
    found = []
    for match in _FORMULA.finditer(hint):
        start, end = match.span(match.lastindex or 0)
        for place in sorted({start, hint.rfind("=", start, end) + 1 or start}):
            if hint[place:end].strip() and end - place < _MOST_CHARS:
                found.append(hint[place:end])
    return found[:_MOST_CANDIDATES]


def _gives_text(hint: str, answer: str, problem: str) -> bool:
    pieces = re.findall(r"\w+|[^\w\s]", answer[:_MOST_CHARS])
    if not 2 <= len(answer) <= _MOST_CHARS or not 0 < len(pieces) <= _MOST_CANDIDATES:
        return False
    own = re.compile(r"(?<!\w)" + r"[\s$]{0,3}".join(map(re.escape, pieces)) + r"(?!\w)")
    is_given = (answer.isalpha() and answer[0].islower()) or own.search(problem)
    return any(
        not is_given or _STRONG.search(hint[max(0, each.start() - _WINDOW_CHARS) : each.start()])
        for each in own.finditer(hint)
    )
