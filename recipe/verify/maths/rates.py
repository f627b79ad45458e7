"""The time by which a question counts, such as the week of "how many hours a week"."""

from __future__ import annotations

import functools
import re

from recipe.verify.maths.units import OVER, kind_of, name_of
from recipe.verify.maths.words import NUMBERS

_CLAUSE = re.compile(r"\b(?:[Hh]ow (?:many|much)|[Ww]hat|[Ff]ind|[Dd]etermine)\b([^.,;:?]*)")
_CONDITION = re.compile(r"\b(?:if|when|while|given|assuming|because|since|that|who|which)\b")
_WORD = re.compile(r"[a-z'’]+|[0-9]")
_NUMBERS = frozenset("half couple several few dozen hundred thousand".split()) | {*NUMBERS}
_VERBS = frozenset(
    "is are was were do does did will would can could should must has have had".split()
)
# Before a time they make it a total: in a week, half a year, twice a day.
_NO_RATE = _VERBS | frozenset(
    "in for over during of after before within until by than to from half once twice times".split()
)
_ADJECTIVES = {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year",
    "annual": "year",
}  # fmt: skip


@functools.lru_cache(maxsize=256)
def asked_rate(question: str) -> str:
    """Return the time by which a question counts; empty where it may want a total.

    It follows ``per``, ``each`` or ``every``; with ``a`` it has to come after what is asked for
    ("how many hours a week") or to end the clause, which has no number and no other time.
    """
    words = _clause(question)
    times = [place for place, word in enumerate(words) if word in _ADJECTIVES or _is_time(word)]
    if len(times) != 1:
        return ""
    place = times[0]
    if words[place] in _ADJECTIVES:
        return _ADJECTIVES[words[place]]
    before, over = words[: max(0, place - 1)], words[place - 1]
    if over not in OVER or not before or before[-1] in _NO_RATE:
        return ""
    is_near = place == len(words) - 1 or _VERBS.isdisjoint(before)
    return words[place] if over not in ("a", "an") or is_near else ""


def asks_for_wage(question: str) -> bool:
    """Tell whether a question names a price of time: "what is her wage"."""
    return not {"wage", "wages", "rate"}.isdisjoint(_clause(question))


def _clause(question: str) -> list[str]:
    """Return the words of what is asked for last; none where a number is among them."""
    clauses = [match[1] for match in _CLAUSE.finditer(question)]
    clause = _CONDITION.split(clauses[-1], maxsplit=1)[0] if clauses else ""
    words = _WORD.findall(clause.lower())
    return [] if any(word.isdigit() or word in _NUMBERS for word in words) else words


def _is_time(word: str) -> bool:
    """Tell whether a word is one unit of time; several make a total only with a number."""
    return name_of(word) == word and kind_of(word) == "time"
