"""Tokens one after the other, without the braces that set nothing."""

from __future__ import annotations

from fractions import Fraction

from recipe.hint.verify.maths.lexer import ACCENTS, Token
from recipe.hint.verify.maths.tree import Unread

_NUM_ARGUMENTS = {
    r"\frac": 2,
    r"\binom": 2,
    r"\sqrt": 1,
    r"\surd": 1,
    r"\cuberoot": 1,
    "^": 1,
    "_": 1,
} | {f"\\{name}": 1 for name in ACCENTS}


class Cursor:
    """A place in a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = without_bare_braces(tokens)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """The token here, or some places further."""
        place = self._at + ahead
        return self._tokens[place] if 0 <= place < len(self._tokens) else None

    def text(self, ahead: int = 0) -> str:
        """The text of an operator; of other tokens a text that no operator has."""
        token = self.peek(ahead)
        if token is None:
            return ""
        return token.text if token.kind == "op" else f"{token.kind}:{token.text}"

    def kind(self, ahead: int = 0) -> str:
        """The kind of a token; empty behind the last."""
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


def without_bare_braces(tokens: list[Token]) -> list[Token]:
    """Drop braces that are no argument: ``2{x+1}`` is set as 2x + 1, and ``5{1}`` as 51.

    Raises:
        Unread: A brace is open or one too many.
    """
    sieve = _Sieve()
    for place, token in enumerate(tokens):
        sieve.take(token, tokens[place - 1] if place else Token("op", ""))
    if sieve.frames:
        raise Unread("an open brace")
    return sieve.kept


class _Sieve:
    """Knows which braces the commands before them take."""

    def __init__(self) -> None:
        self.kept: list[Token] = []
        self.frames: list[
            tuple[list[int], str]
        ] = []  # per open bracket: what was missing, its kind
        self._missing: list[int] = []  # arguments that the commands around still take

    def take(self, token: Token, before: Token) -> None:
        text = token.text if token.kind == "op" else ""
        if text == "{":
            self._open("argument" if self._missing else "bare", token)
        elif text == "[" and before.text == r"\sqrt":
            self._open("degree", token)
        elif text == "}" or (text == "]" and self.frames and self.frames[-1][1] == "degree"):
            self._close(token)
        elif text in _NUM_ARGUMENTS:
            self.kept.append(token)
            self._missing.append(_NUM_ARGUMENTS[text])
        else:
            self.kept.append(token)
            takes_digits = token.kind == "num" and before.text not in ("^", "_")
            self._took(len(token.text) if takes_digits else 1)

    def _open(self, kind: str, token: Token) -> None:
        self.frames.append((self._missing, kind))
        self._missing = []
        if kind != "bare":
            self.kept.append(token)

    def _close(self, token: Token) -> None:
        if not self.frames:
            raise Unread("a brace too many")
        self._missing, kind = self.frames.pop()
        if kind != "bare":
            self.kept.append(token)
        if kind == "argument":
            self._took(1)

    def _took(self, count: int) -> None:
        while self._missing and count:
            self._missing[-1] -= 1
            count -= 1
            while self._missing and self._missing[-1] == 0:
                self._missing.pop()
                if self._missing:
                    self._missing[-1] -= 1


def whole(text: str) -> int:
    """Of at most 5000 digits, in parts: Python refuses numerals of more than 4300."""
    if not text.isdigit():
        raise Unread("no whole number")
    value = 0
    for start in range(0, len(text), 4000):
        part = text[start : start + 4000]
        value = value * 10 ** len(part) + int(part)
    return value


def decimal(text: str) -> Fraction:
    """The value of a numeral with a point."""
    before, _, decimals = text.partition(".")
    return Fraction(whole((before + decimals) or "0"), 10 ** len(decimals))
