r"""Text as a reader sees it, for the leak guard: ``**42**``, ``\text{42}`` and ``４２`` are 42.

Each replacement has the length of what it replaces, so that a place in the one text is the same
place in the other.
"""

from __future__ import annotations

import functools
import re
import unicodedata

# Signs of emphasis stand around a text; in "2 * 3", "2**3" and "x_1" they stand between two.
_EMPHASIS = re.compile(
    r"(?<![\w)\]}*~^\\])(?P<sign>\*{1,3}|_{1,3}|~~|`)(?![\s*~`])"
    r"(?P<inside>[^\n]{0,80}?[^\s\\])(?P=sign)(?![\w(*~`])"
)
# Of a command that changes a number's look only.
_LOOK = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|math(?:bf|it|rm|sf|tt)|[mfc]box|framebox|emph|under(?:line|brace)"
    r"|overbrace|bm|boldsymbol|ensuremath|(?:text)?color\s*\{\w{1,20}\})"
    r"\s*\{(?P<number>\s*[-+$]?\.?\d[^{}\\]{0,40})\}"
)
_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|code|span|mark|font|big|small|ins|del|kbd|div|p|center|h\d|li|br|td)"
    r"(?:\s+[\w-]+\s*=[^<>\n]{0,60})?\s*/?>"
)
_LINK = re.compile(r"\[(?P<shown>[^\[\]\n]{1,80})\]\([^()\s]{1,200}\)")
_SWITCH = re.compile(r"\\(?:displaystyle|bf|it|rm|[lL]arge|huge)(?![A-Za-z])")
# The last line of GSM8K's solutions.
_LAST_LINE = re.compile(r"^####(?=[ ]?[-$]?[\d,.]*\d$)", re.MULTILINE)
_ARROW = re.compile(r"[-=]{1,2}>")
_FOREIGN_DIGIT = re.compile(r"(?=[^\x00-\x7f])\d")
_SIGNS = re.compile(
    r"""[${}*_`"“”()\[\]€£«»|]|(?<!\w)'|'(?!\w)|\\[()\[\]$,;! %]"""
    r"|\\(?:text|math)(?:bf|it|rm|sf|tt)?(?=\s*\{)|\\(?:boxed|left|right)(?![a-z])"
)


@functools.lru_cache(maxsize=64)
def plain(text: str) -> str:
    """Blank what only changes the look of a text, and write every script's digits as ours."""
    if "<" in text:
        text = text.replace("<answer>", " answer:").replace("</answer>", "\n" + " " * 8)
        text = _TAG.sub(_blank, text)
    if "####" in text:
        text = _LAST_LINE.sub("ans:", text)
    if "](" in text:
        text = _LINK.sub(lambda found: _blanked(found, "shown"), text)
    if "\\" in text:
        text = _SWITCH.sub(_blank, text)
    if any(sign in text for sign in "*_~`"):
        for _ in range(2):  # "**_42_**"
            text = _EMPHASIS.sub(lambda found: _blanked(found, "inside"), text)
    if "\\" in text:
        text = _LOOK.sub(lambda found: _blanked(found, "number"), text)
    if ">" in text:
        text = _ARROW.sub(lambda found: "→".ljust(len(found[0])), text)
    if text.isascii():
        return text
    return _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found[0])), text)


def unmarked(text: str) -> str:
    """Blank the signs of markup and formulas too; what is left are words and numbers."""
    return _SIGNS.sub(_blank, plain(text))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _blanked(found: re.Match[str], *kept: str) -> str:
    """Return what is kept of a match, with blanks in place of the rest."""
    start, end = next(found.span(name) for name in kept if found[name] is not None)
    inside = found.string[start:end]
    return " " * (start - found.start()) + inside + " " * (found.end() - end)
