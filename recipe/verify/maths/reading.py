"""Read an answer: its tokens, and the trees it can mean."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction

from recipe.verify.maths.lexer import Token, tokens
from recipe.verify.maths.parser import parse
from recipe.verify.maths.question import may_say
from recipe.verify.maths.tree import Node, Unread, exact, names_in

# A longer answer is compared as text: no answer form needs more.
_MAX_READ_CHARS = 2000
_QUOTED = re.compile(  # a word
    r"^(\\text[a-z]{0,6}\{\s*)?(?:``|[\"'`*“‘])([A-Za-z][A-Za-z -]{0,99})(?:''|[\"'*”’])(\s*\})?$"
)
_INFIX = re.compile(
    r"(?<!\\)\{((?:[^{}\\]|\\[^{}]|\{[^{}]*\})*?)\\(over|choose)(?![A-Za-z])"
    r"([^{}]*(?:\{[^{}]*\}[^{}]*)*)(?<!\\)\}"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer can mean: one tree, or two where commas may separate thousands or members.

    ``trees`` is empty for an answer that is compared as ``text``: its tokens, side by side.
    """

    text: tuple[str, ...]
    trees: tuple[Node, ...] = ()


def vote_key(text: str) -> str:
    """Return what equal answers share in a vote: a rational value, else the tokens of the text."""
    value = rational(text)
    if value is None:
        return " ".join(read(text).text)
    return f"{value.numerator:x}/{value.denominator:x}"  # str() refuses more than 4300 digits


def rational(text: str) -> Fraction | None:
    """Return the value of an answer that is one rational number; else ``None``."""
    trees = read(text).trees
    return exact(trees[0]) if trees else None


@functools.lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Return all readings of an answer."""
    found = _tokens_of(text)
    if found is None:
        return Reading((" ".join(text.split()),))
    return Reading(tuple(token.text for token in found), _trees(found))


def read_answer(text: str, gold: Reading, problem: str) -> Reading:
    """Read an answer; letters after a number may be its unit if the gold answer has none."""
    reading, found = read(text), _tokens_of(text)
    if found is None or not gold.trees:
        return reading
    trees = reading.trees
    if any(names_in(tree) - names_in(*gold.trees) for tree in trees):
        units = _trees(found, has_unit_letters=True)
        trees += tuple(tree for tree in units if tree not in trees)
    if not trees:  # There are 12 ways
        size = next((n for n, t in enumerate(found) if t.kind != "word" and t.text != ":"), 0)
        words = [token.text for token in found[:size] if token.kind == "word"]
        trees = _trees(found[size:]) if words and may_say(words, problem) else ()
    return Reading(reading.text, trees)


def _tokens_of(text: str) -> list[Token] | None:
    text = _without_wrapping(text)
    if len(text) > _MAX_READ_CHARS:
        return None
    if r"\over" in text or r"\choose" in text:
        name = {"over": "frac", "choose": "binom"}
        text = _INFIX.sub(lambda m: rf"{{\{name[m[2]]}{{{m[1]}}}{{{m[3]}}}}}", f"{{{text}}}")
    return _without_outer_braces(tokens(text))


def _trees(found: list[Token], *, has_unit_letters: bool = False) -> tuple[Node, ...]:
    # What a command that is not known does with its braces is not known either: {7 \over 4}.
    if any(token.kind == "other" and token.text.startswith("\\") for token in found):
        return ()
    trees: dict[Node, None] = {}
    for joins_thousands in (True, False):
        try:
            tree = parse(found, joins_thousands=joins_thousands, has_unit_letters=has_unit_letters)
        except (Unread, RecursionError):
            continue
        trees[tree] = None
    return tuple(trees)


def _without_wrapping(text: str) -> str:
    text = text.strip()
    if text.startswith("**") and text.endswith("**") and len(text) > 4 and "**" not in text[2:-2]:
        return text[2:-2].strip()
    return _QUOTED.sub(r"\1\2\3", text)


def _without_outer_braces(found: list[Token]) -> list[Token]:
    depth = 0
    for place, token in enumerate(found):
        depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "op" else 0
        if depth == 0:
            is_last = place > 0 and place == len(found) - 1
            return _without_outer_braces(found[1:-1]) if is_last else found
    return found
