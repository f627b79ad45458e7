"""Read an answer: its tokens, and the trees it can mean."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction

from recipe.verify.maths.lexer import FUNCTIONS, Token, tokens
from recipe.verify.maths.parser import parse
from recipe.verify.maths.question import may_say
from recipe.verify.maths.tree import Node, Unread, exact, names_in

# A longer answer is compared as text: no answer form needs more.
_MAX_READ_CHARS = 2000
_FRAME = re.compile(
    r"^\\(?:boxed|fbox|framebox|underline|bbox(?:\s?\[[^\[\]]{0,40}\])?)(?![A-Za-z])\s*"
)
_MAX_FRAMES = 5  # one in the other
_GAP = r"(?:[\s~]|\\[,;: ]|\\q?quad(?![a-z]))"
_QUOTED = re.compile(  # a word
    r"^(\\text[a-z]{0,6}\{\s*)?(?:``|[\"'`*“‘])([A-Za-z][A-Za-z -]{0,99})(?:''|[\"'*”’])(\s*\})?$"
)
_INFIX = re.compile(
    r"(?<!\\)\{((?:[^{}\\]|\\[^{}]|\{[^{}]*\})*?)\\(over|choose)(?![A-Za-z])"
    r"([^{}]*(?:\{[^{}]*\}[^{}]*)*)(?<!\\)\}"
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}(?![0-9])")
_NO_MEMBER = re.compile(r"[0-9],0[0-9]{2}(?![0-9])")  # 1,000 is not a list
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_NUM_ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, "^": 1, "_": 1}
_FUNCTIONS = frozenset(f"\\{name}" for name in FUNCTIONS)


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
    return tokens(text)


def _trees(found: list[Token], *, has_unit_letters: bool = False) -> tuple[Node, ...]:
    # What a command that is not known does with its braces is not known either: {7 \over 4}.
    if any(token.kind == "other" and token.text.startswith("\\") for token in found):
        return ()
    text = "".join(" " * token.is_spaced + token.text for token in found)
    may_be_list = _THOUSANDS.search(text) and not _NO_MEMBER.search(text)
    trees: dict[Node, None] = {}
    for joins_thousands in (True, False) if may_be_list else (True,):
        try:
            kept = _without_bare_braces(found)
            tree = parse(kept, joins_thousands=joins_thousands, has_unit_letters=has_unit_letters)
        except (Unread, RecursionError):
            continue
        trees[tree] = None
    return tuple(trees)


def _without_wrapping(text: str) -> str:
    text = text.strip()
    for _ in range(_MAX_FRAMES):
        inner = _FRAME.sub("", text, count=1)
        if inner == text or not _is_one_group(inner) or inner[1:-1] != inner[1:-1].strip():
            break
        text = inner[1:-1]
    if text.startswith("**") and text.endswith("**") and len(text) > 4 and "**" not in text[2:-2]:
        return text[2:-2].strip()
    return _QUOTED.sub(r"\1\2\3", text)


def _is_one_group(text: str) -> bool:
    depth = 0
    for match in _BRACE.finditer(text if text.startswith("{") else ""):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth <= 0:
            return match[0] == "}" and match.end() == len(text)
    return False


def _without_bare_braces(found: list[Token]) -> list[Token]:
    """Drop braces around what is not an argument: ``2{x+1}`` is 2x + 1, ``5{1}`` is 51."""
    sieve = _Sieve()
    for place, token in enumerate(found):
        sieve.take(token, found[place - 1] if place else Token("op", ""))
    if sieve.frames:
        raise Unread("an open brace")
    return sieve.kept


class _Sieve:
    """Knows which braces the commands before them take."""

    def __init__(self) -> None:
        self.kept: list[Token] = []
        # Per open bracket: what was missing, its kind, whether a function's script is in it.
        self.frames: list[tuple[list[int], str, bool]] = []
        self._missing: list[int] = []  # arguments that the commands around still take
        self._is_function = False  # what was taken last, with its scripts

    def take(self, token: Token, before: Token) -> None:
        text = token.text if token.kind == "op" else ""
        is_function, self._is_function = self._is_function, text in _FUNCTIONS
        if text == "{":
            kind = "function" if is_function else "bare"
            self._open("argument" if self._missing else kind, token, is_script=is_function)
        elif text == "[" and before.text == r"\sqrt":
            self._open("degree", token)
        elif text == "}" or (text == "]" and self.frames and self.frames[-1][1] == "degree"):
            if not self.frames:
                raise Unread("a brace too many")
            self._missing, kind, self._is_function = self.frames.pop()
            self.kept += [token] if kind != "bare" else []
            self._took(kind == "argument")
        elif text in _NUM_ARGUMENTS:
            self.kept.append(token)
            self._missing.append(_NUM_ARGUMENTS[text])
            self._is_function = is_function and text in ("^", "_")
        else:
            self.kept.append(token)
            self._is_function |= is_function and bool(self._missing)
            takes_digits = token.kind == "num" and before.text not in ("^", "_")
            self._took(len(token.text) if takes_digits else 1)

    def _open(self, kind: str, token: Token, *, is_script: bool = False) -> None:
        self.frames.append((self._missing, kind, is_script and kind == "argument"))
        self._missing = []
        self.kept += [token] if kind != "bare" else []

    def _took(self, count: int) -> None:
        while self._missing and count:
            self._missing[-1] -= 1
            count -= 1
            while self._missing and self._missing[-1] == 0:
                self._missing.pop()
                if self._missing:
                    self._missing[-1] -= 1
