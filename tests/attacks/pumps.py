"""Texts on which a regular expression may take long, derived from its own parse tree.

For every repeat of a pattern: what leads to it, its body many times over, and an end that does
not match. Nested and neighbouring repeats are reached because every repeat is a pump point.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]

# One of each sort of character, tried in this order against a class.
_ALPHABET = "a1 0{}\\,.-+=()[]$%&_^/*!?:;'\"<>|~#@AZé\n\t\u2009"
_MANY = 50  # a repeat up to fewer is no pump
_ENDS = ("", "!", "\x00", "}", "a", " 1", "=")
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_PACKAGES = ("recipe.verify", "recipe.hint.hints", "recipe.problems", "recipe.hint.methods")


def patterns() -> dict[str, str]:
    """Every compiled pattern that a module of these packages holds: place -> pattern."""
    found: dict[str, str] = {}
    for package in _PACKAGES:
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                for number, pattern in enumerate(_compiled(value)):
                    found.setdefault(pattern, f"{info.name}.{name}[{number}]")
    return {place: pattern for pattern, place in found.items()}


def _compiled(value: Any) -> Iterator[str]:
    """The patterns in a global: itself, or inside a list, tuple, set or dict."""
    pattern = getattr(value, "pattern", None)
    if isinstance(pattern, str) and callable(getattr(value, "search", None)):
        yield pattern
    elif isinstance(value, (list, tuple, set, frozenset)):
        for member in value:
            yield from _compiled(member)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _compiled(key)
            yield from _compiled(member)


def texts(pattern: str, length: int, most: int = 40) -> Iterator[str]:
    """Texts of about ``length`` characters aimed at ``pattern``, at most ``most`` of them."""
    try:
        tree = parser.parse(pattern, re.VERBOSE if "(?x" in pattern else 0)
    except (re.error, RecursionError):  # the syntax of another engine
        return
    count = 0
    for lead, body in dict.fromkeys(_pumps(list(tree), "")):
        times = max(1, (length - len(lead)) // max(1, len(body)))
        for end in _ENDS[: 2 if count >= most // 2 else None]:
            yield (lead + body * times)[:length] + end
            count += 1
            if count >= most:
                return


def _pumps(items: list, lead: str) -> Iterator[tuple[str, str]]:
    for item in items:
        if item[0] in _REPEATS and item[1][1] > _MANY:
            bodies = [text for text in _shortest(list(item[1][2]), 3) if text]
            yield from ((lead, text + gap) for text in bodies for gap in ("", " "))
        for inner in _inside(*item):
            yield from _pumps(inner, lead)
        lead += next(iter(_shortest([item], 1)), "")


def _inside(code: Any, argument: Any) -> list[list]:
    """The items of what a repeat, a group or a branch holds."""
    if code in _REPEATS:
        return [list(argument[2])]
    if code is codes.SUBPATTERN:
        return [list(argument[-1])]
    if code is codes.BRANCH:
        return [list(branch) for branch in argument[1]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [list(argument[1])]
    return [list(argument)] if code is codes.ATOMIC_GROUP else []


def _shortest(items: list, num_choices: int) -> list[str]:
    """Up to ``num_choices`` texts that the items match, short ones."""
    found = [""]
    for item in items:
        choices = _choices(item, num_choices)
        found = [text + choice for text in found for choice in choices][:num_choices]
    return found


def _choices(item: tuple, num_choices: int) -> list[str]:
    code, argument = item
    if code is codes.LITERAL:
        return [chr(argument)]
    if code is codes.NOT_LITERAL:
        return [c for c in _ALPHABET if ord(c) != argument][:num_choices]
    if code is codes.ANY:
        return list(_ALPHABET[:num_choices])
    if code is codes.IN:
        return [c for c in _ALPHABET if _is_in(c, argument)][:num_choices] or _literals(argument)
    if code in _REPEATS:
        low, high, body = argument
        times = max(low, 1) if high else 0
        return [text * times for text in _shortest(list(body), num_choices)]
    if code is codes.SUBPATTERN:
        return _shortest(list(argument[-1]), num_choices)
    if code is codes.BRANCH:
        branches = [_shortest(list(branch), 1) for branch in argument[1]]
        return [texts[0] for texts in branches if texts][:num_choices] or [""]
    return _shortest(list(argument), num_choices) if code is codes.ATOMIC_GROUP else [""]


def _is_in(char: str, members: list) -> bool:
    is_negative = members[0][0] is codes.NEGATE
    is_member = any(_matches(char, code, value) for code, value in members)
    return is_member != is_negative


def _matches(char: str, code: Any, value: Any) -> bool:
    if code is codes.LITERAL:
        return ord(char) == value
    if code is codes.RANGE:
        return value[0] <= ord(char) <= value[1]
    if code is codes.CATEGORY:
        name = str(value).rpartition("_")[2].lower()
        sign = {"digit": r"\d", "space": r"\s", "word": r"\w"}.get(name, r"\w")
        is_of_it = re.fullmatch(sign, char) is not None
        return is_of_it != ("_NOT_" in str(value))
    return False


def _literals(members: list) -> list[str]:
    return [chr(value if code is codes.LITERAL else value[0]) for code, value in members
            if code in (codes.LITERAL, codes.RANGE)][:1] or ["a"]  # fmt: skip
