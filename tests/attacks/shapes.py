"""What the generators know of a gold answer, read by plain Python that knows no verifier.

A shape that is not surely read stays empty, and an edit that needs it is not made.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = ("gsm8k_test", "math500", "olympiadbench", "aime24")

_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(-?[0-9]+)\}\{([0-9]+)\}|(-?)([0-9]+)/([0-9]+)")
_NUMERAL = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORDED = re.compile(r"\\(?:text|mbox|textbf|mathrm|operatorname|begin|boxed)|[A-Za-z]{4}")
_RELATION = re.compile(
    r"[=<>]|\\(?:leq?|geq?|leqslant|geqslant|neq?|in|notin|approx|equiv|sim|to|cup|cap|pm|mp)"
    r"(?![A-Za-z])"
)
_QUANTITY = re.compile(
    r"(-?[0-9]+(?:\.[0-9]+)?) ?\\(?:text|mbox|mathrm)\{ ?([A-Za-z]+) ?\}(?:\^\{?([23])\}?)?"
)
_WORD = re.compile(r"\\(?:text|mbox|textbf)\{([A-Za-z]+)\}|([A-Z]?[a-z]{2,})")
_NAME = re.compile(r"[A-Za-z](?:_\{?[0-9A-Za-z]+\}?)?(?:\([A-Za-z](?:, ?[A-Za-z])*\))?")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Gold:
    """One gold answer.

    ``python`` is the same function of ``variable`` as an expression for ``eval``, given where
    the problem says that the variable may be every real number.
    """

    answer: str
    problem: str = ""
    variable: str = ""
    python: str = ""
    kind: str = field(default="", compare=False)

    @cached_property
    def text(self) -> str:
        r"""Without ``\left``, ``\right``, dollars and the spellings of ``\frac``."""
        text = re.sub(r"\\left(?![A-Za-z])|\\right(?![A-Za-z])|\\?\$", "", self.answer)
        text = re.sub(r"(?<!\\)\\[!,; ]", "", text)
        text = re.sub(r"\\[dt]frac(?![A-Za-z])", r"\\frac", text)
        text = re.sub(r"\\frac ?([0-9])([0-9])", r"\\frac{\1}{\2}", text)
        # a space is needed between a command and a letter alone
        return re.sub(r"(?<![A-Za-z]) | (?![A-Za-z])", "", text.strip())

    @cached_property
    def number(self) -> Fraction | None:
        return read_number(self.text)

    @cached_property
    def numeral(self) -> str:
        """The number when it is digits with at most a sign and a point."""
        return self.text if _NUMERAL.fullmatch(self.text) else ""

    @cached_property
    def whole(self) -> int | None:
        is_whole = re.fullmatch(r"-?(?:0|[1-9][0-9]*)", self.text)
        return int(self.text) if is_whole else None

    @cached_property
    def is_expression(self) -> bool:
        """One value or formula: no list, relation, word, matrix or alternative."""
        text = self.text
        if self.number is not None:
            return True
        if _WORDED.search(_COMMAND.sub(" ", text)) or _RELATION.search(text):
            return False
        if re.search(r"\\(?:text|mbox|begin|\{|ldots|infty|circ|angle|quad|%)|[,;:%$_#&~]", text):
            return False
        return is_balanced(text) and bool(text) and not text.startswith(("[", "\\{"))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Members of a list at the top level, two or more and all different."""
        if self.number is not None or re.search(r"\\text|\\begin|=|\\pm|\\quad", self.text):
            return ()
        found = split(self.text)
        is_list = len(found) > 1 and all(found) and len(set(found)) == len(found)
        return tuple(found) if is_list and all(map(is_balanced, found)) else ()

    @cached_property
    def bracketed(self) -> tuple[str, tuple[str, ...], str]:
        """Opening bracket, members and closing one of a tuple, an interval or a set."""
        match = re.fullmatch(r"(\(|\[|\\\{)(.+?)(\)|\]|\\\})", self.text)
        if match is None:
            return "", (), ""
        found = split(match[2])
        if len(found) < 2 or not all(found) or not all(map(is_balanced, found)):
            return "", (), ""
        return match[1], tuple(found), match[3]

    @cached_property
    def is_interval(self) -> bool:
        left, members, right = self.bracketed
        if len(members) != 2 or left not in "([" or right not in ")]":
            return False
        return left + right in ("(]", "[)") or "\\infty" in self.text or "nterval" in self.problem

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        match = re.fullmatch(r"\\begin\{([pb]matrix)\}(.*)\\end\{\1\}", self.text, re.DOTALL)
        if match is None:
            return ()
        rows = [row.split("&") for row in match[2].split(r"\\") if row.strip()]
        return tuple(tuple(cell.strip() for cell in row) for row in rows)

    @cached_property
    def sides(self) -> tuple[str, str]:
        """Both sides of an equation that is no named value."""
        sides = self.text.split("=")
        if len(sides) != 2 or not all(sides) or re.search(r"[,<>]|\\[a-z]?text", self.text):
            return "", ""
        return sides[0], sides[1]

    @cached_property
    def name(self) -> str:
        """The left side when it is a name such as ``x`` or ``f(x)``."""
        return self.sides[0] if _NAME.fullmatch(self.sides[0]) else ""

    @cached_property
    def word(self) -> str:
        match = _WORD.fullmatch(self.text)
        return (match[1] or match[2]) if match else ""

    @cached_property
    def quantity(self) -> tuple[str, str, str]:
        """Number, unit and power of the unit."""
        match = _QUANTITY.fullmatch(self.answer.strip())
        return (match[1], match[2], match[3] or "") if match else ("", "", "")

    @cached_property
    def letters(self) -> frozenset[str]:
        """Single letters outside commands."""
        if re.search(r"\\(?:text|mbox|begin|mathrm|operatorname)", self.text):
            return frozenset()
        return frozenset(re.findall(r"[A-Za-z]", _COMMAND.sub(" ", self.text)))

    def mentions(self, *stems: str) -> bool:
        """Whether the problem has one of these, in any case."""
        lowered = self.problem.lower()
        return any(stem in lowered for stem in stems)

    def has_letter(self, letter: str) -> bool:
        """Whether the problem uses ``letter`` as a symbol."""
        return bool(re.search(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", self.problem))


def read_number(text: str) -> Fraction | None:
    """The exact value of a plain number, else ``None``."""
    match = _FRACTION.fullmatch(text)
    if match:
        sign, top, bottom = match[1] or match[4], match[2] or match[5], match[3] or match[6]
        return (-1 if sign else 1) * Fraction(int(top), int(bottom)) if int(bottom) else None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    return Fraction(text) if _NUMERAL.fullmatch(text) else None


def split(text: str, mark: str = ",") -> list[str]:
    """Split at the marks that stand in no bracket."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def is_balanced(text: str) -> bool:
    depth = 0
    for char in re.sub(r"\\[{}]", "", text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if depth < 0:
            return False
    return depth == 0


def spelled(value: Fraction) -> str:
    """A number as LaTeX."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def committed_golds() -> list[Gold]:
    rows = json.loads((HERE / "golds.json").read_text(encoding="utf-8"))
    return [Gold(**row) for row in rows]


def benchmark_golds(folder: str | None = None) -> list[Gold]:
    """Those of the folder that HINT_BENCHMARK_DATA names; none where it names none."""
    folder = folder or os.environ.get("HINT_BENCHMARK_DATA")
    if not folder:
        return []
    found = []
    for name in BENCHMARKS:
        for line in (Path(folder) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.append(Gold(row["answer"], row["problem"], kind=name))
    return found
