r"""Text as a reader sees it, for the leak guard: ``**42**``, ``\text{42}`` and ``４２`` are 42.

Each replacement has the length of what it replaces, so that a place in the one text is the same
place in the other.
"""

from __future__ import annotations

import re
import unicodedata

# Signs of emphasis stand around a text; in "2 * 3", "2**3" and "x_1" they stand between two.
_EMPHASIS = re.compile(
    r"(?<![\w)\]}*~^\\])(?P<sign>\*{1,3}|_{1,3}|~~|`)(?![\s*~`])"
    r"(?P<inside>[^\n]{0,80}?[^\s\\])(?P=sign)(?![\w(*~`])"
)
# Of a command, and of a tag, that changes a number's look only.
_LOOK = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|math(?:bf|it|rm|sf|tt)|mbox|fbox|emph|underline|bm|boldsymbol)"
    r"\s*\{(?P<number>\s*[-+$]?\.?\d[^{}\\]{0,40})\}"
    r"|<(?P<tag>b|i|em|strong|u|code)>(?P<shown>[^<>\n]{1,80})</(?P=tag)>"
)
# The last line of GSM8K's solutions.
_LAST_LINE = re.compile(r"^####(?=[ ]?[-$]?[\d,.]*\d$)", re.MULTILINE)
_ARROW = re.compile(r"[-=]{1,2}>")
_FOREIGN_DIGIT = re.compile(r"(?=[^\x00-\x7f])\d")
_SIGNS = re.compile(r"""[${}*_`"“”()\[\]€£]|(?<!\w)'|'(?!\w)|\\[()\[\]$,;! %]|\\text\{|\\boxed""")


def plain(text: str) -> str:
    """Blank what only changes the look of a text, and write every script's digits as ours."""
    text = text.replace("<answer>", " answer:").replace("</answer>", "\n" + " " * 8)
    text = _LAST_LINE.sub("ans:", text)
    for _ in range(2):  # "**_42_**"
        text = _EMPHASIS.sub(lambda found: _blanked(found, "inside"), text)
    text = _LOOK.sub(lambda found: _blanked(found, "number", "shown"), text)
    text = _ARROW.sub(lambda found: "→".ljust(len(found[0])), text)
    return _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)


def unmarked(text: str) -> str:
    """Blank the signs of markup and formulas too; what is left are words and numbers."""
    return _SIGNS.sub(lambda found: " " * len(found[0]), plain(text))


def _blanked(found: re.Match[str], *kept: str) -> str:
    """Return what is kept of a match, with blanks in place of the rest."""
    start, end = next(found.span(name) for name in kept if found[name] is not None)
    inside = found.string[start:end]
    return " " * (start - found.start()) + inside + " " * (found.end() - end)
