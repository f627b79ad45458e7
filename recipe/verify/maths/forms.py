r"""Forms that a question asks for, which an answer of the right value may miss.

``0.\overline5`` is not a common fraction, ``71000000 \times 10^0`` is not scientific notation,
``3 \cdot 210`` is not a prime factorization, and a vector is worked out cell by cell.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from recipe.verify.maths.asked import question
from recipe.verify.maths.operations import nodes_of, signed_terms
from recipe.verify.maths.tree import Node, exact, names_in

_FRACTION = re.compile(
    r"\bcommon fraction|\bsimplest (?:\w+ )?form\b|\blowest terms\b|\breduced (?:\w+ )?fraction"
    r"|\bimproper fraction"
)
_LOWEST = re.compile(
    r"\bsimplest form\b|\blowest terms\b|\b(?:[Rr]educed?|irreducible) (?:\w+ ){0,2}fraction"
)
_COPRIME = re.compile(r"\\gcd\s?\(\s?\|?[A-Za-z]\b|greatest common divisor (?:of )?1\b")
_POSITIVE = re.compile(r"\b[aA]\s?(?:>|\\gt\b)\s?0")
_OR_DECIMAL = re.compile(r"\bor (?:\w+ ){0,3}decimal|\bdecimals?(?: form)?,? or\b")
_STATED = re.compile(r"([0-9]*\.?[0-9]+)\s?\$?(\\?%|percent\b)?")
_PRIMES = re.compile(
    r"\bprime factori[sz]|\bproduct of (?:\w+ ){0,2}prime|\binto (?:\w+ ){0,2}primes?\b"
)
_SCIENTIFIC = re.compile(r"\b(?:scientific|standard) (?:notation|form)\b")
_SLOPE = re.compile(
    r"\bslope-intercept|\b(?:form(?: of)?|(?<!such )as)[\s:\"“'‘`$\\\[(]{1,5}y\s?=\s?m\s?x"
)
_POLAR = re.compile(r"\b(?:polar|exponential|trigonometric) form|\\operatorname\{cis\}")
_DECIMAL = re.compile(
    r"\b(?:as|to|into) (?:an? )?(?:terminating |finite )?decimals?\b(?! place)|\bdecimal form\b"
)
_SQUARE = re.compile(r"\bform \$?\s?(?:[aA]\s?)?\(x\s?[-+]\s?[a-zA-Z]\)\^\{?2\}?\s?[-+]")
_VECTORS = re.compile(  # a question in vectors or matrices, not one for a point
    r"\\begin\{[pbvs]?(?:small)?matrix\}|\\begin\{array\}|\\(?:mathbf|vec|overrightarrow)(?![a-z])"
    r"|[0-9)]\s?\(\s?-?[0-9]+\s?(?:,\s?-?[0-9]+\s?){1,3}\)"
    r"|(?:,\s?-?[0-9]+\s?){1,3}\)\s?(?:[-+]|\\times|\\cdot)\s?[0-9]*\("
)
_TEN = Fraction(10)
_LARGE = 1000  # a cell that may be written as a power
_MAX_PRIME = 10**8


def has_asked_form(problem: str, gold: Node, answer: Node) -> bool:
    """Tell whether an answer, equal to ``gold``, has the form that the problem's text asks for."""
    if not problem:
        return True
    if _FRACTION.search(problem) and not _may_be_decimal(problem, gold, answer):
        return False
    if _LOWEST.search(problem) and not _is_lowest(gold, answer):
        return False
    if _COPRIME.search(problem) and not _is_coprime(problem, gold, answer):
        return False
    if _VECTORS.search(problem) and not _has_cells(gold, answer):
        return False
    if _SLOPE.search(problem) and not _is_line(gold, answer):
        return False
    gold, answer = _value(gold), _value(answer)
    if _SQUARE.search(problem) and _has_square(gold) and not _is_square_and_rest(gold, answer):
        return False
    is_polar = _POLAR.search(question(problem)) and _has_angle(gold)
    if (is_polar and not _has_angle(answer)) or not _has_notation(problem, gold, answer):
        return False
    return not _PRIMES.search(question(problem)) or _has_primes(gold, answer)


def _may_be_decimal(problem: str, gold: Node, answer: Node) -> bool:
    """Tell whether an answer has no decimal that a question for a fraction rules out.

    ``0.75`` alone is a finished value, unless the problem has it, or 75 percent.
    """
    if any(map(_is_decimal, nodes_of(gold))) or _OR_DECIMAL.search(problem):
        return True
    number = _sized(answer.items[-1] if answer.kind == "label" else answer)
    if number.kind == "num" and not number.value.repeats:
        return not _is_decimal(number) or number.value.value not in _stated(problem)
    return not any(map(_is_decimal, nodes_of(answer)))


def is_numeral(node: Node) -> bool:
    """Tell whether it is a number, mixed or not, or a fraction in lowest terms, signs aside."""
    node = _sized(node)
    if node.kind != "div" or any(_sized(each).kind != "num" for each in node.items):
        return node.kind == "num" and not node.value.repeats
    top, bottom = (_sized(each).value.value for each in node.items)
    return top.denominator == bottom.denominator == 1 == math.gcd(int(top), int(bottom))


def _is_lowest(gold: Node, answer: Node) -> bool:
    """Tell whether an answer to a fraction in lowest terms is one, a mixed number or a decimal."""
    gold, answer = _value(gold), _value(answer)
    if _sized(gold).kind != "div" or not is_numeral(gold) or exact(answer) is None:
        return True
    return is_numeral(answer)


def _is_coprime(problem: str, gold: Node, answer: Node) -> bool:
    """Tell whether the coefficients of an equation are whole numbers without a common factor.

    The first one, in the gold answer's order, is positive where the problem demands it.
    """
    wanted, own = _coefficients(gold), _coefficients(answer)
    if not wanted or not own or math.gcd(*map(int, wanted.values())) != 1:
        return True
    if any(each.denominator != 1 for each in own.values()):
        return False
    first = own.get(next(iter(wanted)), Fraction(1))
    is_turned = _POSITIVE.search(problem) is not None and first < 0
    return math.gcd(*map(int, own.values())) == 1 and not is_turned


def _coefficients(node: Node) -> dict[str, Fraction]:
    """Map the names of a linear equation to their numerals, "" to the number alone.

    Those of the right side are subtracted. Empty for all else.
    """
    if node.kind != "relation" or node.value != ("=",):
        return {}
    found: dict[str, Fraction] = {}
    left, right = node.items if names_in(node.items[0]) else node.items[::-1]
    for sign, side in ((1, left), (-1, right)):
        for term, own in signed_terms(side, sign):
            names = names_in(term)
            factor = _factor(term)
            if factor is None or len(names) > 1:
                return {}
            name = next(iter(names), "")
            found[name] = found.get(name, Fraction(0)) + own * factor
    return found


def _factor(term: Node) -> Fraction | None:
    """Return the number before a name; ``None`` unless it is a number times a name."""
    if term.kind == "sym":
        return Fraction(1)
    if term.kind in ("mul", "div") and names_in(term):
        left, right = map(_factor, term.items)
        if left is None or right is None or (term.kind == "div" and names_in(term.items[1])):
            return None
        return left * right if term.kind == "mul" else left / right if right else None
    return exact(term)


def _stated(problem: str) -> set[Fraction]:
    """Return the numbers of a problem's text, percents as shares."""
    found = _STATED.findall(problem)
    return {Fraction(number) / (100 if percent else 1) for number, percent in found}


def _value(node: Node) -> Node:
    return node.items[-1] if node.kind in ("label", "quantity") else node


def _is_decimal(node: Node) -> bool:
    """Tell whether it is a decimal, one that repeats, or has a percent sign; 5.0 is a 5."""
    if node.kind == "quantity":
        return node.value.is_percent
    if node.kind != "num":
        return False
    number = node.value
    return number.repeats or (number.decimals > 0 and number.value.denominator > 1)


def _has_primes(gold: Node, answer: Node) -> bool:
    """Tell whether an answer has the powers of the gold answer, if that is a product of such."""
    own = _powers(gold)
    if own is None or gold.kind == "num" or not all(map(_is_prime, own)):
        return True
    return _powers(answer) == own


def _is_prime(number: int) -> bool:
    return all(number % each for each in range(2, math.isqrt(min(number, _MAX_PRIME)) + 1))


def _powers(node: Node) -> Counter[int] | None:
    """Count the factors of a product of whole numbers and their powers; ``None`` for all else."""
    if node.kind == "mul":
        parts = [_powers(item) for item in node.items]
        known = [each for each in parts if each is not None]
        return sum(known, Counter[int]()) if len(known) == len(parts) else None
    base, power = node.items if node.kind == "pow" else (node, None)
    value = exact(base) if base.kind == "num" else None
    times = Fraction(1) if power is None else exact(power) if power.kind == "num" else None
    if value is None or times is None or value.denominator != 1 or times.denominator != 1:
        return None
    return Counter({int(value): int(times)}) if value > 1 and times > 0 else None


def _has_notation(problem: str, gold: Node, answer: Node) -> bool:
    """Tell whether a number is a decimal or in scientific notation where that is asked for."""
    is_open = not _DECIMAL.search(question(problem)) or _OR_DECIMAL.search(problem)
    if not is_open and _is_decimal(_sized(gold)):
        return _is_decimal(_sized(answer)) or _mantissa(answer) is not None
    return not _SCIENTIFIC.search(problem) or _is_scientific(gold, answer)


def _has_angle(node: Node) -> bool:
    """Tell whether a function or a power of e stands in it."""
    return any(
        each.kind == "fn" or (each.kind == "pow" and each.items[0] == Node("const", value="e"))
        for each in nodes_of(node)
    )


def _is_scientific(gold: Node, answer: Node) -> bool:
    """Tell whether a number times a power of ten is 1 or more and less than 10."""
    if (digits := _mantissa(gold)) is None or not 1 <= digits < _TEN:
        return True
    if answer.kind == "num" or (answer.kind == "neg" and answer.items[0].kind == "num"):
        return True  # 7.1e7
    return _mantissa(answer) == digits


def _mantissa(node: Node) -> Fraction | None:
    """Return the size of the factor before a power of ten; ``None`` where there is none."""
    if node.kind == "neg":
        return _mantissa(node.items[0])
    if node.kind == "pow":
        is_power = node.items[0].kind == "num" and exact(node.items[0]) == _TEN
        return Fraction(1) if is_power and exact(node.items[1]) is not None else None
    if node.kind != "mul":
        return None
    left, right = node.items
    number, power = (left, right) if right.kind == "pow" else (right, left)
    is_power = power.kind == "pow" and exact(power.items[0]) == _TEN
    sized = number.items[0] if number.kind == "neg" else number
    return exact(sized) if is_power and sized.kind == "num" else None


def _has_cells(gold: Node, answer: Node) -> bool:
    """Tell whether the cells of a vector or matrix are numbers where the gold answer's are."""
    golds, answers = _cells(gold), _cells(answer)
    if not golds or not all(map(_is_number, golds)) or len(golds) != len(answers):
        return True
    return all(_is_number(each, gold) for gold, each in zip(golds, answers, strict=True))


def _cells(node: Node) -> list[Node]:
    """List the cells of a matrix or bracket, without the factor before it; else none."""
    node = _value(node)
    while node.kind in ("mul", "div", "neg") and any(_is_matrix(each) for each in node.items):
        node = next(each for each in node.items if _is_matrix(each))
    if node.kind == "matrix":
        return [cell for row in node.items for cell in row.items]
    return list(node.items) if node.kind == "tuple" else []


def _is_matrix(node: Node) -> bool:
    return node.kind == "matrix" or any(map(_is_matrix, node.items))


def _is_number(node: Node, gold: Node | None = None) -> bool:
    """Tell whether it is a numeral or a fraction of two, with signs and units or without.

    A large one may be a power: ``2^{50}``.
    """
    if node.kind in ("neg", "quantity", "degree"):
        return _is_number(node.items[0], gold)
    if gold is not None and node.kind == "pow" and all(each.kind == "num" for each in node.items):
        value = exact(_sized(gold))
        return value is not None and value >= _LARGE
    return node.kind == "num" or (
        node.kind == "div" and all(_sized(each).kind == "num" for each in node.items)
    )


def _sized(node: Node) -> Node:
    return node.items[0] if node.kind == "neg" else node


def _is_line(gold: Node, answer: Node) -> bool:
    """Tell whether an equation is solved for y, with no bracket around x, as ``y = mx + b`` is."""
    is_solved = gold.kind == "label" and gold.items[0] == Node("sym", value="y")
    if not is_solved or not names_in(gold.items[1]) <= {"x"}:
        return True
    if answer.kind == "relation" or (answer.kind == "label" and answer.items[0] != gold.items[0]):
        return False
    terms = list(_terms(_value(answer)))
    return sum(bool(names_in(term)) for term in terms) < 2 and not any(
        each.kind in ("add", "sub") and names_in(each) for term in terms for each in nodes_of(term)
    )


def _terms(node: Node) -> Iterator[Node]:
    if node.kind in ("add", "sub", "neg"):
        for item in node.items:
            yield from _terms(item)
    else:
        yield node


def _has_square(node: Node) -> bool:
    """Tell whether a sum with a name is squared in it."""
    return any(
        each.kind == "pow" and each.items[0].kind in ("add", "sub") and names_in(each.items[0])
        for each in nodes_of(node)
    )


def _is_square_and_rest(gold: Node, answer: Node) -> bool:
    """Tell whether it is such a square and no more terms than the gold answer has."""
    return _has_square(answer) and len([*_terms(answer)]) <= len([*_terms(gold)])
