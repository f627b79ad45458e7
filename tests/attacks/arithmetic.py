"""The value of a simple LaTeX formula at a point, read by a small parser of its own.

Only what it reads wholly has a value; it serves to show that an edit changed one.
"""

from __future__ import annotations

import cmath
import math
import random
import re
from collections.abc import Callable

_TOKEN = re.compile(r"\\[A-Za-z]+|[0-9]+(?:\.[0-9]+)?|\.[0-9]+|[A-Za-z]|[-+*/^_(){}\[\]|!]|\s+")
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    r"\sin": cmath.sin,
    r"\cos": cmath.cos,
    r"\tan": cmath.tan,
    r"\ln": cmath.log,
    r"\log": cmath.log10,
    r"\exp": cmath.exp,
    r"\arcsin": cmath.asin,
    r"\arccos": cmath.acos,
    r"\arctan": cmath.atan,
}
_STARTS = re.compile(r"\\(?!cdot|times|div)[A-Za-z]+|[0-9.]+|[A-Za-z]|[({]")
_LIMIT = 1e12


class Unread(Exception):
    """The text is not a formula of the small grammar."""


class _Reader:
    def __init__(self, text: str, point: dict[str, float]) -> None:
        tokens, place = [], 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise Unread(text)
            place = match.end()
            if match[0].strip():
                tokens.append(match[0])
        self.tokens, self.place, self.point = tokens, 0, point

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unread(token)
        self.place += 1
        return token

    def sum(self) -> complex:
        sign = -1 if self.peek() == "-" else 1
        if self.peek() in ("-", "+"):
            self.take()
        value = sign * self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            value += sign * self.product()
        return value

    def product(self) -> complex:
        value = self.power()
        while True:
            token = self.peek()
            if token in ("*", r"\cdot", r"\times"):
                self.take()
                value *= self.power()
            elif token in ("/", r"\div"):
                self.take()
                value /= self.power()
            elif _STARTS.fullmatch(token):
                value *= self.power()
            else:
                return value

    def power(self) -> complex:
        value = self.atom()
        while self.peek() in ("^", "!"):
            if self.take() == "!":
                value = self.factorial(value)
                continue
            exponent = self.group()
            if abs(exponent) > 40 or abs(value) > _LIMIT:
                raise Unread("too large")
            value = complex(value) ** exponent
        return value

    @staticmethod
    def factorial(value: complex) -> complex:
        if value.imag or value.real < 0 or value.real > 20:
            raise Unread("factorial")
        return math.gamma(value.real + 1)

    def group(self) -> complex:
        """What stands after ^ or as an argument: one token or a group."""
        if self.peek() == "{":
            self.take()
            value = self.sum()
            self.take("}")
            return value
        token = self.peek()
        if re.fullmatch(r"[0-9]{2,}", token):  # \frac12 and x^10 take one digit alone
            raise Unread(token)
        return self.atom()

    def atom(self) -> complex:
        token = self.take()
        if re.fullmatch(r"[0-9.]+", token):
            return complex(float(token))
        if token in ("(", "{"):
            value = self.sum()
            self.take(")" if token == "(" else "}")
            return value
        if token == r"\pi":
            return cmath.pi
        if token == r"\frac":
            return self.group() / self.group()
        if token == r"\sqrt":
            return self.root()
        if token in _FUNCTIONS:
            return self.function(token)
        if re.fullmatch(r"[A-Za-z]|\\(?:alpha|beta|gamma|theta|phi|lambda|mu)", token):
            return self.symbol(token)
        raise Unread(token)

    def root(self) -> complex:
        degree = complex(2)
        if self.peek() == "[":
            self.take()
            degree = self.sum()
            self.take("]")
        return self.group() ** (1 / degree)

    def function(self, name: str) -> complex:
        base = exponent = None
        while self.peek() in ("_", "^"):
            if self.take() == "_":
                base = self.group()
            else:
                exponent = self.group()
        value = self.group() if self.peek() == "{" else self.power()
        if base is not None:
            if name != r"\log":
                raise Unread(name)
            return cmath.log(value) / cmath.log(base)
        value = _FUNCTIONS[name](value)
        return value if exponent is None else value**exponent

    def symbol(self, name: str) -> complex:
        if self.peek() == "_":
            self.take()
            start = self.place
            self.group()
            name += "_" + "".join(self.tokens[start : self.place]).strip("{}")
        return complex(self.point.setdefault(name, len(self.point) * 0.37 + 1.113))


def value_at(text: str, point: dict[str, float]) -> complex:
    """The value, symbols missing in ``point`` being added to it.

    Raises:
        Unread: The text is not wholly a formula of the small grammar, or has no value there.
    """
    try:
        reader = _Reader(text, point)
        value = complex(reader.sum())
    except (ZeroDivisionError, OverflowError, ValueError, RecursionError) as problem:
        raise Unread(text) from problem
    if reader.peek() or not cmath.isfinite(value):
        raise Unread(text)
    return value


def differ(one: str, other: str, rng: random.Random) -> bool:
    """Whether both are read and differ, at each of two real points and at one of whole numbers.

    The whole numbers are for problems whose letters stand for such.
    """
    names = sorted(set(re.findall(r"[A-Za-z]", one + other)))
    try:
        for _ in range(2):
            if _agree(one, other, {name: rng.uniform(0.6, 2.9) for name in names}):
                return False
        points = [{name: float(rng.randint(2, 7)) for name in names} for _ in range(3)]
        return not all(_agree(one, other, point) for point in points)
    except Unread:
        return False


def _agree(one: str, other: str, point: dict[str, float]) -> bool:
    left, right = value_at(one, point), value_at(other, point)
    return abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right))
