"""Atoms of formulas: numerals, brackets, roots, functions, names, matrices, finite sums."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from recipe.verify.maths.formulas import DELIMITED, SEPARATORS, Formulas, symbol
from recipe.verify.maths.lexer import ACCENTS, FUNCTIONS, Token, vulgar
from recipe.verify.maths.tree import (
    Node,
    Number,
    Unread,
    decimal,
    has_bare_degree,
    names_in,
    num,
    points_of,
    whole,
)

_MAX_DIGITS = 4000
_REALS = r"sym:\mathbb{R}"
_CONDITIONS = frozenset({"relation", "label", "list"})
_MATRICES = frozenset("pmatrix bmatrix matrix array vmatrix smallmatrix".split())
_TURNED = {"][": "][", "[[": "[)", "]]": "(]"}  # ]1, 2[ is an interval, (1, 2) may be a point
_SYSTEMS = frozenset({"cases", "aligned", "gathered"})


class Atoms(Formulas):
    """Reads atoms; lists inside brackets are read by the subclass."""

    _word = ""  # between the elements that were read last

    def __init__(self, tokens: list[Token], joins_thousands: bool) -> None:
        super().__init__(tokens)
        self._joins = joins_thousands

    def _element(self) -> Node:
        raise NotImplementedError

    def _elements(self, separators: frozenset[str]) -> list[Node]:
        raise NotImplementedError

    def _atom(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return self._numeral(token)
        if token.kind == "vulgar":
            return num(vulgar(token.text))
        if token.kind == "sym":
            return symbol(token.text)
        if token.kind == "run":
            self._at -= 1
            return self._first_letter()
        if token.kind != "op":
            raise Unread(token.text)
        self._at -= 1
        text = token.text
        if text in DELIMITED:
            return getattr(self, DELIMITED[text])()
        name = text.removeprefix("\\")
        if name in FUNCTIONS and text != name:
            return self._function(name)
        if name in ACCENTS and text != name:
            return self._accent(name)
        if text.startswith(r"\begin{"):
            return self._matrix()
        raise Unread(text)

    def _numeral(self, token: Token) -> Node:
        text = token.text
        _, point, decimals = text.partition(".")
        if len(text) > 5000:
            raise Unread("a numeral of more than 5000 digits")
        if (
            point
            and self.text() in (r"\overline", r"\bar", r"\dot")
            and "num" in (self.kind(1), self.kind(2))
        ):
            self._at += 1
            is_group = self.accept("{")
            cycle = self.take().text
            if is_group:
                self.take("}")
            if not cycle.isdigit() or len(cycle) > 400 or len(decimals) > 400:
                raise Unread("no repeating decimal")
            size = Fraction(whole(cycle), 10 ** len(cycle) - 1) / 10 ** len(decimals)
            start = Fraction((text + "0") if text.endswith(".") else text)
            return Node("num", value=Number(start + size, repeats=True))
        following = self.peek()
        if (
            following is not None and not following.is_spaced and following.text in ("e", "E")
            and following.kind == "sym"
        ):  # fmt: skip
            exponent = self._scientific(bool(point))
            if exponent is not None and abs(exponent) + len(text) > _MAX_DIGITS:
                raise Unread("a numeral of more digits than Python writes")
            if exponent is not None:
                value = decimal(text) * Fraction(10) ** exponent
                return num(value, max(0, len(decimals) - exponent))
        value = decimal(text)
        if (
            self._joins
            and not self._nested
            and not point
            and text[0] != "0"
            and len(text) <= 3
            and self.text() == ","
        ):
            return self._thousands(text)
        return num(value, len(decimals))

    def _thousands(self, text: str) -> Node:
        digits = text
        while self.text() == "," and self.kind(1) == "num":
            group = self._tokens[self._at + 1]
            if group.is_spaced or len(group.text.partition(".")[0]) != 3:
                break
            digits += group.text
            self._at += 2
            if "." in digits:
                break
        if len(digits) > 5000:
            raise Unread("a numeral of more than 5000 digits")
        return num(decimal(digits), len(digits.partition(".")[2]))

    def _scientific(self, has_point: bool) -> int | None:
        """Take the exponent of ``3.8e35``; ``None`` when ``e`` is a letter of a product."""
        ahead = 1
        sign = 1
        if self.text(1) in ("+", "-"):
            sign, ahead = (-1 if self.text(1) == "-" else 1), 2
        token = self.peek(ahead)
        if token is None or token.kind != "num" or token.is_spaced or not token.text.isdigit():
            return None
        if len(token.text) > 4:
            raise Unread("an exponent of more than four digits")
        if ahead == 2 and not (has_point or len(token.text) > 1):
            return None  # 2e-1 is 2e - 1
        self._at += ahead + 1
        return sign * int(token.text)

    def _pair(self) -> Node:
        kind = {r"\frac": "div", r"\binom": "binom"}[self.take().text]
        return Node(kind, (self._argument(), self._argument()))

    def _sqrt(self) -> Node:
        self.take(r"\sqrt")
        degree = num(2)
        if self.text() == "[":
            degree = self._group("[", "]")
        if self.text() == "(":
            return Node("root", (self._group("(", ")"), degree))
        token = self.peek()
        if token is not None and token.kind == "num" and len(token.text) > 1:
            raise Unread("a root of more than one digit without braces")
        return Node("root", (self._argument(), degree))

    def _surd(self) -> Node:
        degree = num(3 if self.take().text == r"\cuberoot" else 2)
        if self.text() in ("(", "{"):
            node = self._group(self.text(), ")" if self.text() == "(" else "}")
        elif self.kind() in ("num", "sym", "run"):
            node = self._atom()
        else:
            raise Unread("a root of nothing")
        return Node("root", (node, degree))

    def _infinity(self) -> Node:
        self.take(r"\infty")
        return Node("const", value="inf")

    def _emptyset(self) -> Node:
        self.take(r"\emptyset")
        return Node("set")

    def _bars(self) -> Node:
        self.take("|")
        self._in_bars += 1
        self._nested += 1
        node = self._sum()
        self._in_bars -= 1
        self._nested -= 1
        self.take("|")
        return Node("abs", (node,))

    def _floor(self) -> Node:
        return Node("floor", (self._group(r"\lfloor", r"\rfloor"),))

    def _ceil(self) -> Node:
        return Node("ceil", (self._group(r"\lceil", r"\rceil"),))

    def _bracket(self) -> Node:
        """Read ``(1, 2)``, ``[1, 2[``, ``(x + 1)``, ``[ABC]``; ``[5]`` is not an answer form."""
        opener = self.take().text
        self._nested += 1
        self._in_tuple += 1
        bars, self._in_bars = self._in_bars, 0
        parts = self._elements(frozenset({",", ";"}))
        self._in_tuple -= 1
        self._nested -= 1
        self._in_bars = bars
        brackets = opener + self.take().text
        if brackets in _TURNED and len(parts) == 2:
            brackets = _TURNED[brackets]
        elif brackets not in ("()", "[]", "[)", "(]"):
            raise Unread(brackets)
        if len(parts) == 1:
            if brackets == "[]" and (points := points_of(parts[0])):
                return Node("sym", value=f"[{points}]")  # the area of a polygon
            if brackets != "()" and parts[0].kind != "matrix":
                raise Unread("one value in square brackets")
            return _lone(parts[0])
        return Node("tuple", tuple(parts), brackets)

    def _set(self) -> Node:
        self.take(r"\{")
        self._nested += 1
        outer, self._in_tuple = self._in_tuple, 0
        name = self._bound_name()
        separators = SEPARATORS if name else frozenset({",", ";"})
        parts = [] if self.text() == r"\}" else self._elements(separators)
        self._in_tuple = outer
        self._nested -= 1
        self.take(r"\}")
        if not name:
            members = spliced(tuple(parts))
            names = {member.items[0] for member in members if member.kind == "label"}
            is_solution = 1 < len(names) == len(members)  # {x = 1, y = 2}
            return Node("list", members) if is_solution else Node("set", members)
        if names_in(*parts) != {name} or any(part.kind not in _CONDITIONS for part in parts):
            raise Unread("a set by another condition")
        return parts[0] if len(parts) == 1 else Node("list", spliced(tuple(parts)), self._word)

    def _bound_name(self) -> str:
        r"""Take ``x \mid`` or ``x \in \mathbb{R} :``, which a set's condition follows."""
        name, is_bounded = self.peek(), self.text(1) == r"\in" and self.text(2) == _REALS
        ahead = 3 if is_bounded else 1
        if name is None or name.kind != "sym" or self.text(ahead) not in ("|", ":"):
            return ""
        self._at += ahead + 1
        return name.text

    def _accent(self, name: str) -> Node:
        self.take()
        if self.text() == "{":
            inner = self._raw_script()
        elif self.kind() in ("sym", "run"):
            inner = self.take().text
            while name in ("angle", "triangle") and self.kind() in ("sym", "run"):
                inner += f" {self.take().text}"
        else:
            raise Unread(f"nothing under \\{name}")
        compact = inner.replace(" ", "")
        is_points = compact.isalpha() and compact.isupper() and len(compact) <= 4
        is_letter = compact[:1].isalpha() and compact[1:].lstrip("_").isdigit()
        if not (len(compact) == 1 and compact.isalpha() or is_points or is_letter):
            if name != "angle" and not compact.startswith("\\"):
                raise Unread(f"no name under \\{name}")
        return Node("sym", value=f"\\{name}{{{compact}}}")

    def _function(self, name: str) -> Node:
        self.take()
        base: Node | None = None
        exponent: Node | None = None
        while self.text() in ("^", "_"):
            if (base if self.text() == "_" else exponent) is not None:
                raise Unread("two scripts of one kind")
            if self.take().text == "_":
                base = self._argument() if self.kind() != "num" else self._atom()
            else:
                exponent = self._script()
        if base is not None and name != "log":
            raise Unread("a base of no logarithm")
        argument = self._function_argument()
        is_inverse = exponent == Node("neg", (num(1),))
        if is_inverse and f"arc{name}" in FUNCTIONS:
            return Node("fn", (argument,), f"arc{name}")
        if is_inverse:
            raise Unread("an inverse function")
        if name == "log":
            node = Node("log", (argument, base if base is not None else num(10)))
        elif name == "exp":
            node = Node("pow", (Node("const", value="e"), argument))
        elif name == "cis":
            imaginary = Node("mul", (Node("const", value="i"), Node("fn", (argument,), "sin")))
            node = Node("add", (Node("fn", (argument,), "cos"), imaginary))
        else:
            node = Node("fn", (argument,), name)
        return Node("pow", (node, exponent)) if exponent is not None else node

    def _function_argument(self) -> Node:
        self._nested += 1
        if self.text() in ("(", "{"):
            node = self._group(self.text(), ")" if self.text() == "(" else "}")
            if self.text() in ("^", "!"):
                raise Unread("a power of an argument or of the function")
        else:
            node = self._signed()
            while self._can_multiply() and not self._starts_function():
                node = Node("mul", (node, self._power()))
        self._nested -= 1
        return node

    def _starts_function(self) -> bool:
        name = self.text().removeprefix("\\")
        return self.text() == "(" or (name in FUNCTIONS and self.text() != name)

    def _matrix(self) -> Node:
        begin = self.take().text
        name = begin[len(r"\begin{") : -1]
        if name not in _SYSTEMS | _MATRICES:
            raise Unread(begin)
        rows: list[Node] = []
        self._nested += 1
        self._in_tuple += 1
        while not self.text().startswith(r"\end{"):
            cells = [self._element()]
            while self.accept("&"):
                cells.append(self._element())
            rows.append(Node("tuple", tuple(cells), "()"))
            if not self.accept(r"\\"):
                break
        self._in_tuple -= 1
        self._nested -= 1
        self.take(rf"\end{{{name}}}")
        if not rows or len({len(row.items) for row in rows}) != 1:
            raise Unread("rows of unequal length")
        if name in _SYSTEMS:  # of equations, one below the other
            if len(rows[0].items) > 1:
                raise Unread("a function by cases")
            members = [row.items[0] for row in rows]
            return Node("list", spliced(tuple(members))) if len(members) > 1 else members[0]
        return Node("det" if name == "vmatrix" else "matrix", tuple(rows))

    def _series(self) -> Node:
        kind = self.take().text.removeprefix("\\")
        low = high = None
        for _ in range(2):
            if self.accept("_"):
                self.take("{")
                name = self._atom()
                self.take("=")
                low = (name, self._sum())
                self.take("}")
            elif self.accept("^"):
                high = self._script()
        if low is None or high is None or low[0].kind != "sym":
            raise Unread("a sum without limits")
        self._nested += 1
        body = self._product()
        self._nested -= 1
        return Node(kind, (low[0], low[1], high, body))


def spliced(parts: tuple[Node, ...]) -> tuple[Node, ...]:
    r"""Return the members of a list, with the two values of a ``\pm`` as members of their own."""
    return tuple(
        item for part in parts for item in (part.items if part.kind == "list" else (part,))
    )


def _lone(node: Node) -> Node:
    """Return ``x + 1`` for ``(x + 1)``; a relation in brackets is not a value."""
    if node.kind == "quantity" and node.value.unit == (("degree", 1),):
        return Node("degree", node.items)  # part of the formula
    if node.kind in ("relation", "label", "word"):
        raise Unread("a relation in brackets")
    return node


def in_degrees(node: Node, *, is_marked: bool) -> Node | None:
    r"""Return ``180^\circ - 60^\circ`` without its degree signs; ``None`` if it is not in degrees.

    Every term has to be in degrees once. ``is_marked``: the last one's sign is already taken.
    """
    if node.kind == "degree":
        return None if is_marked else node.items[0]
    if not has_bare_degree(node):
        return node if is_marked else None
    if node.kind not in ("add", "sub", "neg", "mul", "div"):
        return None
    *first, last = node.items
    if node.kind == "div" or (node.kind == "mul" and not has_bare_degree(last)):
        parts = [in_degrees(first[0], is_marked=False), last]
        is_read = not is_marked and not has_bare_degree(last)
    elif node.kind == "mul":
        parts = [*first, in_degrees(last, is_marked=is_marked)]
        is_read = not has_bare_degree(first[0])
    else:
        parts = [*(in_degrees(each, is_marked=False) for each in first)]
        parts.append(in_degrees(last, is_marked=is_marked))
        is_read = True
    items = tuple(each for each in parts if each is not None)
    return replace(node, items=items) if is_read and len(items) == len(parts) else None
