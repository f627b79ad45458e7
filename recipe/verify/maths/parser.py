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

from recipe.verify.maths.formulas import CLOSERS, RELATIONS, SEPARATORS, STOPS, Formulas
from recipe.verify.maths.lexer import Token
from recipe.verify.maths.tree import (
    REALS,
    STRUCTURES,
    Node,
    Unread,
    exact,
    has_sign_pair,
    is_name,
    names_in,
    num,
    with_sign,
    without_bare_degrees,
)
from recipe.verify.maths.units import CURRENCY_SIGNS, Suffix, read_counted, read_suffix

_CHOICE = frozenset("ABCDEFGHIJ")
_ALL_REALS = ("all real numbers", "all reals", "the set of all real numbers", "real numbers")
_MAX_LEVELS = 150
_MATRICES = frozenset("pmatrix bmatrix matrix array smallmatrix".split())
_SYSTEMS = frozenset({"cases", "aligned", "gathered"})
_NO_FORMULAS = STRUCTURES | {"chain"}


def parse(tokens: list[Token], *, joins_thousands: bool, has_unit_letters: bool = False) -> Node:
    """Return the tree of an answer.

    Args:
        tokens: As the lexer made them.
        joins_thousands: Read ``312,123,231`` as one number; otherwise as a list of three.
        has_unit_letters: Read letters after a number as its unit where they can be one.

    Raises:
        Unread: Some token has no place.
    """
    parser = _Parser(tokens, joins_thousands=joins_thousands, has_unit_letters=has_unit_letters)
    node = parser.answer()
    if parser.peek() is not None:
        raise Unread(parser.text())
    _check_parts(node)
    return node


def _check_parts(node: Node, level: int = 1) -> None:
    if level > _MAX_LEVELS:
        raise Unread("too many terms")
    if node.kind == "label":
        return _check_parts(node.items[1], level + 1)
    for item in node.items:
        _check_parts(item, level + 1)
        if node.kind not in _NO_FORMULAS and item.kind in STRUCTURES:
            raise Unread(f"{item.kind} in {node.kind}")


class _Parser(Formulas):
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
        names = {part.items[0] for part in parts if part.kind == "label"}
        is_bounded = any(part.kind == "relation" for part in parts)
        if parts[0].kind == "label" and len(names) == 1 and not is_bounded:
            # x = 1, 2 and x = 1, x = 2: one name for all
            values = [p.items[1] if p.kind == "label" else p for p in parts]
            return Node("label", (parts[0].items[0], Node("list", spliced(values))))
        return Node("list", spliced(_excluded(parts, word)), word)

    def _bracket(self) -> Node:
        """Read ``(1, 2)``, ``[1, 2)``, ``(x + 1)``, ``[[1, 0], [0, 1]]``."""
        opener = self.take().text
        with self._inside(in_tuple=True):
            parts = self._elements(frozenset({",", ";"}))
        brackets = opener + self.take().text
        brackets = {"][": "()", "[[": "[)", "]]": "(]"}.get(brackets, brackets)
        if brackets not in ("()", "[]", "[)", "(]"):
            raise Unread(brackets)
        if brackets == "[]" and all((p.kind, p.value) == ("tuple", "[]") for p in parts):
            if len({len(part.items) for part in parts}) == 1:  # rows
                return Node("matrix", tuple(replace(part, value="()") for part in parts))
        if len(parts) == 1:
            if brackets != "()" and parts[0].kind != "matrix":
                raise Unread("one value in square brackets")
            if parts[0].kind in ("relation", "label", "word"):
                raise Unread("a relation in brackets")
            return parts[0]
        return Node("tuple", tuple(parts), brackets)

    def _set(self) -> Node:
        self.take(r"\{")
        with self._inside(in_tuple=False):
            parts = [] if self.text() == r"\}" else self._elements(frozenset({",", ";"}))
        self.take(r"\}")
        return Node("set", spliced(parts))

    def _matrix(self) -> Node:
        begin = self.take().text
        name = begin[len(r"\begin{") : -1]
        if name not in _SYSTEMS | _MATRICES:
            raise Unread(begin)
        rows: list[Node] = []
        with self._inside(in_tuple=True):
            while not self.text().startswith(r"\end{"):
                cells = [self._element()]
                while self.accept("&"):
                    cells.append(self._element())
                rows.append(Node("tuple", tuple(cells), "()"))
                if not self.accept(r"\\"):
                    break
        self.take(rf"\end{{{name}}}")
        if not rows or len({len(row.items) for row in rows}) != 1:
            raise Unread("rows of unequal length")
        members = [row.items[0] for row in rows]
        if len(rows[0].items) == 1 and (name in _SYSTEMS or (name == "array" and len(rows) == 1)):
            return Node("list", spliced(members)) if len(members) > 1 else members[0]
        if name in _SYSTEMS:
            raise Unread("a function by cases")
        return Node("matrix", tuple(rows))

    def _elements(self, separators: frozenset[str]) -> list[Node]:
        """Read the parts and, in ``_word``, whether ``and`` or ``or`` is between them."""
        parts: list[Node] = []
        words: set[str] = set()
        while True:
            if parts and self.text() in separators:  # ", and" is one
                words.add(self.take().text)
                if self.text() in ("and", "or") and self.text() in separators:
                    words.add(self.take().text)
                token = self.peek()
                if token is None and self.text(-1) in (",", ";", r"\\"):
                    break
                is_group = token is not None and re.fullmatch(r"0[0-9]{2}", token.text)
                if token and is_group and self.text(-1) == "," and not token.is_spaced:
                    raise Unread(token.text)  # digits of the number before it
            parts.append(self._element())
            if self.text() not in separators:
                break
        self._word = "".join(sorted(words & {"and", "or"}))
        return parts

    def _element(self) -> Node:
        sides, relations = [self._sets()], []
        while self.text() in RELATIONS:
            relations.append(self.take().text)
            sides.append(self._sets())
        if not relations:
            return sides[0] if self._in_tuple else _single(_point(sides[0]))
        return _relation(sides, relations)

    def _sets(self) -> Node:
        node = self._side()
        while self.text() in (r"\cup", r"\cap", r"\setminus"):
            kind = {r"\cup": "union", r"\cap": "inter", r"\setminus": "minus"}[self.take().text]
            node = Node(kind, (node, self._side()))
        return node

    def _side(self) -> Node:
        words = self._words()
        if words is not None:
            return words
        currency = self._currency()
        self._at += bool(currency)
        node = self._sum()
        suffix = self._suffix()
        if (plain := without_bare_degrees(node)) != node:
            is_product = node.kind in ("mul", "div")
            if suffix is not None and (is_product or suffix.unit != (("degree", 1),)):
                raise Unread("an angle with another unit")
            node, suffix = plain, read_suffix([r"\degree"])
        if currency:
            if suffix is not None and (suffix.unit or suffix.noun):
                raise Unread("two units")
            scale = suffix.text.split() if suffix is not None else []
            suffix = read_suffix([*scale, currency])  # $5 million
        return _quantity(node, suffix)

    def _currency(self) -> str:
        r"""Return the unit of ``\$`` or ``₹`` before a number, else nothing."""
        token = self.peek()
        is_sign = token is not None and token.kind == "op" and self.kind(1) != ""
        return CURRENCY_SIGNS.get(token.text, "") if token and is_sign else ""

    def _words(self) -> Node | None:
        """Return an element made of words alone: ``no solution``, ``(B)``, ``three million``."""
        if self.text() == "(" and self.kind(1) in ("word", "sym") and self.text(2) == ")":
            letter = self._tokens[self._at + 1]
            is_alone = self.peek(3) is None or self.text(3) in (STOPS | CLOSERS)
            if letter.text in _CHOICE and is_alone:
                self._at += 3
                return Node("word", value=letter.text)
        if self._currency():
            return None
        found: list[str] = []
        while self.kind() == "word" or (found and self.text() in ("-", "'")):
            is_joint = "-" in (self.text(), found[-1] if found else "")
            if is_joint and self._tokens[self._at].is_spaced:
                raise Unread("a difference of words")
            found.append(self.take().text)
        if not found:
            return None
        at_end = self.peek() is None or self.text() in STOPS or self.text() in CLOSERS
        joined = " ".join(found).replace(" - ", "-").replace(" ' ", "'")
        if not at_end or found[-1] in ("-", "'"):
            raise Unread("words and formulas")
        if joined.lower() in _ALL_REALS:
            return REALS
        words = joined.split(" ")
        counted = read_counted(words)
        return _quantity(num(counted[0]), counted[1]) if counted else Node("word", value=joined)

    def _suffix(self) -> Suffix | None:
        words = self._suffix_words(self._at)
        if not words:
            return None
        suffix = read_suffix(words)
        if suffix is None:
            raise Unread(" ".join(words))
        self._at = self._end_of_element(self._at)
        return suffix


def spliced(parts: list[Node] | tuple[Node, ...]) -> tuple[Node, ...]:
    r"""Return the members of a list, with the two values of a ``\pm`` as members of their own."""
    return tuple(
        item for part in parts for item in (part.items if part.kind == "list" else (part,))
    )


def _quantity(node: Node, suffix: Suffix | None) -> Node:
    if suffix is None:
        return node
    if suffix.scale != 1 or suffix.is_percent:
        inner = node.items[0] if node.kind == "neg" else node
        parts = inner.items if inner.kind == "div" else (inner,)
        if any(part.kind != "num" for part in parts):
            raise Unread("a scale of a sum or product")
    if suffix.scale != 1:
        value = exact(node)
        node = (
            Node("mul", (node, num(suffix.scale))) if value is None else num(value * suffix.scale)
        )
    return Node("quantity", (node,), suffix) if suffix.unit or suffix.noun else node


def _single(node: Node) -> Node:
    return Node("list", _expanded(node), "pm") if has_sign_pair(node) else node


def _expanded(node: Node) -> tuple[Node, Node]:
    return with_sign(node, 1), with_sign(node, -1)


def _point(node: Node) -> Node:
    """Read ``P(1, 2)`` as the point of this name."""
    if node.kind != "mul" or node.value is not None or node.items[1].kind != "tuple":
        return node
    name, place = node.items
    is_name_of_one = name.kind == "sym" and len(name.value) == 1 and name.value.isupper()
    is_place = place.value == "()" and not is_name(place)
    return Node("label", node.items) if is_name_of_one and is_place else node


def _excluded(parts: list[Node], word: str) -> list[Node]:
    r"""Split ``x \ne 1, -1`` into two relations."""
    first, *others = parts
    if first.kind != "relation" or first.value != (r"\ne",) or "or" in word:
        return parts
    if any(each.kind in STRUCTURES | {"chain"} or names_in(each) for each in others):
        return parts
    return [first, *(replace(first, items=(first.items[0], each)) for each in others)]


def _relation(sides: list[Node], relations: list[str]) -> Node:
    relations = ["=" if kind == r"\equiv" else kind for kind in relations]
    if set(relations) == {"="}:
        return _equation(sides)
    if relations == [r"\ne"] and sides[0].kind == "sym" and has_sign_pair(sides[1]):
        both = (Node("relation", (sides[0], each), (r"\ne",)) for each in _expanded(sides[1]))
        return Node("list", tuple(both), "and")
    is_set = sides[-1].kind in ("tuple", "set", "union", "inter", "minus", "sym")
    if relations == [r"\in"] and is_name(sides[0]) and is_set:
        return Node("label", (sides[0], _single(sides[1])), r"\in")
    no_sides = any(side.kind in ("list", "relation", "label", "word") for side in sides)
    if no_sides or r"\in" in relations or any(map(has_sign_pair, sides)) or len(sides) > 3:
        raise Unread("a relation of no known form")
    return Node("relation", tuple(sides), tuple(relations))


def _equation(sides: list[Node]) -> Node:
    """Return ``x = 5`` and ``x = 2 + 3 = 5`` as a name and its value; else an equation."""
    if any(side.kind in ("relation", "label") for side in sides):
        raise Unread("an equation of equations")
    heads = sides[0].items if sides[0].kind == "tuple" else (sides[0],)
    own = names_in(*(each.items[0] if each.kind == "mul" else each for each in heads))
    if is_name(sides[0]) and not own & names_in(*sides[1:]):
        value = _single(sides[1]) if len(sides) == 2 else Node("chain", tuple(sides[1:]))
        return Node("label", (sides[0], value))
    if not names_in(*sides):
        return Node("chain", tuple(sides))
    if any(map(has_sign_pair, sides)):
        raise Unread("an equation of no known form")
    if len(sides) > 2:  # m + n = 100 + 16 = 116
        if names_in(*sides[1:]):
            raise Unread("a chain of equations")
        return Node("label", (sides[0], Node("chain", tuple(sides[1:]))))
    return Node("relation", tuple(sides), ("=",))
