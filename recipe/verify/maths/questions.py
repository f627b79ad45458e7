"""What the problem's own text says about an answer: a fraction, a point, an order, a finished form.

A policy that copies the problem's own formula into the box has found nothing. So an answer may
not be a formula of the problem's text, in any order of its terms and factors, unless the gold
answer is that formula too; it has no more variables than the gold answer, and where the gold
answer is rational it is written with numerals and arithmetic alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

from recipe.verify.maths.asked import may_drop_unit, question
from recipe.verify.maths.copies import (
    has_form,
    is_arithmetic,
    is_done,
    repeats_one,
    sides_of,
)
from recipe.verify.maths.keys import key
from recipe.verify.maths.operations import adds_operation
from recipe.verify.maths.stated import formulas_of
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    decimals,
    exact,
    has_bare_degree,
    is_infinite,
    multiplied,
    names_in,
)
from recipe.verify.maths.words import NUMBERS

_NAMED_BASES = {"binary": 2, "ternary": 3, "octal": 8, "decimal": 10, "hexadecimal": 16}
_BASES = NUMBERS | _NAMED_BASES
_BASE = re.compile(
    rf"(?P<into>\b(?:in|to|into)\s)?(?:the )?(?:\bbase[ -]\$?\{{?(?P<base>[0-9]{{1,2}}|[a-z]+)\b"
    rf"|\b(?P<name>{'|'.join(_NAMED_BASES)})\b)"
)
_POINT = re.compile(r"ordered (?:pair|triple)|\bpoints?\b|coordinates|\$\([a-z], ?\\?[a-z]+\)\W?\$")
_PLACE = re.compile(  # what is asked for may be one, if the problem has no intervals
    r"\b[Ss]olve (?:\w+ ){0,3}(?:system|simultaneous)|\bsolutions? (?:to|of) (?:\w+ ){0,3}system"
    r"|\b[Ss]olve for \$?[a-z]\$? and "
    r"|\bintersection\b(?! of (?:(?:\w+ ){0,3}(?:sets|intervals)| ?\$?[\[(\]])|[^.?]{0,60}\\cap)"
    r"|\b(?:vertex|midpoint|cent(?:er|re|roid)|focus|pairs?(?! of functions)|vector)\b"
    r"|\b[Ww]here\b[^.?]{0,80}\b(?:intersect|meet|cross)"
)
_FRACTION = re.compile(r"\b(?:fraction|decimal)\b")
_INTERVAL = re.compile(r"interval|inequalit|\bdomain\b|\brange\b|<|>|\\[lg]eq?\b")
_EQUATION = re.compile(
    r"equation|relation|\b(?:line|curve|graph|locus|tangent|plane|circle|parabola|asymptote)"
)
_ORDER = re.compile(
    r"respectively|in (?:that|this|the) order|(?:in|de)creasing order|(?:as|de)scending order|"
    r"in order (?:from|of)|(?:least|smallest) to (?:greatest|largest)|"
    r"(?:greatest|largest) to (?:least|smallest)|quotient and (?:the )?remainder|"
    r"(?:[Ww]hat are|[Ff]ind|List|list|[Ww]rite|[Gg]ive|[Ss]tate|[Dd]etermine|[Cc]ompute) "
    r"(?:down )?the first (?:\w{2,6}|[0-9]{1,2}|\$[0-9]{1,2}\$) terms"
)
_SEVERAL = re.compile(  # the word for what is asked is a plural, or the answer is to be a list
    r"\b(?:all|both|every|each|values|solutions|roots|zeros|integers|numbers|pairs?|triples?|list"
    r"|tuples?|commas?|respectively|coordinates|points|vectors?|sets?)\b"
)
_COUNT = re.compile(r"\b[Hh]ow (?:many|much)\b")
_EXACT = re.compile(
    r"\bexact\b|\bterminating\b|\bfractions?\b|\bradicals?\b|(?:simplest|reduced) (?:\w+ )?form"
    r"|lowest terms|in terms of \$?\\?pi\b|\b[Ss]implif(?:y|ied)\b"
)
_ROUNDED = re.compile(r"(?<!terminating )\bdecimal|\bnearest\b|\bround|\bapprox|\bestimat")
_STATED_PERCENT = re.compile(
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|teen|ty|hundred) percent"
)
_PERCENT = re.compile(
    r"(?P<number>[0-9](?:[ ~${}]|\\[,;: ]?){0,9})?(?:[Pp]ercent|%)"
    r"|\b(?:[Ww]hat|[Ff]ind|[Ww]hich)(?: \w+){0,3} interest rate"
)
_SOLVED = re.compile(r"in terms of|\bas an? |\b[Ss]olved? (?:.{0,80} )?for\b|\bform\b|\b[Ii]nvers")
_TO_ROUND = re.compile(r"\bnearest\b|\b[Rr]ound|\bapprox|\bestimat|decimal places?|significant")
_MEMBERS = re.compile(
    r"\b(?:all|each|every|both|two|three|which|roots?|zeros|values?|solutions?|primes?|factors|divisors|"
    r"numbers|integers|lengths|intercepts)\b|[Ss]olve for \$?[a-zA-Z]\b"
)
_REWRITE = re.compile(  # the same value in another notation
    r"decimal|fraction|convert|simplif|scientific|notation|percent|\bbase\b|mixed|lowest|reduce"
    r"|\brewrit|\bform\b|power of|factor|\b(?:express|write) (?:\w+ ){0,3}[\\$(]?[\\$(0-9]",
    re.IGNORECASE,
)
_VALUES_OF = re.compile(r"\bvalues? (?:of|for)\b|\b[Ff]or (?:which|what)\b")


def asks(for_what: re.Pattern[str], problem: str) -> bool:
    """Return whether the question, not only the story, has a match."""
    return for_what.search(question(problem)) is not None


def asks_for_fraction(problem: str) -> bool:
    """Return whether 0.5 is meant where the gold answer says 50%."""
    return asks(_FRACTION, problem)


def asks_for_point(problem: str) -> bool:
    """Return whether ``(1, 2)`` is a pair; an interval where the problem speaks of none."""
    is_place = asks(_PLACE, problem) and not asks_for_range(problem)
    return asks(_POINT, problem) or (is_place and _INTERVAL.search(problem) is None)


def asks_for_interval(problem: str) -> bool:
    """Return whether ``(1, 2)`` is an interval, not a pair."""
    return asks(_INTERVAL, problem) and not asks_for_point(problem)


def asks_for_range(problem: str) -> bool:
    """Return whether ``(1, 2)`` may be the values of one thing."""
    return asks(_VALUES_OF, problem)


def asks_to_round(problem: str) -> bool:
    """Return whether the question wants a rounded value."""
    return asks(_TO_ROUND, problem)


def asks_for_members(problem: str) -> bool:
    """Return whether the problem may want all members of a set; true without a problem."""
    return not problem or _MEMBERS.search(problem) is not None


def asks_for_order(problem: str) -> bool:
    """Return whether the question says in what order to list values."""
    return asks(_ORDER, problem)


def asks_for_several(problem: str) -> bool:
    """Return whether the question may want more than one value; true where there is no question."""
    if not problem:
        return True
    return bool(_SEVERAL.search(problem)) and not asks(_COUNT, problem)


def asks_for_equation(problem: str) -> bool:
    """Return whether the question may want an equation as it stands; true without a question."""
    return not problem or asks(_EQUATION, problem)


def asks_for_line(problem: str) -> bool:
    """Return whether it may want an equation, whichever variable that is solved for."""
    return asks_for_equation(problem) and not asks(_SOLVED, problem)


def asks_for_base(problem: str, digits: str, base: int) -> bool:
    """Return whether it asks for such digits "in base 7", "in base seven" or "to binary".

    Where no base has such a word before it, it may name one alone.
    """
    found = [*_BASE.finditer(problem.lower())]
    found = [each for each in found if each["into"]] or found
    words = [each["base"] or each["name"] for each in found]
    bases = {int(word) if word.isdigit() else _BASES.get(word) for word in words}
    return bases == {base} and int(max(digits)) < base


def asks_for_percent(problem: str) -> bool:
    r"""Return whether the question, not only the story, speaks of percent, beside a ``$10 \%$``."""
    found = _PERCENT.finditer(_STATED_PERCENT.sub(" ", question(problem)))
    return any(match["number"] is None for match in found)


_MIN_DECIMALS = 5  # a gold answer with as many may be a rounding of anything


def is_finished(
    gold: Node,
    answer: Node,
    problem: str,
    equal: Callable[[Node, Node], bool],
    *,
    is_near: bool = False,
) -> bool:
    """Return whether an answer equal to ``gold`` is more than the question.

    Args:
        gold: The gold answer.
        answer: One that says the same.
        problem: The problem's text.
        equal: The comparison that they passed.
        is_near: The gold answer states a tolerance, so it may stand for any number nearby.
    """
    if sides := sides_of(gold, answer):
        return any(is_finished(gold, side, problem, equal, is_near=is_near) for side in sides)
    golds, answers = list(_formulas(gold)), list(_formulas(answer))
    names, names_of_answer = _names(gold, golds, answer, answers)
    is_rational = not names and not is_near and _are_rational(golds)
    worked = _worked(gold, golds), _worked(answer, answers)
    if not is_near and adds_operation(*worked, equal):
        return False
    if not golds:
        return _is_new(gold, answer, problem)
    adds_names = not names_of_answer <= names or (is_rational and names_in(*answers))
    if adds_names or not _are_done(answers, golds) or _adds_degree(gold, answer, problem):
        return False
    is_other_form = is_rational and not all(map(is_arithmetic, answers))
    if is_other_form or (not is_near and _is_rounding(golds, answers, problem)):
        return False
    if len(golds) == len(answers) == 1 and not has_form(problem, golds[0], answers[0]):
        return False
    if (
        gold.kind == "label"
        and names_in(gold.items[1])
        and not _is_solved(gold, answer, problem, equal)
    ):
        return False
    if gold.kind != "relation" and answer.kind == "relation":
        answers.append(answer)
    own_keys, _, formulas = formulas_of(problem)
    others = _others(golds, answers, problem)
    if not own_keys.isdisjoint(others):
        return False
    golds = list(dict.fromkeys(golds))
    return not repeats_one([*others.values()], golds, formulas, equal, is_rational=is_rational)


def _is_new(gold: Node, answer: Node, problem: str) -> bool:
    """Return whether an equation is worked out, and the gold answer or none of the problem's."""
    if answer.kind not in ("relation", "label"):
        return True
    own = key(answer)
    return is_done(answer, [gold]) and (own == key(gold) or own not in formulas_of(problem)[0])


def _others(golds: list[Node], answers: list[Node], problem: str) -> dict[str, Node]:
    """Map keys to the answers that are not gold answers, nor numbers where any notation will do."""
    own = {key(each) for each in golds}
    is_open = _REWRITE.search(problem) is None
    others = [each for each in answers if not (is_open and _is_numeral(each))]
    return {text: each for each in others if (text := key(each)) not in own}


def _names(
    gold: Node, golds: list[Node], answer: Node, answers: list[Node]
) -> tuple[set[str], set[str]]:
    """Return the variables of both, also those left of ``=`` where they are solved for others."""
    if gold.kind == answer.kind == "label" and names_in(gold.items[0]) & names_in(answer.items[1]):
        return names_in(gold), names_in(answer)
    whole = [gold] if gold.kind == "relation" else golds
    return names_in(*whole), names_in(*answers)


def _worked(node: Node, values: list[Node]) -> list[Node]:
    """Return the values of a tree, or the whole of an equation that does not bound a name."""
    sides = node.items if node.kind == "relation" else ()
    is_equation = any(names_in(side) and side.kind != "sym" for side in sides)
    return [node] if is_equation or not values else values


def _are_rational(golds: list[Node]) -> bool:
    """Return whether all are numerals and arithmetic, none a long decimal."""
    return all(map(is_arithmetic, golds)) and not any(
        each.kind == "num" and each.value.decimals >= _MIN_DECIMALS for each in golds
    )


def _are_done(answers: Iterable[Node], golds: list[Node]) -> bool:
    return all(is_done(each, golds) for each in answers)


def _adds_degree(gold: Node, answer: Node, problem: str) -> bool:
    r"""Return whether a degree sign in a formula has no place: ``2x^\circ + 1`` without angles."""
    if has_bare_degree(gold) or not has_bare_degree(answer):
        return False
    return not may_drop_unit((("degree", 1),), problem)


def _is_rounding(golds: list[Node], answers: list[Node], problem: str) -> bool:
    """Return whether a rounded decimal is given where the question asks for an exact value."""
    written = [each for each in answers if decimals(each)]
    if not written or not asks(_EXACT, problem) or asks(_ROUNDED, problem):
        return False
    values = {value for each in golds if (value := exact(each)) is not None}
    values |= {value * 100 for value in values} | {value / 100 for value in values}  # 37.5%
    return any(exact(each) not in values for each in written)


def leaves_work(gold: Node, answer: Node) -> bool:
    """Return whether the answer, equal or not, has an operation left that the gold answer lacks."""
    golds, sides = list(_formulas(gold)), sides_of(gold, answer) or [answer]
    return bool(golds) and not any(_are_done(_formulas(side), golds) for side in sides)


def _is_solved(gold: Node, answer: Node, problem: str, equal: Callable[[Node, Node], bool]) -> bool:
    """Return whether an equation is solved like the gold answer, or not a form of the problem's."""
    if answer.kind not in ("label", "relation") or answer.items[0] == gold.items[0]:
        return True
    for equation in formulas_of(problem)[1]:
        try:
            if equation != gold and equal(gold, equation):
                return False
        except NoValue:
            continue
    return True


def _formulas(node: Node) -> Iterator[Node]:
    """Yield a tree's values: without names and units, members of lists, a chain's simplest."""
    if (scaled := multiplied(node)).kind == "matrix":
        node = scaled
    if node.kind in ("label", "quantity"):
        yield from _formulas(node.items[-1])
    elif node.kind == "chain":
        yield from _formulas(min(node.items, key=_size))
    elif node.kind == "relation":  # the bounds of a name; an equation is not a value
        if any(each.kind == "sym" for each in node.items):
            yield from (each for each in node.items if not names_in(each) and not is_infinite(each))
    elif node.kind in STRUCTURES:
        for item in node.items:
            yield from _formulas(item)
    elif not is_infinite(node) and not str(node.value).startswith(r"\mathbb"):
        yield node


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.items))


def _is_numeral(node: Node) -> bool:
    """Tell whether it is a number, mixed or not, or a fraction in lowest terms, signs aside."""
    node = _sized(node)
    if node.kind != "div" or any(_sized(each).kind != "num" for each in node.items):
        return node.kind == "num" and not node.value.repeats
    top, bottom = (_sized(each).value.value for each in node.items)
    return top.denominator == bottom.denominator == 1 == math.gcd(int(top), int(bottom))


def _sized(node: Node) -> Node:
    return node.items[0] if node.kind == "neg" else node
