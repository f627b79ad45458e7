r"""What a text writes down, for the leak guard: plain signs, and the values between them.

``４２``, ``4&#50;`` and ``1\,437`` are written in digits (``written``); ``**42**`` and
``\text{42}`` are 42 (``plain``). ``values`` masks a text, character for character: words become
breaks, numbers and commands fillers. A statement is what stands between breaks, and ``=``
splits it into sides.
"""

from __future__ import annotations

import bisect
import functools
import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from recipe.hint.hints.leak_numbers import in_words

# Entities, signs that separate the digits of one number, and whatever is not ASCII.
_ODD = re.compile(
    r"[&'\\_{\x80-\U0010ffff]"
    r"(?:(?<=&)(?:\#\d{1,6}|\#[xX][0-9a-fA-F]{1,5}|nbsp|thinsp|half|frac\d\d|minus|times);"
    r"|(?<=\d\{),?\}(?=\d)|(?<=\d\\)[,;:!][ ]?(?=\d)|(?<=\d[_'])(?=\d{3}(?!\w))|(?<=[^\x00-\x7f]))"
)
# Dashes within words, which NFKC leaves or makes of others; what stands for a division sign.
_SAME = {"\u2010": "-", "\u2011": "-", "\u2044": "/", "\u2215": "/", "\u066a": "%", "\u066b": "."}
_RAISED = re.compile("SUPER|SUB")


class Written(NamedTuple):
    """A text, and what was rewritten in it: start and end, here and in the original."""

    text: str
    changes: Sequence[tuple[int, int, int, int]] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the original."""
        return self._origin(start)[0], self._origin(end - 1)[1]

    def _origin(self, place: int) -> tuple[int, int]:
        """Return the span in the original of one character."""
        index = bisect.bisect(self.changes, place, key=itemgetter(0)) - 1
        if index < 0:
            return place, place + 1
        _, end, old_start, old_end = self.changes[index]
        if place < end:
            return old_start, old_end
        place += old_end - end
        return place, place + 1


def written(text: str) -> Written:
    """Write a text in plain signs; most texts are so already."""
    pieces: list[str] = []
    changes: list[tuple[int, int, int, int]] = []
    at = length = 0
    for match in _ODD.finditer(text):
        start, end = match.span()
        sign = _plain_sign(match[0], text[start - 1 : start] or "\n", text[end : end + 1])
        if sign != match[0]:
            pieces += [text[at:start], sign]
            length += start - at
            changes.append((length, length + len(sign), start, end))
            length += len(sign)
            at = end
    return Written("".join([*pieces, text[at:]]), changes)


@functools.lru_cache(4096)
def _plain_sign(sign: str, before: str, after: str) -> str:
    """Return what a sign stands for between two characters."""
    if sign[0] == "&":
        return html.unescape(sign)
    kind = unicodedata.category(sign) if len(sign) == 1 else ""
    is_between = before.isdecimal() and after.isdecimal()
    if sign.isascii() or kind in ("", "Cf") or (is_between and sign in "\u2009\u202f\xa0’"):
        return ""  # between digits; of no width, or a soft hyphen
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    if sign in _SAME:
        return _SAME[sign]
    if kind == "No" and (
        # An exponent or an index; the number of a step.
        (_is_raised(sign) and (before.isalnum() and not _is_raised(before) or before in ")]}|"))
        or ("CIRCLED" in unicodedata.name(sign, "") and before == "\n")
    ):
        return sign
    found = unicodedata.normalize("NFKC", sign)
    if kind == "No" and "\u2044" in found:
        return (" " if before.isdecimal() else "") + found.replace("\u2044", "/")
    return found if kind in ("No", "Nl", "Zs", "Lu", "Ll") or found.isascii() else sign


def _is_raised(sign: str) -> bool:
    return bool(_RAISED.match(unicodedata.name(sign, "")))


# Signs of emphasis stand around a text; in "2 * 3", "2**3" and "x_1" they stand between two.
_EMPHASIS = re.compile(
    r"(?<![\w)\]}*~^\\])(?P<sign>\*{1,3}|_{1,3}|~~|`)(?![\s*~`])"
    r"(?P<shown>[^\n]{0,80}?[^\s\\])(?P=sign)(?![\w(*~`])"
)
# Of a command that changes a number's look only.
_LOOK = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|math(?:bf|it|rm|sf|tt)|[mfc]box|framebox|emph|under(?:line|brace)"
    r"|overbrace|bm|boldsymbol|ensuremath|(?:text)?color\s*\{\w{1,20}\})"
    r"\s*\{(?P<shown>\s*[-+$]?\.?\d[^{}\\]{0,40})\}"
)
_SWITCH = re.compile(r"\\(?:displaystyle|bf|it|rm|[lL]arge|huge)(?![A-Za-z])")
_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|code|span|mark|font|big|small|ins|del|kbd|div|p|center|h\d|li|br|td)"
    r"(?:\s+[\w-]+\s*=[^<>\n]{0,60})?\s*/?>"
)
_LINK = re.compile(r"\[(?P<shown>[^\[\]\n]{1,80})\]\([^()\s]{1,200}\)")
# The last line of GSM8K's solutions.
_LAST_LINE = re.compile(r"^####(?=[ ]?[-$]?[\d,.]*\d$)", re.MULTILINE)
_ARROW = re.compile(r"[-=]{1,2}>")
_SIGNS = re.compile(
    r"""[${}*_`"“”()\[\]€£«»|]|(?<!\w)'|'(?!\w)|\\[()\[\]$,;! %]"""
    r"|\\(?:text|math)(?:bf|it|rm|sf|tt)?(?=\s*\{)|\\(?:boxed|left|right)(?![a-z])"
)


def plain(text: str) -> str:
    """Blank what only changes the look of a text; every place in it stays."""
    if "<" in text:
        text = text.replace("<answer>", " answer:").replace("</answer>", "\n" + " " * 8)
        text = _TAG.sub(_blank, text)
    if "####" in text:
        text = _LAST_LINE.sub("ans:", text)
    if "](" in text:
        text = _LINK.sub(_shown, text)
    if "\\" in text:
        text = _SWITCH.sub(_blank, text)
    if "*" in text or "_" in text or "`" in text or "~" in text:
        text = _EMPHASIS.sub(_shown, _EMPHASIS.sub(_shown, text))  # "**_42_**"
    if "\\" in text:
        text = _LOOK.sub(_shown, text)
    return _ARROW.sub(lambda found: "→".ljust(len(found[0])), text) if ">" in text else text


def unmarked(text: str) -> str:
    """Blank the signs of markup and formulas too; what is left are words and numbers."""
    return _SIGNS.sub(_blank, plain(text))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _shown(match: re.Match[str]) -> str:
    before, after = match.start("shown") - match.start(), match.end() - match.end("shown")
    return " " * before + match["shown"] + " " * after


_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+:\d\d(?!\d)|\d+(?:\.\d+)?|(?<!\d)\.\d+"
# The modulus of a congruence; what is divided by it stands before "=".
_MODULUS = r"(?>[ $]*(?:\{[^{}\n]{0,20}\}|\d+|[A-Za-z]\b)?[ $]?\)?)(?![ $]*(?:=|\\equiv|≡))"
# After their first letter: pi after a factor, and the name of a root.
_LETTERS = r"(?:(?<=s)qrt(?=[ ]?[({\d])|(?<=p)i(?![A-Za-z])(?:(?<=[\d*·/)]pi)|(?<=[\d*·/)][ ]pi)))"
_TOKEN = re.compile(
    rf"""
    (?P<break>^[ \t]*(?:[-*•]|\(?\d{{1,2}}[.)])[ \t]
        |(?:(?<=[Ss]tep[ ])|(?<=[Hh]int[ ])|(?<=[Ll]evel[ ]))\d+
        |\d+(?:st|[nr]d|th)\b|\d+-(?=[A-Za-z])
        |\([ ]?(?:mod\b|\\[pb]?mod(?![A-Za-z])|\\text[ ]?\{{[ ]?mod[ ]?\}}){_MODULUS}
        |\\[pb]?mod(?![A-Za-z]){_MODULUS}
        |[A-Za-zÀ-ÿ](?!{_LETTERS})[A-Za-zÀ-ÿ]+
            (?:['’-][A-Za-zÀ-ÿ]+|[ ](?!sqrt[ ]?[(\d])[A-Za-zÀ-ÿ]{{2,}})*
        |\\(?:text|mathrm|textbf|mbox)\s*\{{[^{{}}]*\}}|\\[()\[\]]
        |\\(?:begin|end)\s*\{{(?![a-z]*matrix)[A-Za-z]+\*?\}}
        |\\(?:to|implies|Rightarrow|iff|in|therefore)(?![A-Za-z])|[→⇒∈])
    |(?P<number>{_NUMBER}|\\%|\^\s*\{{\\circ\}}|(?:\^\s*)?\\circ(?![A-Za-z]))
    |(?P<open>\\begin\s*\{{[a-z]*matrix\}}|\\\{{)|(?P<close>\\end\s*\{{[a-z]*matrix\}}|\\\}})
    |(?P<comma>\\\\)
    |(?P<blank>[$€£&]|\\[$,;:!\ ]|\\(?:left|right|quad|qquad|displaystyle|big|Big)(?![A-Za-z]))
    |(?P<equal>\\(?:approx|equiv)(?![A-Za-z])|[≈≡])
    |(?P<operator>\\(?:[A-Za-z]+|\|)|(?<=[\w)])!(?=[ ]*[\\=+*/·×^)}}\],;:$-])
        |['′’](?<=[A-Za-z]['′’])['′’]*(?=[ ]*[(=^])|[ps]{_LETTERS})
    |[^-+*/·×÷^_–−²³√π()\[\]{{}}|,%°=<>≤≥≠A-Za-z0-9 \t\r]
    """,
    re.VERBOSE | re.MULTILINE,
)
# What a token becomes in the mask of a text, which is as long as the text: the first character,
# then the others. Single letters, operators and brackets stay as they are.
_MASKS = dict(number="99", open="(\\", close=")\\", comma=", ", blank="  ", equal="= ")
_MASKS["operator"] = "\\\\"
# What parts a mask into statements and their sides; a space does in "5 m" and "3 4".
_PART = re.compile(r"[(\[{]|[)\]}]|[=,]|\n+|(?<=[\w%°])[ \t\r]+(?=[\w%°])(?!9+/9)")
_LITERAL = re.compile(
    r"[-–−+]?(?:\(-[\d.,]+\)(?=/)|[\d.,:\s]*+)(?:/\s*[\d.,]+"
    r"|\\[dt]?frac\s*(?:(?:\{\s*-?[\d.,]+\s*\}\s*){2}|\d\s*\d)"
    r"|(?:\\times|\\cdot|×|·)\s*10\^(?:\{-?\d+\}|\d))?\s*(?:\\?%|\^?\{?\\circ\}?|°)?"
)
_DIGIT = re.compile(r"\d")
_BRACKETS = re.compile(r"(?:\\left)?[(\[{|]{1,2}([^()\[\]{}|,]+?)(?:\\right)?[)\]}|]{1,2}")
_BRACE = re.compile(r"\\boxed\s*\{|[{}]")
_UNCOUNTED = re.compile(r"\\(?:left|right|cdot|times|displaystyle)(?![A-Za-z])|[\s{}\\$*]")


class Value(NamedTuple):
    """A value at ``start:end``; ``text`` is what the verifier compares.

    ``shape`` is ``literal`` (a number), ``word``, ``formula`` or ``boxed``; later also ``odd``, and
    ``words`` or ``common`` where it is the answer's own text. The side before
    it in its statement, which begins at ``statement``, is ``left``; ``place`` counts those sides.
    """

    start: int
    end: int
    text: str
    shape: str
    statement: int
    left: str = ""
    place: int = 0


def values(text: str, start: int = 0, end: int | None = None) -> list[Value]:
    """Return the values of a plain text, or of some of its lines, in order; a box is one value."""
    part = text[start:end]
    found, pieces, at = boxes(part), [], 0
    for box in found:
        pieces += [part[at : box.statement], "\n" * (box.end + 1 - box.statement)]
        at = box.end + 1
    part = "".join(pieces) + part[at:]

    def masked(match: re.Match[str]) -> str:
        first, other = _MASKS.get(match.lastgroup or "", "\n\n")
        return first + other * (len(match[0]) - 1)

    mask = _TOKEN.sub(masked, part)
    for number in in_words(part):
        found.append(Value(number.start, number.end, str(number.value), "word", number.start))
    for sides in _statements(mask):
        begin, left = sides[0][0], ""
        if len(sides) > 1:  # "x < 5" may be an answer as a whole
            found += _value(part, mask, (begin, sides[-1][1]), (begin,))
        for place, span in enumerate(sides):
            found += _value(part, mask, span, (begin, left, place))
            left = part[slice(*span)].strip()
    found.sort(key=lambda each: (each.start, -each.end))
    return (
        [
            each._replace(
                start=start + each.start, end=start + each.end, statement=start + each.statement
            )
            for each in found
        ]
        if start
        else found
    )


def compact(text: str) -> str:
    r"""Drop what does not count in a formula: spaces, braces, ``\left``, signs of a product."""
    return _UNCOUNTED.sub("", text).lower()


def boxes(text: str) -> list[Value]:
    """Return the content of each box that is closed, holds no other box and is not blank."""
    found: list[Value] = []
    open_at: list[re.Match[str] | None] = []
    last_box = -1
    for match in _BRACE.finditer(text) if r"\boxed" in text else ():
        if match[0] != "}":
            open_at.append(match if len(match[0]) > 1 else None)
        elif open_at and (box := open_at.pop()) and box.start() > last_box:
            last_box = box.start()
            content = text[box.end() : match.start()].strip()
            if compact(content):
                found.append(Value(box.end(), match.start(), content, "boxed", box.start()))
    return found


def _statements(mask: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the sides of each statement, as spans."""
    sides: list[tuple[int, int]] = []
    start = depth = 0
    for part in _PART.finditer(mask + "\n"):
        sign = part[0][0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif sign == "\n" or not depth:
            if part.start() > start or sides:
                sides.append((start, part.start()))
            start = part.end()
            if sign != "=":
                if sides:
                    yield sides
                sides, depth = [], 0


def _value(text: str, mask: str, span: tuple[int, int], rest: tuple) -> Iterator[Value]:
    """Yield a side without the punctuation around it, if it is not blank."""
    shown = mask[slice(*span)].lstrip(" \t\r,|")
    start = span[1] - len(shown)
    end = start + len(shown.rstrip(" \t\r,|-–+*_"))
    shown = mask[start:end]
    if shown[-1:] in (")", "]", "}") and not set("([{") & set(shown):
        end -= 1
    content = text[start:end]
    # Cheaper first: digits are never dropped.
    if _DIGIT.search(content) or any(map(str.isalnum, compact(content))):
        bracketed = _BRACKETS.fullmatch(content)
        bare = bracketed[1].strip() if bracketed else content
        is_number = _LITERAL.fullmatch(bare)
        content = bare if is_number else content
        yield Value(start, end, content, "literal" if is_number else "formula", *rest)
