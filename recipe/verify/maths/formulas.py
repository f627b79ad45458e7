"""Formulas: sums, products, powers, and atoms: numerals, brackets, roots, functions, matrices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from recipe.verify.maths.lexer import FUNCTIONS, TEXT_POWER, Token
from recipe.verify.maths.tree import Node, Number, Unread, decimal, num, whole
from recipe.verify.maths.units import CURRENCY_SIGNS, read_suffix

MAX_DEPTH = 20
SEPARATORS = frozenset({",", ";", "and", "or"})
RELATIONS = frozenset({"=", "<", ">", r"\le", r"\ge", r"\ne", r"\in", r"\equiv"})
STOPS = SEPARATORS | RELATIONS | {":", r"\cup", r"\cap", r"\setminus", "&", r"\\"}
CLOSERS = frozenset({")", "]", "}", r"\}", r"\rfloor", r"\rceil"})
_SIGNS = {"+": "add", "-": "sub", r"\pm": "pm", r"\mp": "mp"}
_CONSTANTS = {
    r"\pi": Node("const", value="pi"), "e": Node("const", value="e"), "i": Node("const", value="i"),
    r"\infty": Node("const", value="inf"), r"\emptyset": Node("set"),
}  # fmt: skip
_TEXT_MARKS = frozenset(
    {*r"/ ^ - ' per \degree % *".split(), *CURRENCY_SIGNS, TEXT_POWER, r"\cdot"}
)
_MAX_SUFFIX = 50  # tokens
_DELIMITED = {
    "(": "_bracket", "[": "_bracket", "]": "_bracket", r"\{": "_set", "|": "_bars",
    r"\lfloor": "_step", r"\lceil": "_step", r"\frac": "_pair", r"\binom": "_pair",
    r"\sqrt": "_sqrt", "{": "_bare",
}  # fmt: skip
_ATOMS = frozenset(_DELIMITED) - {"[", "]", r"\{", "|"} | {
    r"\infty", *(f"\\{name}" for name in FUNCTIONS),
    *(rf"\begin{{{name}}}" for name in ("pmatrix", "bmatrix", "matrix")),
}  # fmt: skip


class Formulas:
    """Reads formulas from a list of tokens; lists inside brackets are read by the subclass."""

    def __init__(
        self, tokens: list[Token], *, joins_thousands: bool, has_unit_letters: bool
    ) -> None:
        self._tokens = list(tokens)
        self._at = 0
        self._joins = joins_thousands
        self._has_unit_letters = has_unit_letters  # 14 m is a length, not a product
        self._word = ""  # between the elements that were read last
        self._depth = 0
        self._nested = False  # inside any bracket
        self._in_bars = False
        self._in_tuple = False  # inside one, a sign pair is one value, not two members

    def _matrix(self) -> Node:
        raise NotImplementedError

    def peek(self, ahead: int = 0) -> Token | None:
        """Return the token here, or some places ahead."""
        place = self._at + ahead
        return self._tokens[place] if 0 <= place < len(self._tokens) else None

    def text(self, ahead: int = 0) -> str:
        """Return the text of an operator; for other tokens a text that no operator has."""
        token = self.peek(ahead)
        if token is None:
            return ""
        return token.text if token.kind == "op" else f"{token.kind}:{token.text}"

    def kind(self, ahead: int = 0) -> str:
        """Return the kind of a token; empty after the last."""
        token = self.peek(ahead)
        return token.kind if token is not None else ""

    def take(self, text: str = "") -> Token:
        """Go on by one token.

        Raises:
            Unread: It is not ``text``, or there is none.
        """
        token = self.peek()
        if token is None or (text and self.text() != text):
            raise Unread(f"{self.text()!r} instead of {text!r}")
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the operator ``text`` if it is here."""
        is_here = self.text() == text
        self._at += is_here
        return is_here

    @contextlib.contextmanager
    def _inside(self, *, in_bars: bool = False, in_tuple: bool | None = None) -> Iterator[None]:
        """Read what stands inside delimiters; after an error nobody reads on."""
        outer = self._nested, self._in_bars, self._in_tuple
        self._nested, self._in_bars = True, in_bars
        self._in_tuple = self._in_tuple if in_tuple is None else in_tuple
        yield
        self._nested, self._in_bars, self._in_tuple = outer

    def _sum(self) -> Node:
        first = {"+": "", "-": "neg", r"\pm": "pm", r"\mp": "mp"}.get(self.text())
        if first is not None:
            self._at += 1
        node = self._product()
        if first == "neg":
            node = Node("neg", (node,))
        elif first:
            node = Node(first, (num(0), node))
        while self.text() in _SIGNS:
            kind = _SIGNS[self.take().text]
            node = Node(kind, (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._signed()
        while True:
            if self.text() in (r"\cdot", "*") and not self._starts_unit():
                self._at += 1
                node = Node("mul", (node, self._signed()), "dot")
            elif self.text() == "/":
                self._at += 1
                node = Node("div", (node, self._signed()))
            elif self._can_multiply():
                node = Node("mul", (node, self._power()))
            else:
                return node

    def _can_multiply(self) -> bool:
        kind, text = self.kind(), self.text()
        if kind in ("sym", "run"):
            return not self._starts_unit()
        if kind == "num":  # (n - 2)2^n, n2^n and n^2 2^n are products, (2) 3 and x2 are not
            if self.text(-1) in (")", "}"):
                return self.text(1) in ("^", r"\sqrt") or self.kind(1) in ("sym", "run")
            is_after_name = self.kind(-1) == "sym" or self.text(-2) in ("^", "_")
            return self.text(-1) == "!" or (is_after_name and self.text(1) == "^")
        if text == "|":
            return not self._in_bars
        if text == "{" and "num" in (self.kind(-1), self.kind(1)):  # 5{1} is 51
            return False
        return text in _ATOMS and not self._starts_unit()

    def _signed(self) -> Node:
        signs = ""
        while self.text() in ("+", "-"):
            signs += self.take().text
        node = self._mixed()
        for _ in range(signs.count("-")):
            node = Node("neg", (node,))
        return node

    def _mixed(self) -> Node:
        r"""Read a numeral with the fraction after it: ``1\frac12``."""
        first = self.peek()
        if first is None or first.kind != "num" or "." in first.text:
            return self._power()
        if self.text(1) != r"\frac" or self._suffix_words(self._at + 1):
            return self._power()
        self._at += 1
        node = self._power()
        if node.kind == "div" and all(
            item.kind == "num" and item.value.value.denominator == 1 for item in node.items
        ):
            top, bottom = (item.value.value for item in node.items)
            if 0 < top < bottom:
                return num(whole(first.text) + top / bottom)
            raise Unread("an improper mixed number")
        return Node("mul", (num(whole(first.text)), node))

    def _power(self) -> Node:
        """Read an atom with what follows it: ``^``, ``_``, ``!``, primes, degrees."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unread("too deep")
        node = self._atom()
        is_raised = False
        while True:
            text = self.text()
            if text == "^":
                if is_raised:
                    raise Unread("two exponents")
                self._at += 1
                node, is_raised = Node("pow", (node, self._script())), True
            elif text == "_" and is_raised and node.kind == "pow":  # v^2_0
                node = Node("pow", (self._indexed(node.items[0]), node.items[1]))
            elif text == "_":
                node = self._indexed(node)
            elif text == "'" and node.kind == "sym":
                self._at += 1
                node = Node("sym", value=node.value + "'")
            elif text == "!" and self.text(1) != "!":
                self._at += 1
                node, is_raised = Node("fact", (node,)), False
            elif text == r"\degree" and (self._nested or not self._suffix_words(self._at)):
                self._at += 1
                node = Node("degree", (node,))
            else:
                break
        self._depth -= 1
        return node

    def _indexed(self, node: Node) -> Node:
        self.take("_")
        index = self._raw_script()
        if node.kind == "num":
            return _in_base(node.value, index)
        if node.kind not in ("sym", "const") or node.value == "inf":
            raise Unread("an index of no name")
        return Node("sym", value=f"{node.value}_{index}")

    def _raw_script(self) -> str:
        """Return an index as written: it is part of a name and is not computed."""
        if not self.accept("{"):
            token = self.take()
            if token.kind == "num":
                self._split_digit(token)
                return token.text[0]
            if token.kind not in ("sym", "word") and token.text not in ("+", "-", "*"):
                raise Unread("no index")
            return token.text
        parts: list[str] = []
        depth = 1
        while depth:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "op" else 0
            if depth:
                parts.append(token.text)
        return " ".join(parts)

    def _split_digit(self, token: Token) -> None:
        if len(token.text) > 1:
            self._tokens.insert(self._at, Token("num", token.text[1:]))

    def _first_letter(self) -> Node:
        """Take the first of letters side by side, a product; leave the others as tokens."""
        letters = self.take().text
        self._tokens[self._at : self._at] = [Token("sym", letter) for letter in letters[1:]]
        return _CONSTANTS.get(letters[0], Node("sym", value=letters[0]))

    def _script(self) -> Node:
        """Read what follows ``^``: braces, or one atom; numerals are taken whole."""
        return self._group("{", "}") if self.text() == "{" else self._atom()

    def _argument(self) -> Node:
        r"""Read what a command such as ``\frac`` takes: a group, one digit, letter or command."""
        if self.text() == "{":
            return self._group("{", "}")
        token = self.peek()
        if token is not None and token.kind == "num":
            self._at += 1
            self._split_digit(token)
            return num(whole(token.text[0]))
        if self.kind() in ("run", "sym") or self.text() in (r"\sqrt", r"\frac", r"\infty"):
            return self._atom()
        raise Unread("no argument")

    def _group(self, opener: str, closer: str) -> Node:
        """Read one value inside delimiters; its commas separate thousands."""
        self.take(opener)
        with self._inside():
            node = self._sum()
            if node.kind == "num" and node.value.value < 1000 and self.text() == ",":
                node = self._thousands(str(node.value.value))
        self.take(closer)
        return node

    def _thousands(self, digits: str) -> Node:
        while self.text() == "," and self.kind(1) == "num" and "." not in digits:
            group = self._tokens[self._at + 1]
            if group.is_spaced or len(group.text.partition(".")[0]) != 3:
                break
            digits += group.text
            self._at += 2
        return num(decimal(digits), len(digits.partition(".")[2]))

    def _end_of_element(self, start: int) -> int:
        at, depth = start, 0
        while at < min(len(self._tokens), start + _MAX_SUFFIX):
            token = self._tokens[at]
            if token.kind == "op":
                depth += {"{": 1, "(": 1}.get(token.text, 0)
                if token.text in STOPS or (token.text in CLOSERS and not depth):
                    break
                depth -= token.text in CLOSERS
            at += 1
        return at

    def _suffix_words(self, start: int) -> list[str]:
        r"""Return the words of a unit or noun up to the end of the element, else nothing.

        Of ``\frac{\text{km}}{\text{h}}``, ``m\cdot s^{-1}`` too.
        """
        end = self._end_of_element(start)
        if end == start + _MAX_SUFFIX:
            return []
        tokens = [e for e in self._tokens[start:end] if e.kind != "op" or e.text not in "{}"]
        if tokens and tokens[0].text == r"\frac" and len(tokens) == 3:
            tokens = [tokens[1], Token("op", "/"), tokens[2]]
        return _words_of(tokens)

    def _starts_unit(self) -> bool:
        """Return whether what follows a value is its unit: the element's rest, and known."""
        words = self._suffix_words(self._at)
        token = self.peek(1) if self.text() == r"\cdot" else self.peek()
        if not words or token is None:
            return False
        inner = self.peek(2) if self.text() == r"\frac" else token
        # 6m is a product, and so is 6 m; "6 m/s" is a speed
        is_letter = inner is not None and inner.kind == "sym"
        if is_letter and not self._has_unit_letters and not (token.is_spaced and "/" in words):
            return False
        suffix = read_suffix(words)
        return suffix is not None and bool(suffix.unit)

    def _atom(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return self._numeral(token)
        if token.text in _CONSTANTS and token.kind in ("sym", "op"):
            return _CONSTANTS[token.text]
        if token.kind == "sym":
            return Node("sym", value=token.text)
        self._at -= 1
        if token.kind == "run":
            return self._first_letter()
        if token.kind != "op":
            raise Unread(token.text)
        if token.text in _DELIMITED:
            return getattr(self, _DELIMITED[token.text])()
        name = token.text.removeprefix("\\")
        if name in FUNCTIONS and token.text != name:
            return self._function(name)
        if token.text.startswith(r"\begin{"):
            return self._matrix()
        raise Unread(token.text)

    def _numeral(self, token: Token) -> Node:
        text = token.text
        _, point, decimals = text.partition(".")
        may_join = self._joins and not self._nested and text[0] != "0" and len(text) <= 3
        if may_join and not point and self.text() == ",":
            return self._thousands(text)
        return num(decimal(text), len(decimals))

    def _pair(self) -> Node:
        kind = {r"\frac": "div", r"\binom": "binom"}[self.take().text]
        return Node(kind, (self._argument(), self._argument()))

    def _sqrt(self) -> Node:
        self.take(r"\sqrt")
        degree = self._group("[", "]") if self.text() == "[" else num(2)
        token = self.peek()
        if token is not None and token.kind == "num" and len(token.text) > 1:
            raise Unread("a root of more than one digit without braces")
        return Node(
            "root", (self._group("(", ")") if self.text() == "(" else self._argument(), degree)
        )

    def _bars(self) -> Node:
        self.take("|")
        with self._inside(in_bars=True):
            node = self._sum()
        self.take("|")
        return Node("abs", (node,))

    def _bare(self) -> Node:
        """Read braces that no command takes: nobody sees them, so they hold one atom alone."""
        self.take("{")
        node = self._power()
        self.take("}")
        if self.kind() == "num" or (node.kind == "pow" and self.text() in ("^", "_")):
            raise Unread("braces inside a numeral or power")
        return node

    def _step(self) -> Node:
        kind = self.text().removeprefix("\\l")
        return Node(kind, (self._group(rf"\l{kind}", rf"\r{kind}"),))

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
        if exponent == Node("neg", (num(1),)):
            if f"arc{name}" not in FUNCTIONS:
                raise Unread("an inverse function")
            return Node("fn", (argument,), f"arc{name}")
        if name == "log":
            node = Node("log", (argument, base if base is not None else num(10)))
        elif name == "exp":
            node = Node("pow", (Node("const", value="e"), argument))
        else:
            node = Node("fn", (argument,), name)
        return Node("pow", (node, exponent)) if exponent is not None else node

    def _function_argument(self) -> Node:
        if self.text() in ("(", "{"):
            node = self._group(self.text(), ")" if self.text() == "(" else "}")
            if self.text() in ("^", "!"):
                raise Unread("a power of an argument or of the function")
            return node
        with self._inside(in_bars=self._in_bars):
            node = self._signed()
            while self._can_multiply() and not self._starts_function():
                node = Node("mul", (node, self._power()))
        return node

    def _starts_function(self) -> bool:
        name = self.text().removeprefix("\\")
        return self.text() == "(" or (name in FUNCTIONS and self.text() != name)


def _words_of(tokens: list[Token]) -> list[str]:
    words: list[str] = []
    for place, token in enumerate(tokens):
        before = words[-1] if words else ""
        if before == "^" and token.text == "-":
            words[-1] = "^-"
        elif before in ("^", "^-") and token.kind == "num":
            words[-1:] = ["^", before[1:] + token.text]
        elif token.kind in ("word", "run", "sym") or token.text in _TEXT_MARKS:
            if token.text not in (r"\cdot", "*"):
                words.append("^" if token.text == TEXT_POWER else token.text)
            elif not before and place or place == len(tokens) - 1:
                return []
        else:
            return []
    return words


def _in_base(digits: Number, index: str) -> Node:
    """Return the numeral of these digits in the base ``8``, ``(8)`` or ``base 8``."""
    if index.startswith("( ") and index.endswith(" )"):
        index = index[2:-2]
    base = whole(index.lower().removeprefix("base "))
    if not 2 <= base <= 36 or digits.decimals:
        raise Unread("an index of a number that is not a base")
    return Node("numeral", value=(str(digits.value.numerator), base))
