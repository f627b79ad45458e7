r"""Text of multiple choice without its typesetting, and the options that a problem lists.

Fonts, sizes, colours, spaces, ``$`` and braces mean nothing; ``×`` is ``\times``. Every character
is read once.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

from recipe.verify.maths.lexer import spelled, spelled_command

_MAX_PROBLEM_CHARS = 20_000  # from its end
_TOKEN = re.compile(
    r"(?P<colour>\\(?:textcolor|color|colorbox)\s?\{[A-Za-z]{1,30}\})|\\(?P<name>[A-Za-z]+)"
    r"|(?P<space>\s|\\[,;:!> ]|\\\\|\\$)|\\(?P<sign>[%&#_{}])|(?P<star>\*+)"
    r"|(?P<nothing>[{}$]|\\[()\[\]$])|(?P<rest>[^\\\s{}$*]+|\\)"
)
_FONTS = frozenset(
    "boxed text textbf textit textrm textsf textnormal textup textmd texttt emph underline mathrm "
    "mathbf mathsf mathit mathtt mathnormal boldsymbol bm mbox hbox fbox operatorname rm bf it sf "
    "tt left right displaystyle textstyle large Large LARGE huge Huge small normalsize tiny big "
    "Big bigl bigr Bigl Bigr bfseries itshape".split()
)
_SPACES = frozenset("quad qquad enspace thinspace newline hfill".split())
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_NOT_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SIGNS = str.maketrans({"—": "-", "―": "-", "‘": "'", "“": "'", "”": "'", '"': "'", "`": "'"})
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_OPTION = re.compile(r"[ \t]*(?:[-*] )?\(?([A-Za-z])[.):]\)?(?:[ \t]+(.*))?")
_INLINE = [re.compile(rf"(?<![^\s;,|]){mark}\s") for mark in (r"\(([A-Za-z])\)", r"([A-Za-z])[.)]")]


def plain(text: str) -> str:
    """Return a text as it is read, on one line, with one space where there is any."""
    text = _RAISED.sub(lambda run: f"^{run[0].translate(_NOT_RAISED)}", text)
    text = spelled(unicodedata.normalize("NFKC", text).translate(_SIGNS))
    parts: list[str] = []
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[match.lastgroup or 0]
        if kind == "name" and token not in _FONTS:
            parts.append(" " if token in _SPACES else f"\\{spelled_command(token)} ")
        elif kind == "space":
            parts.append(" ")
        elif kind == "star" and _is_product(text, match):
            parts.append(token)
        elif kind in ("sign", "rest"):
            parts.append(token)
    return " ".join("".join(parts).split()).replace(r"^\circ", r"\degree")


def _is_product(text: str, star: re.Match[str]) -> bool:
    """Return whether a lone star is between digits or letters."""
    sides = text[max(0, star.start() - 1) : star.start()] + text[star.end() : star.end() + 1]
    return len(star[0]) == 1 and len(sides) == 2 and sides.isalnum()


def key(text: str, *, folds: bool = True) -> str:
    """Return what two spellings of one option's plain text share.

    ``folds`` drops case, quotes and ``~``, which is a space or, in logic, "not".
    """
    text = _THOUSANDS.sub("", "".join(text.split())).rstrip(".,;:")
    return text.replace("'", "").replace("~", "").casefold() if folds else text


@functools.lru_cache(maxsize=256)
def options_of(problem: str) -> dict[str, tuple[str, ...]]:
    """Return the plain texts of each option: its first line, and all of it.

    The options are the last run of lines from A on, else of marks within a line.
    """
    text = problem[-_MAX_PROBLEM_CHARS:]
    lines = text.split("\n")
    found = _lines(lines)
    if found:
        last = next((n for n in range(found[-1].place, len(lines)) if not lines[n].strip()), None)
        ends = [*(mark.place for mark in found[1:]), last]
        return {
            mark.letter: (
                plain(mark.text),
                plain("\n".join([mark.text, *lines[mark.place + 1 : end]])),
            )
            for mark, end in zip(found, ends, strict=True)
        }
    text = plain(text)
    runs = (
        _last_run([_Mark(m[1], m.start(), m[0]) for m in mark.finditer(text)]) for mark in _INLINE
    )
    found = next(filter(None, runs), [])
    ends = [*(mark.place for mark in found[1:]), *([len(text)] if found else [])]
    return {
        mark.letter: (text[mark.place + len(mark.text) : end],)
        for mark, end in zip(found, ends, strict=True)
    }


class _Mark(NamedTuple):
    """A letter before an option: its place, and the text after it or the mark itself."""

    letter: str
    place: int
    text: str


def _lines(lines: list[str]) -> list[_Mark]:
    """Return the options that have a line each."""
    return _last_run(
        [_Mark(m[1], n, m[2] or "") for n, line in enumerate(lines) if (m := _mark(line))]
    )


def _mark(line: str) -> re.Match[str] | None:
    """Return the letter and the text of a line that is an option."""
    return _OPTION.fullmatch(line) or _OPTION.fullmatch(plain(line))


def _last_run(marks: list[_Mark]) -> list[_Mark]:
    """Return the last run of marks, at least A and B; a lone A inside an option is not a mark."""
    runs: list[list[_Mark]] = [[]]
    for mark in (each._replace(letter=each.letter.upper()) for each in marks):
        if mark.letter == "A":
            runs.append([mark])
            continue
        run = next((run for run in runs[:-3:-1] if run and _follows(mark, run[-1])), None)
        if run is not None:
            run.append(mark)
    return next((run for run in reversed(runs) if len(run) > 1), [])


def _follows(mark: _Mark, before: _Mark) -> bool:
    return ord(mark.letter) == ord(before.letter) + 1
