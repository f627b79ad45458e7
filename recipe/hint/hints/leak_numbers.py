r"""The number that a short text comes to, read generously: what is said to be the answer.

``42``, ``4 2``, ``1 437``, ``0x2a``, ``XLII``, ``4.2e1``, ``four two``, ``3 over 4``, ``20 %``
and one operation on such numbers: ``40 + 2``, ``half of 84``, ``one more than 41``. All is exact.
"""

from __future__ import annotations

import contextlib
import math
import operator
import re
from fractions import Fraction
from typing import NamedTuple

from recipe.hint.hints import leak_words as vocabulary

_MAX_TOKENS = 24
_MAX_DIGITS = 40  # of a number and of an exponent's value, so that the work stays small
_TOKEN = re.compile(
    r"(?P<hex>0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+)"
    r"|(?P<based>[0-9A-Fa-f]+)\s*(?:_\s*\{?\s*(?P<base>2|8|16)\b\}?|[( ]\s*(?:in\s+|as\s+)?"
    r"(?:base[ -](?P<radix>2|8|16)\b|(?P<name>binary|octal|hex(?:adecimal)?)\b)\)?)"
    r"|(?P<many>[1-9]\d{0,2}(?:[, _'.]\d{3})+(?![eE]|[\d.,]*\d|\s*(?:\\times|[*×·])))"
    r"|(?P<number>(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][-+]?\d{1,2}(?!\d))?)"
    r"|\\(?P<frac>[dtc]?frac|nicefrac|sfrac)(?:\s*(?P<top>\d)\s*(?P<bottom>\d))?(?!\d)"
    r"|\\(?:text)?color\s*\{\w+\}|</?[A-Za-z][^<>]{0,60}>"
    r"|\\(?:boxed|text|[a-z]*box|left|right)(?![a-z])"
    r"|(?P<word>\\[a-z]+|\*\*(?=\s*\d)|[-+*/^%×÷·−–:;,?!.]|[A-Za-z]+|[^\s{}()\[\]$*`\"'“”«»|~=_\\])"
    r"|(?P<skip>.)",
    re.DOTALL,
)
_BASES = {"binary": 2, "octal": 8, "hex": 16, "hexadecimal": 16, "2": 2, "8": 8, "16": 16}
_ROMAN = re.compile(r"(?=[MDCLXVI])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_SIZES = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}
_SMALL = {word: value for value, word in enumerate(vocabulary.SMALL)}
_SMALL |= {word: 10 * value for value, word in enumerate(vocabulary.LARGE[:8], 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "dozen": 12}
_PLACES = "half third quarter fifth sixth seventh eighth ninth tenth".split()
_PARTS = {word: part for part, word in enumerate(_PLACES, 2)}
_PARTS |= {"halve": 2, "fourth": 4, "hundredth": 100}
_PARTS |= {f"{word}s": part for word, part in _PARTS.items()}
_OPERATORS = {"plus": "+", "minus": "-", "times": "*", "over": "/", r"\over": "/", r"\div": "/"}
_OPERATORS |= {r"\times": "*", r"\cdot": "*", "×": "*", "·": "*", "÷": "/", "–": "-", "−": "-"}
_OPERATORS |= {"**": "^", ":": "/", **{sign: sign for sign in "+-*/^"}}
_PAIRS = {("divided", "by"): "/", ("multiplied", "by"): "*", ("out", "of"): "/"}
_PAIRS |= {(word, "than"): "+" for word in ("more", "greater", "larger", "bigger", "higher")}
_PAIRS |= {(word, "than"): "less" for word in ("less", "fewer", "smaller", "lower")}
_NAMED = {"sum": "+", "product": "*", "difference": "-", "quotient": "/"}
_FRACTIONS = {rf"\{name}" for name in ("frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac")}
_EXACT = {"+": operator.add, "-": operator.sub, "*": operator.mul, "less": lambda a, b: b - a}
# Words that a number follows, with the words behind the first, and what they do to it.
_APPLIED = {word: [(["of"], f"1/{part}")] for word, part in _PARTS.items()}
_APPLIED |= {"half": [(["of"], "1/2"), ([], "1/2")], r"\sqrt": [([], "root")], "√": [([], "root")]}
_APPLIED["square"] = [(["root", "of"], "root"), (["of"], "square")]
_APPLIED |= {word: [([], "2")] for word in ("twice", "double")}
_APPLIED |= {word: [([], "3")] for word in ("thrice", "triple")}
_FOLLOWS = re.compile(r"[A-Za-z]{2,}|[-–.,;:!?)%]")
_ATTACHED = re.compile(r"-[A-Za-z]|(?:st|[nr]d|th)\b")  # 3-digit, 3rd
_GOES_ON = {"of", "point", *_OPERATORS, *_SCALES, *_PARTS} - {":", "-", "–"}


class Number(NamedTuple):
    """A number at ``start:end`` of a text; ``is_percent`` where it is so many hundredths."""

    value: Fraction
    start: int
    end: int
    is_percent: bool = False


class _Token(NamedTuple):
    text: str
    start: int
    end: int
    value: Fraction | None = None


def number_at(text: str) -> Number | None:
    """Return the number that a text begins with, if it is not part of a longer calculation."""
    tokens = _tokens(text)
    found = _expression(tokens, 0)
    if not found:
        return None
    number, at = found
    if _ATTACHED.match(text, number.end) or vocabulary.COMPARED.match(text[number.end :].lstrip()):
        return None
    rest = tokens[at].text if at < len(tokens) else "."
    return None if rest in _GOES_ON or not _FOLLOWS.match(rest) else number


def number_before(text: str) -> Number | None:
    """Return the number that a text ends with: the longest one."""
    tokens = _tokens(text)
    while tokens and tokens[-1].text in (",", "-", "–", ":", ".", "!"):
        tokens.pop()
    for start in range(len(tokens)):
        found = _expression(tokens, start)
        if found and found[1] == len(tokens):
            return found[0]
    return None


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup not in (None, "skip"):
            tokens.append(_Token(match[0].lower(), *match.span(), _value(match)))
            if len(tokens) == _MAX_TOKENS:
                break
    return tokens


def _value(match: re.Match[str]) -> Fraction | None:
    text = match[0]
    if len(text) > _MAX_DIGITS:
        return None
    with contextlib.suppress(ValueError):
        if match["hex"]:
            return Fraction(int(text, 0))
        if match["based"]:
            base = match["base"] or match["radix"] or match["name"].lower()
            return Fraction(int(match["based"], _BASES[base]))
        if match["many"]:
            return Fraction(int(re.sub(r"\D", "", text)))
        if match["number"]:
            return Fraction(text.replace(",", "."))
        if match["top"]:
            return Fraction(int(match["top"]), int(match["bottom"]) or 1)
        if _ROMAN.fullmatch(text) and len(text) > 1:
            sizes = [_ROMAN_SIZES[sign] for sign in text]
            after = [*sizes[1:], 0]
            return Fraction(sum(-a if a < b else a for a, b in zip(sizes, after, strict=True)))
    return None


_Found = tuple[Number, int]


def _expression(tokens: list[_Token], at: int) -> _Found | None:
    """Read one number, or one operation on one or two; return it and the place behind it."""
    words = [each.text for each in tokens[at : at + 4]] + [""] * 4
    start = tokens[at].start if at < len(tokens) else 0
    skip = int(words[0] in ("the", "a", "an") and words[1] in {*_NAMED, *_PARTS, "square"})
    del words[:skip]
    if words[0] in _NAMED and words[1] in ("of", "between"):
        left = _operand(tokens, at + skip + 2)
        if left and left[1] < len(tokens) and tokens[left[1]].text == "and":
            return _combined(start, left, _NAMED[words[0]], tokens, left[1] + 1)
        return None
    if words[0] in _APPLIED:
        for behind, operation in _APPLIED[words[0]]:
            if words[1 : 1 + len(behind)] == behind:
                return _applied(start, operation, _operand(tokens, at + skip + 1 + len(behind)))
    left = _operand(tokens, at + (words[0] in _FRACTIONS))
    if not left:
        return None
    if words[0] in _FRACTIONS:
        return _combined(start, left, "/", tokens, left[1])
    first, second = ([each.text for each in tokens[left[1] : left[1] + 2]] + ["", ""])[:2]
    if operation := _PAIRS.get((first, second)):
        return _combined(start, left, operation, tokens, left[1] + 2)
    if first == "of" and left[0].is_percent:
        return _combined(start, left, "*", tokens, left[1] + 1)
    operation = _OPERATORS.get(first)
    return (operation and _combined(start, left, operation, tokens, left[1] + 1)) or left


def _combined(
    start: int, left: _Found | None, operation: str, tokens: list[_Token], at: int
) -> _Found | None:
    """Return the operation on a number and the one that stands at ``at``."""
    right = _operand(tokens, at)
    if not left or not right:
        return None
    one, two = left[0].value, right[0].value
    if operation == "/" and two:
        value = one / two
    elif operation == "^" and two.denominator == 1 and 0 <= two * len(str(one)) <= _MAX_DIGITS:
        value = one ** int(two)
    elif operation in _EXACT:
        value = _EXACT[operation](one, two)
    else:
        return None
    return Number(value, start, right[0].end, right[0].is_percent), right[1]


def _applied(start: int, operation: str, inner: _Found | None) -> _Found | None:
    if not inner:
        return None
    number, at = inner
    value = number.value
    if operation == "square":
        value *= value
    elif operation != "root":
        value *= Fraction(operation)
    elif value < 0:
        return None
    else:
        value = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if value**2 != number.value:
            return None
    return Number(value, start, number.end), at


def _operand(tokens: list[_Token], at: int) -> _Found | None:
    """Read one number with its sign and its percent."""
    if at >= len(tokens):
        return None
    start, sign = tokens[at].start, 1
    if tokens[at].text in ("-", "−", "–", "minus", "negative", "+"):
        sign = 1 if tokens[at].text == "+" else -1
        at += 1
    found = _digits(tokens, at) or _in_words(tokens, at)
    if not found:
        return None
    value, at = found
    words = [each.text for each in tokens[at : at + 2]] + ["", ""]
    is_percent = words[0] in ("%", r"\%", "percent", "pct") or words[:2] == ["per", "cent"]
    at += 0 if not is_percent else 2 if words[0] == "per" else 1
    value = sign * value / (100 if is_percent else 1)
    return Number(value, start, tokens[at - 1].end, is_percent), at


def _digits(tokens: list[_Token], at: int) -> tuple[Fraction, int] | None:
    """Read a number in digits: 4 2, 3/4, 3 3/4, 4.2 x 10^1."""
    first = tokens[at].value if at < len(tokens) else None
    if first is None:
        return None
    end = at + 1
    while end < len(tokens) and _is_next_digit(tokens[end - 1], tokens[end]):
        end += 1
    if end > at + 1 and not _quotient(tokens, end - 1):
        return Fraction(int("".join(each.text for each in tokens[at:end]))), end
    share = _quotient(tokens, at + 1)
    if share and 0 < share < 1 and first.denominator == 1:
        return first + share, at + 4
    share = _quotient(tokens, at)
    if share is not None and tokens[at + 2].start == tokens[at].end + 1:
        return share, at + 3
    signs = [_OPERATORS.get(each.text) or each.text for each in tokens[at + 1 : at + 4]]
    power = tokens[at + 4].value if signs == ["*", "10", "^"] and at + 4 < len(tokens) else None
    if power is not None and power.denominator == 1 and power < _MAX_DIGITS:
        return first * 10 ** int(power), at + 5
    return first, at + 1


def _is_next_digit(one: _Token, two: _Token) -> bool:
    is_row = two.start == one.end + 1 and len(one.text) == len(two.text) == 1
    return is_row and one.text.isdecimal() and two.text.isdecimal()


def _quotient(tokens: list[_Token], at: int) -> Fraction | None:
    """Return the share that stands at ``at`` with a slash; ``None`` if there is none."""
    if at + 2 >= len(tokens) or tokens[at + 1].text != "/":
        return None
    top, bottom = tokens[at].value, tokens[at + 2].value
    return top / bottom if top is not None and bottom else None


def _in_words(tokens: list[_Token], at: int) -> tuple[Fraction, int] | None:
    """Read "four hundred and two", "four two", "two point five", "three quarters", "a dozen"."""
    words = [each.text for each in tokens] + [""] * 3
    if words[at] in ("a", "an", "one") and words[at + 1] in _PARTS:
        return Fraction(1, _PARTS[words[at + 1]]), at + 2
    if words[at] in ("a", "an") and words[at + 1] in _SCALES:
        at += 1
    names, value = _whole(words, at)
    at += len(names)
    if not names:
        return None
    if words[at] == "point":
        decimals, num_words = _ones(words[at + 1 :])
        if decimals:
            return Fraction(f"{value}.{decimals}"), at + 1 + num_words
    if words[at] == "-" and words[at + 1] in _PARTS:
        at += 1
    if words[at] in _PARTS and value:
        return value / _PARTS[words[at]], at + 1
    if words[at : at + 3] == ["and", "a", "half"]:
        return value + Fraction(1, 2), at + 3
    return value, at


def _whole(words: list[str], at: int) -> tuple[list[str], Fraction]:
    """Return the words of a whole number from ``at`` on, and its value."""
    digits, num_words = _ones(words[at:])
    if len(digits) > 1:
        return words[at : at + num_words], Fraction(int(digits))
    names: list[str] = []
    total = current = 0
    for place, word in enumerate(words[at:], at):
        joins = names and (word == "-" or (word == "and" and names[-1] in _SCALES))
        if word in _SMALL:
            current += _SMALL[word]
        elif word in _SCALES:
            current = max(current, 1) * _SCALES[word]
            if _SCALES[word] > 100:
                total, current = total + current, 0
        elif not joins or words[place + 1] not in _SMALL:
            break
        names.append(word)
    return names, Fraction(total + current)


def _ones(words: list[str]) -> tuple[str, int]:
    """Return the digits that words name one by one, and how many words that is with hyphens."""
    digits, num_words = "", 0
    for place, word in enumerate(words):
        if 0 <= _SMALL.get(word, -1) < 10:
            digits += str(_SMALL[word])
            num_words = place + 1
        elif word != "-":
            break
    return digits, num_words
