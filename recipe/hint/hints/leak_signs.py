r"""One way to write a sign, for the leak guard: ``４２``, ``4&#50;``, ``¾``, ``1\,437`` in digits.

The text may get shorter or longer; ``Written`` knows where each of its characters comes from.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import NamedTuple

# Entities, signs that separate the digits of one number, and whatever is not ASCII.
_ODD = re.compile(
    r"&(?:\#\d{1,6}|\#[xX][0-9a-fA-F]{1,5}|nbsp|thinsp|half|frac\d\d|minus|times);"
    r"|(?<=\d)(?:\{,\}|\\[,;:!][ ]?|\{\}|[\u2009\u202f\xa0])(?=\d)"
    r"|(?<=\d)[_'’](?=\d{3}(?!\w))|[^\x00-\x7f]"
)
_SEPARATED = re.compile(r"\d(?:[_']\d|\{|\\)")
# Dashes within words, which NFKC leaves or makes of others; what stands for a division sign.
_SAME = {"\u2010": "-", "\u2011": "-", "\u2044": "/", "\u2215": "/", "\u066a": "%", "\u066b": "."}
_RAISED = re.compile("SUPER|SUB")


class Written(NamedTuple):
    """A text and, where it is not as it was, the span in the original of each character."""

    text: str
    spans: list[tuple[int, int]] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the original."""
        return (self.spans[start][0], self.spans[end - 1][1]) if self.spans else (start, end)


def written(text: str) -> Written:
    """Write a text in plain signs; most texts are so already."""
    if text.isascii() and "&" not in text and not _SEPARATED.search(text):
        return Written(text)
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    at = 0
    for match in _ODD.finditer(text):
        start, end = match.span()
        plain = _plain(text, match)
        if plain == match[0]:
            continue
        pieces += [text[at:start], plain]
        spans += [(place, place + 1) for place in range(at, start)]
        spans += [(start, end)] * len(plain)
        at = end
    if not at:
        return Written(text)
    spans += [(place, place + 1) for place in range(at, len(text))]
    return Written("".join([*pieces, text[at:]]), spans)


def _plain(text: str, match: re.Match[str]) -> str:
    sign = match[0]
    if sign.isascii() and sign[0] != "&":
        return ""
    if sign[0] == "&":
        return html.unescape(sign)
    if len(sign) > 1 or (sign in "\u2009\u202f\xa0" and _between_digits(text, match)):
        return ""
    if sign == "’":
        return "" if _between_digits(text, match) else sign
    kind = unicodedata.category(sign)
    if kind == "Cf":  # no width, or a soft hyphen
        return ""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    if sign in _SAME:
        return _SAME[sign]
    before = text[match.start() - 1 : match.start()] if match.start() else "\n"
    if kind == "No" and (
        # An exponent or an index; the number of a step.
        (_is_raised(sign) and (before.isalnum() and not _is_raised(before) or before in ")]}|"))
        or ("CIRCLED" in unicodedata.name(sign, "") and before == "\n")
    ):
        return sign
    plain = unicodedata.normalize("NFKC", sign)
    if kind == "No" and "\u2044" in plain:
        return (" " if before.isdecimal() else "") + plain.replace("\u2044", "/")
    return plain if kind in ("No", "Nl", "Zs", "Lu", "Ll") or plain.isascii() else sign


def _between_digits(text: str, match: re.Match[str]) -> bool:
    return text[match.start() - 1].isdecimal() and text[match.end() : match.end() + 1].isdecimal()


def _is_raised(sign: str) -> bool:
    return bool(_RAISED.match(unicodedata.name(sign, "")))
