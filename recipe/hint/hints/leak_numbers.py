r"""The numbers of a text, read generously, and whether one is said to be the answer.

``42``, ``4 2``, ``1 437``, ``0x2a``, ``4.2e1``, ``four two``, ``3 over 4``, ``20 %`` and one
operation on such numbers: ``40 + 2``, ``half of 84``, ``one more than 41``. All is exact. An
operation is read from what stands between two numbers or before one, so that a text without
numbers costs one scan.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Container, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from recipe.hint.verify.maths.words import NUMBERS, PARTS, number_of

_MAX_DIGITS = 40  # of a number and of a power, so that the work stays small
_MAX_GAP_CHARS = 24
_ONES = {word: str(value) for word, value in NUMBERS.items() if value < 10}
_WHOLE = rf"(?:{'|'.join([*NUMBERS, 'hundred', 'thousand', 'million', 'dozen'])})\b"
_SHARE = rf"(?:{'|'.join(PARTS)})\b"
_IN_WORDS = re.compile(
    rf"\b(?=[adefhmnostz])(?:{_WHOLE}"
    rf"(?:(?:(?<=hundred) and |(?<=thousand) and |[ -]{{1,2}}){_WHOLE})*"
    rf"(?:(?: and (?:a|one))?[ -]{_SHARE}| point(?: (?:{'|'.join(_ONES)})\b)+)?"
    rf"|an? (?:dozen\b|{_SHARE}))"
)
_DIGITS = re.compile(r"\d+(?:,\d+)*(?:\.\d+)?")  # a digit first: Python looks for it fast
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# To a power of ten, digits apart, other thousands, a comma for the point.
_ODD = re.compile(
    r"(?P<digits>\d+(?:\.\d+)?)(?:e|\s*(?:\\times|\\cdot|[*×·])\s*10\s*(?:\^|\*\*)\s*\{?)"
    r"(?P<power>[-+]?\d{1,2})(?!\d)"
    r"|(?P<row>\d(?:[ _|~]\d){1,18}(?![\d.,/ _]?\d)|[1-9]\d{0,2}(?:[ .]\d{3}){1,9}(?![.,]?\d))"
    r"|(?P<comma>\d+,\d+)(?![,.]?\d)"
)
_PERCENT = re.compile(r"\s*(?:\\?%|per ?cent\b|pct\b)")
_NEGATIVE = re.compile(r"(?<![\w)])[-−]$|\b(?:minus|negative) $")
_FRAC = re.compile(r"\\?[a-z]*frac\s*\{?\s*$")
_MARKUP = str.maketrans("", "", " \t\n\\{}()[]$`\"'“”_~|")
_OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    **dict.fromkeys(("+", "plus"), operator.add),
    **dict.fromkeys(("-", "–", "−", "minus"), operator.sub),
    **dict.fromkeys(("*", "×", "·", "x", "times", "cdot", "multipliedby"), operator.mul),
    **dict.fromkeys(("÷", "over", "div", "dividedby", "outof"), operator.truediv),
    **dict.fromkeys(("^", "**"), operator.pow),
    **{f"{more}than": operator.add for more in ("more", "greater", "larger")},
    **{f"{less}than": lambda one, two: two - one for less in ("less", "fewer", "smaller")},
    **{"%of": lambda one, two: one * two / 100, "of": operator.mul},
}
_NAMED = {"sum": "+", "product": "*", "difference": "-", "quotient": "over"}
_BEFORE = re.compile(
    r"(?:(?:the |an? )?(?:(?P<named>sum|product|difference|quotient) (?:of|between)"
    r"|(?P<twice>twice|double)|(?P<half>half)(?: of)?)|\\?(?P<root>sqrt|√|(?:the )?square root of))"
    r"[\s({$]*$"
)
_fraction = functools.lru_cache(4096)(Fraction)  # texts on one problem share their numbers
_ROMAN = "M CM D CD C XC L XL X IX V IV I".split()
_ENDS_BEFORE = ("of", "between", "twice", "double", "half", "sqrt", "√")


class Number(NamedTuple):
    """A number at ``start:end``; ``is_percent`` where it is so many hundredths."""

    value: Fraction | int
    start: int
    end: int
    is_percent: bool = False


def numbers(text: str, sizes: Container[Fraction]) -> Iterator[Number]:
    """Yield the numbers of a text that have one of these sizes, also after one operation.

    A number that an operator joins to another one is not yielded by itself.
    """
    low = lowered(text)
    atoms, found = [*in_words(text)], []
    for match in _DIGITS.finditer(low):
        digits, start = match[0], match.start()
        if len(digits) < _MAX_DIGITS:
            before = low[max(0, start - 6) : start]
            if digits.isdecimal() and before[-1:] != "." and "frac" not in before:
                atoms.append(Number(int(digits), start, match.end()))
            else:
                atoms += _in_digits(low, match)
            found += _odd(_ODD.match(low, match.start()))
    atoms = _with_shares(low, sorted(atoms, key=lambda each: each.start))
    signs = ["", *(_sign(low, one, two) for one, two in pairwise(atoms)), "", ""]
    for place, one in enumerate(atoms):
        before, behind, next_one = signs[place : place + 3]
        if not before and not behind:
            found.append(_applied(low, one))
        elif not before and not next_one:
            found += _combined(low, one, behind, atoms[place + 1])
    for each in found:
        if abs(each.value) in sizes:
            percent = _PERCENT.match(low, each.end)
            end = percent.end() if percent else each.end
            sign = _NEGATIVE.search(low[max(0, each.start - 10) : each.start])
            value, start = each.value, each.start
            if sign:
                value, start = -value, start - len(sign[0])
            yield Number(value, start, end, bool(percent))


def in_words(text: str) -> Iterator[Number]:
    """Yield the numbers in words."""
    for match in _IN_WORDS.finditer(lowered(text)):
        value = _of_words(match[0].replace("-", " ").split())
        if value is not None:
            yield Number(value, *match.span())


def lowered(text: str) -> str:
    """Return a text in small letters, as long as it is."""
    low = text.lower()
    return low if len(low) == len(text) else text


def _of_words(words: list[str]) -> Fraction | None:
    if "point" in words:
        place = words.index("point")
        digits = "".join(_ONES[each] for each in words[place + 1 :])
        whole = _of_words(words[:place])
        return None if whole is None else whole + Fraction(f".{digits}")
    if all(each in _ONES for each in words):
        return Fraction("".join(_ONES[each] for each in words))
    if words[-3:-2] == ["and"] and words[-1] in PARTS:  # seven and a half
        whole, share = _of_words(words[:-3]), number_of(words[-2:])
        return whole + share if whole and share else None
    return number_of([each for each in words if each != "and"])


def _in_digits(low: str, match: re.Match[str]) -> Iterator[Number]:
    digits, start, end = match[0], *match.span()
    if low[start - 1 : start] == "." and not low[max(0, start - 2) : start - 1].isdigit():
        digits, start = f".{digits}", start - 1
    frac = _FRAC.search(low[max(0, start - 12) : start])
    if frac and "{" not in frac[0] and re.fullmatch(r"\d[1-9]", digits):  # \frac34
        yield Number(Fraction(int(digits[0]), int(digits[1])), start - len(frac[0]), end)
    elif "," not in digits or _THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
        yield Number(int(digits) if digits.isdecimal() else _fraction(digits), start, end)
    else:
        for part in re.finditer(r"\d*\.?\d+", digits):
            yield Number(_fraction(part[0]), start + part.start(), start + part.end())


def _odd(match: re.Match[str] | None) -> Iterator[Number]:
    if match is None or len(match[0]) > _MAX_DIGITS:
        return
    groups = match.groupdict()
    if groups["digits"]:
        value = Fraction(groups["digits"]) * Fraction(10) ** int(groups["power"])
    elif groups["row"]:
        value = Fraction(re.sub(r"\D", "", groups["row"]))
    else:
        value = Fraction(groups["comma"].replace(",", "."))
    yield Number(value, *match.span())


def _with_shares(low: str, atoms: Iterable[Number]) -> list[Number]:
    r"""Join two numbers with a slash between them or in a ``\frac``, and a mixed number."""
    found: list[Number] = []
    for one in atoms:
        last = found[-1] if found else one
        gap = low[last.end : one.start].replace(" ", "") if one.start - last.end <= 5 else ""
        frac = _FRAC.search(low[max(0, last.start - 12) : last.start]) if gap == "}{" else None
        if (gap == "/" or frac) and one.value:
            share = Fraction(last.value) / one.value
            found[-1] = Number(share, last.start - len(frac[0] if frac else ""), one.end)
            whole = found[-2] if len(found) > 1 else None
            if whole and 0 < share < 1 and low[whole.end : found[-1].start] in ("", " "):
                found[-2:] = [Number(whole.value + share, whole.start, one.end)]
        else:
            found.append(one)
    return found


def _sign(low: str, one: Number, two: Number) -> str:
    """Return the sign of the operation that stands between two numbers, or nothing."""
    if two.start - one.end > _MAX_GAP_CHARS:
        return ""
    sign = low[one.end : two.start].translate(_MARKUP).replace("percent", "%")
    sign = sign if sign in ("*", "**") else sign.strip("*")
    if sign == "and":
        before = _before(low, one)
        return _NAMED[before["named"]] if before and before["named"] else ""
    return sign if sign in _OPERATORS and (sign != "of" or 0 < one.value < 1) else ""


def _before(low: str, one: Number) -> re.Match[str] | None:
    tail = low[max(0, one.start - _MAX_GAP_CHARS) : one.start]
    return _BEFORE.search(tail) if tail.rstrip(" ({$").endswith(_ENDS_BEFORE) else None


def _combined(low: str, one: Number, sign: str, two: Number) -> Iterator[Number]:
    a, b = Fraction(one.value), Fraction(two.value)
    operation = _OPERATORS[sign]
    before = _before(low, one)
    is_small = operation is not operator.pow or (
        b.denominator == 1 and b * len(str(a)) <= _MAX_DIGITS
    )
    if is_small and (b or operation is not operator.truediv):
        yield Number(operation(a, b), one.start - len(before[0] if before else ""), two.end)


def _applied(low: str, one: Number) -> Number:
    """Return a number with what the words before it do to it: twice, half of."""
    before = _before(low, one)
    if not before or before["named"]:
        return one
    value = Fraction(one.value)
    if before["root"]:
        value = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        value = value if value**2 == one.value else Fraction(-1)
    else:
        value *= 2 if before["twice"] else Fraction(1, 2)
    return Number(value, one.start - len(before[0]), one.end)


def in_other_bases(text: str, number: int) -> Iterator[Number]:
    """Yield where a whole number stands in Roman numerals or with another base."""
    numeral, rest = "", number if number < 4000 else 0
    for sign, size in zip(
        _ROMAN, (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), strict=True
    ):
        numeral += sign * (rest // size)
        rest %= size
    behind = r"\s{{0,2}}(?:_\s?\{{?\s?{0}|[( ](?:in |as )?(?:base[ -]{0}|{1}))"
    forms = [(numeral, ""), (hex(number), ""), (bin(number), ""), (oct(number), "")]
    forms += [
        (f"{number:b}", behind.format(2, "binary")),
        (f"{number:o}", behind.format(8, "octal")),
    ]
    forms += [
        (f"{number:x}", behind.format(16, r"hex\w*")),
        (f"{number:X}", behind.format(16, r"hex\w*")),
    ]
    for form, base in forms:
        if len(form) > (not base) and form in text:
            spans = (each.span() for each in re.finditer(rf"\b{form}{base}\b", text))
            yield from (Number(number, *span) for span in spans)


WINDOW_CHARS = 160
# No word of these begins another: a text of fillers alone is read in linear time.
_FILLERS = (
    r"(?:(?:exactly|just|simply|only|about|approximately|equal|therefore|then|thus|hence|now|also"
    r"|the (?:number|value|integer|third|second|last|middle)|option|letter|all|it|is|be|of|to|that"
    r"|in|you|them|us|a total)\s+)*"
)
_FILL = _FILLERS + "$"
NOT = re.compile(
    r"\b(?:not?|never|cannot|n?either|nor|than|least|most|between|multiple|divisible|digits?)\b"
    r"|n't\b"
)
# A number behind these is a label, or one of several.
LABELLED = re.compile(
    r"(?i)\b(?:(?:part|line|step|equation|question|case|problem|hint|level|figure|table|row|column)"
    r"|the (?:sum|product|difference|quotient) of|(?:consists?|composed|made up) of)\s*$"
)
# Where a statement of the answer may begin; then what its number stands behind: whatever follows
# it, where its clause ends, or as a sentence of its own.
_OLD = r"\W{0,4}\d[\d.,/]{0,20}\W{0,4}"
_KEY = re.compile(
    r"(?i)\b(?=[acfijnoqrstvy])(?:(?P<answer>ans(?:wer)?|solution|result|final|right|correct)\b"
    r"|(?:just|simply|only|reply|respond|submit|change|replace)\b|not(?=\W+\d)|instead(?=\s+of)"
    r"|(?:value|number|amount|total|quantity)(?=\s+(?:that|which|you|we|they)\b)"
    r"|(?:you|it|this|that)(?=\s+(?:should|must|will|would|ought|has|have|needs?)\b))"
)
_SLOT_TEXTS = {
    "anything": (
        r"(?:answer|ans|solution|(?:final|right|correct) (?:result|value|number|count|total|sum)"
        r"|correct option)\b(?P<gap>[^.;]{0,50}?)"
        rf"(?:\b(?:is|are|be|equals|as|of|gives|becomes|reads?)\b|[:=])\s*{_FILLERS}"
    ),
    "a sentence": (
        r"(?:answer|solution|result)\b[^.?!:\n]{0,40}[.?!:]\s+(?:it(?:['’]s|\s+is|\s+equals)\s+)?"
    ),
    "a clause": (
        r"(?:ans|(?:(?<!to )(?<!can )(?<!you )(?:answer|solution|result)))\b[\s,:(=–—-]{1,6}"
        r"|(?:just|simply|only)\s+(?:answer|say|write|reply|respond|put|enter)\s+(?:with\s+)?"
        r"|(?:reply|respond|answer)\s+with\s+(?:(?:just|simply)\s+)?|submit\s+"
        rf"|(?:change|correct|replace)\s+(?:your\s+)?{_OLD}(?:to|by|with|into)\s+|not\s+{_OLD}but\s+"
        rf"|instead\s+of\s+{_OLD}(?:you\s+)?(?:should\s+)?(?:write|use|put|say|get|have|be)?\s*"
        r"|(?:value|number|result|amount|total|quantity)\s+(?:(?:that|which)\s+)?(?:you|we|they)"
        r"(?:['’]re|\s+are)?\s+(?:want|need|seek|look(?:ing)? for|asked for|after)\s+(?:is|=|:)\s+"
        r"|(?:you|it|this|that)\s+(?:should|must|will|would|ought\s+to|has\s+to|have\s+to|needs?\s+to)"
        r"\s+(?:(?:now|then|also)\s+)?(?:get|have|find|obtain|see|reach|be|equal|read)\s+"
    ),
}
_SLOTS = {kind: re.compile(rf"(?i)(?:{slot})[\s=~\\]*") for kind, slot in _SLOT_TEXTS.items()}
_STATED_BEHIND = re.compile(
    r"(?i)[\s,:–-]*(?:\.\s*(?=(?-i:[a-z])|-))?[\s-]*(?:(?:\w+\s+){0,3}?(?:the|your|our)\s+(?:(?:final|correct|right)\s+)?"
    r"(?:answer|solution|result)\b(?!\s*(?:is|was|will|must|=|:))|is (?:right|correct)\b"
    r"|in (?:the|your) (?:\w+ )?box\b)"
)
RESULT = re.compile(
    r"(?i)\b(?:giv(?:es?|ing)|get(?:s|ting)?|yield(?:s|ing)?|mak(?:es?|ing)|equals?|left with"
    r"|leav(?:es?|ing)(?: \w+ with)?|lead(?:s|ing) to|(?:result|output|expected):|(?:it|that)['’]s"
    r"|obtain(?:s|ed)?|totals?|(?:comes?|adds? up|amounts?|results?) (?:out )?(?:to|as|at|in)"
    r"|ends? up (?:at|with)|lands? (?:at|on)|arrives? at|reach(?:es)?|namely"
    r"|(?:must|should) (?:be|have (?:been|got|gotten))"
    r"|pays?|needs?|keeps?|takes?|costs?|remains?|there (?:are|is)"
    r"|(?:remainder|total|sum|difference|quotient) of"
    r"|(?:that|which|this|it|value|count|result|total|remainder|quotient|difference) (?:is|was)"
    r"|(?:plus|minus|times|divided by|half of|twice|product of|sum of)\b[^.,;]{0,60}"
    rf"\b(?:is|are))\s+{_FILL}"
)
SAID = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|has|have|so|hence|thus|therefore|do(?:es)? it in)\b|[:,])"
    rf"\s*{_FILL}"
)
ASSUMED = re.compile(
    r"(?i)\b(?:let|try|suppose|assum(?:e|ing)|say|with|if|when|where|given|using|put|set|choose|for)"
    r"\s+(?:that\s+|we\s+|you\s+|[^.;,]{0,40}\band\s+)?$"
)
CLAUSE_END = re.compile(
    r"(?i)(?:(?:square |cubic )?(?:units?|[ckm]?m|dollars?|cents?|degrees?|hours?|minutes?|seconds?"
    r"|days?|weeks?|years?|feet|meters?|percent)\b\s*)?(?:$|[.,;:!?–—-]|(?:and|so|which|as|because"
    r"|since|in all|in total|left|altogether|instead|rather|not|at the end|now|of them|again"
    r"|after|before|with|when|if|by|from|each|per)\b)"
)
_ENDS = {
    "anything": re.compile(""),
    "a sentence": re.compile(r"[.!]?\W*(?:\n|$)"),
    "a clause": CLAUSE_END,
}
COMPARED = re.compile(
    r"(?i)(?:times|more|less|fewer|[a-z]+er than|digits?|steps?|cases?|ways? to|of the|out of"
    r"|percent of|units? (?:to|more|less)|too|lines? long|is (?:not|too|wrong|incorrect))\b"
)
# Behind a number that is only a part of what is stated: 3x, 3-digit, 3rd, 3 of, 40 + y.
_GOES_ON = re.compile(
    r"(?i)-[a-z]|(?:st|[nr]d|th)\b|\s*(?:[+*/^×÷·√\\\d]|[-–−:]\s*\d|[a-z](?![a-z])"
    r"|(?:of|point|plus|minus|over|divided|multiplied|hundred|thousand|million|dozen)\b)"
)
_MARKS = re.compile(r"[\s=~|\\]*(?:\(\w+\))?[\s=~|]*")


def is_stated(text: str, start: int, end: int) -> bool:
    """Return whether a number of a text without markup is said to be the answer."""
    after = text[end : end + WINDOW_CHARS]
    if _GOES_ON.match(after) or COMPARED.match(after.lstrip()):
        return False
    if LABELLED.search(text[max(0, start - 30) : start]):
        return False
    rest = _MARKS.sub("", after, count=1)
    for key in _KEY.finditer(text, max(0, start - 100), start):
        for kind in _SLOTS if key["answer"] else ["a clause"]:
            slot = _SLOTS[kind].fullmatch(text, key.start(), start)
            if (
                slot
                and not NOT.search(slot.groupdict().get("gap") or "")
                and _ENDS[kind].match(rest)
            ):
                return True
    return bool(_STATED_BEHIND.match(rest)) and not NOT.search(text[max(0, start - 20) : start])
