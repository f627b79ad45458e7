r"""Reads an answer whole: a tree in which every token of the text has its place, or none at all.

Recursive descent, one token of look-ahead, no way back: time linear in the text. What the grammar
does not have raises ``Unread``; nothing is skipped, repaired or guessed.

Readings that are a convention: ``ab`` is a product, ``1\frac12`` a mixed number, ``2^10`` has the
exponent 10, ``1/2x`` is ``(1/2)x``, ``\sin 2x`` takes the product behind it, ``f(x)`` is a name
where it stands left of ``=`` and a product elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from recipe.hint.verify.maths_lexer import ACCENTS, FUNCTIONS, TEXT_POWER, Token, vulgar
from recipe.hint.verify.maths_words import PERCENT, Suffix, number_of, read_suffix

_MAX_DEPTH = 40
_SEPARATORS = frozenset({",", ";", "and", "or", r"\lor"})
_RELATIONS = frozenset({"=", "<", ">", r"\le", r"\ge", r"\ne", r"\in", r"\approx"})
_STOPS = _SEPARATORS | _RELATIONS | {":", r"\cup", r"\cap", r"\setminus", "&", r"\\"}
_CLOSERS = frozenset({")", "]", "}", r"\}", r"\rfloor", r"\rceil"})
_SIGNS = {"+": "add", "-": "sub", r"\pm": "pm", r"\mp": "mp"}
_CONSTANTS = {r"\pi": "pi", "e": "e", "i": "i"}
_CHOICE = frozenset("ABCDEFGHIJ")
_TEXT_MARKS = frozenset({"/", "^", TEXT_POWER, "-", "'", "per", r"\degree", "%"})


class Unread(Exception):
    """Some of the text has no place in the grammar."""


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an answer.

    Attributes:
        kind: ``num sym const add sub neg mul div pow root log fn fact abs floor ceil binom degree
            sum prod pm mp`` for a formula; ``list tuple interval set union inter minus matrix
            ratio relation label quantity numeral word`` for what holds formulas.
        items: Its parts.
        value: What is no part: a number, a name, brackets, relations, a suffix.
    """

    kind: str
    items: tuple[Node, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral: its value, and how many decimals it is written with."""

    value: Fraction
    decimals: int = 0


def num(value: Fraction | int, decimals: int = 0) -> Node:
    """A numeral."""
    return Node("num", value=Number(Fraction(value), decimals))


def parse(tokens: list[Token], *, joins_thousands: bool) -> Node:
    """The tree of an answer.

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


def _check_parts(node: Node) -> None:
    """Formulas are made of formulas; only a matrix may be multiplied.

    Raises:
        Unread: A tuple, a list or a word stands where a value has to be.
    """
    if node.kind == "label":
        return _check_parts(node.items[1])
    for item in node.items:
        _check_parts(item)
        if node.kind not in STRUCTURES | {"chain"} and item.kind in STRUCTURES:
            is_scaled = item.kind == "matrix" and node.kind in ("mul", "div", "neg")
            if not is_scaled and node.kind != "det":
                raise Unread(f"{item.kind} in {node.kind}")


class _Parser:
    def __init__(self, tokens: list[Token], joins_thousands: bool) -> None:
        self._tokens = _without_bare_braces(tokens)
        self._at = 0
        self._depth = 0
        self._joins = joins_thousands
        self._nested = 0  # inside any bracket
        self._in_bars = 0

    # -- tokens ---------------------------------------------------------------------------------

    def peek(self, ahead: int = 0) -> Token | None:
        place = self._at + ahead
        return self._tokens[place] if 0 <= place < len(self._tokens) else None

    def text(self, ahead: int = 0) -> str:
        """The text of an operator; of other tokens a text that no operator has."""
        token = self.peek(ahead)
        if token is None:
            return ""
        return token.text if token.kind == "op" else f"{token.kind}:{token.text}"

    def kind(self, ahead: int = 0) -> str:
        token = self.peek(ahead)
        return token.kind if token is not None else ""

    def take(self, text: str = "") -> Token:
        token = self.peek()
        if token is None or (text and self.text() != text):
            raise Unread(f"{self.text()!r} instead of {text!r}")
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.text() == text:
            self._at += 1
            return True
        return False

    # -- lists and relations --------------------------------------------------------------------

    def answer(self) -> Node:
        """Elements between commas, semicolons, ``and``, ``or``."""
        parts, names = self._elements(_SEPARATORS), 0
        if len(parts) == 1:
            return parts[0]
        names = sum(part.kind == "label" for part in parts)
        first = parts[0]
        if first.kind == "label" and (
            names == 1 or all(p.kind == "label" and p.items[0] == first.items[0] for p in parts)
        ):
            # x = 1, 2 and x = 1, x = 2: one name for all
            values = tuple(p.items[1] if p.kind == "label" else p for p in parts)
            return Node("label", (first.items[0], Node("list", _spliced(values))))
        return Node("list", _spliced(tuple(parts)))

    def _elements(self, separators: frozenset[str]) -> list[Node]:
        parts: list[Node] = []
        while True:
            while self.text() in separators:  # ", and" is one; a last one means nothing
                self._at += 1
            if self.peek() is None or self.text() in _CLOSERS:
                break
            parts.append(self._element())
            if self.text() not in separators:
                break
        if not parts:
            raise Unread("nothing")
        return parts

    def _element(self) -> Node:
        """``set`` or a chain of relations between such."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unread("too deep")
        sides, relations = [self._sets()], []
        while self.text() in _RELATIONS:
            relations.append(self.take().text)
            sides.append(self._sets())
        self._depth -= 1
        if not relations:
            return _single(sides[0])
        return _relation(sides, relations)

    def _sets(self) -> Node:
        node = self._ratio()
        while self.text() in (r"\cup", r"\cap", r"\setminus"):
            kind = {r"\cup": "union", r"\cap": "inter", r"\setminus": "minus"}[self.take().text]
            node = Node(kind, (node, self._ratio()))
        return node

    def _ratio(self) -> Node:
        parts = [self._side()]
        while self.accept(":"):
            parts.append(self._side())
        return Node("ratio", tuple(parts)) if len(parts) > 1 else parts[0]

    # -- one value and its unit -----------------------------------------------------------------

    def _side(self) -> Node:
        words = self._words()
        if words is not None:
            return words
        sign = 1
        if self.text() in ("-", "+") and self._is_currency(1):
            sign = -1 if self.take().text == "-" else 1
        currency = ""
        if self._is_currency():
            currency = {r"\$": "$", r"\euro": "€", r"\pounds": "£"}[self.take().text]
        node = self._sum()
        if sign < 0:
            node = Node("neg", (node,))
        suffix = self._suffix()
        if currency:
            if suffix is not None and (suffix.unit or suffix.power != 1 or suffix.noun):
                raise Unread("two units")
            unit = read_suffix([currency])
            assert unit is not None
            suffix = replace(unit, scale=suffix.scale if suffix is not None else Fraction(1))
        if suffix is None:
            return node
        if suffix.power != 1:
            node = Node("pow", (node, num(suffix.power)))
        if suffix.scale != 1:
            node = Node("mul", (node, num(suffix.scale)))
        if suffix.unit or suffix.noun:
            node = Node("quantity", (node,), suffix)
        return node

    def _is_currency(self, ahead: int = 0) -> bool:
        return self.text(ahead) in (r"\$", r"\euro", r"\pounds")

    def _words(self) -> Node | None:
        """An element made of words alone: ``no solution``, ``(B)``, ``three million``."""
        start = self._at
        if self.text() == "(" and self.kind(1) in ("word", "sym") and self.text(2) == ")":
            letter = self._tokens[self._at + 1]
            if letter.text in _CHOICE and not self._is_product_ahead(3):
                self._at += 3
                return Node("word", value=letter.text)
        found: list[str] = []
        while self.kind() == "word" or (found and self.text() in ("-", "'", "num:")):
            found.append(self.take().text)
        if not found:
            return None
        at_end = self.peek() is None or self.text() in _STOPS or self.text() in _CLOSERS
        joined = " ".join(found).replace(" - ", "-").replace(" ' ", "'")
        if at_end and "-" != found[-1] != "'":
            words = joined.split(" ")
            value = number_of(words)
            return num(value) if value is not None else Node("word", value=joined)
        return self._counted_words(start, found)

    def _counted_words(self, start: int, found: list[str]) -> Node:
        """A number in words with a suffix: ``five percent``, ``three km/h``."""
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
        return token is not None and self.text(ahead) not in (_STOPS | _CLOSERS)

    def _suffix(self) -> Suffix | None:
        """What stands between the value and the end of the element."""
        words = self._suffix_words(self._at)
        if not words:
            return None
        suffix = read_suffix(words)
        if suffix is None:
            raise Unread(" ".join(words))
        self._at = self._end_of_element(self._at)
        return suffix

    def _end_of_element(self, start: int) -> int:
        at = start
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.kind == "op" and token.text in (_STOPS | _CLOSERS) and token.text != "}":
                break
            if token.text == "}" and token.kind == "op" and not _is_exponent_end(self._tokens, at):
                break
            at += 1
        return at

    def _suffix_words(self, start: int) -> list[str]:
        """The words from here to the end of the element; empty when something else is there."""
        words: list[str] = []
        for place in range(start, self._end_of_element(start)):
            token = self._tokens[place]
            if token.kind == "op" and token.text in ("{", "}"):
                continue
            is_word = token.kind in ("word", "run", "sym") or (
                token.kind == "num" and words and words[-1] == "^"
            )
            if not is_word and not (token.kind == "op" and token.text in _TEXT_MARKS):
                return []
            if token.text == "-" and token.kind == "op":
                return []
            words.append("^" if token.text == TEXT_POWER else token.text)
        return words

    def _starts_unit(self) -> bool:
        """Whether letters after a value are its unit: all of the element's rest, and known."""
        token = self.peek()
        words = self._suffix_words(self._at)
        if token is None or not words:
            return False
        if token.kind == "sym" and not (token.is_spaced and "/" in words):
            return False  # 6m is a product, and so is 6 m; "6 m/s" is a speed
        suffix = read_suffix(words)
        return suffix is not None and bool(suffix.unit)

    # -- formulas -------------------------------------------------------------------------------

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
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
                node = Node("mul", (node, self._signed()))
            elif self.text() == "/":
                self._at += 1
                node = Node("div", (node, self._signed()))
            elif self._can_multiply():
                node = Node("mul", (node, self._power()))
            else:
                return node

    def _can_multiply(self) -> bool:
        """Whether the next token goes on with the product, without a sign between."""
        kind, text = self.kind(), self.text()
        if kind in ("sym", "run"):
            return not self._starts_unit()
        if kind == "vulgar":
            return False
        if kind == "num":  # (n - 2)2^n is a product, (2) 3 and x2 are none
            goes_on = self.text(1) in ("^", r"\sqrt") or self.kind(1) in ("sym", "run")
            return self.text(-1) in (")", "}") and goes_on
        if text == "|":
            return not self._in_bars
        return text in _ATOMS

    def _signed(self) -> Node:
        if self.text() in ("+", "-"):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise Unread("too deep")
            is_negative = self.take().text == "-"
            node = self._signed()
            self._depth -= 1
            return Node("neg", (node,)) if is_negative else node
        return self._mixed()

    def _mixed(self) -> Node:
        r"""A numeral with a fraction behind it: ``1\frac12``, ``1 1/2``, ``1½``."""
        whole = self.peek()
        if whole is None or whole.kind != "num" or "." in whole.text:
            return self._power()
        if self.kind(1) == "vulgar":
            self._at += 1
            return Node("add", (num(int(whole.text)), self._atom()))
        is_slash = (
            self.kind(1) == "num" and self.text(2) == "/" and self.kind(3) == "num"
            and self._tokens[self._at + 1].is_spaced
        )  # fmt: skip
        if is_slash:
            top, bottom = self._tokens[self._at + 1].text, self._tokens[self._at + 3].text
            if top.isdigit() and bottom.isdigit() and 0 < _int(top) < _int(bottom):
                self._at += 4
                return num(_int(whole.text) + Fraction(_int(top), _int(bottom)))
            raise Unread("two numbers side by side")
        if self.text(1) != r"\frac":
            return self._power()
        self._at += 1
        node = self._power()
        number = num(_int(whole.text))
        if node.kind == "div" and all(
            item.kind == "num" and item.value.value.denominator == 1 for item in node.items
        ):
            top, bottom = (item.value.value for item in node.items)
            if 0 < top < bottom:
                return Node("add", (number, node))
        return Node("mul", (number, node))

    def _power(self) -> Node:
        """An atom with what stands behind it: ``^``, ``_``, ``!``, primes, degrees."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Unread("too deep")
        node = self._atom()
        exponent: Node | None = None
        while True:
            text = self.text()
            if text == "^" and self.text(1) in (r"\degree", "'"):
                self._at += 1
            elif text == "^" and self.text(1) == "{" and self.text(2) in (r"\degree", "'"):
                self._at += 2
                mark = self.take().text
                self.take("}")
                self._tokens.insert(self._at, Token("op", mark))
            elif text == "^":
                if exponent is not None:
                    raise Unread("two exponents")
                self._at += 1
                exponent = self._script()
            elif text == "_":
                node = self._indexed(node)
            elif text == "'":
                self._at += 1
                if node.kind != "sym" or exponent is not None:
                    raise Unread("a prime behind no name")
                node = Node("sym", value=node.value + "'")
            elif text == "!":
                self._at += 1
                if self.text() == "!":
                    raise Unread("double factorial")
                if exponent is not None:
                    node, exponent = Node("pow", (node, exponent)), None
                node = Node("fact", (node,))
            elif text == r"\degree":
                if not self._is_degree_inside():
                    break
                self._at += 1
                node = Node("degree", (node,))
            else:
                break
        self._depth -= 1
        return Node("pow", (node, exponent)) if exponent is not None else node

    def _is_degree_inside(self) -> bool:
        """``90^\\circ`` at the end of an element is a unit; inside a formula it is part of it."""
        words = self._suffix_words(self._at)
        return not words or self._nested > 0

    def _indexed(self, node: Node) -> Node:
        self.take("_")
        index = self._raw_script()
        if node.kind == "num":
            digits = node.value
            if not index.isdigit() or not 2 <= _int(index) <= 36 or digits.decimals:
                raise Unread("an index of a number that is no base")
            return Node("numeral", value=(str(digits.value.numerator), _int(index)))
        if node.kind == "const" and node.value in ("e", "i"):
            node = Node("sym", value=node.value)
        if node.kind != "sym":
            raise Unread("an index of no name")
        return Node("sym", value=f"{node.value}_{index}")

    def _raw_script(self) -> str:
        """An index as written: it is part of a name and is not computed."""
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

    def _split_digit(self, token: Token) -> None:
        """Leave all but the first digit of a numeral, as LaTeX does without braces."""
        if len(token.text) > 1:
            self._tokens.insert(self._at, Token("num", token.text[1:]))

    def _first_letter(self) -> Node:
        """Of letters side by side, a product; the others are left as tokens of their own."""
        letters = self.take().text
        self._tokens[self._at : self._at] = [Token("sym", letter) for letter in letters[1:]]
        return _symbol(letters[0])

    def _script(self) -> Node:
        """What stands behind ``^``: braces, or one atom with its sign; numerals are taken whole."""
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
        r"""What a command such as ``\frac`` takes: a group, or one digit or letter or command."""
        if self.text() == "{":
            return self._group("{", "}")
        token = self.peek()
        if token is not None and token.kind == "num":
            self._at += 1
            self._split_digit(token)
            return num(_int(token.text[0]))
        if token is not None and token.kind == "run":
            return self._first_letter()
        if token is not None and token.kind in ("sym", "vulgar"):
            return self._atom()
        if self.text() in (r"\sqrt", r"\frac", r"\infty"):
            return self._atom()
        raise Unread("no argument")

    def _group(self, opener: str, closer: str) -> Node:
        """One value inside delimiters."""
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
        if node.kind == "num" and self.text() == "," and not node.value.decimals:
            digits = str(node.value.value)
            while (
                self.text() == "," and self.kind(1) == "num" and len(self._tokens[self._at + 1].text) == 3
                and self._tokens[self._at + 1].text.isdigit() and len(digits) < 40
            ):  # fmt: skip
                digits += self._tokens[self._at + 1].text
                self._at += 2
            return num(int(digits))
        return node

    # -- atoms ----------------------------------------------------------------------------------

    def _atom(self) -> Node:
        token = self.take()
        if token.kind == "num":
            return self._numeral(token)
        if token.kind == "vulgar":
            return num(vulgar(token.text))
        if token.kind == "sym":
            return _symbol(token.text)
        if token.kind == "run":
            self._at -= 1
            return self._first_letter()
        if token.kind != "op":
            raise Unread(token.text)
        self._at -= 1
        text = token.text
        if text in _DELIMITED:
            return getattr(self, _DELIMITED[text])()
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
        if point and self.text() == r"\overline" and self.text(1) == "{" and self.kind(2) == "num":
            self._at += 2
            cycle = self.take().text
            self.take("}")
            if not cycle.isdigit() or len(cycle) > 400 or len(decimals) > 400:
                raise Unread("no repeating decimal")
            size = Fraction(_int(cycle), 10 ** len(cycle) - 1) / 10 ** len(decimals)
            return num(Fraction((text + "0") if text.endswith(".") else text) + size)
        following = self.peek()
        if (
            following is not None and not following.is_spaced and following.text in ("e", "E")
            and following.kind == "sym"
        ):  # fmt: skip
            exponent = self._scientific()
            if exponent is not None:
                value = _fraction(text) * Fraction(10) ** exponent
                return num(value, max(0, len(decimals) - exponent))
        value = _fraction(text)
        if (
            self._joins and not self._nested and not point and len(text) <= 3 and self.text() == ","
        ):
            return self._thousands(text)
        return num(value, len(decimals))

    def _thousands(self, text: str) -> Node:
        digits = text
        while (
            self.text() == "," and self.kind(1) == "num" and not self._tokens[self._at + 1].is_spaced
            and len(self._tokens[self._at + 1].text.partition(".")[0]) == 3
        ):  # fmt: skip
            digits += self._tokens[self._at + 1].text
            self._at += 2
            if "." in digits:
                break
        if len(digits) > 5000:
            raise Unread("a numeral of more than 5000 digits")
        return num(_fraction(digits), len(digits.partition(".")[2]))

    def _scientific(self) -> int | None:
        """The exponent of ``3.8e35``, taken; ``None`` when it is a letter of a product."""
        ahead = 1
        sign = 1
        if self.text(1) in ("+", "-"):
            sign, ahead = (-1 if self.text(1) == "-" else 1), 2
        token = self.peek(ahead)
        if token is None or token.kind != "num" or token.is_spaced or not token.text.isdigit():
            return None
        if len(token.text) > 4:
            raise Unread("an exponent of more than four digits")
        self._at += ahead + 1
        return sign * int(token.text)

    def _frac(self) -> Node:
        self.take(r"\frac")
        return Node("div", (self._argument(), self._argument()))

    def _binom(self) -> Node:
        self.take(r"\binom")
        return Node("binom", (self._argument(), self._argument()))

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
        if self.text() == "(":
            node = self._group("(", ")")
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
        """``(1, 2)``, ``[1, 2)``, ``(x + 1)``; what is left of ``[5]`` is no answer form."""
        opener = self.take().text
        self._nested += 1
        bars, self._in_bars = self._in_bars, 0
        parts = self._elements(frozenset({",", ";"}))
        self._nested -= 1
        self._in_bars = bars
        closer = self.take().text
        if closer not in (")", "]"):
            raise Unread(f"{opener} closed by {closer}")
        if len(parts) == 1:
            if opener + closer != "()":
                raise Unread("one value in square brackets")
            return _lone(parts[0])
        return Node("tuple", _spliced(tuple(parts)), opener + closer)

    def _set(self) -> Node:
        self.take(r"\{")
        self._nested += 1
        parts = [] if self.text() == r"\}" else self._elements(frozenset({",", ";"}))
        self._nested -= 1
        self.take(r"\}")
        return Node("set", _spliced(tuple(parts)))

    def _accent(self, name: str) -> Node:
        self.take()
        if self.text() == "{":
            inner = self._raw_script()
        elif self.kind() in ("sym", "run"):
            inner = self.take().text
            while name in ("angle", "triangle") and self.kind() in ("sym", "run"):
                inner += f" {self.take().text}"
        elif name == "angle" and self.kind() == "num":
            inner = self.take().text
        else:
            raise Unread(f"nothing under \\{name}")
        if name == "overline" and inner.replace(" ", "").isdigit():
            raise Unread("digits under a line")
        compact = inner.replace(" ", "") if inner.replace(" ", "").isalpha() else inner
        return Node("sym", value=f"\\{name}{{{compact}}}")

    def _function(self, name: str) -> Node:
        self.take()
        base: Node | None = None
        exponent: Node | None = None
        while self.text() in ("^", "_"):
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
        else:
            node = Node("fn", (argument,), name)
        return Node("pow", (node, exponent)) if exponent is not None else node

    def _function_argument(self) -> Node:
        self._nested += 1
        if self.text() == "(":
            node = self._group("(", ")")
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
        if name not in ("pmatrix", "bmatrix", "matrix", "array", "vmatrix", "smallmatrix"):
            raise Unread(begin)
        rows: list[Node] = []
        self._nested += 1
        while not self.text().startswith(r"\end{"):
            cells = [self._element()]
            while self.accept("&"):
                cells.append(self._element())
            rows.append(Node("tuple", tuple(cells), "()"))
            if not self.accept(r"\\"):
                break
        self._nested -= 1
        self.take(rf"\end{{{name}}}")
        if not rows or len({len(row.items) for row in rows}) != 1:
            raise Unread("rows of unequal length")
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


_DELIMITED = {
    "(": "_bracket", "[": "_bracket", r"\{": "_set", "|": "_bars",
    r"\lfloor": "_floor", r"\lceil": "_ceil", r"\frac": "_frac", r"\binom": "_binom",
    r"\sqrt": "_sqrt", r"\surd": "_surd", r"\cuberoot": "_surd", r"\infty": "_infinity",
    r"\emptyset": "_emptyset", r"\sum": "_series", r"\prod": "_series",
}  # fmt: skip
_ATOMS = frozenset(_DELIMITED) - {"[", r"\{", "|", r"\emptyset"} | {
    f"\\{name}" for name in FUNCTIONS | ACCENTS
} | {r"\begin{pmatrix}", r"\begin{bmatrix}", r"\begin{matrix}", r"\begin{vmatrix}"}  # fmt: skip
STRUCTURES = frozenset(
    "list tuple set union inter minus matrix ratio relation label quantity word numeral".split()
)


_NUM_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, "^": 1, "_": 1} | {
    f"\\{name}": 1 for name in ACCENTS
}


def _without_bare_braces(tokens: list[Token]) -> list[Token]:
    """Braces that are no argument of a command set nothing: ``2{x+1}`` is 2x + 1, ``5{1}`` is 51."""
    kept: list[Token] = []
    missing: list[int] = []  # arguments that the commands around still take
    frames: list[tuple[list[int], bool]] = []  # per open brace, and whether it is an argument

    def took(count: int = 1) -> None:
        while missing and count:
            missing[-1] -= 1
            count -= 1
            while missing and missing[-1] == 0:
                missing.pop()
                if missing:
                    missing[-1] -= 1

    for place, token in enumerate(tokens):
        text = token.text if token.kind == "op" else ""
        is_degree = text == "[" and place > 0 and tokens[place - 1].text == r"\sqrt"
        if text == "{" or is_degree:
            is_argument = bool(missing)
            frames.append((missing, is_argument and not is_degree))
            missing = []
            if is_argument:
                kept.append(token)
        elif text == "}" or (text == "]" and frames and kept and not frames[-1][1] and frames[-1][0]):
            if not frames:
                raise Unread("a brace too many")
            missing, is_argument = frames.pop()
            if is_argument or text == "]":
                kept.append(token)
            if is_argument:
                took()
        elif text in _NUM_ARGUMENTS:
            kept.append(token)
            missing.append(_NUM_ARGUMENTS[text])
        else:
            kept.append(token)
            is_digits = token.kind == "num" and place > 0 and tokens[place - 1].text not in ("^", "_")
            took(len(token.text) if is_digits else 1)
    if frames:
        raise Unread("an open brace")
    return kept


def _int(text: str) -> int:
    """Of at most 5000 digits, in parts: Python refuses numerals of more than 4300."""
    value = 0
    for start in range(0, len(text), 4000):
        part = text[start : start + 4000]
        value = value * 10 ** len(part) + int(part)
    return value


def _fraction(text: str) -> Fraction:
    whole, _, decimals = text.partition(".")
    return Fraction(_int((whole + decimals) or "0"), 10 ** len(decimals))


def _symbol(text: str) -> Node:
    return Node("const", value=_CONSTANTS[text]) if text in _CONSTANTS else Node("sym", value=text)


def _is_exponent_end(tokens: list[Token], at: int) -> bool:
    return at >= 3 and tokens[at - 2].text == "{" and tokens[at - 3].text == "^"


def _single(node: Node) -> Node:
    return Node("list", _expanded(node)) if _has_sign_pair(node) else node


def _spliced(parts: tuple[Node, ...]) -> tuple[Node, ...]:
    r"""The two values of a ``\pm`` join the list around them."""
    return tuple(
        item
        for part in parts
        for item in (part.items if part.kind == "list" else (part,))
    )


def _has_sign_pair(node: Node) -> bool:
    return node.kind in ("pm", "mp") or any(_has_sign_pair(item) for item in node.items)


def _expanded(node: Node) -> tuple[Node, Node]:
    return _with_sign(node, 1), _with_sign(node, -1)


def _with_sign(node: Node, sign: int) -> Node:
    items = tuple(_with_sign(item, sign) for item in node.items)
    if node.kind not in ("pm", "mp"):
        return replace(node, items=items)
    is_plus = (node.kind == "pm") == (sign > 0)
    return Node("add" if is_plus else "sub", items)


def _lone(node: Node) -> Node:
    """``(x + 1)`` is ``x + 1``; a relation in brackets is no value."""
    if node.kind in ("relation", "label", "word"):
        raise Unread("a relation in brackets")
    return node


def _relation(sides: list[Node], relations: list[str]) -> Node:
    if set(relations) <= {"=", r"\approx"}:
        return _equation(sides, relations)
    pair = len(sides) == 2
    if relations == [r"\in"] and is_name(sides[0]):
        return Node("label", (sides[0], _single(sides[1])))
    if r"\in" in relations or r"\approx" in relations or any(map(_has_sign_pair, sides)):
        raise Unread("a relation of no known form")
    if any(side.kind in ("list", "relation", "label", "word") for side in sides):
        raise Unread("a relation between lists")
    if not pair and len(sides) != 3:
        raise Unread("a chain of more than three")
    return Node("relation", tuple(sides), tuple(relations))


def _equation(sides: list[Node], relations: list[str]) -> Node:
    """``x = 5``, ``x = 2 + 3 = 5``: a name and its value; else an equation."""
    if any(side.kind in ("relation", "label") for side in sides):
        raise Unread("an equation of equations")
    own = {sides[0].items[0].value} if sides[0].kind == "mul" else names_in(sides[0])
    if is_name(sides[0]) and not own & names_in(*sides[1:]):
        values = sides[1:]
        if len(values) > 1:
            return Node("label", (sides[0], Node("chain", tuple(values), tuple(relations[1:]))))
        return Node("label", (sides[0], _single(values[0])))
    if len(sides) == 2 and sides[1].kind == "sym" and not names_in(sides[0]):
        return Node("label", (sides[1], _single(sides[0])))
    if not names_in(*sides):
        return Node("chain", tuple(sides), tuple(relations))
    if any(map(_has_sign_pair, sides)) or r"\approx" in relations or len(sides) != 2:
        raise Unread("an equation of no known form")
    return Node("relation", tuple(sides), tuple(relations))


def is_name(node: Node) -> bool:
    """Whether it can stand left of ``=`` as a name: ``x``, ``f(x)``, ``(x, y)``, ``Area``."""
    if node.kind == "sym":
        return True
    if node.kind == "word":
        return len(node.value.split()) == 1 and node.value.lower() not in ("not", "no")
    if node.kind == "const":
        return node.value in ("e", "i")
    if node.kind == "tuple":
        return all(item.kind == "sym" for item in node.items) and node.value == "()"
    if node.kind == "mul" and len(node.items) == 2:  # f(x), AB
        left, right = node.items
        return is_name(left) and (right.kind == "sym" or (
            right.kind == "tuple" and is_name(right)
        ))  # fmt: skip
    return False


def names_in(*nodes: Node) -> set[str]:
    """The names of all variables."""
    found: set[str] = set()
    for node in nodes:
        if node.kind == "sym":
            found.add(node.value)
        elif node.kind in ("sum", "prod"):
            bound, low, high, body = node.items
            found |= names_in(low, high) | (names_in(body) - {bound.value})
        else:
            found |= names_in(*node.items)
    return found


def is_percent(node: Node) -> bool:
    """Whether it is a quantity in percent."""
    return node.kind == "quantity" and node.value.unit == ((PERCENT, 1),)
