"""What the problem's own text says of an answer: the unit or noun it asks for, percent, order.

A policy that copies the problem's own formula into the box has found nothing. So an answer may
not be a formula of the problem's text, in any order of its terms and factors, unless the gold
answer is that formula too; it has no more variables than the gold answer, and where the gold
answer is rational it is written with numerals and arithmetic alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from recipe.hint.verify.maths.copies import has_form, is_worked, repeats_one, sides_of
from recipe.hint.verify.maths.reading import read
from recipe.hint.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    exact,
    is_infinite,
    multiplied,
    names_in,
)
from recipe.hint.verify.maths.words import (
    ONE_LETTER,
    PERCENT,
    Unit,
    canonical,
    dimension_of,
    name_of,
    read_unit,
)

_DOUBTFUL = frozenset("K A V W J N C F".split())
_POINT = re.compile(r"ordered (?:pair|triple)|\bpoints?\b|coordinates|\$\([a-z], ?[a-z]\)\$")
_FRACTION = re.compile(r"\b(?:fraction|decimal)\b")
_INTERVAL = re.compile(r"interval|inequalit|\bdomain\b|\brange\b|<|>|\\[lg]eq?\b")
_ORDER = re.compile(
    r"respectively|in (?:that|this|the) order|(?:in|de)creasing order|(?:as|de)scending order|"
    r"in order (?:from|of)|(?:least|smallest) to (?:greatest|largest)|"
    r"(?:greatest|largest) to (?:least|smallest)"
)
_SEVERAL = re.compile(  # the word for what is asked is a plural, or the answer is to be a list
    r"\b(?:all|both|every|each|values|solutions|roots|zeros|integers|numbers|pairs?|triples?|list"
    r"|tuples?|commas?|respectively|coordinates|points|vectors?|sets?)\b"
)
_COUNT = re.compile(r"\b[Hh]ow (?:many|much)\b")
_ANGLE = re.compile(r"angl|degree|°|\\circ\b|rotat|temperature|latitude|longitude|\barc")
_MEASURE = re.compile(  # what is asked for has the power of a length
    r"(?:[Ww]hat is|[Ff]ind|[Cc]ompute|[Dd]etermine|[Cc]alculate) "
    r"(?:(?:the|its|their|total|surface) ){0,3}"
    r"(area|volume|length|perimeter|distance|height|width|radius|diameter|circumference)"
)
_POWERS = {"area": 2, "volume": 3}
# Names of quantities that a problem may ask for without the word.
_NAMES = frozenset(
    "answer total area perimeter volume length width height radius slope distance speed time cost "
    "price profit sum product ratio probability number mean median average max min maximum minimum "
    "gcd lcm value result remainder angle rate".split()
)
_PLAIN_UNITS = ((("unit", 1),), (("unit", 2),), (("unit", 3),))
_WORD = re.compile(r"[A-Za-z]+|[$€£%°]|\\(?:\$|%|circ|degree|euro|pounds)")
_ASKED = re.compile(
    r"\b(?:[Hh]ow many|(?:[Ff]ind|[Ww]hat is|[Cc]ompute|[Dd]etermine) the (?:total )?number of) "
    r"((?:[A-Za-z/-]{1,30} ?){1,5})"
)
_MEASURED_IN = re.compile(r"\bin ((?:[A-Za-z/^]{1,20} ?){1,4})")
_PERCENT = re.compile(r"(?<![0-9])(?<![0-9] )(?<![0-9]\\)(?:[Pp]ercent|%)")
_CUT = frozenset(
    "are is was were do does did will would can could of have has had than in on for to at by from "
    "that who which with must should should there he she they it his her their".split()
)


@functools.lru_cache(maxsize=256)
def _question(problem: str) -> str:
    """The last sentence with a question mark, and the last sentence."""
    sentences = re.split(r"(?<=[.?!])\s+", problem[-20_000:].strip())
    asked = [each for each in sentences if each.endswith("?")]
    return " ".join(dict.fromkeys([*asked[-1:], sentences[-1]]))


def asks_for_fraction(problem: str) -> bool:
    """Whether 0.5 is meant where the gold answer says 50%."""
    return _FRACTION.search(_question(problem)) is not None


def asks_for_point(problem: str) -> bool:
    """Whether ``(1, 2)`` is a pair; an interval where the problem speaks of none."""
    return _POINT.search(_question(problem)) is not None


def asks_for_interval(problem: str) -> bool:
    """Whether ``(1, 2)`` is an interval, not a pair."""
    return _INTERVAL.search(_question(problem)) is not None and not asks_for_point(problem)


def asks_for_order(problem: str) -> bool:
    """Whether the question says in what order to list values."""
    return _ORDER.search(_question(problem)) is not None


def asks_for_several(problem: str) -> bool:
    """Whether the question may want more than one value; true where there is no question."""
    if not problem:
        return True
    return bool(_SEVERAL.search(problem)) and not _COUNT.search(_question(problem))


def may_drop_name(name: str, problem: str) -> bool:
    """Whether a word left of ``=`` names what the problem asks for."""
    words, _, _ = _words_of(problem)
    return not problem or name.lower() in _NAMES or _singular(name) in words


def asks_for_percent(problem: str) -> bool:
    """Whether the question, not only the story, speaks of percent."""
    return _PERCENT.search(_question(problem)) is not None


@functools.lru_cache(maxsize=256)
def _asked_words(problem: str) -> tuple[str, ...]:
    """The noun behind the last ``how many``, its adjectives before it; empty without one."""
    asked = list(_ASKED.finditer(problem[:20_000]))
    words = asked[-1][1].split() if asked else []
    cut = next((n for n, word in enumerate(words) if word.lower() in _CUT), len(words))
    return tuple(words[:cut])


def _asked_unit(problem: str) -> Unit:
    """The unit behind the last ``how many`` or, in the question, ``in``; empty without one."""
    words = _asked_words(problem)
    for start in range(min(3, len(words))):
        unit = _longest_unit(words[start:])
        if unit:
            return unit
    found = [_longest_unit(_split_unit(m[1])) for m in _MEASURED_IN.finditer(_question(problem))]
    return next((unit for unit in reversed(found) if unit), ())


def _split_unit(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]+|[/^]", text)


def _longest_unit(words: Sequence[str]) -> Unit:
    for end in range(len(words), 0, -1):
        unit = read_unit([part for word in words[:end] for part in _split_unit(word)])
        if unit is not None and list(words[:end]) != ["in"] and len(words[0]) > 1:
            return unit
    return ()


@functools.lru_cache(maxsize=256)
def _words_of(problem: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The words of a problem's text, its units, and whether it names one by more than a letter."""
    found = set(_WORD.findall(problem[:20_000])) - {"in", "In", "as", "a", "A"}
    words = frozenset(_singular(word) for word in found)
    named = {word: name for word in found if (name := name_of(word)) is not None}
    units = {part for name in named.values() for part, _ in (*canonical({name: 1}), (name, 1))}
    return words, frozenset(units), any(len(word) > 1 or not word.isalpha() for word in named)


def _singular(word: str) -> str:
    word = word.lower()
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix("s").removesuffix("e")
    return word.removesuffix("e")


def has_noun(noun: str, problem: str) -> bool:
    """Whether all words of a counted noun are in the problem's own text."""
    words, _, _ = _words_of(problem)
    parts = {_singular(part) for word in noun.split() for part in word.split("-")}
    asked = {_singular(part) for word in _asked_words(problem) for part in word.split("-")}
    return bool(problem) and parts <= words and (not asked or parts <= asked)


def may_drop_unit(unit: Unit, problem: str) -> bool:
    """Whether a unit may be left out against a value that has none.

    Where the problem's text asks for one it has to be that; where it names some, it has to be made
    of them. Letters that are more often something else (``5K``) have to be named in any case;
    degrees only need that nothing is in radians.
    """
    asked = _asked_unit(problem)
    if asked or _asked_words(problem):  # another unit, or no unit at all
        return unit == asked or unit in _PLAIN_UNITS
    _, units, has_units = _words_of(problem)
    measure = _MEASURE.search(_question(problem))
    for name, power in unit:
        if name != "unit" and dimension_of(name) == "[length]" and len(unit) == 1:
            if measure and power != _POWERS.get(measure[1], 1):
                return False
        elif power > 1 and name != "unit":
            return False
        if any(name != other and dimension_of(name) == dimension_of(other) for other in units):
            return False  # 40 m, or 40 cm?
        may_be_angle = "radian" not in units and (not problem or _ANGLE.search(problem))
        if name in units or name == "unit" or (name == "degree" and may_be_angle):
            continue
        if has_units or name in (PERCENT, "degree"):
            return False
        if any(ONE_LETTER[letter] == name for letter in _DOUBTFUL):
            return False
    return True


FORMULA = re.compile(
    r"\$\$([^$]{1,300})\$\$|\$([^$]{1,300})\$|\\\[(.{1,300}?)\\\]|\\\((.{1,300}?)\\\)"
    r"|(\\[dt]?frac[^ $]{1,60})"
    # without a mark: digits, signs, and letters that stand alone
    r"|((?<![0-9A-Za-z.,])[-(]{0,9}(?:[0-9]|[A-Za-z](?![A-Za-z]| [(0-9A-Za-z]))"
    r"(?:[-+*/^().0-9 ×÷·!]|[A-Za-z](?![A-Za-z])(?<![A-Za-z]{2})){0,60})",
    re.DOTALL,
)
_MAX_FORMULAS = 60
_RATIONAL = frozenset("num add sub neg mul div pow binom fact".split())
_UNDONE = frozenset("sum prod det floor ceil abs".split())
_MIN_DECIMALS = 5  # a gold answer with as many may be a rounding of anything


def is_finished(
    gold: Node,
    answer: Node,
    problem: str,
    equal: Callable[[Node, Node], bool],
    *,
    is_near: bool = False,
) -> bool:
    """Whether an answer equal to ``gold`` is more than the question.

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
    names = names_in(gold if gold.kind == "relation" else Node("list", tuple(golds)))
    is_rational = (
        not names
        and not is_near
        and all(_has_only(each, _RATIONAL) for each in golds)
        and not any(each.kind == "num" and each.value.decimals >= _MIN_DECIMALS for each in golds)
    )
    if not golds:
        return True
    if not all(_is_done(each, golds) for each in answers):
        return False
    if not names_in(*answers) <= names or (is_rational and names_in(*answers)):
        return False
    if is_rational and not all(_has_only(each, _RATIONAL) for each in answers):
        return False
    keys = {key(each) for each in golds}
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
    others = {text: each for each in answers if (text := key(each)) not in keys}
    if not own_keys.isdisjoint(others):
        return False
    golds = list(dict.fromkeys(golds))
    return not repeats_one([*others.values()], golds, formulas, equal, is_rational=is_rational)


def _is_solved(gold: Node, answer: Node, problem: str, equal: Callable[[Node, Node], bool]) -> bool:
    """Whether an equation is solved as the gold answer is, or is no other form of the problem's."""
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
    """The values in a tree: behind names and units, members of lists; of a chain the simplest."""
    if (scaled := multiplied(node)).kind == "matrix":
        node = scaled
    if node.kind in ("label", "quantity"):
        yield from _formulas(node.items[-1])
    elif node.kind == "chain":
        yield from _formulas(min(node.items, key=_size))
    elif node.kind == "relation":  # the bounds; its variable is a name
        yield from (item for item in node.items if not names_in(item))
    elif node.kind in STRUCTURES:
        for item in node.items:
            yield from _formulas(item)
    elif not is_infinite(node) and not str(node.value).startswith(r"\mathbb"):
        yield node


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.items))


def _has_only(node: Node, kinds: frozenset[str]) -> bool:
    return node.kind in kinds and all(_has_only(item, kinds) for item in node.items)


def _is_done(answer: Node, golds: list[Node]) -> bool:
    """Whether every operation that asks for work is one of the gold answer's."""
    kinds = {each.kind for each in _nodes(answer) if each.kind in ("sum", "prod", "det")}
    kinds |= {each.kind for each in _nodes(answer) if each.kind in _UNDONE and not names_in(each)}
    return kinds <= {each.kind for gold in golds for each in _nodes(gold)}


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for item in node.items:
        yield from _nodes(item)


@functools.lru_cache(maxsize=256)
def formulas_of(problem: str) -> tuple[frozenset[str], tuple[Node, ...], tuple[Node, ...]]:
    """The keys of all formulas in a text and of their sides; its equations; its values."""
    keys, equations, values = set[str](), [], []
    for match in list(FORMULA.finditer(problem[-20_000:]))[:_MAX_FORMULAS]:
        text = next(filter(None, match.groups())).strip().rstrip(".,;? (-")
        for tree in read(text).trees:
            if tree.kind in ("relation", "label"):
                equations.append(tree)
            for part in (tree, *(tree.items if tree.kind in STRUCTURES | {"chain"} else ())):
                keys.add(key(part))
                if part.kind not in STRUCTURES | {"chain"} and is_worked(part):
                    values.append(part)
    return frozenset(keys), tuple(equations), tuple(dict.fromkeys(values))


def key(node: Node) -> str:
    """A tree as text, the same for any order of terms and factors; without 0 + and 1 times."""
    if node.kind in ("add", "sub", "neg"):
        return _joined("+", _terms(node, 1), "0")
    if node.kind in ("mul", "div") or (node.kind == "pow" and exact(node.items[1]) is not None):
        return _joined("*", _powers(node, Fraction(1)), "1")
    if node.kind == "relation" and set(node.value) & {">", r"\ge"}:
        turned = {">": "<", r"\ge": r"\le", "<": ">", r"\le": r"\ge"}
        kinds = tuple(turned.get(kind, kind) for kind in reversed(node.value))
        node = Node("relation", node.items[::-1], kinds)
    if node.kind == "num":
        return (
            str(node.value.value) if node.value.value.numerator.bit_length() < 4000 else repr(node)
        )
    value = "" if node.value is None else str(node.value)
    return (
        f"{node.kind}:{value}({','.join(map(key, node.items))})"
        if node.items
        else f"{node.kind}:{value}"
    )


def _joined(sign: str, parts: Iterable[tuple[str, Fraction]], neutral: str) -> str:
    counts: dict[tuple[str, bool], Fraction] = {}  # nothing is cancelled: 5^3 - 5^3 is work
    for text, count in parts:
        place = text, count > 0
        counts[place] = counts.get(place, Fraction(0)) + count
    kept = sorted((text, n) for (text, _), n in counts.items() if text != neutral)
    if len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return f"({sign.join(f'{text}^{count}' for text, count in kept)})" if kept else neutral


def _terms(node: Node, sign: int) -> Iterator[tuple[str, Fraction]]:
    if node.kind in ("add", "sub"):
        yield from _terms(node.items[0], sign)
        yield from _terms(node.items[1], sign if node.kind == "add" else -sign)
    elif node.kind == "neg":
        yield from _terms(node.items[0], -sign)
    else:
        yield key(node), Fraction(sign)


def _powers(node: Node, power: Fraction) -> Iterator[tuple[str, Fraction]]:
    if node.kind in ("mul", "div"):
        yield from _powers(node.items[0], power)
        yield from _powers(node.items[1], power if node.kind == "mul" else -power)
    elif node.kind == "pow" and (exponent := exact(node.items[1])) is not None:
        yield from _powers(node.items[0], power * exponent)
    else:
        yield key(node), power
