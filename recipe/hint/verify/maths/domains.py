r"""Domains behind a formula, ``f(n) = 2n \text{ for all positive integers } n``.

All integers and all reals say nothing more. A narrower domain does, unless the problem names it.
"""

from __future__ import annotations

import re

GAP = r"(?:[\s~]|\\[,;: ]|\\q?quad(?![a-z]))"
_KIND = r"(?: (?:positive|negative|non-?negative|non-?zero|rational|natural|real)){0,2}"
_SIGN = r"\^\{?[*+]\}?|_\{?(?:\+|(?:>|\\geq?)\s?[01])\}?"
_REACH = 800  # characters at the end of an answer: no domain is longer
_DOMAIN = re.compile(
    rf"(?:{GAP}|[,;(]|\\forall(?![a-z])|\\text\{{[\s,(]{{0,3}}(?:for|where|with)?"
    rf"(?: (?:all|any|every|each|some))?{_KIND}(?: (?:integers?|numbers?))?\s?[}}$]){{1,9}}"
    rf"(?P<letter>[A-Za-z])\s?(?P<range>\\in\s?\\mathbb\s?\{{?(?P<set>[NZQR])\}}?(?P<sign>{_SIGN})?"
    r"|\\text\{\s?is an integer\})?(?P<bound>\s?(?:>|\\geq?(?![a-z]))\s?[01])?\$?\s?\}?\)?\.?\Z"
)
_NARROW = re.compile("positive|negative|non|natural|rational")
_BOUND = re.compile(r"[<>≤≥≠∈]|\\(?:[lg]t|[lg]eq?|neq?|in|[lg]eqslant)(?![a-z])")
_ABOVE_0 = r"[a-z]\s?(?:>\s?0|\\geq?(?:slant)?\s?[01])|\(0,\s?\\infty"
_NATURAL = r"natural|\\math(?:bb|bf)\s?\{?N"
_SET = r"\\math(?:bb|bf)\s?\{{?{}\}}?\s?[\^_]"  # of those above 0
_MENTIONS = {
    "whole": rf"{_NATURAL}|(?:positive|negative) integer|{_SET.format('Z')}|{_ABOVE_0}",
    "rational": r"rational|\\math(?:bb|bf)\s?\{?Q",
    "real": rf"(?:positive|negative) (?:real|number)|{_SET.format('R')}|{_ABOVE_0}",
    "any": rf"{_NATURAL}|positive|negative|{_SET.format('[ZQR]')}|{_ABOVE_0}",
}


def without_domain(text: str, problem: str = "") -> str:
    """Return an answer without the domain behind a formula of its letter.

    Behind an inequality whole numbers would be another set.
    """
    domain = _DOMAIN.search(text, max(0, len(text) - _REACH))
    if domain is None or not (domain["range"] or re.search("for|where", domain[0])):
        return text
    rest = text[: domain.start()]
    is_bounded = _BOUND.search(rest) is not None and domain["set"] != "R"
    if is_bounded or domain["letter"] not in re.sub(r"\\[A-Za-z]+", " ", rest):
        return text
    return rest if _says_nothing(domain, problem) else text


def _says_nothing(domain: re.Match[str], problem: str) -> bool:
    kinds, is_above = _NARROW.findall(domain[0]), domain["sign"] or domain["bound"]
    if not kinds and not is_above and domain["set"] not in ("N", "Q"):
        return True
    if "rational" in kinds or domain["set"] == "Q":
        asked = "rational"
    elif domain["set"] == "R" or "real" in domain[0]:
        asked = "real"
    elif domain["set"] or "integer" in domain[0] or "natural" in kinds:
        asked = "whole"
    else:
        asked = "any"  # x > 0
    return re.search(_MENTIONS[asked], problem) is not None
