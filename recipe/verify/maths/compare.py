r"""Compare two trees: the gold answer's shape decides how, and ``values`` compares formulas.

Order counts in tuples, intervals and matrices, and in lists where the question says so, but
not in sets and unions. A bare list is taken for the set or tuple that the gold answer asks for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from recipe.verify.maths import named
from recipe.verify.maths import question as q
from recipe.verify.maths.sets import as_interval, same_set, variables_of
from recipe.verify.maths.tree import (
    REALS,
    STRUCTURES,
    Node,
    exact,
    folded,
    infinity_sign,
    names_in,
    num,
    parted,
    turned,
)
from recipe.verify.maths.units import Suffix
from recipe.verify.maths.values import (
    NeedsAlgebra,
    is_rounded,
    same_relation,
    same_value,
)

# The first kind that one of the two has decides.
_RULES = {
    "label": "_labels", "chain": "_chains", "word": "_words", "quantity": "_quantities",
    "numeral": "_numerals", "union": "_sets", "inter": "_sets", "minus": "_sets",
    "relation": "_relations", "matrix": "_same_kind", "list": "_groups", "set": "_groups",
    "tuple": "_groups",
}  # fmt: skip
_GROUPED = ("list", "set", "tuple")
_ARTICLE = re.compile(r"\A(?:an?|the) (?=[a-z]{3})")
_PI = Node("const", value="pi")


@dataclass(kw_only=True)
class Comparison:
    """Compares parsed answers and notes how.

    Attributes:
        problem: The problem's text, or empty.
        is_quick: Raise ``NeedsAlgebra`` where exact arithmetic does not decide.
        used_words: Whether words were compared.
        used_algebra: Whether values were computed numerically.
        ignored: What was understood and left out.
    """

    problem: str = ""
    is_quick: bool = False
    used_words: bool = False
    used_algebra: bool = False
    ignored: list[str] = field(default_factory=list)

    def equal(self, gold: Node, other: Node) -> bool:
        """Return whether ``other`` says what ``gold`` says."""
        if gold == other:
            self.used_words |= gold.kind == "word"
            return True
        for kind, rule in _RULES.items():
            if kind in (gold.kind, other.kind):
                return getattr(self, rule)(gold, other)
        return self._values(gold, other)

    def _go_on(self) -> None:
        if self.is_quick:
            raise NeedsAlgebra
        self.used_algebra = True

    def _values(self, gold: Node, other: Node) -> bool:
        left, right = exact(gold), exact(other)
        if left is not None and right is not None:
            return left == right or (self._may_round() and is_rounded(gold, other))
        signs = infinity_sign(gold), infinity_sign(other)
        if any(signs):
            return signs[0] == signs[1]
        self._go_on()
        if not names_in(gold, other) and self._may_round() and is_rounded(gold, other):
            return True
        return same_value(gold, other)

    def _may_round(self) -> bool:
        return not q.asks("exact", self.problem) or q.asks("rounding", self.problem)

    def _labels(self, gold: Node, other: Node) -> bool:
        if gold.kind == other.kind:
            names = [folded(each.items[0]) or repr(each.items[0]) for each in (gold, other)]
            if names[0] == names[1]:
                return self.equal(gold.items[1], other.items[1])
            # y = 2x and x = y/2 are one line, x = 5 and y = 5 are two answers
            are_lines = all(names_in(each.items[1]) for each in (gold, other))
            return are_lines and self._lines(gold, other)
        label, rest = (gold, other) if gold.kind == "label" else (other, gold)
        if rest.kind == "relation" and rest.value == ("=",) and names_in(label.items[1]):
            return label.items[1].kind not in STRUCTURES and self._lines(gold, other)
        if rest.kind == "list" and any(item.kind == "label" for item in rest.items):
            return False
        if label is gold:
            return self.equal(gold.items[1], other)
        value = self._without_name(gold, other)
        return value is not None and self.equal(gold, value)

    def _lines(self, gold: Node, other: Node) -> bool:
        if self.problem and not q.asks("equation", self.problem):
            return False
        if gold.kind == other.kind and q.asks("solved", self.problem):
            return False
        return self._relations(*(Node("relation", e.items, ("=",)) for e in (gold, other)))

    def _without_name(self, gold: Node, label: Node) -> Node | None:
        name, value = label.items
        if name.kind == "word" and not q.may_say(name.value.split(), self.problem):
            return None
        self.ignored.append("name")
        if gold.kind in ("tuple", "matrix") and value.kind == "list":
            return None  # x = 1, 2 is not a pair
        if name.kind != "tuple":
            is_point = label.value == r"\in" and (
                gold.kind == "list" or q.asks_for_point(self.problem)
            )
            is_of_all = value.kind == "list" and named.asks_for_each(gold, self.problem)
            return None if is_of_all or (is_point and value.kind == "tuple") else value
        if value.kind != "tuple" or len(value.items) != len(name.items):
            return None
        parts = tuple(Node("label", pair) for pair in zip(name.items, value.items, strict=True))
        arranged = named.arranged(Node("list", parts), gold, self.problem)
        if arranged is None:
            return None
        return Node("tuple", tuple(item.items[1] for item in arranged.items), value.value)

    def _chains(self, gold: Node, other: Node) -> bool:
        """Compare ``2 + 3 = 5``: all sides have one value."""
        chain = gold if gold.kind == "chain" else other
        first, *rest = chain.items
        if not all(self.equal(first, side) for side in rest):
            return False
        return self.equal(*((first, other) if chain is gold else (gold, first)))

    def _words(self, gold: Node, other: Node) -> bool:
        self.used_words = True
        left, right = (_ARTICLE.sub("", folded(node)) for node in (gold, other))
        return bool(left) and left == right

    def _quantities(self, gold: Node, other: Node) -> bool:
        (left, unit), (right, unit_of_other) = parted(gold), parted(other)
        if unit.is_percent != unit_of_other.is_percent:
            return self._percent(left, right, unit, unit_of_other)
        if unit_of_other.noun and unit_of_other.noun != unit.noun:
            self._go_on()
            if unit.unit or unit.noun or not q.has_noun(unit_of_other.noun, self.problem):
                return False
            self.ignored.append(unit_of_other.noun)
        if unit.noun and unit_of_other.unit:
            return False
        if unit.unit and unit_of_other.unit:
            return unit.unit == unit_of_other.unit and self.equal(left, right)
        if unit_of_other.unit:
            self._go_on()
            has_pi = _has_pi(left)
            if not q.may_drop_unit(unit_of_other.unit, self.problem, has_pi=has_pi):
                return False
            self.ignored.append(unit_of_other.text)
        return self.equal(left, right)

    def _percent(self, gold: Node, other: Node, unit: Suffix, unit_of_other: Suffix) -> bool:
        """Compare a percent and a number: by a hundredth, or in the problem's or gold's unit."""
        if unit.unit and unit_of_other.unit or unit.noun or unit_of_other.noun:
            return False
        if q.asks_for_percent(self.problem):
            self.ignored += [] if unit.is_percent else ["%"]
            return self.equal(gold, other)
        # Without the problem, which may ask for a percentage, a whole gold answer may be one.
        value = None if self.problem else exact(gold)
        if value is not None and value.denominator == 1 and self.equal(gold, other):
            self.ignored.append("%")
            return True
        hundredth = num(Fraction(1, 100))
        if unit.is_percent:
            return self.equal(gold, other) or self.equal(Node("mul", (gold, hundredth)), other)
        return self.equal(gold, Node("mul", (other, hundredth)))

    def _numerals(self, gold: Node, other: Node) -> bool:
        """Compare digits in a base; either may omit it, the gold answer if the problem names it."""
        numeral, plain = (gold, other) if gold.kind == "numeral" else (other, gold)
        digits, base = numeral.value
        is_known = numeral is gold or q.asks_for_base(self.problem, digits, base)
        is_whole = plain.kind == "num" and not plain.value.decimals
        return is_known and is_whole and exact(plain) == int(digits)

    def _sets(self, gold: Node, other: Node) -> bool:
        names = [variables_of(node) for node in (gold, other)]
        if all(names) and names[0] != names[1]:
            return False
        self._go_on()
        return same_set(gold, other)

    def _relations(self, gold: Node, other: Node) -> bool:
        left, right = as_interval(gold), as_interval(other)
        if left is not None and right is not None:
            names = {name for _, name in (left, right) if name}
            if len(names) == 1 and self._is_point(left[0]):
                return False  # 1 < x < 2 is not a point
            return len(names) < 2 and self.equal(left[0], right[0])
        is_solved = left is not None or right is not None  # x < 5 is, 2x < 10 is not
        if gold.kind == other.kind == "relation" and len(gold.items) == len(other.items) == 2:
            self._go_on()
            gold, other = turned(gold), turned(other)
            is_one = bool(names_in(gold) and names_in(other)) and gold.value == other.value
            may_flip = gold.value in (("=",), (r"\ne",))
            return is_one and not is_solved and same_relation(gold, other, may_flip=may_flip)
        return bool({gold.kind, other.kind} & {"list", "union"}) and self._sets(gold, other)

    def _groups(self, gold: Node, other: Node) -> bool:
        if other.kind == "list" and gold.kind not in _GROUPED and gold != REALS:
            names = {item.items[0] for item in other.items if item.kind == "label"}
            is_one = len(names) < 2 and other.value != "and"  # 3/2 or 1.5
            return is_one and all(self.equal(gold, item) for item in other.items)
        if gold.kind not in _GROUPED or other.kind not in _GROUPED:
            return REALS in (gold, other) and self._sets(gold, other)
        if {gold.kind, other.kind} == {"list", "tuple"}:
            # Brackets give an order, and y = 1, x = 2 is (2, 1).
            other = named.arranged(other, gold, self.problem) or Node("none")
            if gold.kind == "list":
                return other.value == "()" and self._ordered(gold, other)
            is_set = other.value in ("or", "pm") or not self._is_told_pair(gold, other)
            return gold.value == "()" and not is_set and self._ordered(gold, other)
        if gold.kind == "list":
            return self._list(gold, other)
        if gold.kind == "set":
            return other.kind in ("set", "list") and self._set(gold, other)
        if other.kind == "set":  # of one pair
            return self._is_point(gold) and self.equal(Node("set", (gold,)), other)
        return gold.value == other.value and self._ordered(gold, other)

    def _is_point(self, gold: Node) -> bool:
        is_finite = gold.value == "()" and not any(map(infinity_sign, gold.items))
        return is_finite and q.asks_for_point(self.problem)

    def _is_told_pair(self, gold: Node, values: Node) -> bool:
        """Return whether ``(1, 2)`` cannot be an interval, which is not the list of its ends."""
        are_named = all(item.kind == "label" for item in values.items)
        is_pair = self._is_point(gold) or named.asks_for_each(gold, self.problem)
        return len(gold.items) != 2 or are_named or is_pair

    def _list(self, gold: Node, other: Node) -> bool:
        # x = 1, y = 2 against 1, 2: the order tells which is which, and the names have an order
        marks, marks_of_other = named.marks(gold), named.marks(other)
        if marks_of_other and "or" in (other.value or "") and "or" not in (gold.value or ""):
            return False  # x = 1 or y = 2
        is_ordered = named.asks_for_each(gold, self.problem) and not any(
            e.kind in STRUCTURES for e in gold.items
        )
        if not marks and (marks_of_other or is_ordered):
            arranged = named.arranged(other, gold, self.problem)
            is_told = all(item.kind == "label" for item in other.items) or (
                marks_of_other == sorted(marks_of_other)
            )
            return arranged is not None and is_told and self._ordered(gold, arranged)
        if marks and not marks_of_other or (not marks and q.asks("order", self.problem)):
            return self._ordered(gold, other)
        items = (*gold.items, *other.items)
        if any(item.kind in ("relation", "sym", "word") for item in items):
            words = {str(node.value or "") for node in (gold, other)} - {"", "pm"}
            if len(words) > 1:
                return False  # and, or
        return len(gold.items) == len(other.items) and self._unordered(gold.items, other.items)

    def _ordered(self, gold: Node, other: Node) -> bool:
        if len(gold.items) != len(other.items):
            return False
        return all(self.equal(*pair) for pair in zip(gold.items, other.items, strict=True))

    def _unordered(self, gold: tuple[Node, ...], other: tuple[Node, ...]) -> bool:
        """Compare one to one; equal trees first, so that they cost nothing."""
        others = list(other)
        for item in sorted(gold, key=lambda each: each not in other):
            twins = [each for each in others if each == item]
            match = next((e for e in twins or others if twins or self.equal(item, e)), None)
            if match is None:
                return False
            others.remove(match)
        return True

    def _set(self, gold: Node, other: Node) -> bool:
        found: set[int] = set()
        for item in dict.fromkeys(other.items):
            same = [i for i, member in enumerate(gold.items) if self.equal(member, item)]
            if not same:
                return False
            found.update(same)
        return len(found) == len(gold.items)

    def _same_kind(self, gold: Node, other: Node) -> bool:
        return gold.kind == other.kind and self._ordered(gold, other)


def _has_pi(node: Node) -> bool:
    is_arc = node.kind == "fn" and node.value.startswith("arc")
    return node == _PI or is_arc or any(map(_has_pi, node.items))
