r"""How models write a letter with the text of its option in one box, and near misses of that."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping

_LETTERS = (
    *(f"{left}{{}}{right}" for left, right in (("", "."), ("(", ")"), ("", ")"), ("", ":"))),
    *(f"{left}{{}}{right}" for left, right in (("[", "]"), ("**", "**"), ("**(", ")**"))),
    *(rf"\{font}{{{{{{}}}}}}" for font in ("text", "textbf", "mathbf", "mathrm", "underline")),
    *(rf"\{font}{{{{({{}})}}}}" for font in ("text", "textbf", "mathbf", "mathrm")),
    *(rf"\{font}{{{{{{}}.}}}}" for font in ("text", "textbf", "boldsymbol")),
    *(rf"\{font}{{{{{{}}: }}}}" for font in ("text", "textbf", "mathsf")),
    *(r"\text{{Option {}}}", r"\text{{Option {}: }}", "Option {}:", "Answer: {}.", "option ({})"),
    *(r"\left({}\right)", r"\text{{Choice }}{}:", "{{{}}}.", "${}$.", r"\({}\):", "$({})$"),
    *(r"{{\bf {}}}.", r"{{\rm ({})}}", r"\textcolor{{blue}}{{{}}}.", r"\large {}."),
    *(r"\mbox{{{}}})", "{},", "{};"),
)  # fmt: skip
_GAPS = (" ", r"\ ", r"\,", r"\quad ", r"\; ", "\n", r" \\ ", r"\qquad ", "  ")
_TEXTS = (
    *("{}", r"\text{{{}}}", r"\text{{ {}}}", "{}.", r"\textbf{{{}}}", r"\mathrm{{{}}}"),
    *(r"\textit{{{}}}", r"\mbox{{{}}}", r"\text{{{}.}}", "**{}**", "*{}*", r"\({}\)"),
)  # fmt: skip
_WHOLE = (
    *("{}", r"\text{{{}}}", r"\textbf{{{}}}", "${}$", r"\({}\)", "**{}**", r"\mathbf{{{}}}"),
    *(r"\boxed{{{}}}", r"\displaystyle {}", " {} ", r"\emph{{{}}}", "{{{}}}"),
)


def respelled(text: str) -> Iterator[str]:
    """An option's text as it may be set again: other commands, signs and spaces."""
    yield text
    yield text.lower()
    yield re.sub(r"\s+", "  ", text)
    yield text.replace(r"\frac", r"\dfrac").replace("(", r"\left(").replace(")", r"\right)")
    if "\\" not in text:
        yield re.sub(r"(?<!\\)([%&#_$])", r"\\\1", text)
        yield text.replace("$", "")
    yield text.replace("'", "’").replace("-", "−").replace("×", r"\times ")
    yield re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "{,}", text)
    yield re.sub(r"(?<=[0-9]) (?=[A-Za-z])", r"\\,", text)
    yield re.sub(r"\^([0-9])(?![0-9])", r"^{\1}", text)
    if re.fullmatch(r"[-+]?[0-9.]+ [A-Za-z /]+", text):
        yield re.sub(r" ([A-Za-z /]+)$", r"\\text{ \1}", text)
        yield re.sub(r" ([A-Za-z /]+)$", r"\\,\\mathrm{\1}", text)


def notations(letter: str, text: str, rng: random.Random, count: int) -> list[str]:
    """``count`` boxes of one option, drawn from all combinations."""
    spelled = list(dict.fromkeys(respelled(text.strip())))
    found = []
    for _ in range(count):
        said = rng.choice(_TEXTS).format(rng.choice(spelled))
        mark = rng.choice(_LETTERS).format(rng.choice((letter, letter, letter.lower())))
        gap = rng.choice(_GAPS)
        whole = rng.choice(_WHOLE)
        if rng.random() < 0.1:
            found.append(whole.format(f"{said}{gap}({letter})"))
        else:
            found.append(whole.format(f"{mark}{gap}{said}"))
    return found


def near_misses(options: Mapping[str, str], rng: random.Random, count: int) -> list[str]:
    """Boxes that name no option: another one's text, a part, two letters, a text alone."""
    letters = list(options)
    pairs = [pair for pair in itertools.permutations(letters, 2)]
    found = []
    for _ in range(count):
        one, other = rng.choice(pairs)
        a, b = options[one].strip(), options[other].strip()
        mark = rng.choice(_LETTERS).format(one)
        found.append(
            rng.choice(
                (
                    f"{mark} {b}",
                    f"{mark} {a} {rng.choice(_LETTERS).format(other)} {b}",
                    f"{mark} {a} or {b}",
                    f"{mark} not {a}",
                    f"{one} or {other}",
                    f"{one}, {other}",
                    f"{mark} {rng.choice(_LETTERS).format(other)}",
                    f"{b} ({one})",
                    rf"\text{{{mark} {b}}}",
                    f"{mark} -{a}",
                    f"{mark} {a}0",
                    f"{mark} 1{a}",
                )
            )
        )
    return found
