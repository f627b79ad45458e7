"""Long texts that aim at a reader's weak points, and what they cost who calls the reader."""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from attacks import pumps
from recipe.hint.hints.fitting import cut_at_sentence
from recipe.hint.hints.leak import find_leaks
from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.hints.solution_prefix import answer_start
from recipe.hint.methods.ghpo import format_score
from recipe.problems.schema import Problem
from recipe.verify.grading import quick_grade
from recipe.verify.schema import Item, Kind

_OPTIONS = r"Which? Options: A. one B. two"


def _times(unit: str) -> Callable[[int], str]:
    return lambda n: unit * (n // len(unit))


def _around(opening: str, core: str, closing: str) -> Callable[[int], str]:
    def make(n: int) -> str:
        depth = n // (len(opening) + len(closing))
        return opening * depth + core + closing * depth

    return make


# By hand: what a grammar or a normaliser may read more than once.
CLASSES: dict[str, Callable[[int], str]] = {
    "round brackets": _around("(", "5", ")"),
    "braces": _around("{", "5", "}"),
    "roots": _around(r"\sqrt{", "5", "}"),
    "fractions": _around(r"\frac{1}{", "5", "}"),
    "set braces": _around(r"\{", "5", r"\}"),
    "left and right": _around(r"\left(", "5", r"\right)"),
    "text in text": _around(r"\text{", "cm", "}"),
    "boxes in boxes": _around(r"\boxed{", "5", "}"),
    "powers": _around("2^{", "5", "}"),
    "intervals": _around("[1,", "5", ")"),
    "bars": _around("|", "5", "|"),
    "opening brackets only": _times("("),
    "opening braces only": _times("{"),
    "closing braces only": _times("}"),
    "left only": _times(r"\left("),
    "boxes opened only": _times(r"\boxed{"),
    "box names only": _times(r"\boxed"),
    "box names and spaces": _times("\\boxed "),
    "text opened only": _times(r"\text{"),
    "digits": _times("7"),
    "digits after a point": lambda n: "0." + "3" * n,
    "grouped digits": lambda n: "1" + ",234" * (n // 4),
    "zeros": _times("0"),
    "an exponent of digits": lambda n: "1e" + "9" * n,
    "a tower": _times("9^"),
    "a tower of stars": lambda n: "9" + "**9" * (n // 3),
    "factorials": lambda n: "9" + "!" * n,
    "minus signs": lambda n: "-" * n + "5",
    "plus and minus": lambda n: "+-" * (n // 2) + "5",
    "a long word": _times("a"),
    "a long word in text": lambda n: rf"5\text{{{'a' * n}}}",
    "a long sentence": lambda n: (
        "All 12 statements are correct except statement " * (n // 47) + "7"
    ),
    "a short sentence": lambda n: "All 12 statements are correct except statement 7",
    "words and numbers": _times("three hundred 12 "),
    "words of one letter": _times("a "),
    "hyphenated words": _times("a-"),
    "units multiplied": lambda n: "5 " + r"\text{ m}\cdot " * (n // 15),
    "units with powers": lambda n: r"5\text{" + "m^2 " * (n // 4) + "}",
    "units over units": lambda n: "5 m" + "/m" * (n // 2),
    "spaces": lambda n: "5" + " " * n + "x",
    "a bracket and spaces": lambda n: "(" + " " * n,
    "only spaces": lambda n: " " * n,
    "spaces and numbers": _times("5 "),
    "thin spaces": lambda n: "5" + r"\," * (n // 2) + "x",
    "commas": _times(","),
    "a list": _times("1,"),
    "a list with and": _times(r"1\text{ and }"),
    "a list of tuples": _times("(1,2),"),
    "semicolons": _times("1;"),
    "equals signs": _times("="),
    "a chain of equations": _times("x="),
    "a chain of relations": _times("x<"),
    "unions": _times(r"(1,2)\cup "),
    "plus minus": _times(r"\pm 1"),
    "matrix rows": lambda n: r"\begin{pmatrix}" + r"1\\" * (n // 3) + r"\end{pmatrix}",
    "matrix cells": lambda n: r"\begin{pmatrix}" + "1&" * (n // 2) + r"\end{pmatrix}",
    "matrices opened only": _times(r"\begin{pmatrix}"),
    "backslashes": _times("\\"),
    "commands": _times(r"\a"),
    "one long command": lambda n: "\\" + "a" * n,
    "dollars": _times("$"),
    "dollars and digits": _times("$5$ "),
    "brackets of maths": _times(r"\("),
    "colours": _times(r"\color{red}"),
    "percent": _times(r"5\%"),
    "degrees": _times(r"5^\circ "),
    "underscores": _times("x_"),
    "indices": _around("x_{", "1", "}"),
    "primes": _times("x'"),
    "foreign digits": _times("٣"),
    "combining marks": lambda n: "5" + "\u0301" * n,
    "zero width": lambda n: "5" + "\u200b" * n,
    "sum": _times("1+"),
    "product": _times("x*"),
    "functions": _times(r"\sin "),
    "logarithms": _around(r"\log_{", "2", "}"),
    "thinking": _times("</think>"),
    "fences": _times("```"),
    "fences and words": _times("```python\nx\n"),
    "levels": _times('{"level_1": "a", '),
    "levels opened": _times('{"level_1": '),
    "quotes": _times('"'),
    "triple quotes": _times("'''"),
    "escapes": _times(r"\\n\u00"),
    "options": _times("answer is (A"),
    "ratios": _times("1:"),
    "ellipses": _times(r"1,\ldots,"),
    "mixed numbers": _times(r"3\frac{1}{2} "),
    "money": _times(r"\$5,"),
    "new lines": _times("\n"),
    "a fence and spaces": lambda n: "```" + " " * n + "`",
}


# Payloads reported against other graders, and towers; each is an answer and a gold answer.
BOMBS = (
    "5^5^5^5^5^5",
    "5^{5^{5^{5^{5}}}}",
    "9**9**9**9",
    "(((9!)!)!)!",
    "10^{10^{10}}",
    r"\binom{10^{9}}{5\cdot 10^{8}}",
    "9" * 3000,
    "(" * 300 + "8675309" + ")" * 300,
    "1" + "+1" * 2000,
    r"\sqrt{" * 200 + "2" + "}" * 200,
    r"\sum_{k=1}^{10^{12}} k^k",
    "2^{-10^{10}}",
    "1e999999999",
    r"\frac{1}{" * 150 + "8675309" + "}" * 150,
    "x^{x^{x^{x^{x}}}}",
    r"\prod_{k=1}^{10^9}k",
    "'a'*10**10",
    "__import__('os').system('true')",
    "eval('1')",
    "().__class__.__bases__[0].__subclasses__()",
    'exec("raise SystemExit(0)")',
    "lambda: True",
    "True if 1 else 0",
    "exit(0)",
    "open('/etc/hostname').read()",
    "[x for x in (1).__class__.__base__.__subclasses__()]",
    "type('A',(object,),{'__eq__':lambda a,b:True})()",
    "breakpoint()",
    "1 if True else 0j",
    "globals()",
    "sympify('x')",
    "print(1) or 1",
    "${7919*7907}",
    "{{7919*7907}}",
    "%s%s%n",
    "\x00\x01",
)


def hostile_texts(num_chars: int, most: int = 12) -> Iterator[tuple[str, str]]:
    """Where each is aimed, and a text of about ``num_chars`` characters."""
    for name, make in CLASSES.items():
        yield name, make(num_chars)
    for place, pattern in pumps.patterns().items():
        for text in pumps.texts(pattern, num_chars, most):
            yield place, text


async def _all_equal(answer: str, candidates: Sequence[str]) -> list[bool]:
    return [True] * len(candidates)


def _problem(answer: str, solution: str = "", kind: Kind = "maths") -> Problem:
    return Problem("p", (), "How many apples are left?", solution, answer, kind=kind)


def _leaks(hint: str, answer: str, kind: Kind = "maths") -> Callable[[], object]:
    return lambda: asyncio.run(find_leaks([hint], _problem(answer, kind=kind), _all_equal))


def callers(place: str, text: str) -> dict[str, Callable[[], object]]:
    """Everything that looks at a text in the calling process, a model's or a file's.

    What is aimed at a pattern goes to those who may use it. A hint "on" something has the answer
    around the text, and each candidate of it equals the answer, so that what is read around an
    answer is read.
    """
    boxed = rf"So \boxed{{{text}}}."
    grades: dict[str, Callable[[], object]] = {
        "an answer": lambda: quick_grade(Item(boxed, "5 apples")),
        "a response": lambda: quick_grade(Item(text + r" \boxed{5}", "6")),
        "a gold answer": lambda: quick_grade(Item(r"\boxed{7919.0625}", text)),
        "a choice": lambda: quick_grade(Item(boxed, "B", kind="choice", problem=_OPTIONS)),
        "a program": lambda: quick_grade(Item(text, "assert f(1) == 2", kind="program")),
        "a problem": lambda: quick_grade(Item(r"\boxed{6 apples}", "5", problem=text)),
        "a hint": _leaks(text, "5"),
    }
    hints: dict[str, Callable[[], object]] = {
        "a set of hints": lambda: parse_hint_levels(text),
        "a string of hints": lambda: parse_hint_levels(f'{{"level_1": "{text}"'),
        "after a quote": lambda: parse_hint_levels(f'{{"level_1": "a "b"{text},"x": 1'),
        "before a level": lambda: parse_hint_levels(f'{{{text}"level_1": "a"}}'),
        "a hint": _leaks(text, "5"),
        "a hint on a number": _leaks(f"{text}5{text}", "5"),
        "a hint after a number": _leaks(f"({text}5 is the answer", "5"),
        "a hint on a formula": _leaks(f"x+1{text}x+1", "x+1"),
        "a hint on a list": _leaks(f"1, 2{text}(1,{text}2)", "1, 2"),
        "a hint on a word": _leaks(f"odd{text} odd", "odd"),
        "a hint on an option": _leaks(f"(B){text}B", "B", kind="choice"),
        "a solution": lambda: answer_start(_problem("5", solution=f"{text}5{text}")),
        "what is cut": lambda: cut_at_sentence(text, lambda hint: len(hint) < len(text) // 2),
        "a form": lambda: format_score(f"<think>{text}</think><answer>{text}</answer>"),
    }
    if place.startswith(("recipe.verify", "recipe.problems")):
        return grades
    return hints if place.startswith("recipe.hint") else grades | hints


class _Late(BaseException):
    """Out of processor time."""


def processor_s(call: Callable[[], object], limit_s: float) -> float:
    """Processor time of the calling process for ``call``; infinite beyond the limit."""

    def stop(_: int, __: FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s, 0.2)
    start = time.process_time()
    try:
        call()
        return time.process_time() - start
    except _Late:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
