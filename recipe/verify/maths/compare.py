r"""Compare two trees: the gold answer's shape decides how, and algebra compares the values.

Order counts in tuples, intervals, matrices and ratios, and in lists where the question says so, but
not in sets and unions. A bare list is taken for the set or tuple that the gold answer asks for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from recipe.verify.maths import asked, named, questions
from recipe.verify.maths import sets as maths_sets
from recipe.verify.maths.closeness import Closeness
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    decimals,
    exact,
    flat,
    folded,
    is_infinite,
    marks_of,
    multiplied,
    names_in,
    num,
    parted,
    pointed,
)
from recipe.verify.maths.values import same_relation
from recipe.verify.maths.words import Suffix

# The first kind that one of the two has decides.
_RULES = {
    "label": "_labels", "chain": "_chains", "word": "_words", "quantity": "_quantities",
    "numeral": "_numerals", "union": "_sets_of_numbers", "inter": "_sets_of_numbers",
    "minus": "_sets_of_numbers", "relation": "_relations", "matrix": "_matrices",
    "ratio": "_ratios", "list": "_groups", "set": "_groups", "tuple": "_groups",
}  # fmt: skip
_ALL_REALS = re.compile(
    r"(?:(?:the )?set of )?(?:all )?real(?: number)?s|all real(?: numbers)? [a-z]"
)
_REALS = Node("sym", value=r"\mathbb{R}")
_ARTICLE = re.compile(r"\A(?:an?|the) (?=[a-z]{3})")


@dataclass(kw_only=True)
class Comparison(Closeness):
    """Compares parsed answers and notes how.

    Attributes:
        problem: The problem's text, or empty.
        used_words: Whether words were compared.
        ignored: What was understood and left out.
    """

    problem: str = ""
    used_words: bool = False
    ignored: list[str] = field(default_factory=list)
    _depth: int = 0

    def equal(self, gold: Node, other: Node) -> bool:
        """Return whether ``other`` says what ``gold`` says."""
        self._depth += 1
        try:
            return self._equal(gold, other)
        finally:
            self._depth -= 1

    def _equal(self, gold: Node, other: Node) -> bool:
        if gold == other and self.tolerance is None:
            self.used_words |= gold.kind == "word"
            return True
        for kind, rule in _RULES.items():
            if kind in (gold.kind, other.kind):
                return getattr(self, rule)(gold, other)
        return self._values(gold, other)

    def _labels(self, gold: Node, other: Node) -> bool:
        if gold.kind != "label" or other.kind != "label":
            label, rest = (gold, other) if gold.kind == "label" else (other, gold)
            if rest.kind == "relation" and label.items[0].kind == "sym":
                pair = (Node("relation", label.items, ("=",)), rest)[:: 1 if label is gold else -1]
                # x = 5 is solved, 2x = 10 is not, nor 2d = n where d is asked for
                may_be = names_in(label.items[1]) and questions.asks_for_equation(self.problem)
                if may_be and label.items[1].kind not in STRUCTURES and rest.value == ("=",):
                    return self._relations(*pair)
            if rest.kind == "list" and any(item.kind == "label" for item in rest.items):
                return self._named(label, rest)
            if label is gold:
                return self._equal(gold.items[1], other)
            value = self._without_name(gold, other)
            if value is not None and named.tell_order(other, gold, self.problem):
                return self._ordered(gold, value)
            return value is not None and self._equal(gold, value)
        names = [folded(each.items[0]) or repr(each.items[0]) for each in (gold, other)]
        if names[0] == names[1] or named.are_one_but_for_an_extreme(gold.items[0], other.items[0]):
            return self._equal(gold.items[1], other.items[1])
        # y = 2x and x = y/2 are one line, x = 5 and y = 5 are two answers
        are_lines = all(names_in(each.items[1]) for each in (gold, other))
        if not are_lines or not questions.asks_for_line(self.problem):
            return False
        return self._relations(*(Node("relation", e.items, ("=",)) for e in (gold, other)))

    def _without_name(self, gold: Node, label: Node) -> Node | None:
        """Return the value of an answer's label if the problem may ask for its name."""
        name = label.items[0]
        if name.kind == "word" and not asked.may_drop_name(name.value, self.problem):
            return None
        self.ignored.append("name")
        return named.unnamed(label, gold, self.problem)

    def _named(self, label: Node, values: Node) -> bool:
        """Compare ``(a, b) = (1, 2)`` and ``b = 2, a = 1`` by name."""
        name, value = label.items
        if name.kind == "sym":  # x = 1, 2 and x_1 = 1, x_2 = 2
            names = [str(item.items[0].value) for item in values.items if item.kind == "label"]
            is_indexed = all(each.startswith(f"{name.value}_") for each in names)
            parts = tuple(item.items[1] for item in values.items if item.kind == "label")
            if not is_indexed or len(parts) != len(values.items):
                return False
            return self.equal(value, Node("list", parts))
        by_name = {item.items[0]: item.items[1] for item in values.items if item.kind == "label"}
        if name.kind != "tuple" or value.kind != "tuple" or set(by_name) != set(name.items):
            return False
        if len(by_name) != len(values.items):
            return False
        return all(
            self.equal(by_name[each], part)
            for each, part in zip(name.items, value.items, strict=True)
        )

    def _chains(self, gold: Node, other: Node) -> bool:
        r"""Compare ``2 + 3 = 5``: all sides have one value, after ``\approx`` a rounding of it."""
        chain = gold if gold.kind == "chain" else other
        first, *rest = chain.items
        if chain.value[0] == r"\approx" and len(chain.items) == 2 and first.kind == "word":
            raise NoValue("an approximation of words")
        for relation, side in zip(chain.value, rest, strict=True):
            if relation == "=" and not self.equal(first, side):
                return False
            if relation != "=" and not self._is_rounding(first, side):
                return False
        # 43/8 = 5.375 \approx 5.4
        is_rounded = chain is other and chain.value[-1] == r"\approx" and decimals(parted(gold)[0])
        if is_rounded and questions.asks_to_round(self.problem) and self.equal(gold, rest[-1]):
            return self._is_rounding(first, rest[-1], may_cut=False)
        return self.equal(*((first, other) if chain is gold else (gold, first)))

    def _words(self, gold: Node, other: Node) -> bool:
        self.used_words = True
        left, right = (_ARTICLE.sub("", folded(node)) for node in (gold, other))
        word, rest = (gold, other) if gold.kind == "word" else (other, gold)
        if rest.kind != "word" and _ALL_REALS.fullmatch(folded(word)):
            return rest == _REALS or maths_sets.is_all_reals(rest)
        return bool(left) and left == right

    def _quantities(self, gold: Node, other: Node) -> bool:
        (left, unit), (right, unit_of_other) = parted(gold), parted(other)
        if unit.is_percent != unit_of_other.is_percent:
            return self._percent(left, right, unit, unit_of_other)
        if not self._may_drop_noun(unit, unit_of_other) or (unit.noun and unit_of_other.unit):
            return False
        if unit.is_clock or unit_of_other.is_clock:
            self._go_on()
            if not unit_of_other.unit and not asked.may_drop_unit(unit.unit, self.problem):
                return False
        if unit.unit and not unit.text and not unit_of_other.unit:
            return False  # 150 for 2 hours 30 minutes
        if unit.unit and unit_of_other.unit:
            return unit.unit == unit_of_other.unit and self.equal(left, right)
        if unit_of_other.unit:
            self._go_on()
            if not asked.may_drop_unit(unit_of_other.unit, self.problem):
                return False
            if self.problem and not asked.has_angle_unit(unit_of_other.unit, left, self.problem):
                turned = asked.in_radians(unit_of_other.unit, right, self.problem)
                return turned is not None and self.equal(left, turned)
            self.ignored.append(unit_of_other.text)
        return self.equal(left, right)

    def _may_drop_noun(self, gold: Suffix, other: Suffix) -> bool:
        """Return whether the answer's counted noun is the gold answer's or the problem's own."""
        if not other.noun:
            return True
        if other.noun == gold.noun:
            return True
        self._go_on()
        if gold.unit or gold.noun or not asked.has_noun(other.noun, self.problem):
            return False
        self.ignored.append(other.noun)
        return True

    def _percent(self, gold: Node, other: Node, unit: Suffix, unit_of_other: Suffix) -> bool:
        """Compare a percent and a number: by a hundredth, or in the problem's or gold's unit."""
        if unit.unit and unit_of_other.unit or unit.noun or unit_of_other.noun:
            return False
        hundredth = num(Fraction(1, 100))
        if questions.asks_for_percent(self.problem):
            self.ignored += [] if unit.is_percent else ["%"]
            return self.equal(gold, other)
        # Without the problem, which may ask for a percentage, a whole gold answer may be one.
        value = None if self.problem or unit.is_percent else exact(gold)
        if value is not None and value.denominator == 1 and self.equal(gold, other):
            self.ignored.append("%")
            return True
        if unit.is_percent:
            is_same = not questions.asks_for_fraction(self.problem) and self.equal(gold, other)
            return is_same or self.equal(Node("mul", (gold, hundredth)), other)
        return self.equal(gold, Node("mul", (other, hundredth)))

    def _numerals(self, gold: Node, other: Node) -> bool:
        """Compare digits in a base; either may omit it, the gold answer if the problem names it."""
        if gold.kind == other.kind:
            return gold.value == other.value
        numeral, plain = (gold, other) if gold.kind == "numeral" else (other, gold)
        digits, base = numeral.value
        is_known = numeral is gold or questions.asks_for_base(self.problem, digits, base)
        is_whole = plain.kind == "num" and not plain.value.decimals
        return is_known and is_whole and exact(plain) == int(digits)

    def _sets_of_numbers(self, gold: Node, other: Node) -> bool:
        if gold.kind == other.kind == "union":
            parts = [maths_sets.parts_of(node) for node in (gold, other)]
            if len(parts[0]) == len(parts[1]) and self._unordered(*parts):
                return True
        names = [maths_sets.variables_of(node) for node in (gold, other)]
        if all(names) and names[0] != names[1]:
            return False
        self._go_on()
        sets = [maths_sets.real_set(node) for node in (gold, other)]
        return maths_sets.same(sets[0], sets[1])

    def _relations(self, gold: Node, other: Node) -> bool:
        if _REALS in (gold, other):
            return maths_sets.is_all_reals(gold if other == _REALS else other)
        left, right = (maths_sets.as_interval(node) for node in (gold, other))
        if left is not None and right is not None:
            names = {name for _, name in (left, right) if name}
            if len(names) == 1 and self._is_point(left[0]):
                return False  # 1 < x < 2 is not a point
            return len(names) < 2 and self.equal(left[0], right[0])
        if other.value == ("=",) and gold.kind not in STRUCTURES:  # (x+1)^2 = x^2+2x+1
            is_empty = len(set(other.items)) == 1  # n = n
            return not is_empty and all(self.equal(gold, side) for side in other.items)
        is_solved = left is not None or right is not None  # x < 5 is, 2x < 10 is not
        if gold.kind == other.kind == "relation" and len(gold.items) == len(other.items) == 2:
            return not is_solved and self._same_relation(gold, other)
        if {gold.kind, other.kind} & {"list", "union"}:
            return self._sets_of_numbers(gold, other)
        return False

    def _same_relation(self, gold: Node, other: Node) -> bool:
        self._go_on()
        (sides, kind), (sides_of_other, other_kind) = map(pointed, (gold, other))
        if kind != other_kind:
            return False
        if not names_in(*sides) or not names_in(*sides_of_other):
            return False
        return same_relation(sides, sides_of_other, may_flip=kind in ("=", r"\ne"))

    def _groups(self, gold: Node, other: Node) -> bool:
        grouped = ("list", "set", "tuple")
        if gold.kind not in grouped or other.kind not in grouped:
            return self._group_and_lone(gold, other, is_gold_grouped=gold.kind in grouped)
        if gold.kind == "tuple" and all(item.kind == "relation" for item in other.items):
            return not self._is_point(gold) and self._sets_of_numbers(gold, other)
        arranged = named.arranged(other, gold, self.problem) if gold.kind == "tuple" else other
        if arranged is None:
            return False  # y = 1, x = 2 is (2, 1)
        other = arranged
        if gold.kind == "list":
            if other.kind != "tuple":
                return self._list(gold, other)
            # Brackets give numbers an order; ((1, 2), (3, 4)) is a list of points.
            has_parts = any(item.kind in (*grouped, "label") for item in other.items)
            is_set = has_parts or questions.asks_for_members(self.problem)
            return other.value == "()" and (self._list if is_set else self._ordered)(gold, other)
        if gold.kind == "set":
            return other.kind in ("set", "list") and self._set(gold, other)
        if other.kind == "set":  # of one pair
            return self._is_point(gold) and self.equal(Node("set", (gold,)), other)
        if other.kind == "list":
            is_set = other.value in ("or", "pm") or named.may_be_interval(gold, other, self.problem)
            return gold.value == "()" and not is_set and self._ordered(gold, other)
        brackets = {gold.value, other.value}
        is_open = brackets == {"()", "]["} and not self._is_point(gold)
        is_vector = len(gold.items) > 2 and brackets <= {"()", "[]"}
        return (len(brackets) == 1 or is_open or is_vector) and self._ordered(gold, other)

    def _is_point(self, gold: Node) -> bool:
        """Return whether a bracket is a point, which an inequality never is."""
        is_finite = gold.value == "()" and not any(map(is_infinite, gold.items))
        return is_finite and questions.asks_for_point(self.problem)

    def _group_and_lone(self, gold: Node, other: Node, *, is_gold_grouped: bool) -> bool:
        group, lone = (gold, other) if is_gold_grouped else (other, gold)
        if group is other and self._is_counted_together(other):
            return self.equal(gold, other.items[0])
        is_lone = group.kind == "set" and len(group.items) == 1 and self._depth == 1
        if not is_lone or lone.kind in ("set", "tuple"):  # {5} is as good as 5
            is_all = maths_sets.is_all_reals
            return (gold == _REALS and is_all(other)) or (other == _REALS and is_all(gold))
        pair = (group.items[0], lone) if group is gold else (lone, group.items[0])
        return self.equal(*pair)

    def _is_counted_together(self, values: Node) -> bool:
        """Tell whether it is a number and the problem's nouns: ``45 portraits and selfies``."""
        if values.value != "and":
            return False
        first, *rest = values.items
        return (
            first.kind == "quantity"
            and bool(first.value.noun)
            and all(
                each.kind == "word" and asked.has_noun(each.value, self.problem) for each in rest
            )
        )

    def _list(self, gold: Node, other: Node) -> bool:
        # x = 1, y = 2 against 1, 2: the order tells which is which, and the names have an order
        marks, marks_of_other = marks_of(gold), marks_of(other)
        if marks_of_other and "or" in (other.value or "") and "or" not in (gold.value or ""):
            return False  # x = 1 or y = 2
        if marks and not marks_of_other:
            return self._ordered(gold, other)
        is_ordered = named.asks_for_each(gold, self.problem)
        if (marks_of_other or is_ordered) and not marks:
            if any(item.kind == "label" for item in other.items):
                arranged = named.arranged(other, gold, self.problem)
                return arranged is not None and self._ordered(gold, arranged)
            return marks_of_other == sorted(marks_of_other) and self._ordered(gold, other)
        if not marks and questions.asks_for_order(self.problem):
            return self._ordered(gold, other)
        items = (*gold.items, *other.items)
        if any(item.kind in ("relation", "sym", "word") for item in items):
            words = {str(node.value or "") for node in (gold, other)} - {"", "pm"}
            if len(words) > 1:
                return False  # and, or
        if len(gold.items) == len(other.items) and self._unordered(gold.items, other.items):
            return True
        return all(each.kind == "relation" for each in items) and self._sets_of_numbers(gold, other)

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
        """Compare sets, whose members may be written twice."""
        found: set[int] = set()
        for item in dict.fromkeys(other.items):
            same = [i for i, member in enumerate(gold.items) if self.equal(member, item)]
            if not same:
                return False
            found.update(same)
        return len(found) == len(gold.items)

    def _ratios(self, gold: Node, other: Node) -> bool:
        if any(parted(each.items[-1])[1].is_clock for each in (gold, other) if each.items):
            times = [Node("ratio", (e, num(0))) if e.kind == "num" else e for e in (gold, other)]
            gold, other = times  # 6 is 6:00 PM
        return gold.kind == other.kind and self._ordered(gold, other)

    def _matrices(self, gold: Node, other: Node) -> bool:
        left, right = multiplied(gold), multiplied(other)
        if left.kind == right.kind == "matrix":
            return self._ordered(left, right)
        # A vector may be written as a column, a row, or (1, 2, 3).
        brackets = [flat(node) for node in (left, right)]
        if any(node is None for node in brackets) or {"or", "pm"} & {gold.value, other.value}:
            return False
        is_pair = gold.kind == "tuple" and len(gold.items) == 2
        if is_pair and questions.asks_for_interval(self.problem):
            return False
        return self._ordered(*brackets)  # pyright: ignore[reportArgumentType]
