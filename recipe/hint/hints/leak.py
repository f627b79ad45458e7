r"""The leak guard: count, drop or redact hints that give the final answer away.

Each value of a hint (a number in digits or words, a box, a side of an equation) that equals the
answer by the verifier's equality, which is injected, is a leak: in a box, stated as the answer or
said of what is asked always; for an answer that is rare and not in the problem anywhere; for others
as a result only (``4 + 8 = 12``, ``x = 12``). An operand (the 3 of ``3x``) is no value, and what
is left to do (``4 + 8``) no leak. docs/hints.md has the rules, the measured precision and recall,
and what is not covered. The work is linear in the length of the hint.

To find the values, the text is masked, character for character: words become breaks, numbers and
commands fillers. A statement is what stands between breaks, and its ``=`` part it into sides.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from recipe.hint.hints import leak_words as vocabulary
from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.schema import HintLevels, Item, Problem, Verdict

LeakPolicy = Literal["measure", "drop", "redact"]
# (answer, candidates) -> whether each of them equals the answer.
Equal = Callable[[str, Sequence[str]], Awaitable[list[bool]]]
GradeMany = Callable[[Sequence[Item]], Awaitable[list[Verdict]]]

REDACTED = "[...]"


@dataclass(frozen=True, slots=True)
class Leak:
    """The answer at ``start:end`` of a hint; ``role`` is why it counts."""

    start: int
    end: int
    role: str


class LeakGuard:
    """A source of hints whose every level is checked for the final answer.

    Levels that hold it are named in ``leaked``. ``measure`` changes nothing. ``drop`` empties their
    text, which a prompt rollout takes as a hint that cannot be had. ``redact`` puts ``[...]`` for
    each leaking value and leaves every other character as it is.
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
    """Return equality by a verifier of boxed answers; an ungraded candidate is another value."""

    async def equal(answer: str, candidates: Sequence[str]) -> list[bool]:
        items = [Item(rf"\boxed{{{candidate}}}", answer) for candidate in candidates]
        return [verdict.score > 0 for verdict in await grade(items)]

    return equal


_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+:\d\d(?!\d)|\d+(?:\.\d+)?|(?<!\d)\.\d+"
_TOKEN = re.compile(
    rf"""
    (?P<break>^[ \t]*(?:[-*•]|\(?\d{{1,2}}[.)])[ \t]
        |(?:(?<=[Ss]tep[ ])|(?<=[Hh]int[ ])|(?<=[Ll]evel[ ]))\d+
        |\d+(?:st|[nr]d|th)\b|\d+-(?=[A-Za-z])
        |[A-Za-zÀ-ÿ]{{2,}}(?:['’-][A-Za-zÀ-ÿ]+|[ ][A-Za-zÀ-ÿ]{{2,}})*
        |\\(?:text|mathrm|textbf|mbox)\s*\{{[^{{}}]*\}}|\\[()\[\]]
        |\\(?:begin|end)\s*\{{(?![a-z]*matrix)[A-Za-z]+\*?\}}
        |\\(?:to|implies|Rightarrow|iff|in)(?![A-Za-z])|[→⇒∈])
    |(?P<number>{_NUMBER}|\\%|\^\s*\{{\\circ\}}|(?:\^\s*)?\\circ(?![A-Za-z]))
    |(?P<open>\\begin\s*\{{[a-z]*matrix\}}|\\\{{)|(?P<close>\\end\s*\{{[a-z]*matrix\}}|\\\}})
    |(?P<comma>\\\\)
    |(?P<blank>[$€£&]|\\[$,;:!\ ]|\\(?:left|right|quad|qquad|displaystyle|big|Big)(?![A-Za-z]))
    |(?P<equal>\\(?:approx|equiv)(?![A-Za-z])|[≈≡])
    |(?P<operator>\\(?:[A-Za-z]+|\|)|(?<=[\w)])!(?=[ ]*[\\=+*/·×^)}}\],;:$-]))
    |[^-+*/·×÷^_–−²³√π()\[\]{{}}|,%°=<>≤≥≠A-Za-z0-9 \t\r]
    """,
    re.VERBOSE | re.MULTILINE,
)
# What a token becomes in the mask of a text, which is as long as the text: the first character,
# then the others. Single letters, operators and brackets stay as they are.
_MASKS = dict(number="99", open="(\\", close=")\\", comma=", ", blank="  ", equal="= ")
_MASKS["operator"] = "\\\\"
# What parts a mask into statements and their sides; a space does in "5 m" and "3 4".
_PART = re.compile(r"[(\[{]|[)\]}]|[=,]|\n+|(?<=[\w%°])[ \t\r]+(?=[\w%°])(?!9+/9)")
_LITERAL = re.compile(
    r"[-–−+]?[\d.,:\s]*+(?:/\s*[\d.,]+|\\[dt]?frac\s*(?:(?:\{\s*-?[\d.,]+\s*\}\s*){2}|\d\s*\d)"
    r"|(?:\\times|\\cdot|×|·)\s*10\^(?:\{-?\d+\}|\d))?\s*(?:\\?%|\^?\{?\\circ\}?|°)?"
)
_BRACE = re.compile(r"\\boxed\s*\{|[{}]")
_UNCOUNTED = re.compile(r"\\(?:left|right|cdot|times|displaystyle)(?![A-Za-z])|[\s{}\\$*]")


class Value(NamedTuple):
    """A value at ``start:end``; ``text`` is what the verifier compares.

    ``shape`` is ``literal`` (a number), ``word``, ``formula`` or ``boxed``. The side before
    it in its statement, which begins at ``statement``, is ``left``; ``place`` counts those sides.
    """

    start: int
    end: int
    text: str
    shape: str
    statement: int
    left: str = ""
    place: int = 0


def values(text: str) -> list[Value]:
    """Return all values in the order of the text, none of them blank; a box is one value."""
    boxed, pieces, at = list(boxes(text)), [], 0
    for box in boxed:
        pieces += [text[at : box.statement], "\n" * (box.end + 1 - box.statement)]
        at = box.end + 1
    text = "".join(pieces) + text[at:]

    def masked(match: re.Match[str]) -> str:
        first, other = _MASKS.get(match.lastgroup or "", "\n\n")
        return first + other * (len(match[0]) - 1)

    mask = _TOKEN.sub(masked, text)
    found = [*boxed, *_number_words(text)]
    for sides in _statements(mask):
        begin, left = sides[0][0], ""
        if len(sides) > 1:  # "x < 5" may be an answer as a whole
            found += _value(text, mask, (begin, sides[-1][1]), (begin,))
        for place, (start, end) in enumerate(sides):
            found += _value(text, mask, (start, end), (begin, left, place))
            left = text[start:end].strip()
    return sorted(found, key=lambda each: (each.start, -each.end))


def compact(text: str) -> str:
    r"""Drop what does not count in a formula: spaces, braces, ``\left``, signs of a product."""
    return _UNCOUNTED.sub("", text).lower()


def _number_words(text: str) -> Iterator[Value]:
    """Yield numbers in words, spelled as the verifier reads them."""
    for match in vocabulary.IN_WORDS.finditer(text):
        words = match[0].lower().removeprefix("a dozen") or "dozen"
        whole = words.removesuffix(" and a half")
        if whole != words and whole in vocabulary.SMALL:
            words = f"{vocabulary.SMALL.index(whole)}.5"
        words = re.sub("^an? ", "one ", words.replace(" and ", " "))
        yield Value(match.start(), match.end(), words, "word", match.start())


def boxes(text: str) -> Iterator[Value]:
    """Yield what stands in each box that is closed, holds no other box and is not blank."""
    open_at: list[re.Match[str] | None] = []
    last_box = -1
    for match in _BRACE.finditer(text):
        if match[0] != "}":
            open_at.append(match if len(match[0]) > 1 else None)
        elif open_at and (box := open_at.pop()) and box.start() > last_box:
            last_box = box.start()
            content = text[box.end() : match.start()].strip()
            if compact(content):
                yield Value(box.end(), match.start(), content, "boxed", box.start())


def _statements(mask: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the sides of each statement, as spans."""
    sides: list[tuple[int, int]] = []
    start = depth = 0
    for part in _PART.finditer(mask + "\n"):
        sign = part[0][0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif sign == "\n" or not depth:
            if part.start() > start or sides:
                sides.append((start, part.start()))
            start = part.end()
            if sign != "=":
                if sides:
                    yield sides
                sides, depth = [], 0


def _value(text: str, mask: str, span: tuple[int, int], rest: tuple) -> Iterator[Value]:
    """Yield a side without the punctuation around it, if it is not blank."""
    shown = mask[slice(*span)].lstrip(" \t\r,|")
    start = span[1] - len(shown)
    end = start + len(shown.rstrip(" \t\r,|-–+*_"))
    shown = mask[start:end]
    if shown[-1:] in (")", "]", "}") and not set("([{") & set(shown):
        end -= 1
    content = text[start:end]
    if any(map(str.isalnum, compact(content))):
        is_number = _LITERAL.fullmatch(content.removeprefix("(").removesuffix(")"))
        yield Value(start, end, content, "literal" if is_number else "formula", *rest)


_WINDOW_CHARS = 160
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_MARKUP = re.compile(r"""[${}*_"“”()\[\]€£]|(?<!\w)'|'(?!\w)|\\[()\[\]$,;! %]|\\text\{|\\boxed""")
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
    is_compared = vocabulary.COMPARED.match(after)
    stated = vocabulary.STATED.search(before)
    if stated and not vocabulary.NOT.search(stated["gap"]) and not is_compared:
        return "stated"
    if vocabulary.STATED_AFTER.match(after) and not vocabulary.NOT.search(before[-20:]):
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
    if problem.kind == "program" or not answer.strip():
        return [()] * len(hints)
    is_marked = words != answer or answer.startswith("(")
    if problem.kind == "choice" or (is_marked and re.fullmatch(r"\(?[A-Z]\)?", words)):
        return [_options(hint, words.strip("() ")) for hint in hints]
    own = [each for each in values(answer) if each.shape != "word"]
    number = own[0].text if len(own) == 1 and own[0].shape != "formula" else ""
    found = [
        _numbers(hint, answer, number) if number else _formulas(hint, answer, words)
        for hint in hints
    ]
    if not any(found):
        return [()] * len(hints)
    given = [each.text for each in values(problem.text) if number and each.shape != "formula"]
    same = await _same(answer, [*(each.text for row in found for each in row), *given], equal)
    formula, question = compact(answer), compact(problem.text)
    is_given = bool(same & {*given}) or (not number and formula in question)
    is_rare = not is_given and number not in vocabulary.COMMON
    asked = _content_words(problem.text)

    def leaks(hint: str, found: Iterable[Value]) -> Iterator[Leak]:
        text = _MARKUP.sub(lambda match: " " * len(match[0]), hint)
        for each in found:
            # A formula much longer than the answer is one on the way to it.
            if not number and len(compact(each.text)) > 1.5 * len(formula) + 1:
                continue
            role = _role(text, each, asked)
            is_equation = role in ("computed", "named") or is_rare
            if role in ("boxed", "stated", "result", "said"):
                yield Leak(each.start, each.end, role)
            elif is_equation and not _is_quoted(hint, each, question):
                yield Leak(each.start, each.end, role)

    return [
        _apart(leaks(hint, (each for each in row if each.text in same)))
        for hint, row in zip(hints, found, strict=True)
    ]


async def _same(answer: str, texts: Sequence[str], equal: Equal) -> set[str]:
    """Return the texts that equal the answer, each asked about once."""
    unique = list(dict.fromkeys(texts))
    found = await equal(answer, unique) if unique else []
    return {text for text, is_same in zip(unique, found, strict=True) if is_same}


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


def _options(hint: str, letter: str) -> tuple[Leak, ...]:
    """Return where a choice's letter is named as one; other capitals are not looked at."""
    named = (match for match in vocabulary.OPTION.finditer(hint) if match["letter"] == letter)
    found = [match.span("letter") for match in named]
    for box in boxes(hint):
        if letter and _TEXT_COMMAND.sub(r"\1", box.text).strip("() ") == letter:
            found.append((box.start, box.end))
    return _apart([Leak(start, end, "stated") for start, end in found])


def _apart(leaks: Iterable[Leak]) -> tuple[Leak, ...]:
    """Return them in order, and of two that overlap the inner or the first one."""
    kept: list[Leak] = []
    for leak in sorted(leaks, key=lambda each: (each.end, -each.start)):
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return tuple(kept)
