r"""The leak guard: count, drop or redact hints that give the final answer away.

Each value of a hint (a number in digits or words, a box, a side of an equation) is compared with
the answer by the verifier's equality, which is injected. One that equals it is a leak

- in any case: in a box, stated as the answer, given as a result, or said of what is asked;
- if the answer is rare and not in the problem: wherever it stands;
- else: as what an equation computes or names (``4 + 8 = 12``, ``x = 12``).

What is said to be the answer is read generously (``leak_stated``); options have rules of their own
(``leak_options``). An operand (the 3 of ``3x``) is no value, and what is left to do (``4 + 8``) no
leak. docs/hints.md has the rules, the measured precision and recall, and what is not covered. The
work is linear in the length of the hint.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from recipe.hint.hints import leak_words as vocabulary
from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.hints.leak_markup import plain, unmarked
from recipe.hint.hints.leak_options import option_leaks, options_of
from recipe.hint.hints.leak_signs import written
from recipe.hint.hints.leak_stated import stated_numbers
from recipe.hint.hints.leak_values import Value, compact, values
from recipe.hint.schema import HintLevels, Item, Problem, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (problem, candidates) -> whether each of them equals the answer, or is a program that passes.
Equal = Callable[[Problem, Sequence[str]], Awaitable[list[bool]]]
GradeMany = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"
_FENCE = "```"


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
# With words on its left side, "200 apples - 180 apples = 20 apples", a statement begins with "=".
_SUM = re.compile(r"\d[^=.;\n]*(?:\s[-+*/x×÷–]\s|[+*/×÷])[^=.;\n]*\d")
_APPLIED = re.compile(r"[A-Za-z]\s*(?:_\S+|\(.*\))")
_NOUNS = re.compile(r"(?:[A-Za-z]+\s*){1,3}")


def _role(text: str, value: Value, asked: set[str]) -> str:
    """Return boxed, stated, computed, named, assumed, result, said, or bare for all else.

    ``text`` is the hint without markup, and ``asked`` the telling words of the problem.
    """
    if value.shape == "boxed":
        return "boxed"
    before = text[max(0, value.start - _WINDOW_CHARS) : value.start]
    before = _SENTENCE_END.split(before)[-1].rstrip() + " "
    after = text[value.end : value.end + _WINDOW_CHARS]
    after = _SENTENCE_END.split(after, maxsplit=1)[0].lstrip()
    is_compared = vocabulary.COMPARED.match(after) or vocabulary.LABELLED.search(before)
    stated = vocabulary.STATED.search(before)
    if stated and not vocabulary.NOT.search(stated["gap"]) and not is_compared:
        return "stated"
    is_ruled_out = is_compared or vocabulary.NOT.search(before[-20:])
    if vocabulary.STATED_AFTER.match(after) and not is_ruled_out:
        return "stated"
    if value.place:
        return _role_in_equation(text, value)
    nouns = _NOUNS.match(after)
    is_asked = nouns is not None and bool(_content_words(nouns[0]) & asked)
    if is_compared or not (is_asked or vocabulary.CLAUSE_END.match(after)):
        return "bare"
    if vocabulary.RESULT.search(before):
        return "result"
    clause = re.split(r"[,;:]", before.rstrip(" ,;:"))[-1]
    is_about = is_asked or bool(_content_words(clause) & asked)
    return (
        "said"
        if is_about and vocabulary.SAID.search(before) and not vocabulary.NOT.search(clause)
        else "bare"
    )


def _role_in_equation(text: str, value: Value) -> str:
    before = text[max(0, value.statement - _WINDOW_CHARS) : value.statement]
    left = value.left
    has_digit = any(map(str.isdigit, left))
    is_number = has_digit and not re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", left))
    is_sum = not left and _SUM.search(re.split(r"[=.;\n]", before)[-1])
    if value.place > 1 or is_number or is_sum:
        return "computed"
    if not has_digit or _APPLIED.fullmatch(left):
        return "assumed" if vocabulary.ASSUMED.search(before.rstrip() + " ") else "named"
    return "bare"  # 2x = 12: an equation that is left to solve


def _content_words(text: str) -> set[str]:
    """Return the telling words of three letters and more, without a plural's ending."""
    words = {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower())}
    return words - {"the", "and", "are", "for", "what", "find"}


_GAP = re.compile(r"[\s$]*(?:,\s*and|,|and|or)[\s$]*")
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")


async def find_leaks(
    hints: Sequence[str], problem: Problem, equal: Equal
) -> list[tuple[Leak, ...]]:
    """Return the leaking spans of each hint of a problem; the verifier is asked once for all."""
    answer = problem.answer
    words = _TEXT_COMMAND.sub(r"\1", answer).strip()
    if not answer.strip():
        return [()] * len(hints)
    if problem.kind == "program":
        return await _programs(hints, problem, equal)
    is_marked = words != answer or answer.startswith("(")
    if problem.kind == "choice" or (is_marked and re.fullmatch(r"\(?[A-Z]\)?", words)):
        options = options_of(problem.text)
        return [_options(hint, words.strip("() "), options) for hint in hints]
    own = [each for each in values(answer) if each.shape != "word"]
    number = own[0].text if len(own) == 1 and own[0].shape != "formula" else ""
    read = [written(hint) for hint in hints]
    found = [
        _numbers(each.text, answer, number) if number else _formulas(each.text, answer, words)
        for each in read
    ]
    stated = [stated_numbers(plain(each.text), number, answer) for each in read]
    if not any(found) and not any(stated):
        return [()] * len(hints)
    given = [each.text for each in values(problem.text) if number and each.shape != "formula"]
    asked_for = [*(each.text for row in found for each in row), *given, *[number] * any(stated)]
    same = await _same(problem, asked_for, equal)
    asked = _Asked(problem, number, bool(same & {*given}))
    leaks = []
    for hint, row, said in zip(read, found, stated, strict=True):
        those = list(asked.leaks(hint.text, [each for each in row if each.text in same]))
        those += [Leak(*span, "stated") for span in said if number in same]
        leaks.append(_apart(Leak(*hint.span(each.start, each.end), each.role) for each in those))
    return leaks


class _Asked:
    """What is asked, and which values that equal the answer are leaks."""

    def __init__(self, problem: Problem, number: str, is_given: bool) -> None:
        self._number = number
        self._formula, self._question = compact(problem.answer), compact(problem.text)
        self._is_given = is_given or (not number and self._formula in self._question)
        self._is_rare = not self._is_given and number not in vocabulary.COMMON
        self._words = _content_words(problem.text)

    def leaks(self, hint: str, equal: Sequence[Value]) -> Iterator[Leak]:
        """Yield the leaks among the values that equal the answer."""
        text = unmarked(hint) if equal else ""
        for each in equal:
            # A formula much longer than the answer is one on the way to it.
            if self._number or len(compact(each.text)) <= 1.5 * len(self._formula) + 1:
                role = _role(text, each, self._words)
                if self._is_leak(hint, each, role):
                    yield Leak(each.start, each.end, role)

    def _is_leak(self, hint: str, value: Value, role: str) -> bool:
        if role in ("boxed", "stated"):
            return True
        if role in ("result", "said"):
            return not (self._is_given and _sentence(hint, value) in self._question)
        is_equation = role in ("computed", "named") or self._is_rare
        return is_equation and not _is_quoted(hint, value, self._question)


async def _programs(hints: Sequence[str], problem: Problem, equal: Equal) -> list[tuple[Leak, ...]]:
    """Return the code blocks of each hint, as one span, where its program passes the tests."""
    passing = await _same(problem, [hint for hint in hints if _FENCE in hint], equal)
    return [
        (Leak(hint.find(_FENCE), hint.rfind(_FENCE) + len(_FENCE), "program"),)
        if hint in passing
        else ()
        for hint in hints
    ]


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
    if value.shape == "formula":
        return compact(value.text) in question
    statement = hint[max(value.statement, value.end - _WINDOW_CHARS) : value.end]
    return value.place > 0 and compact(statement) in question


def _numbers(hint: str, answer: str, number: str) -> list[Value]:
    """Return numbers, in digits or words, and what stands in boxes."""
    due = re.compile("/|frac" if number.isdecimal() else "(?!)")  # "81 / 3" for 27 is left to do
    found = [
        each
        for each in values(hint)
        if each.shape in ("word", "boxed")
        or (each.shape == "literal" and not due.search(each.text))
    ]
    if "%" in answer:
        return found
    # The verifier tells 20 % from 20, but it gives the 20 away.
    return [each._replace(text=each.text.rstrip("\\% ")) for each in found]


def _formulas(hint: str, answer: str, words: str) -> list[Value]:
    """Return formulas and numbers, pairs of numbers ("3 and -2") and the answer's own words."""
    found = [each for each in values(hint) if each.shape != "word"]
    numbers = [each for each in found if each.shape == "literal" and "," in answer]
    found += [
        one._replace(end=two.end, text=f"{one.text}, {two.text}", shape="formula")
        for one, two in zip(numbers, numbers[1:], strict=False)
        if _GAP.fullmatch(hint, one.end, two.start)
    ]
    is_words = re.fullmatch(r"[A-Za-z][A-Za-z ]+", words)
    for match in re.finditer(rf"(?i)\b{re.escape(words)}\b", hint) if is_words else ():
        found.append(Value(match.start(), match.end(), answer, "formula", match.start()))
    return found


def _options(hint: str, letter: str, options: dict[str, str]) -> tuple[Leak, ...]:
    """Return where the right option of a choice is named; nowhere if the answer is no letter."""
    if not re.fullmatch("[A-Z]", letter):
        return ()
    read = written(hint)
    spans = (read.span(*span) for span in option_leaks(read.text, letter, options))
    return _apart([Leak(start, end, "stated") for start, end in spans])


def _apart(leaks: Iterable[Leak]) -> tuple[Leak, ...]:
    """Return them in order, and of two that overlap the inner or the first one."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.end, -each.start)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return tuple(kept)
