r"""Does a hint give the final answer away? The leak guard, ``hint.leak_policy``.

A value of the hint is compared with the answer by the verifier's own equality, which is injected.
An equal value is a leak depending on how telling it is (``leak_context`` has the roles):

- in a box, or stated as the answer: always;
- an answer that is rare (no small whole number, ...) and not written in the problem: wherever it
  stands, for it has hardly another reason to;
- an answer such as 2, or one that the problem itself writes: only as a result (``4 + 8 = 12``,
  ``x = 12``, "leaves 12 marbles"); not as a given or assumed value, a count of other things, an
  exponent, a coefficient, or an operand.

A sum that is left to do (``4 + 8``) is no leak, nor a formula much longer than the answer.
docs/hints.md has the measured precision and recall. Not covered: answers of programs, an option's
text in place of its letter, a value spread over sentences.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.hints.leak_context import Question, role_of
from recipe.hint.hints.leak_text import Mention, compact, mentions
from recipe.hint.schema import HintStatus, Item, Problem, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (answer, candidates) -> whether each of them equals the answer.
Equal = Callable[[str, Sequence[str]], Awaitable[list[bool]]]
Grader = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"
_SMALL = 12
_MAX_COMMON_DIGITS = 4
_ROUND = frozenset({60, 90, 100, 180, 360, 1000})
_HALVES = frozenset({"1/2", r"\frac{1}{2}", r"\frac12", r"\dfrac{1}{2}", "0.5", ".5"})
_LONGER = 1.5
_MAX_QUOTED_CHARS = 300
_OPTION = re.compile(
    r"\b(?i:options?|choices?|answers?|letter|choose|select|pick)\b[^.;\n]{0,12}?"
    r"(?:\bis\b|:)?\s*\(?\b(?P<letter>[A-Z])\b(?!['’]|\s+[a-z])"
)


@dataclass(frozen=True, slots=True)
class Leak:
    """The answer at ``start:end`` of a hint; ``role`` is why it counts."""

    start: int
    end: int
    role: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """A hint after the guard: ``leaked`` in place of ``ok`` where it must not be used."""

    status: HintStatus
    text: str
    leaks: tuple[Leak, ...] = ()


class LeakGuard:
    """Applies a policy to hints."""

    def __init__(self, policy: LeakPolicy, equal: Equal) -> None:
        self._policy = policy
        self._equal = equal

    async def check(self, problem: Problem, hint: str) -> Guarded:
        """The hint as it may be used, and the leaks that were found in it.

        ``measure`` changes nothing; ``drop`` gives the status ``leaked``; ``redact`` puts
        ``[...]`` for each leaking value and leaves every other character as it is.
        """
        leaks = await find_leaks(hint, problem, self._equal)
        if not leaks or self._policy == "measure":
            return Guarded("ok", hint, leaks)
        if self._policy == "drop":
            return Guarded("leaked", "", leaks)
        return Guarded("ok", redact(hint, leaks), leaks)


def redact(hint: str, leaks: Sequence[Leak]) -> str:
    """The hint with the leaking spans replaced."""
    for leak in sorted(leaks, key=lambda each: each.start, reverse=True):
        hint = hint[: leak.start] + REDACTED + hint[leak.end :]
    return hint


def judged_equal(grade: Grader) -> Equal:
    """Equality by a verifier that grades boxed answers, such as ``VerifierPool.judge_many``.

    A candidate the verifier cannot decide on counts as another value.
    """

    async def equal(answer: str, candidates: Sequence[str]) -> list[bool]:
        items = [Item(rf"\boxed{{{candidate}}}", answer) for candidate in candidates]
        return [verdict.score > 0 for verdict in await grade(items)]

    return equal


async def find_leaks(hint: str, problem: Problem, equal: Equal) -> tuple[Leak, ...]:
    """The leaking spans of a hint, in order and apart from each other."""
    if problem.kind == "program" or not problem.answer.strip():
        return ()
    answer = _Answer(problem.answer)
    if problem.kind == "choice" or answer.is_option:
        return _options(hint, answer.words.strip("() "))
    found = answer.forms(mentions(hint), hint)
    given = answer.numbers_of(problem.text)
    texts = list(dict.fromkeys([*(each.text for each in found), *given]))
    equals = dict(zip(texts, await equal(problem.answer, texts), strict=True)) if texts else {}
    is_given = any(equals[text] for text in given) or answer.is_written_in(problem.text)
    question = Question.of(problem.text)
    leaks = []
    for each in found:
        if not equals[each.text] or not answer.is_as_short(each.text):
            continue
        role = "boxed" if each.shape == "boxed" else role_of(hint, each, question)
        is_telling = _is_telling(
            role, each, question, is_given=is_given, is_common=answer.is_common
        )
        is_result = role in ("boxed", "stated", "result", "said")
        if is_telling and (is_result or not _is_quoted(hint, each, problem.text)):
            leaks.append(Leak(each.start, each.end, role))
    return _apart(leaks)


def _is_telling(
    role: str, mention: Mention, question: Question, *, is_given: bool, is_common: bool
) -> bool:
    if role in ("boxed", "stated"):
        return True
    if not is_given and not is_common:
        return True
    if role == "named":
        letters = set(re.findall(r"[A-Za-z]", mention.left))
        return not is_given or bool(letters & question.letters)
    return role in ("computed", "result", "said")


def _is_quoted(hint: str, mention: Mention, problem: str) -> bool:
    """Whether the whole equation stands in the problem already."""
    value = compact(mention.text)
    if mention.shape == "formula":
        return value in compact(problem)
    if mention.end - mention.statement > _MAX_QUOTED_CHARS:
        return False
    statement = compact(hint[mention.statement : mention.end])
    return len(statement) > len(value) and statement in compact(problem)


class _Answer:
    """The answer, and which values of a text are worth a comparison with it."""

    def __init__(self, text: str) -> None:
        self.text = text
        shapes = [each for each in mentions(text) if each.shape in ("literal", "boxed")]
        all_of_it = [each for each in mentions(text) if each.shape == "formula"]
        self.number = shapes[0].text if len(shapes) == 1 and not all_of_it else ""
        self.is_common = self.number in _HALVES or _is_common(self.number)
        self.words = _words(text)

    @property
    def is_option(self) -> bool:
        r"""Whether it is the letter of an option, as in ``\text{(C)}``."""
        is_marked = self.words != self.text or self.text.startswith("(")
        return is_marked and bool(re.fullmatch(r"\(?[A-Z]\)?", self.words))

    def forms(self, found: Sequence[Mention], text: str) -> list[Mention]:
        """Numbers for a number; formulas, pairs of numbers and its own words for anything else."""
        if self.number:
            return [each for each in found if each.shape != "formula" and not self._is_due(each)]
        found = [each for each in found if each.shape != "word"]
        if "," in self.text:
            found += _pairs(found, text)
        if re.fullmatch(r"[A-Za-z][A-Za-z ]+", self.words):
            pattern = re.compile(rf"\b{re.escape(self.words)}\b", re.IGNORECASE)
            found += [
                Mention(match.start(), match.end(), self.text, "formula", match.start())
                for match in pattern.finditer(text)
            ]
        return found

    def _is_due(self, mention: Mention) -> bool:
        """A division that is left to do: ``81 / 3`` for 27."""
        is_quotient = "/" in mention.text or "frac" in mention.text
        return mention.shape == "literal" and is_quotient and self.number.isdecimal()

    def numbers_of(self, text: str) -> list[str]:
        """What of a problem may be the answer: numbers, where it is one."""
        found = mentions(text) if self.number else []
        return [each.text for each in found if each.shape != "formula"]

    def is_written_in(self, text: str) -> bool:
        """Whether a text holds the formula of the answer as it stands."""
        value = compact(self.text)
        return not self.number and value != "" and value in compact(text)

    def is_as_short(self, text: str) -> bool:
        """Whether a formula is about as short as the answer, and not one on the way to it."""
        return bool(self.number) or len(compact(text)) <= _LONGER * len(compact(self.text)) + 1


def _words(text: str) -> str:
    r"""The text without ``\text{}`` and the like around its words."""
    return re.sub(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}", r"\1", text).strip()


def _is_common(number: str) -> bool:
    digits = number.replace(",", "")
    is_short = digits.isdecimal() and len(digits) <= _MAX_COMMON_DIGITS
    return is_short and (int(digits) <= _SMALL or int(digits) in _ROUND)


def _pairs(found: Sequence[Mention], text: str) -> list[Mention]:
    """Neighbouring numbers as one value: ``3 and -2``, ``x = 3, -2``."""
    numbers = [each for each in found if each.shape == "literal"]
    gap = re.compile(r"[\s$]*(?:,\s*and|,|and|or)[\s$]*")
    return [
        Mention(one.start, two.end, f"{one.text}, {two.text}", "formula", one.statement)
        for one, two in zip(numbers, numbers[1:], strict=False)
        if gap.fullmatch(text, one.end, two.start)
    ]


def _options(hint: str, letter: str) -> tuple[Leak, ...]:
    """Where a choice's letter is named as one; other capitals are not looked at."""
    if not letter:
        return ()
    found = [match.span("letter") for match in _OPTION.finditer(hint) if match["letter"] == letter]
    boxes = [each for each in mentions(hint) if each.shape == "boxed"]
    found += [(each.start, each.end) for each in boxes if _words(each.text).strip("() ") == letter]
    return _apart([Leak(start, end, "stated") for start, end in found])


def _apart(leaks: Sequence[Leak]) -> tuple[Leak, ...]:
    """In order, and of two that overlap the shorter one."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.end - each.start, each.start)):
        at = bisect.bisect_left(kept, leak.start, key=lambda each: each.start)
        is_behind = at == 0 or kept[at - 1].end <= leak.start
        if is_behind and (at == len(kept) or leak.end <= kept[at].start):
            kept.insert(at, leak)
    return tuple(kept)
