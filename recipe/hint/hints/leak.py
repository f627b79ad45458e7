r"""Count, drop or redact hints that give the final answer away: ``hint.leak_policy``.

Each value of a hint (a number in digits or words, a box, a side of an equation) that equals the
answer by the verifier's equality, which is injected, is a leak: in a box, stated as the answer or
said of what is asked always; for an answer that is rare and not in the problem anywhere; for others
as a result only (``4 + 8 = 12``, ``x = 12``). An operand (the 3 of ``3x``) is no value, and what
is left to do (``4 + 8``) no leak. docs/hints.md has the rules, the measured precision and recall,
and what is not covered. The work is linear in the length of the hint.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from recipe.hint.hints.leak_values import Value, boxes, compact, values
from recipe.hint.schema import HintStatus, Item, Problem, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (answer, candidates) -> whether each of them equals the answer.
Equal = Callable[[str, Sequence[str]], Awaitable[list[bool]]]
Grader = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"


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
    """Apply a policy to hints."""

    def __init__(self, policy: LeakPolicy, equal: Equal) -> None:
        self._policy = policy
        self._equal = equal

    async def check(self, problem: Problem, hint: str) -> Guarded:
        """Return the hint as it may be used, and the leaks found in it.

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
    """Replace the leaking spans, which do not overlap."""
    for leak in sorted(leaks, key=lambda each: each.start, reverse=True):
        hint = hint[: leak.start] + REDACTED + hint[leak.end :]
    return hint


def graded_equal(grade: Grader) -> Equal:
    """Return equality by a verifier that grades boxed answers, such as ``VerifierPool.grade_many``.

    A candidate that the verifier leaves ungraded counts as another value.
    """

    async def equal(answer: str, candidates: Sequence[str]) -> list[bool]:
        items = [Item(rf"\boxed{{{candidate}}}", answer) for candidate in candidates]
        return [verdict.score > 0 for verdict in await grade(items)]

    return equal


# -- what the sentence makes of a value -----------------------------------------------------------

_WINDOW_CHARS = 160
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_MARKUP = re.compile(r"""[${}*_"“”()\[\]€£]|(?<!\w)'|'(?!\w)|\\[()\[\]$,;! %]|\\text\{|\\boxed""")
# No word of these begins another: a text of fillers alone is read in linear time.
_FILL = (
    r"(?:(?:exactly|just|simply|only|about|approximately|equal|therefore|then|thus|hence|now|also"
    r"|the (?:number|value|integer|third|second|last|middle)|option|letter|all|it|is|be|of|to|that"
    r"|in|you|them|us|a total)\s+)*$"
)
_NOT = re.compile(
    r"\b(?:not?|never|cannot|n?either|nor|than|least|most|between|multiple|divisible|digits?)\b|n't\b"
)
_STATED = re.compile(
    r"(?i)\b(?:answer|solution|final (?:result|value|number|count|total|sum)|correct option)\b"
    rf"(?P<gap>[^.;]{{0,50}}?)(?:\b(?:is|are|be|equals|as|of|gives|becomes|reads)\b|[:=])\s*{_FILL}"
)
_STATED_AFTER = re.compile(
    r"(?i)[\s,]*(?:\w+\s+){0,3}?(?:the|your|our)\s+(?:(?:final|correct|right)\s+)?"
    r"(?:answer|solution|result)\b(?!\s*(?:is|was|will|must|=|:))"
)
_RESULT = re.compile(
    r"(?i)\b(?:giv(?:es?|ing)|get(?:s|ting)?|yield(?:s|ing)?|mak(?:es?|ing)|leav(?:es?|ing)|equals?"
    r"|obtain(?:s|ed)?|totals?|(?:comes?|adds? up|amounts?|results?) (?:out )?(?:to|as|at|in)"
    r"|ends? up (?:at|with)|lands? (?:at|on)|arrives? at|reach(?:es)?|namely|must be"
    r"|pays?|needs?|keeps?|takes?|costs?|remains?|there (?:are|is)"
    r"|(?:remainder|total|sum|difference|quotient) of"
    r"|(?:that|which|this|it|value|count|result|total|remainder|quotient|difference) (?:is|was)"
    r"|(?:plus|minus|times|divided by|half of|twice|product of|sum of)\b[^.,;]{0,60}"
    rf"\b(?:is|are))\s+{_FILL}"
)
_SAID = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|has|have|so|hence|thus|therefore|do(?:es)? it in)\b|[:,])"
    rf"\s*{_FILL}"
)
_ASSUMED = re.compile(
    r"(?i)\b(?:let|try|suppose|assum(?:e|ing)|say|with|if|when|where|given|using|put|set|choose|for)"
    r"\s+(?:that\s+|we\s+|you\s+|[^.;,]{0,40}\band\s+)?$"
)
_CLAUSE_END = re.compile(
    r"(?i)(?:(?:square |cubic )?(?:units?|[ckm]?m|dollars?|cents?|degrees?|hours?|minutes?|seconds?"
    r"|days?|weeks?|years?|feet|meters?|percent)\b\s*)?(?:$|[.,;:!?–—-]|(?:and|so|which|as|because"
    r"|since|in all|in total|left|altogether|now|of them|again|after|before|with|when|if|by|from"
    r"|each|per)\b)"
)
_COMPARED = re.compile(
    r"(?i)(?:times|more|less|fewer|[a-z]+er than|digits?|steps?|cases?|ways? to|of the|out of"
    r"|percent of|units? (?:to|more|less))\b"
)
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
    is_compared = _COMPARED.match(after)
    stated = _STATED.search(before)
    if stated and not _NOT.search(stated["gap"]) and not is_compared:
        return "stated"
    if _STATED_AFTER.match(after) and not _NOT.search(before[-20:]):
        return "stated"
    if value.place:
        return _role_in_equation(text, value)
    nouns = _NOUNS.match(after)
    is_asked = nouns is not None and bool(_content_words(nouns[0]) & asked)
    if is_compared or not (is_asked or _CLAUSE_END.match(after)):
        return "bare"
    if _RESULT.search(before):
        return "result"
    clause = re.split(r"[,;:]", before.rstrip(" ,;:"))[-1]
    is_about = is_asked or bool(_content_words(clause) & asked)
    return "said" if is_about and _SAID.search(before) and not _NOT.search(clause) else "bare"


def _role_in_equation(text: str, value: Value) -> str:
    before = text[max(0, value.statement - _WINDOW_CHARS) : value.statement]
    left = value.left
    has_digit = any(map(str.isdigit, left))
    is_number = has_digit and not re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", left))
    is_sum = not left and _SUM.search(re.split(r"[=.;\n]", before)[-1])
    if value.place > 1 or is_number or is_sum:
        return "computed"
    if not has_digit or _APPLIED.fullmatch(left):
        return "assumed" if _ASSUMED.search(before.rstrip() + " ") else "named"
    return "bare"  # 2x = 12: an equation that is left to solve


def _content_words(text: str) -> set[str]:
    """Return the telling words of three letters and more, without a plural's ending."""
    words = {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower())}
    return words - {"the", "and", "are", "for", "what", "find"}


# -- leaks ----------------------------------------------------------------------------------------

_COMMON = {"60", "90", "100", "180", "360", "1000", "1,000", *map(str, range(13))}
_COMMON |= {"1/2", r"\frac{1}{2}", r"\frac12", r"\dfrac{1}{2}", "0.5", ".5"}
_GAP = re.compile(r"[\s$]*(?:,\s*and|,|and|or)[\s$]*")
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")
_OPTION = re.compile(
    r"\b(?i:options?|choices?|answers?|letter|choose|select|pick)\b[^.;\n]{0,12}?"
    r"(?:\bis\b|:)?\s*\(?\b(?P<letter>[A-Z])\b(?!['’]|\s+[a-z])"
)


async def find_leaks(hint: str, problem: Problem, equal: Equal) -> tuple[Leak, ...]:
    """Return the leaking spans of a hint, in order and apart from each other."""
    answer = problem.answer
    words = _TEXT_COMMAND.sub(r"\1", answer).strip()
    if problem.kind == "program" or not answer.strip():
        return ()
    is_marked = words != answer or answer.startswith("(")
    if problem.kind == "choice" or (is_marked and re.fullmatch(r"\(?[A-Z]\)?", words)):
        return _options(hint, words.strip("() "))
    own = [each for each in values(answer) if each.shape != "word"]
    number = own[0].text if len(own) == 1 and own[0].shape != "formula" else ""
    found = values(hint)
    if number:  # "81 / 3" for 27 is a division left to do
        due = re.compile("/|frac" if number.isdecimal() else "(?!)")
        found = [
            each
            for each in found
            if each.shape in ("word", "boxed")
            or (each.shape == "literal" and not due.search(each.text))
        ]
        if "%" not in answer:  # the verifier tells 20 % from 20, but it gives the 20 away
            found = [each._replace(text=each.text.rstrip("\\% ")) for each in found]
    else:
        found = _formulas(hint, found, answer, words)
    given = [each.text for each in values(problem.text) if number and each.shape != "formula"]
    texts = list(dict.fromkeys([*(each.text for each in found), *given]))
    equals = dict(zip(texts, await equal(answer, texts), strict=True)) if texts else {}
    formula, question = compact(answer), compact(problem.text)
    is_given = any(equals[text] for text in given) or (not number and formula in question)
    is_rare = not is_given and number not in _COMMON
    asked = _content_words(problem.text)
    text = _MARKUP.sub(lambda match: " " * len(match[0]), hint)
    leaks = []
    for each in found:
        # A formula much longer than the answer is one on the way to it.
        if not equals[each.text] or (
            not number and len(compact(each.text)) > 1.5 * len(formula) + 1
        ):
            continue
        role = _role(text, each, asked)
        is_equation = role in ("computed", "named") or is_rare
        if role in ("boxed", "stated", "result", "said"):
            leaks.append(Leak(each.start, each.end, role))
        elif is_equation and not _is_quoted(hint, each, question):
            leaks.append(Leak(each.start, each.end, role))
    return _apart(leaks)


def _is_quoted(hint: str, value: Value, question: str) -> bool:
    """Return whether the formula, or the equation, stands in the problem already."""
    if value.shape == "formula":
        return compact(value.text) in question
    statement = hint[max(value.statement, value.end - _WINDOW_CHARS) : value.end]
    return value.place > 0 and compact(statement) in question


def _formulas(hint: str, found: list[Value], answer: str, words: str) -> list[Value]:
    """Return formulas and numbers, pairs of numbers ("3 and -2") and the answer's own words."""
    found = [each for each in found if each.shape != "word"]
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


def _options(hint: str, letter: str) -> tuple[Leak, ...]:
    """Return where a choice's letter is named as one; other capitals are not looked at."""
    found = [match.span("letter") for match in _OPTION.finditer(hint) if match["letter"] == letter]
    for box in boxes(hint):
        if letter and _TEXT_COMMAND.sub(r"\1", box.text).strip("() ") == letter:
            found.append((box.start, box.end))
    return _apart([Leak(start, end, "stated") for start, end in found])


def _apart(leaks: Sequence[Leak]) -> tuple[Leak, ...]:
    """Return them in order, and of two that overlap the inner or the first one."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.end, -each.start)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return tuple(kept)
