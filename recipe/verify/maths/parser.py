r"""Read an answer whole: a tree in which every token of the text has its place, or none at all.

Recursive descent, one token of look-ahead, no backtracking: time linear in the text. What the
grammar does not have raises ``Unread``; nothing is skipped, repaired or guessed.

Readings that are a convention: ``ab`` is a product, ``1\frac12`` a mixed number, ``2^10`` has the
exponent 10, ``1/2x`` is ``(1/2)x``, ``\sin 2x`` takes the product after it, ``f(x)`` is a name
left of ``=`` and a product elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import replace

from recipe.verify.maths.atoms import Atoms, in_degrees, spliced
from recipe.verify.maths.formulas import (
    CLOSERS,
    MAX_DEPTH,
    MODULI,
    RELATIONS,
    SEPARATORS,
    STOPS,
)
from recipe.verify.maths.lexer import Token
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    Unread,
    exact,
    has_sign_pair,
    is_name,
    names_in,
    num,
    with_sign,
)
from recipe.verify.maths.words import (
    TOTALS,
    Suffix,
    is_rate,
    is_share,
    number_of,
    read_counted,
    read_suffix,
)

_CURRENCIES = {r"\$": "$", r"\euro": "€", r"\pounds": "£"}
_CHOICE = frozenset("ABCDEFGHIJ")
_DEGREES = (("degree", 1),)
_MAX_LEVELS = 150


def parse(tokens: list[Token], *, joins_thousands: bool) -> Node:
    """Return the tree of an answer.

    Args:
        tokens: As the lexer made them.
        joins_thousands: Read ``312,123,231`` as one number; otherwise as a list of three.

    Raises:
        Unread: Some token has no place.
    """
    parser = _Parser(tokens, joins_thousands)
    node = parser.answer()
    if parser.peek() is not None:
        raise Unread(parser.text())
    _check_parts(node)
    return node


def _check_parts(node: Node, level: int = 1) -> None:
    """Check that formulas are made of formulas; only a matrix may be multiplied.

    Raises:
        Unread: A tuple, a list or a word is where a value has to be, or the tree is too deep to
            compare within Python's recursion limit: a sum of n terms has n levels.
    """
    if level > _MAX_LEVELS:
        raise Unread("too many terms")
    if node.kind == "label":
        return _check_parts(node.items[1], level + 1)
    for item in node.items:
        _check_parts(item, level + 1)
        if node.kind not in STRUCTURES | {"chain"} and item.kind in STRUCTURES:
            is_scaled = item.kind == "matrix" and node.kind in ("mul", "div", "neg")
            if not is_scaled and node.kind != "det":
                raise Unread(f"{item.kind} in {node.kind}")


class _Parser(Atoms):
    def answer(self) -> Node:
        r"""Read elements between commas, semicolons, ``and``, ``or``; skip a first ``=``."""
        if not self.accept("="):
            self.accept(r"\approx")
        parts = self._elements(SEPARATORS | {r"\\"})
        word = self._word
        if "or" not in word and any(part.value == "pm" for part in parts):
            word = "pm"
        if len(parts) == 1:
            return parts[0]
        if word == "or" and len({*map(exact, parts)}) == 1 and exact(parts[0]) is not None:
            return Node("chain", tuple(parts), ("=",) * (len(parts) - 1))  # 1/2 or 0.5
        names = sum(p.kind == "label" or p.value == ("=",) for p in parts)
        first = parts[0]
        parts = _excluded(parts, word)
        is_bounded = any(part.kind == "relation" for part in parts)
        if (
            first.kind == "label"
            and not is_bounded
            and (
                names == 1 or all(p.kind == "label" and p.items[0] == first.items[0] for p in parts)
            )
        ):
            # x = 1, 2 and x = 1, x = 2: one name for all
            values = tuple(p.items[1] if p.kind == "label" else p for p in parts)
            return Node("label", (first.items[0], Node("list", spliced(values))))
        return Node("list", spliced(tuple(parts)), word)

    def _elements(self, separators: frozenset[str]) -> list[Node]:
        """Read the parts and, in ``_word``, whether ``and`` or ``or`` is between them."""
        parts: list[Node] = []
        words: set[str] = set()
        while True:
            if parts and self.text() in separators:  # ", and" is one
                words.add(self.take().text)
                if self.text() in ("and", "or") and self.text() in separators:
                    words.add(self.take().text)
                self._refuse_digits_of_a_number()
                if self.peek() is None and self.text(-1) in (",", ";", r"\\"):
                    break
            parts.append(self._element())
            if self.text() not in separators:
                break
        self._word = "".join(sorted(words & {"and", "or"}))
        return parts

    def _refuse_digits_of_a_number(self) -> None:
        """Refuse ``,000``, which groups the digits of a number, whatever is before it.

        Raises:
            Unread: It is here.
        """
        token = self.peek()
        if token is not None and token.kind == "num" and not token.is_spaced:
            if self.text(-1) == "," and re.fullmatch(r"0[0-9]{2}", token.text):
                raise Unread(token.text)

    def _element(self) -> Node:
        """Read a set or a chain of relations between sets."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unread("too deep")
        sides, relations = [self._sets()], []
        while self.text() in RELATIONS:
            relations.append(self.take().text)
            sides.append(self._sets())
        self._depth -= 1
        if not relations:
            return sides[0] if self._in_tuple else _single(_point(sides[0]))
        return _relation(sides, relations)

    def _sets(self) -> Node:
        node = self._ratio()
        if node.kind == "sub" and node.items[1].kind == "set":  # all numbers but these
            node = replace(node, kind="minus")
        while self.text() in (r"\cup", r"\cap", r"\setminus"):
            kind = {r"\cup": "union", r"\cap": "inter", r"\setminus": "minus"}[self.take().text]
            node = Node(kind, (node, self._ratio()))
        return node

    def _ratio(self) -> Node:
        parts = [self._side()]
        while self.accept(":") or (self.text() == "word:to" and self.take()):
            parts.append(self._side())
        return Node("ratio", tuple(parts)) if len(parts) > 1 else parts[0]

    def _side(self) -> Node:
        is_negative = self._takes_negative()
        words = None if is_negative else self._words()
        if words is not None:
            return words
        if not is_negative and self.text() in ("-", "+") and self._is_currency(1):
            is_negative = self.take().text == "-"
        currency = _CURRENCIES[self.take().text] if self._is_currency() else ""
        node = self._sum()
        suffix = self._suffix(currency)
        if suffix is None or suffix.unit == _DEGREES:
            inner = in_degrees(node, is_marked=suffix is not None)
            if inner is not None:
                node, suffix = inner, suffix or read_suffix([r"\degree"])
        if currency:
            suffix = _in_currency(currency, suffix)
        if self.text() in MODULI and node.kind == "num" and not is_negative and not currency:
            self._at += 1
            return Node("residue", (node, self._atom()))
        return _quantity(Node("neg", (node,)) if is_negative else node, suffix)

    def _takes_negative(self) -> bool:
        """Take the word ``negative`` before one numeral, with words after it or none."""
        if self.text().lower() not in ("word:negative", "word:minus") or self.kind(1) != "num":
            return False
        is_alone = self.kind(2) in ("", "word") or self.text(2) in (STOPS | CLOSERS)
        self._at += is_alone
        return is_alone

    def _is_currency(self, ahead: int = 0) -> bool:
        return self.text(ahead) in _CURRENCIES

    def _words(self) -> Node | None:
        """Return an element made of words alone: ``no solution``, ``(B)``, ``three million``."""
        start = self._at
        if self.text() == "(" and self.kind(1) in ("word", "sym") and self.text(2) == ")":
            letter = self._tokens[self._at + 1]
            if letter.text in _CHOICE and not self._is_product_ahead(3):
                self._at += 3
                return Node("word", value=letter.text)
        found: list[str] = []
        while self.kind() == "word" or (found and self.text() in ("-", "'")):
            if (
                "-" in (self.text(), found[-1] if found else "")
                and self._tokens[self._at].is_spaced
            ):
                raise Unread("a difference of words")
            found.append(self.take().text)
        if not found:
            return None
        at_end = self.peek() is None or self.text() in STOPS or self.text() in CLOSERS
        joined = " ".join(found).replace(" - ", "-").replace(" ' ", "'")
        if at_end and "-" != found[-1] != "'":
            words = joined.split(" ")
            value = number_of(words)
            if value is not None:
                return num(value)
            counted = read_counted(words)
            return _quantity(num(counted[0]), counted[1]) if counted else Node("word", value=joined)
        return self._counted_words(start, found)

    def _counted_words(self, start: int, found: list[str]) -> Node:
        """Return a number in words with a suffix: ``five percent``, ``three km/h``."""
        for size in range(len(found), 0, -1):
            value = number_of(found[:size])
            if value is not None and "-" not in found and "'" not in found:
                self._at = start + size
                suffix = self._suffix()
                if suffix is not None:
                    return Node("quantity", (num(value),), suffix)
        raise Unread("words and formulas")

    def _is_product_ahead(self, ahead: int) -> bool:
        token = self.peek(ahead)
        return token is not None and self.text(ahead) not in (STOPS | CLOSERS)

    def _suffix(self, currency: str = "") -> Suffix | None:
        """Take the words between the value and the end of the element."""
        words = self._suffix_words(self._at)
        if not words:
            return None
        if currency and is_rate(words):
            words = [currency, *words]
        suffix = read_suffix(words)
        if suffix is None:
            raise Unread(" ".join(words))
        self._at = self._end_of_element(self._at)
        return suffix


def _in_currency(currency: str, suffix: Suffix | None) -> Suffix:
    r"""Return the suffix of ``\$5``, ``\$5 million``, ``\$5 per hour`` or ``\$5 in total``.

    Raises:
        Unread: Another unit follows.
    """
    unit = read_suffix([currency])
    assert unit is not None
    if suffix is None:
        return unit
    units = suffix.unit or unit.unit
    if not {*unit.unit} <= {*units} or suffix.power != 1 or not _may_follow_money(suffix.noun):
        raise Unread("two units")
    return replace(unit, scale=suffix.scale, unit=units, noun=suffix.noun)


def _may_follow_money(noun: str) -> bool:
    return noun in {"", *TOTALS} or is_share(noun.split())


def _quantity(node: Node, suffix: Suffix | None) -> Node:
    """Return a value with its scale multiplied in, and its unit or noun beside it.

    Raises:
        Unread: A scale, percent or power follows more than one number: which does it mean?
    """
    if suffix is None:
        return node
    if suffix.power != 1 and (node.kind != "num" or suffix.unit or suffix.noun):
        raise Unread("a power in words")
    if suffix.scale != 1 or suffix.is_percent:
        inner = node.items[0] if node.kind == "neg" else node
        parts = inner.items if inner.kind == "div" else (inner,)
        if any(part.kind != "num" for part in parts):
            raise Unread("a scale of a sum or product")
    if suffix.power != 1:
        node = Node("pow", (node, num(suffix.power)))
    if suffix.scale != 1:
        node = Node("mul", (node, num(suffix.scale)))
    return Node("quantity", (node,), suffix) if suffix.unit or suffix.noun else node


def _single(node: Node) -> Node:
    return Node("list", _expanded(node), "pm") if has_sign_pair(node) else node


def _point(node: Node) -> Node:
    """Read ``P(1, 2)`` as the point of this name."""
    if node.kind != "mul" or node.value is not None or node.items[1].kind != "tuple":
        return node
    name, place = node.items
    is_name_of_one = name.kind == "sym" and len(name.value) == 1 and name.value.isupper()
    is_place = place.value == "()" and not is_name(place)
    return Node("label", node.items) if is_name_of_one and is_place else node


def _expanded(node: Node) -> tuple[Node, Node]:
    return with_sign(node, 1), with_sign(node, -1)


def _excluded(parts: list[Node], word: str) -> list[Node]:
    r"""Split ``x \ne 1, -1`` into two relations.

    Raises:
        Unread: ``or`` is beside ``x \ne \pm 1``, which says "and".
    """
    is_pair = any(part.kind == "list" and part.items[0].kind == "relation" for part in parts)
    if is_pair and "or" in word:
        raise Unread("and, or")
    first, *others = parts
    if first.kind != "relation" or first.value != (r"\ne",) or "or" in word:
        return parts
    if any(each.kind in STRUCTURES | {"chain"} or names_in(each) for each in others):
        return parts
    return [first, *(replace(first, items=(first.items[0], each)) for each in others)]


def _relation(sides: list[Node], relations: list[str]) -> Node:
    relations = ["=" if kind == r"\equiv" else kind for kind in relations]
    if any(side.kind == "residue" for side in sides):
        if len(sides) != 2 or relations != ["="] or sides[0].kind != "sym":
            raise Unread("a congruence of no known form")
    if set(relations) <= {"=", r"\approx"}:
        return _equation(sides, relations)
    pair = len(sides) == 2
    if relations == [r"\ne"] and sides[0].kind == "sym" and has_sign_pair(sides[1]):
        both = (Node("relation", (sides[0], each), (r"\ne",)) for each in _expanded(sides[1]))
        return Node("list", tuple(both), "and")
    is_set = sides[-1].kind in ("tuple", "set", "union", "inter", "minus", "sym")
    if relations == [r"\in"] and is_name(sides[0]) and is_set:
        return Node("label", (sides[0], _single(sides[1])), r"\in")
    if r"\in" in relations or r"\approx" in relations or any(map(has_sign_pair, sides)):
        raise Unread("a relation of no known form")
    if any(side.kind in ("list", "relation", "label", "word") for side in sides):
        raise Unread("a relation between lists")
    if not pair and len(sides) != 3:
        raise Unread("a chain of more than three")
    return Node("relation", tuple(sides), tuple(relations))


def _equation(sides: list[Node], relations: list[str]) -> Node:
    """Return ``x = 5`` and ``x = 2 + 3 = 5`` as a name and its value; else an equation."""
    if any(side.kind in ("relation", "label") for side in sides):
        raise Unread("an equation of equations")
    *firsts, last = sides
    are_names = len({*firsts}) == len(firsts) > 1 and all(each.kind == "sym" for each in firsts)
    if are_names and set(relations) == {"="} and not names_in(last):  # a = b = 2
        return Node("list", tuple(Node("label", (each, _single(last))) for each in firsts))
    heads = sides[0].items if sides[0].kind == "tuple" else (sides[0],)
    own = names_in(*(each.items[0] if each.kind == "mul" else each for each in heads))
    if is_name(sides[0]) and not own & names_in(*sides[1:]):
        values = sides[1:]
        if len(values) > 1:
            return Node("label", (sides[0], Node("chain", tuple(values), tuple(relations[1:]))))
        return Node("label", (sides[0], _single(values[0])))
    if len(sides) == 2 and sides[1].kind == "sym" and not names_in(sides[0]):
        return Node("label", (sides[1], _single(sides[0])))
    if not names_in(*sides):
        return Node("chain", tuple(sides), tuple(relations))
    if any(map(has_sign_pair, sides)) or r"\approx" in relations:
        raise Unread("an equation of no known form")
    if len(sides) > 2:  # m + n = 100 + 16 = 116
        if names_in(*sides[1:]):
            raise Unread("a chain of equations")
        return Node("label", (sides[0], Node("chain", tuple(sides[1:]), tuple(relations[1:]))))
    return Node("relation", tuple(sides), tuple(relations))
