r"""The leak guard: count, drop or redact hints that give the final answer away.

For a numeric answer one scan finds numbers of the same magnitude, and only their lines are parsed
further. Otherwise every formula, value and list of the hint is a candidate. The verifier, which is
injected, compares each candidate with the answer. One that equals it is a leak

- in any case: in a box, stated as the answer, given as a result, said of what is asked, or alone;
- if the answer is rare and not in the problem: wherever it stands;
- else: as what an equation computes or names (``4 + 8 = 12``, ``x = 12``).

What is said to be the answer is read generously (``leak_stated``); options have rules of their own
(``leak_options``). Operands (the 3 of ``3x``) and expressions that are not worked out (``4 + 8``)
do not count. docs/hints.md has the rules, the measured precision and recall, and what is not
covered. The work is linear in the length of the hint.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import operator
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.hints.leak_formulas import TEXT_COMMAND, formulas, own_words
from recipe.hint.hints.leak_numbers import Sizes, in_other_bases, numbers, sizes_of
from recipe.hint.hints.leak_options import option_leaks
from recipe.hint.hints.leak_stated import (
    ASSUMED,
    CLAUSE_END,
    COMPARED,
    LABELLED,
    NOT,
    RESULT,
    SAID,
    SET_EQUAL,
    goes_on,
    is_concluded,
    is_open,
    is_reply,
    is_stated,
)
from recipe.hint.hints.leak_text import Value, boxes, compact, plain, unmarked, values, written
from recipe.hint.schema import HintLevels
from recipe.problems.schema import Problem
from recipe.verify.maths.reading import read
from recipe.verify.maths.tree import exact
from recipe.verify.schema import Item, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (problem, candidates) -> whether each of them equals the answer, or is a program that passes.
Equal = Callable[[Problem, Sequence[str]], Awaitable[list[bool]]]
GradeMany = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"
_FENCE = re.compile("```|~~~")
_MOST_BLOCKS = 6  # of a hint that are tried, each for as long as a program may run


@dataclass(frozen=True, slots=True)
class Leak:
    """The answer at ``start:end`` of a hint; ``role`` is why it counts."""

    start: int
    end: int
    role: str


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


_WINDOW_CHARS = 160
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_UNIT = re.compile(r"\s*(?:\\?%|\^?\{?\\circ\}?|°)$")
_WHOLE_IN_BOX = re.compile(r"\\boxed\s{0,9}\{\s{0,9}-?(\d{1,18})\s{0,9}\}")
# Answers that stand in too many hints by chance.
_COMMON = {*range(13), 60, 90, 100, 180, 360, 1000, Fraction(1, 2)}


async def find_leaks(
    hints: Sequence[str], problem: Problem, equal: Equal
) -> list[tuple[Leak, ...]]:
    """Return the leaking spans of each hint of a problem; the verifier is asked once for all."""
    answer = problem.answer
    if not answer.strip():
        return [()] * len(hints)
    if problem.kind == "program":
        return await _programs(hints, problem, equal)
    plain_hints = [written(hint) for hint in hints]
    words = TEXT_COMMAND.sub(r"\1", answer).strip()
    is_marked = words != answer or answer.startswith("(")
    if problem.kind == "choice" or (is_marked and re.fullmatch(r"\(?[A-Z]\)?", words)):
        found = [option_leaks(each.text, words.strip("() "), problem.text) for each in plain_hints]
        roles = [[(*span, "stated") for span in spans] for spans in found]
    else:
        roles = await _roles([each.text for each in plain_hints], problem, equal)
    return [
        _apart(Leak(*hint.span(start, end), role) for start, end, role in row)
        for hint, row in zip(plain_hints, roles, strict=True)
    ]


async def _roles(
    texts: Sequence[str], problem: Problem, equal: Equal
) -> list[list[tuple[int, int, str]]]:
    answer, target = problem.answer, _target(problem.answer)
    found = [target.values(text) if target else formulas(text, answer) for text in texts]
    own = [own_words(text, answer) for text in texts]
    if not any(found) and not any(own):
        return [[]] * len(texts)
    known = target.values(written(problem.text).text) if target else []
    given = [each.text for each in known if each.shape != "odd"]
    own_number = [target.text] if target and any(own) else []
    candidates = [each.text for row in (*found, *own) for each in row]
    same = await _same(problem, [*candidates, *given, *own_number], equal)
    if own_number and target and target.text not in same:  # the 11 of April 11 is not the answer
        target = None
    if not target:
        found = [[*row, *words] for row, words in zip(found, own, strict=True)]
    asked = _Asked(problem, target, is_given=bool(same & {*given}))
    return [
        [*asked.leaks(text, [each for each in row if each.text in same])]
        for text, row in zip(texts, found, strict=True)
    ]


@functools.lru_cache(maxsize=64)
def _target(answer: str) -> _Target | None:
    """Return what to look for where the answer is one number; else ``None``."""
    own = [each for each in values(plain(answer)) if each.shape != "word"]
    if len(own) != 1 or own[0].shape == "formula":
        return None
    trees = read(_UNIT.sub("", own[0].text)).trees
    value = exact(trees[0]) if trees else None
    if value is None:
        return None
    is_percent = "%" in answer
    other = value / 100 if is_percent else value * 100
    sizes = sizes_of({abs(value), abs(other)})
    return _Target(own[0].text, value, other, is_percent, sizes)


@dataclass(frozen=True, slots=True)
class _Target:
    """An answer that is a number; ``text`` is what the verifier compares.

    ``other`` is the number with a percent sign more, or without it.
    """

    text: str
    value: Fraction
    other: Fraction
    is_percent: bool
    sizes: Sizes

    def values(self, text: str) -> list[Value]:
        """Return what may be the number: values, and any writing of it with the shape ``odd``."""
        found = [
            each
            for each in numbers(text, self.sizes)
            if each.value == self.value
            or (each.value == self.other and each.is_percent != self.is_percent)
        ]
        if self.value.denominator == 1 and 0 <= self.value < 10**9:
            found += in_other_bases(text, int(self.value))
        if not found and not self._may_be_boxed(text):
            return []
        text = plain(text)
        lines = {(text.rfind("\n", 0, each.start) + 1, text.find("\n", each.end)) for each in found}
        read = [values(text, start, end if end >= 0 else len(text)) for start, end in sorted(lines)]
        own, found = boxes(text), sorted(found, key=operator.attrgetter("start"))
        starts = [each.start for each in found]
        for each in itertools.chain(*read):
            # "81 / 3" for 27 is left to do.
            is_due = self.value.denominator == 1 and re.search("/|frac", each.text)
            if each.shape == "word" or (each.shape == "literal" and not is_due):
                place = bisect.bisect_left(starts, each.start)
                if place < len(starts) and starts[place] < each.end:
                    # "30 %" is 3/10, but the verifier would be asked about 30.
                    is_share = found[place].value == self.other and self.value.denominator > 1
                    own.append(each._replace(text=self.text) if is_share else each)
        if not self.is_percent:  # the verifier tells 20 % from 20, but it gives the 20 away
            own = [each._replace(text=each.text.rstrip("\\% ")) for each in own]
        return own + [Value(n.start, n.end, self.text, "odd", n.start) for n in found]

    def _may_be_boxed(self, text: str) -> bool:
        """Return whether a box holds anything but another whole number."""
        whole = _WHOLE_IN_BOX.findall(text) if r"\boxed" in text else ()
        is_right = any(int(each) in self.sizes.wanted for each in whole)
        return is_right or text.count(r"\boxed") > len(whole)


class _Asked:
    """What is asked, and which values that equal the answer are leaks."""

    def __init__(self, problem: Problem, target: _Target | None, *, is_given: bool) -> None:
        self._question, self._words = compact(problem.text), _content_words(problem.text)
        self._is_given = is_given or (not target and compact(problem.answer) in self._question)
        self._is_rare = not self._is_given and not (target and target.value in _COMMON)

    def leaks(self, text: str, equal: Sequence[Value]) -> Iterator[tuple[int, int, str]]:
        """Yield the leaks among the values that equal the answer."""
        shown = unmarked(text) if equal else ""
        size = _num_alnum(shown) if equal and "=" not in text else 0  # 81 / 3 = is left to do
        for each in equal:
            found = _role(shown, each, self._words)
            if found in ("result", "said"):
                is_leak = not (self._is_given and _sentence(text, each) in self._question)
            elif not self._is_rare and found in _EQUATED and _MODULUS.match(text, each.end):
                is_leak = False  # 7 = 1 (mod 6) is a step of many
            elif found in _EQUATED or (self._is_rare and each.shape not in ("odd", "common")):
                is_leak = not _is_quoted(text, each, self._question)
            else:
                is_leak = False
            is_alone = _num_alnum(text[each.start : each.end]) == size
            if is_leak or is_alone or found in ("boxed", "stated"):
                yield each.start, each.end, found


def _num_alnum(text: str) -> int:
    return sum(map(str.isalnum, text))


async def _programs(hints: Sequence[str], problem: Problem, equal: Equal) -> list[tuple[Leak, ...]]:
    """Return the code blocks of each hint, as one span, where a program in it passes the tests.

    A hint is tried as a whole, as the verifier reads it, and block by block: the verifier might
    take a decoy that follows the right program.
    """
    fences = [list(_FENCE.finditer(hint)) for hint in hints]
    tried = [
        [hint, *_blocks(hint, found)] if found else []
        for hint, found in zip(hints, fences, strict=True)
    ]
    passing = await _same(problem, [each for texts in tried for each in texts], equal)
    return [
        (Leak(found[0].start(), found[-1].end(), "program"),) if passing & {*texts} else ()
        for found, texts in zip(fences, tried, strict=True)
    ]


def _blocks(hint: str, fences: Sequence[re.Match[str]]) -> list[str]:
    """Return the blocks with their fences; of many the outer ones."""
    pairs = zip(fences[::2], fences[1::2], strict=False)
    found = [hint[one.start() : two.end()] for one, two in pairs]
    half = _MOST_BLOCKS // 2
    return found if len(found) <= _MOST_BLOCKS else found[:half] + found[-half:]


async def _same(problem: Problem, texts: Sequence[str], equal: Equal) -> set[str]:
    """Return the texts that equal the answer, each asked about once."""
    unique = list(dict.fromkeys(texts))
    found = await equal(problem, unique) if unique else []
    return {text for text, is_same in zip(unique, found, strict=True) if is_same}


def _sentence(hint: str, value: Value) -> str:
    """Return the sentence of a value as far as it is looked at, in the form of the question."""
    before = _SENTENCE_END.split(hint[max(0, value.start - _WINDOW_CHARS) : value.start])[-1]
    after = _SENTENCE_END.split(hint[value.end : value.end + _WINDOW_CHARS], maxsplit=1)[0]
    return compact(before.split(": ")[-1] + hint[value.start : value.end] + after)


def _is_quoted(hint: str, value: Value, question: str) -> bool:
    """Return whether the formula, or the equation, stands in the problem already."""
    if value.shape in ("formula", "words"):
        return compact(value.text) in question
    statement = hint[max(value.statement, value.end - _WINDOW_CHARS) : value.end]
    return value.place > 0 and compact(statement) in question


# With words on its left side, "200 apples - 180 apples = 20 apples", a statement begins with "=".
_SUM = re.compile(r"\d[^=.;\n]*(?:\s[-+*/x×÷–]\s|[+*/×÷])[^=.;\n]*\d")
_APPLIED = re.compile(r"[A-Za-z]['’]*\s*(?:_\S+|\(.*\))")
_ARTICLE = re.compile(r"\b(?:an?|the)\s+$")
_EQUATED = ("computed", "named")
_MODULUS = re.compile(r"[\s$]{0,9}(?:\(\s?mod\b|(?:\(\s?)?\\(?:[pb]?mod\b|text\s?\{\s?mod\b))")
_NOUNS = re.compile(r"(?:[A-Za-z]+\s*){1,3}")


def _role(text: str, value: Value, asked: set[str]) -> str:
    """Return boxed, stated, computed, named, assumed, result, said, or bare for all else.

    ``text`` is the hint without markup, and ``asked`` the content words of the problem.
    """
    if value.shape == "boxed":
        return "boxed"
    start = value.start
    if value.shape in ("words", "common"):  # "the commutative property", "a right triangle"
        near = text[max(0, start - 8) : start]
        start -= len(near) - len(_ARTICLE.sub("", near))
    after = text[value.end : value.end + _WINDOW_CHARS]
    end = _SENTENCE_END.search(after)
    after = after[: end.end() if end else None].strip()
    is_common = value.shape == "common"
    if is_stated(text, start, value.end) and not (is_common and goes_on(after)):
        return "stated"
    if value.place:
        return _role_in_equation(text, value)
    before = text[max(0, start - _WINDOW_CHARS) : start]
    before = _SENTENCE_END.split(before)[-1].rstrip() + " "
    nouns = _NOUNS.match(after)
    is_asked = nouns is not None and bool(_content_words(nouns[0]) & asked)
    is_compared = COMPARED.match(after) or LABELLED.search(before) or value.shape == "odd"
    if is_common and is_reply(text[:start], before, after, bool(_content_words(after) & asked)):
        return "said"
    if is_compared or not (is_asked or CLAUSE_END.match(after)):
        return "bare"
    clause = re.split(r"[,;:]", before.rstrip(" ,;:"))[-1]
    if is_common and is_open(clause, after):
        return "bare"
    if is_common and is_concluded(before, after):
        return "said"
    if RESULT.search(before) and not SET_EQUAL.search(before):
        return "result"
    is_about = is_asked or bool(_content_words(clause) & asked)
    return "said" if is_about and SAID.search(before) and not NOT.search(clause) else "bare"


def _role_in_equation(text: str, value: Value) -> str:
    before = text[max(0, value.statement - _WINDOW_CHARS) : value.statement]
    left = value.left
    has_digit = any(map(str.isdigit, left))
    is_number = has_digit and not re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", left))
    is_sum = not left and _SUM.search(re.split(r"[=.;\n]", before)[-1])
    if value.place > 1 or is_number or is_sum:
        return "computed"
    if not has_digit or _APPLIED.fullmatch(left):
        return "assumed" if ASSUMED.search(before.rstrip() + " ") else "named"
    return "bare"  # 2x = 12: an equation that is left to solve


def _content_words(text: str) -> set[str]:
    """Return the telling words of three letters and more, without a plural's ending."""
    words = {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower())}
    return words - {"the", "and", "are", "for", "what", "find"}


def _apart(leaks: Iterable[Leak]) -> tuple[Leak, ...]:
    """Return them in order, and of two that overlap the inner or the first one."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.end, -each.start)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return tuple(kept)
