r"""The numbers of a text, read generously.

``42``, ``4 2``, ``1 437``, ``0x2a``, ``4.2e1``, ``four two``, ``3 over 4``, ``20 %`` and one
operation on such numbers: ``40 + 2``, ``half of 84``, ``one more than 41``. All is exact. An
operation is read from what stands between two numbers or before one, so that a text without
numbers costs one scan.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Container, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from recipe.verify.maths.words import NUMBERS, PARTS, number_of

_MAX_DIGITS = 40  # of a number and of a power, so that the work stays small
_MAX_GAP_CHARS = 24
_ONES = {word: str(value) for word, value in NUMBERS.items() if value < 10}


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern that looks at a word's other letters only where its first one stands."""
    found = itertools.groupby(sorted(words), key=lambda word: word[0])
    rests = {first: "|".join(word[1:] for word in group) for first, group in found}
    return "(?:" + "|".join(f"{first}(?:{rest})" for first, rest in rests.items()) + r")\b"


_WHOLE = _any_of([*NUMBERS, "hundred", "thousand", "million", "dozen"])
_SHARE = _any_of(PARTS)
# What is looked for begins with a set of ASCII characters, which is what Python finds fast.
_IN_WORDS = re.compile(
    rf"[^a-z0-9_](?=[adefhmnostz])(?<=\W)(?P<words>{_WHOLE}"
    rf"(?:(?:(?<=hundred) and |(?<=thousand) and |[ -]{{1,2}}){_WHOLE})*"
    rf"(?:(?: and (?:a|one))?[ -]{_SHARE}| point(?: (?:{'|'.join(_ONES)})\b)+)?"
    rf"|an? (?:dozen\b|{_SHARE}))"
)
_AROUND = r"[\s\\{}()\[\]$`\"'“”_~|*]{0,24}"
# After a number: what may make it a part of another writing, or may be an operation.
_DIGITS = re.compile(
    r"[0-9]+(?:,\d+)*(?:\.\d+)?(?=(?P<odd>[ _|~.]\d|e[-+]?\d|\s*(?:\\times|\\cdot|[*×·]))"
    rf"|(?P<more>\s*\}}\s*\{{|\s*\\?[a-z]?frac|{_AROUND}(?:[-+–−*×·÷^/x]|plus|minus|times|cdot"
    rf"|multiplied|over|div|out|more|greater|larger|less|fewer|smaller|of|and|%|percent)"
    rf"{_AROUND}[\da-z.])|)"
)
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
_FRAC = re.compile(r"\\?[a-z]*frac\s*(?:\{\s*-?\s*)?$")
# What stands between two numbers that make a share, and what then stands before the first one.
_OPENINGS = {"/": re.compile(r"\Z"), ")/": re.compile(r"\(\s?-?$"), "}{": _FRAC, "}{-": _FRAC}
_MARKUP = str.maketrans("", "", " \t\n\\{}()[]$`\"'“”_~|")


def _over(one: Fraction | int, two: Fraction | int) -> Fraction | None:
    return Fraction(one) / two if two else None


def _to_power(one: Fraction | int, two: Fraction | int) -> Fraction | int | None:
    is_small = two.denominator == 1 and two * len(str(one)) <= _MAX_DIGITS
    return one ** int(two) if is_small else None


_OPERATORS: dict[str, Callable[[Any, Any], Fraction | int | None]] = {
    **dict.fromkeys(("+", "plus"), operator.add),
    **dict.fromkeys(("-", "–", "−", "minus"), operator.sub),
    **dict.fromkeys(("*", "×", "·", "x", "times", "cdot", "multipliedby"), operator.mul),
    **dict.fromkeys(("÷", "over", "div", "dividedby", "outof"), _over),
    **dict.fromkeys(("^", "**"), _to_power),
    **{f"{more}than": operator.add for more in ("more", "greater", "larger")},
    **{f"{less}than": lambda one, two: two - one for less in ("less", "fewer", "smaller")},
    **{"%of": lambda one, two: Fraction(one) * two / 100, "of": operator.mul},
}
_NAMED = {"sum": "+", "product": "*", "difference": "-", "quotient": "over"}
_BEFORE = re.compile(
    r"(?:(?:the |an? )?(?:(?P<named>sum|product|difference|quotient) (?:of|between)"
    r"|(?P<twice>twice|double)|(?P<half>half)(?: of)?)|\\?(?P<root>sqrt|√|(?:the )?square root of))"
    r"[\s({$]*$"
)
_ROMAN = "M CM D CD C XC L XL X IX V IV I".split()
_ENDS_BEFORE = ("of", "between", "twice", "double", "half", "sqrt", "√")


class Number(NamedTuple):
    """A number at ``start:end``; ``is_percent`` where it is so many hundredths."""

    value: Fraction | int
    start: int
    end: int
    is_percent: bool = False


class Sizes(NamedTuple):
    """Magnitudes to look for, and those whose double, half or square root is one of them."""

    wanted: Container[Fraction | int]
    operands: Container[float]


def sizes_of(wanted: Iterable[Fraction]) -> Sizes:
    """Return what to look for."""
    own = {size for size in wanted if size < 10**_MAX_DIGITS}
    operands = (each for size in own for each in (size, 2 * size, size / 2, size * size))
    return Sizes(own, {*map(float, operands)})


def numbers(text: str, sizes: Sizes) -> Iterator[Number]:
    """Yield the numbers of a text that have one of these sizes, also after one operation.

    A number that an operator joins to another one is not yielded by itself.
    """
    low = lowered(text)
    atoms, found = _written_down(low, sizes)
    signs = ["", *(_sign(low, one, two) for one, two in itertools.pairwise(atoms)), "", ""]
    for place, one in enumerate(atoms):
        before, after, next_one = signs[place : place + 3]
        if not before and not after:
            if abs(float(one.value)) in sizes.operands:
                found += _applied(low, one)
        elif not before and not next_one:
            found += _combined(low, one, after, atoms[place + 1])
    for each in found:
        if abs(float(each.value)) in sizes.operands and abs(each.value) in sizes.wanted:
            percent = _PERCENT.match(low, each.end)
            end = percent.end() if percent else each.end
            sign = _NEGATIVE.search(low[max(0, each.start - 10) : each.start])
            value, start = each.value, each.start
            if sign:
                value, start = -value, start - len(sign[0])
            yield Number(value, start, end, bool(percent))


def _written_down(low: str, sizes: Sizes) -> tuple[list[Number], list[Number]]:
    """Return the numbers that matter, in order, and those in a writing that may mean more.

    One that stands alone matters if it is an operand; most numbers of a text stand alone.
    """
    found: list[Number] = []
    atoms = [*in_words(low)]
    word_ends, last_word_end = [each.end for each in reversed(atoms)], -_MAX_GAP_CHARS - 1
    has_frac = "frac" in low
    is_joined = False
    for match in _DIGITS.finditer(low):
        digits, start = match[0], match.start()
        was_joined, is_joined = is_joined, match.lastindex is not None
        while word_ends and word_ends[-1] <= start:
            last_word_end = word_ends.pop()
        if len(digits) < _MAX_DIGITS and (
            is_joined
            or was_joined
            or "," in digits
            or digits[-4:-3] == "."
            or low[start - 1 : start] == "."
            or float(digits) in sizes.operands
            or (has_frac and "frac" in low[max(0, start - 6) : start])
            or start - last_word_end <= _MAX_GAP_CHARS
        ):
            if "," in digits or low[start - 1 : start] == "." or has_frac:
                atoms += _in_digits(low, match)
            else:
                atoms.append(Number(_of_digits(digits), start, match.end()))
            if match.lastgroup == "odd" or "," in digits or digits[-4:-3] == ".":
                found += _odd(_ODD.match(low, start), sizes)
    return _with_shares(low, sorted(atoms, key=lambda each: each.start)), found


def in_words(text: str) -> Iterator[Number]:
    """Yield the numbers in words."""
    for match in _IN_WORDS.finditer("\n" + lowered(text)):
        words = match["words"]
        value = NUMBERS.get(words) or _of_words(words.replace("-", " ").split())
        if value is not None:
            yield Number(value, match.start(), match.end() - 1)


def lowered(text: str) -> str:
    """Return a text in small letters, as long as it is."""
    low = text.lower()
    return low if len(low) == len(text) else text


def _of_words(words: list[str]) -> Fraction | None:
    if len(words) > _MAX_DIGITS:
        return None
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


@functools.lru_cache(4096)  # texts on one problem share their numbers
def _of_digits(digits: str) -> Fraction | int:
    return int(digits) if digits.isdecimal() else Fraction(digits)


def _in_digits(low: str, match: re.Match[str]) -> Iterator[Number]:
    digits, start, end = match[0], *match.span()
    is_point = low[start - 1 : start] == "." and not low[max(0, start - 2) : start - 1].isdigit()
    if is_point and "." not in digits.partition(",")[0]:
        digits, start = f".{digits}", start - 1
    before = low[max(0, start - 12) : start]
    frac = _FRAC.search(before) if "frac" in before else None
    if frac and "{" not in frac[0] and re.fullmatch(r"\d[1-9]", digits):  # \frac34
        yield Number(Fraction(int(digits[0]), int(digits[1])), start - len(frac[0]), end)
    elif "," not in digits or _THOUSANDS.fullmatch(digits):
        yield Number(_of_digits(digits.replace(",", "")), start, end)
    else:
        for part in re.finditer(r"\d*\.?\d+", digits):
            yield Number(_of_digits(part[0]), start + part.start(), start + part.end())


def _odd(match: re.Match[str] | None, sizes: Sizes) -> Iterator[Number]:
    if match is None or len(match[0]) > _MAX_DIGITS:
        return
    digits, power, row, comma = match.groups()
    plain = re.sub(r"\D", "", row) if row else comma.replace(",", ".") if comma else digits
    written = f"{plain}e{power or 0}"
    if float(written) in sizes.operands:
        yield Number(Fraction(written), *match.span())


def _with_shares(low: str, atoms: Iterable[Number]) -> list[Number]:
    r"""Join two numbers with a slash between them or in a ``\frac``, and a mixed number."""
    found: list[Number] = []
    for one in atoms:
        last = found[-1] if found else one
        gap = low[last.end : one.start].replace(" ", "") if one.start - last.end <= 5 else ""
        opening = _OPENINGS.get(gap) if gap else None
        before = opening.search(low[max(0, last.start - 12) : last.start]) if opening else None
        if before and one.value and _is_short(last.value):
            share, sign = Fraction(last.value) / one.value, f"{before[0]}{gap}".count("-")
            found[-1] = Number(-share if sign == 1 else share, last.start - len(before[0]), one.end)
        else:
            found.append(one)
            if "frac" not in low[one.start : one.start + 6]:  # \frac34 is one number
                continue
        *_, whole, part = [None, *found]
        if whole and 0 < part.value < 1 and low[whole.end : part.start] in ("", " "):
            found[-2:] = [Number(whole.value + part.value, whole.start, part.end)]
    return found


def _is_short(value: Fraction | int) -> bool:
    return max(abs(value.numerator), value.denominator) < 10**_MAX_DIGITS


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
    value = _OPERATORS[sign](one.value, two.value)
    if value is not None:
        before = _before(low, one)
        yield Number(value, one.start - len(before[0] if before else ""), two.end)


def _applied(low: str, one: Number) -> Iterator[Number]:
    """Yield a number with what the words before it do to it: twice, half of, the root of."""
    before = _before(low, one)
    if not before or before["named"]:
        yield one
        return
    value = Fraction(one.value)
    if before["root"]:
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root**2 != value:
            return
        value = root
    else:
        value *= 2 if before["twice"] else Fraction(1, 2)
    yield Number(value, one.start - len(before[0]), one.end)


def in_other_bases(text: str, number: int) -> Iterator[Number]:
    """Yield where a whole number stands in Roman numerals or with another base."""
    for form, pattern in _other_bases(number):
        if form in text:
            spans = (each.span() for each in re.finditer(pattern, text))
            yield from (Number(number, *span) for span in spans)


@functools.lru_cache(maxsize=64)
def _other_bases(number: int) -> list[tuple[str, str]]:
    """Return each form, and the pattern of the form with its base."""
    numeral, rest = "", number if number < 4000 else 0
    for sign, size in zip(
        _ROMAN, (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), strict=True
    ):
        numeral += sign * (rest // size)
        rest %= size
    suffix = r"\s{{0,2}}(?:_\s?\{{?\s?{0}|[( ](?:in |as )?(?:base[ -]{0}|{1}))"
    forms = [(numeral, ""), (hex(number), ""), (bin(number), ""), (oct(number), "")]
    forms += [
        (f"{number:b}", suffix.format(2, "binary")),
        (f"{number:o}", suffix.format(8, "octal")),
        (f"{number:x}", suffix.format(16, r"hex\w*")),
        (f"{number:X}", suffix.format(16, r"hex\w*")),
    ]
    return [(form, rf"\b{form}{base}\b") for form, base in forms if len(form) > (not base)]
