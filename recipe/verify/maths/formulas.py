"""Formulas: sums, products, powers, and what commands and scripts take."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from recipe.verify.maths.lexer import ACCENTS, FUNCTIONS, TEXT_POWER, Token
from recipe.verify.maths.tree import Node, Number, Unread, num, whole
from recipe.verify.maths.words import NUMBERS, read_suffix

MAX_DEPTH = 40
_MARKS = {r"\circ": r"\degree", r"\degree": r"\degree", "'": "'"}
SEPARATORS = frozenset({",", ";", "and", "or"})
RELATIONS = frozenset({"=", "<", ">", r"\le", r"\ge", r"\ne", r"\in", r"\approx", r"\equiv"})
MODULI = frozenset({r"\pmod", r"\mod", r"\bmod"})
STOPS = SEPARATORS | RELATIONS | {":", r"\cup", r"\cap", r"\setminus", "&", r"\\"}
CLOSERS = frozenset({")", "]", "}", r"\}", r"\rfloor", r"\rceil"})
_SIGNS = {"+": "add", "-": "sub", r"\pm": "pm", r"\mp": "mp"}
_CONSTANTS = {r"\pi": "pi", "e": "e", "i": "i"}
_TEXT_MARKS = frozenset(r"/ ^ - ' per \degree % \$ \euro \pounds".split()) | {TEXT_POWER}  # 5 \$
_MAX_SUFFIX_WORDS = 12
_MAX_BITS = 4000  # of a numeral with a base
_T = Node("sym", value="T")
DELIMITED = {
    "(": "_bracket", "[": "_bracket", "]": "_bracket", r"\{": "_set", "|": "_bars",
    r"\lfloor": "_floor", r"\lceil": "_ceil", r"\frac": "_pair", r"\binom": "_pair",
    r"\sqrt": "_sqrt", r"\surd": "_surd", r"\cuberoot": "_surd", r"\infty": "_infinity",
    r"\emptyset": "_emptyset", r"\sum": "_series", r"\prod": "_series",
}  # fmt: skip
_ATOMS = frozenset(DELIMITED) - {"[", "]", r"\{", "|", r"\emptyset"} | {
    f"\\{name}" for name in FUNCTIONS | ACCENTS
} | {r"\begin{pmatrix}", r"\begin{bmatrix}", r"\begin{matrix}", r"\begin{vmatrix}"}  # fmt: skip


class Cursor:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = list(tokens)
        self._at = 0

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
        if self.text() == text:
            self._at += 1
            return True
        return False

    def _split_digit(self, token: Token) -> None:
        """Leave all but the first digit of a numeral, as LaTeX does without braces."""
        if len(token.text) > 1:
            self._tokens.insert(self._at, Token("num", token.text[1:]))


class Formulas(Cursor):
    """Reads formulas; atoms are read by the subclass."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._depth = 0
        self._nested = 0  # inside any bracket
        self._in_bars = 0
        self._in_tuple = 0  # inside one, a sign pair is one value, not two members

    def _atom(self) -> Node:
        raise NotImplementedError

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unread("too deep")
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
            if kind in ("add", "sub") and self.text() in ("+", "-"):
                is_negative = self.take().text == "-"
                term = self._product()
                term = Node("neg", (term,)) if is_negative else term
            else:
                term = self._product()
            node = Node(kind, (node, term))
        self._depth -= 1
        return node

    def _product(self) -> Node:
        node = self._signed()
        while True:
            if self.text() in (r"\cdot", "*"):
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
        """Return whether the next token continues the product without a sign between."""
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
        return text in _ATOMS

    def _signed(self) -> Node:
        if self.text() in ("+", "-"):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise Unread("too deep")
            is_negative = self.take().text == "-"
            node = self._signed()
            self._depth -= 1
            return Node("neg", (node,)) if is_negative else node
        return self._mixed()

    def _mixed(self) -> Node:
        r"""Read a numeral with the fraction after it: ``1\frac12``, ``1 1/2``, ``1½``."""
        first = self.peek()
        if first is None or first.kind != "num" or "." in first.text:
            return self._power()
        if self.kind(1) == "vulgar":
            self._at += 1
            part = self._atom()
            return num(whole(first.text) + part.value.value)
        is_slash = (
            self.kind(1) == "num" and self.text(2) == "/" and self.kind(3) == "num"
            and self._tokens[self._at + 1].is_spaced
        )  # fmt: skip
        if is_slash:
            top, bottom = self._tokens[self._at + 1].text, self._tokens[self._at + 3].text
            if top.isdigit() and bottom.isdigit() and 0 < whole(top) < whole(bottom):
                self._at += 4
                return num(whole(first.text) + Fraction(whole(top), whole(bottom)))
            raise Unread("two numbers side by side")
        if self.text(1) != r"\frac":
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
        exponent: Node | None = None
        while True:
            self._unwrap_mark()
            text = self.text()
            if text == "^":
                if exponent is not None:
                    raise Unread("two exponents")
                self._at += 1
                exponent = self._script()
            elif text == "_":
                node = self._indexed(node)
            elif text == "'" and node.kind == "sym" and exponent is None:
                self._at += 1
                node = Node("sym", value=node.value + "'")
            elif text == "!" and self.text(1) != "!":
                self._at += 1
                node = Node("fact", (_raised(node, exponent),))
                exponent = None
            elif text == r"\degree" and self._is_degree_inside():
                self._at += 1
                node = Node("degree", (node,))
            else:
                break
        self._depth -= 1
        return _raised(node, exponent)

    def _unwrap_mark(self) -> None:
        r"""Take ``^\circ`` and ``^{\circ}`` as ``\circ``, and primes likewise."""
        if self.text() == "^" and self.kind(-1) == "num":
            width = 3 if self.text(1) == "{" and self.text(3) == "}" else 1
            if self.text(width // 2 + 1) in ("sym:o", "word:o", "run:o"):  # 90^{\text{o}}
                self._tokens[self._at : self._at + width + 1] = [Token("op", r"\degree")]
        if self.text() == "^" and self.text(1) in _MARKS:
            self._tokens[self._at : self._at + 2] = [Token("op", _MARKS[self.text(1)])]
        elif self.text() == "^" and self.text(1) == "{" and self.text(2) in _MARKS:
            if self.text(3) == "}":
                self._tokens[self._at : self._at + 4] = [Token("op", _MARKS[self.text(2)])]

    def _is_degree_inside(self) -> bool:
        r"""Tell whether ``90^\circ`` is part of a formula, not a unit at an element's end."""
        words = self._suffix_words(self._at)
        return not words or self._nested > 0

    def _indexed(self, node: Node) -> Node:
        self.take("_")
        index = self._raw_script()
        if node.kind == "num":
            return _in_base(node.value, index)
        if node.kind == "const" and node.value in ("e", "i"):
            node = Node("sym", value=node.value)
        if node.kind != "sym":
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
            if token.kind == "other":
                raise Unread(token.text)
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "op" else 0
            if depth:
                parts.append(token.text)
        if not parts:
            raise Unread("an empty index")
        return " ".join(parts)

    def _first_letter(self) -> Node:
        """Take the first of letters side by side, a product; leave the others as tokens."""
        letters = self.take().text
        self._tokens[self._at : self._at] = [Token("sym", letter) for letter in letters[1:]]
        return symbol(letters[0])

    def _script(self) -> Node:
        """Read what follows ``^``: braces, or one atom with its sign; numerals are taken whole."""
        if self.text() == "{":
            return self._group("{", "}")
        if self.text() in ("-", "+"):
            is_negative = self.take().text == "-"
            if self.kind() not in ("num", "sym"):
                raise Unread("no exponent")
            node = self._atom()
            return Node("neg", (node,)) if is_negative else node
        if self.kind() == "run":
            return self._first_letter()
        node = self._atom()
        if self.text() == "^":  # 2^2^3
            self._at += 1
            return Node("pow", (node, self._script()))
        return node

    def _argument(self) -> Node:
        r"""Read what a command such as ``\frac`` takes: a group, one digit, letter or command."""
        if self.text() == "{":
            return self._group("{", "}")
        token = self.peek()
        if token is not None and token.kind == "num":
            self._at += 1
            self._split_digit(token)
            return num(whole(token.text[0]))
        if token is not None and token.kind == "run":
            return self._first_letter()
        if token is not None and token.kind in ("sym", "vulgar"):
            return self._atom()
        if self.text() in (r"\sqrt", r"\frac", r"\infty"):
            return self._atom()
        raise Unread("no argument")

    def _group(self, opener: str, closer: str) -> Node:
        """Read one value inside delimiters."""
        self.take(opener)
        self._nested += 1
        bars, self._in_bars = self._in_bars, 0
        node = self._inner_sum()
        self._nested -= 1
        self._in_bars = bars
        self.take(closer)
        return node

    def _inner_sum(self) -> Node:
        node = self._sum()
        is_short = node.kind == "num" and node.value.value.numerator.bit_length() <= 10
        if is_short and self.text() == "," and not node.value.decimals:
            digits = str(node.value.value)  # of a half "1/2"
            while self.text() == "," and self.kind(1) == "num" and len(digits) < 40:
                group = self._tokens[self._at + 1].text
                if len(group) != 3 or not group.isdigit():
                    break
                digits += group
                self._at += 2
            return num(whole(digits))
        return node

    def _end_of_element(self, start: int) -> int:
        at = start
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.kind == "op" and token.text in (STOPS | CLOSERS) and token.text != "}":
                break
            if token.text == "}" and token.kind == "op" and not _is_exponent_end(self._tokens, at):
                break
            at += 1
        return at

    def _suffix_words(self, start: int) -> list[str]:
        """Return the words up to the end of the element; empty when something else is there."""
        words: list[str] = []
        for place in range(start, self._end_of_element(start)):
            token = self._tokens[place]
            if token.kind == "op" and token.text in ("{", "}"):
                continue
            is_power = token.kind == "num" and words and words[-1] == "^"
            is_word = token.kind in ("word", "run", "sym") or is_power
            if not is_word and not (token.kind == "op" and token.text in _TEXT_MARKS):
                return []
            if token.text == "-" or (words and words[-1].endswith("-")):  # push-ups is one word
                is_word = words and (words[-1] + token.text).replace("-", "").isalpha()
                if not is_word or token.is_spaced:
                    return []
                words[-1] += token.text
                continue
            words.append("^" if token.text == TEXT_POWER else token.text)
            if len(words) > _MAX_SUFFIX_WORDS:
                return []
        return words

    def _starts_unit(self) -> bool:
        """Return whether letters after a value are its unit: the element's rest, and known."""
        token, words = self.peek(), self._suffix_words(self._at)
        # 6m is a product, and so is 6 m; "6 m/s" is a speed, 6 \Omega a resistance
        if not token or (token.kind == "sym" and not (token.is_spaced and "/" in words)):
            return words == [r"\Omega"] and self.kind(-1) == "num" and self.text(-2) in ("", "=")
        suffix = read_suffix(words) if words else None
        return suffix is not None and bool(suffix.unit)


def symbol(text: str) -> Node:
    """Return a variable or a constant."""
    return Node("const", value=_CONSTANTS[text]) if text in _CONSTANTS else Node("sym", value=text)


def _is_exponent_end(tokens: list[Token], at: int) -> bool:
    return at >= 3 and tokens[at - 2].text == "{" and tokens[at - 3].text == "^"


def _in_base(digits: Number, index: str) -> Node:
    """Return the numeral of these digits in the base ``8``, ``(8)``, ``eight`` or ``base 8``.

    Raises:
        Unread: The index is not a base, or the digits have a point.
    """
    if index.startswith("( ") and index.endswith(" )"):
        index = index[2:-2]
    index = index.lower().removeprefix("base ")
    base = NUMBERS[index] if index in NUMBERS else whole(index)
    if digits.value.numerator.bit_length() > _MAX_BITS:
        raise Unread("a numeral of too many digits")
    if not 2 <= base <= 36 or digits.decimals:
        raise Unread("an index of a number that is not a base")
    return Node("numeral", value=(str(digits.value.numerator), base))


def _raised(node: Node, exponent: Node | None) -> Node:
    """Return a power; for a bracket or matrix to the T, its columns as rows."""
    if exponent is None:
        return node
    if exponent == _T and node.kind == "tuple" and node.value in ("()", "[]"):
        return _column(node.items)
    if exponent == _T and node.kind == "matrix" and len(node.items) == 1:
        return _column(node.items[0].items)
    if exponent == _T and node.kind == "matrix" and all(len(row.items) == 1 for row in node.items):
        return Node("matrix", (Node("tuple", tuple(row.items[0] for row in node.items), "()"),))
    return Node("pow", (node, exponent))


def _column(cells: Sequence[Node]) -> Node:
    return Node("matrix", tuple(Node("tuple", (cell,), "()") for cell in cells))
