r"""Domains after a formula, ``f(n) = 2n \text{ for all positive integers } n``.

All integers and all reals add nothing. A narrower domain does, unless it contains one that the
problem names: ``f(n) = 2n \text{ for } n > 1`` is another function on the positive integers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from recipe.verify.maths.wrappers import GAP, unwrapped

_KIND = r"(?: (?:positive|negative|non-?negative|non-?zero|rational|natural|real)){0,2}"
_SIGN = r"\^\{?[*+]\}?|_\{?(?:\+|(?:>|\\geq?)\s?[01])\}?"
_REACH = 800  # characters at the end of an answer: no domain is longer
_DOMAIN = re.compile(
    rf"(?:{GAP}|[,;(]|\\forall(?![a-z])|\\text\{{[\s,(]{{0,3}}(?:for|where|with)?"
    rf"(?: (?:all|any|every|each|some))?{_KIND}(?: (?:integers?|numbers?))?\s?[}}$]){{1,9}}"
    rf"(?P<letter>[A-Za-z])\s?(?P<range>\\in\s?\\mathbb\s?\{{?(?P<set>[NZQR])\}}?(?P<sign>{_SIGN})?"
    r"|\\text\{\s?(?:is )?any? integer\s?\})?"
    r"(?P<bound>\s?(?:>|\\geq?(?![a-z]))\s?[01])?\$?\s?\}?\)?\.?\Z"
)
BOUND = re.compile(r"[<>≤≥≠∈]|\\(?:[lg]t|[lg]eq?|neq?|in|[lg]eqslant)(?![a-z])")
# Numbers that distinguish domains; 1/2 is in no domain of whole numbers.
_HALF = 0.5
_ALL = frozenset({-1, 0, _HALF, 1, 2})
_GEQ = r"(?:\\geq?(?:slant)?|≥)\s?"
# Which of these a domain holds, and how it is named: in words, after a set's sign, as a bound.
_SIGNS = (
    (_ALL, "", r"(?![\^_])", r"(?!)"),
    (
        _ALL - {-1, 0},
        r"(?<!non)(?<!non-)positive ",
        r"[\^_]\{?(?:\+|>\s?0)",
        r"[A-Za-z]\s?>\s?0|\(0,\s?\\infty",
    ),
    (_ALL - {-1}, "non-?negative ", rf"[\^_]\{{?{_GEQ}0", rf"[A-Za-z]\s?{_GEQ}0|\[0,\s?\\infty"),
    (frozenset({-1}), r"(?<!non)(?<!non-)negative ", r"[\^_]\{?(?:-|<\s?0)", r"[A-Za-z]\s?<\s?0"),
    (_ALL - {0}, "non-?zero ", r"\^\{?\*", r"\\neq?\s?0|≠\s?0|\\setminus"),
    (frozenset({1, 2}), "(?!)", rf"[\^_]\{{?{_GEQ}1", rf"[A-Za-z]\s?{_GEQ}1"),
    (frozenset({2}), "(?!)", r"[\^_]\{?>\s?1", r"[A-Za-z]\s?>\s?1"),
)
_NOUNS = {"Z": "integer", "Q": "rational", "R": "(?:real|number)"}
_SET = r"\\math(?:bb|bf)\s?\{{?{}\}}?"
_NATURAL = rf"natural|{_SET.format('N')}"
_LINK = re.compile(  # between f(x) = x and f(x) = -x, each with its domain
    rf"(?:{GAP}|[,;]|\\text\{{[\s,]{{0,3}}(?:or|and)\s?\}}|\bor\b|\band\b){{1,6}}"
    r"(?=[A-Za-z]\s?\([a-z]\)\s?(?:=|\\equiv))"
)
_MAX_MEMBERS = 12
_RELATION = r"(?:[<>≤≥≠]|\\(?:[lg]t|[lg]eq?|neq?|[lg]eqslant)(?![a-z]))"
_SET_OPENS = r"(?:\\left\s?)?\\\{\s?(?P<bound>[a-z])\s?(?:\\mid|:|\|)\s?"
_IN_REALS = re.compile(  # x \in R, x > 2, also after \{x \mid
    rf"\A\s?(?P<set>{_SET_OPENS})?(?P<name>[a-z])\s?\\in\s?\\mathbb\s?\{{?R\}}?\s?"
    rf"(?:,\s?|\\text\{{\s?,?\s?and\s?\}}\s?){GAP}{{0,3}}(?=(?P=name)\s?{_RELATION})"
)
_FAMILY = re.compile(  # {2k | k \in Z}, {x | x = 2k, k \in Z}
    r"\A\s?(?:[a-z]\s?\\in\s?)?(?:\\left\s?)?\\\{\s?"
    r"(?:(?P<name>[a-z])\s?(?:\\mid|:|\|)\s?(?=(?P=name)\s?=))?(?P<body>[^:|]{1,400}?)\s?"
    r"(?:\\(?:mid|middle\s?\|)(?![a-z])|[:|,])\s?"
    r"(?P<domain>(?P<letter>[a-z])\s?\\in\s?\\mathbb\s?\{?Z\}?)\s?(?:\\right\s?)?\\\}\s?\Z"
)
_ALL_BUT = re.compile(  # all real numbers except 2, all real numbers x > 2
    r"\A\s?(?:x\s?=\s?)?\\text\{\s?(?:the set of )?all real numbers(?P<but>,? (?:except|but))?"
    rf"(?: for)?(?: [a-z] such that)?\s?\}}{GAP}{{0,3}}"
    rf"(?:(?P<name>[a-z])\s?(?P<sign>=|{_RELATION}))?",
    re.IGNORECASE,
)


def without_reals(text: str) -> str:
    r"""Return ``x \ne 2`` for ``x \in \mathbb{R}, x \ne 2`` or ``all real numbers except 2``."""
    if found := _IN_REALS.match(text):
        is_one = found["set"] is None or found["bound"] == found["name"]
        return (found["set"] or "") + text[found.end() :] if is_one else text
    found = _ALL_BUT.match(text)
    if found is None:
        return text
    name, sign, rest = found["name"], found["sign"], text[found.end() :]
    if found["but"] and sign in (None, "="):
        return rf"{name or 'x'} \ne {rest}"
    return f"{name} {sign} {rest}" if sign not in (None, "=") and not found["but"] else text


def _without_braces(found: re.Match[str]) -> str:
    """Return a family and its domain without braces, unless it only says where a number is."""
    is_domain = found["body"].strip() == found["letter"]
    return found[0] if is_domain else f"{found['body']}, {found['domain']}"


def without_domain(text: str, problem: str = "") -> str:
    """Return an answer without the domains after its formulas, in a list after each member."""
    plain = unwrapped(text)
    inner = _FAMILY.sub(_without_braces, without_reals(plain))
    kept, start = "", 0
    for link in itertools.islice(_LINK.finditer(inner), _MAX_MEMBERS):
        kept += _without_last(inner[start : link.start()], problem) + link[0]
        start = link.end()
    kept += _without_last(inner[start:], problem)
    return text if kept == plain else kept


def _without_last(text: str, problem: str) -> str:
    """Return a formula without the domain of its letter that follows it.

    After an inequality, whole numbers would make it another set.
    """
    domain = _DOMAIN.search(text, max(0, len(text) - _REACH))
    if domain is None or not (domain["range"] or re.search("for|where", domain[0])):
        return text
    rest = text[: domain.start()]
    is_bounded = BOUND.search(rest) is not None and domain["set"] != "R"
    letter = domain["letter"]
    if is_bounded or letter not in re.sub(r"\\[A-Za-z]+", " ", rest):
        return text
    is_argument = re.search(rf"\(\s?{letter}\s?\)", rest) is not None
    if is_argument and "some" in domain[0]:
        return text
    return rest if _says_nothing(domain[0], problem, is_argument=is_argument) else text


def _says_nothing(domain: str, problem: str, *, is_argument: bool) -> bool:
    """Return whether a domain is all integers, all reals, or contains one the problem names.

    ``is_argument``: it is a function's, which its values at integers do not determine.
    """
    held = _ALL.intersection(
        *(held for held, *names in _SIGNS[1:] if re.search("|".join(names), domain))
    )
    is_whole = re.search(rf"integer|{_SET.format('Z')}|{_NATURAL}", domain)
    is_rational = re.search(rf"rational|{_SET.format('Q')}", domain)
    kinds = "Z" if is_whole else "ZQ" if is_rational else "ZQR"
    if re.search(_NATURAL, domain):
        held -= {-1}
    is_wide = is_argument and re.search(rf"real|rational|{_SET.format('[QR]')}", problem)
    if held == _ALL and (kinds == "ZQR" or (kinds == "Z" and not is_wide)):
        return True
    return any(numbers <= held for kind in kinds for numbers in _named_in(problem, kind))


def _named_in(problem: str, kind: str) -> Iterator[frozenset[float]]:
    """Yield what the domains of a kind (Z, Q or R) that a problem names hold of ``_ALL``."""
    has_whole = re.search(rf"integer|{_SET.format('Z')}|{_NATURAL}", problem)
    for held, word, mark, bound in _SIGNS:
        of_set = rf"{_SET.format(kind)}\s?(?:{mark})"
        is_bound = (kind == "R" or (kind == "Z" and has_whole)) and re.search(bound, problem)
        if is_bound or re.search(rf"{word}{_NOUNS[kind]}|{of_set}", problem):
            yield held - {_HALF} if kind == "Z" else held
    if kind == "Z" and re.search(_NATURAL, problem):
        yield frozenset({1, 2})
