"""What a problem's own text asks for: units and nouns an answer may carry, order, percent."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence

from recipe.verify.maths.units import (
    COUNTERS,
    NUMBERS,
    TAILS,
    TOTALS,
    Unit,
    canonical,
    is_plain_noun,
    is_symbol,
    kind_of,
    name_of,
    read_unit,
)

MAX_CHARS = 20_000
_PATTERNS = {
    "point": r"ordered (?:pair|triple)|\bpoints?\b|coordinates|\$\([a-z], ?\\?[a-z]+\)\W?\$"
    r"|\bsolve (?:\w+ ){0,3}(?:system|simultaneous)|\bsolutions? (?:to|of) (?:\w+ ){0,3}system"
    r"|\bsolve for \$?[a-z]\$? and |\bintersection\b(?! of (?:\w+ ){0,3}(?:sets|intervals))"
    r"|\b(?:vertex|midpoint|cent(?:er|re|roid)|focus|pairs?(?! of functions)|vector)\b"
    r"|\bwhere\b[^.?]{0,80}\b(?:intersect|meet|cross)",
    "interval": r"interval|inequalit|\bdomain\b|\brange\b|<|>|\\[lg]eq?\b",
    "equation": r"equation|relation|\b(?:line|curve|graph|locus|tangent|plane|circle|parabola"
    r"|asymptote)",
    "solved": r"in terms of|\bas an? |\bsolved? (?:.{0,80} )?for\b|\bform\b|\binvers",
    "order": r"respectively|in (?:that|this|the) order|(?:in|de)creasing order|scending order"
    r"|in order (?:from|of)|(?:least|smallest) to (?:greatest|largest)|(?:greatest|largest) to "
    r"(?:least|smallest)|quotient and (?:the )?remainder|(?:what are|find|list|write|give|state"
    r"|determine|compute) (?:down )?the first (?:\w{2,6}|[0-9]{1,2}|\$[0-9]{1,2}\$) terms",
    "rewriting": r"decimal|fraction|convert|simplif|scientific|notation|percent|\bbase\b|mixed"
    r"|lowest|reduce|\brewrit|\bform\b|power of|factor"
    r"|\b(?:express|write) (?:\w+ ){0,3}[\\$(]?[\\$(0-9]",
    "rounding": r"\bnearest\b|\bround|\bapprox|\bestimat|decimal places?|significant",
    "money": r"\bhow much (?:money\b|(?:did|do|does|will|would|can|could|should|must|is|are)\b"
    r"[^.?]{0,80}\b(?:make|earn|pay|spend|cost|owe|save|charge|worth)\b)|\bamount of money\b",
    "coins": r"\b(?:quarter|dime|nickel|penn(?:y|ies))",
    "exact": r"\bexact|fraction|simplif|\bsimplest|radical|lowest terms",
    "work": r"\bfactor|因式|simplif|\bsimplest|expand|multiply|\bproduct of",
    "mass": r"\bhow heavy\b",
    "share": r"\b(?:each|per|every|apiece|averages?|mean|more|fewer|less|extra|difference"
    r"|an? (?:second|minute|hour|day|week|month|year))\b",
    "angle": r"\bangl|\\angle|degree|°|\\circ\b|rotat|temperature|latitude|longitude|\barc",
    "area": r"\barea\b",
    "volume": r"\bvolume\b",
}
_COMPILED = {name: re.compile(text, re.IGNORECASE) for name, text in _PATTERNS.items()}
_PERCENT = re.compile(
    r"(?P<number>(?:[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|\w+ty|hundred))(?:[ ~${}]|\\[,;: ]?){0,9})?(?:[Pp]er ?cent|%)"
    r"|\b(?:[Ww]hat|[Ff]ind|[Ww]hich)(?: \w+){0,3} interest rate"
)
_NAMED_BASES = {"binary": 2, "ternary": 3, "octal": 8, "decimal": 10, "hexadecimal": 16}
_BASE = re.compile(
    r"(?P<into>\b(?:in|to|into)\s)?(?:the )?(?:\bbase[ -]\$?\{?(?P<base>[0-9]{1,2}|[a-z]+)\b"
    rf"|\b(?P<name>{'|'.join(_NAMED_BASES)})\b)"
)
_POWER = r"(?:\^?[23](?![0-9A-Za-z]))?"  # cm^2, cm2
_ASKED = re.compile(
    r"\b(?:[Hh]ow many|(?:[Ff]ind|[Ww]hat(?: is| was|['’]s)|[Cc]ompute|[Dd]etermine|[Cc]alculate)"
    rf" the (?:total )?number of) ((?:[A-Za-z/-]{{1,30}}{_POWER} ?){{1,5}})"
)
_MEASURED_IN = re.compile(rf"\bin (?=((?:[A-Za-z/]{{1,20}}{_POWER} ?){{1,4}}))")
_SET_UNIT = re.compile(r"\$?\\(?:text|mathrm)\{[ ~]?([A-Za-z/ ]{1,20})\}(\^2|\^3)?\$?")
_UNIT_PART = re.compile(r"[A-Za-z]+|/|[23]")
# They end the noun after "how many".
_CUT = frozenset(
    "are is was were do does did will would can could of have has had than in on for to at by from "
    "that who which with must should there he she they it his her their".split()
)
_COMPARING = frozenset("more fewer less extra additional other positive odd even ordered".split())
_ASKING = re.compile(r"\b(?:how (?:many|much)|what (?:is|are|was))\b")
_PLAIN_UNITS = tuple((("unit", power),) for power in (1, 2, 3))
_WORD = re.compile(r"[^\W\d_]+")
# Words that say nothing of a value before it: "There are 12 ways", "The answer is 12".
_SAID = frozenset(
    "the a an is are was there it its of we have get total in all so thus hence therefore answer "
    "final result value number point equal equals approximately about solution".split()
)


@functools.lru_cache(maxsize=256)
def question(problem: str) -> str:
    """Return the last sentence with a question mark, and the last sentence."""
    sentences = re.split(r"(?<=[.?!？。])\s+", problem[-MAX_CHARS:].strip())
    asked = [each for each in sentences if each.endswith(("?", "？"))]
    return " ".join(dict.fromkeys([*asked[-1:], sentences[-1]]))


def asks(what: str, problem: str) -> bool:
    """Return whether the question, not only the story, speaks of ``what``."""
    return _COMPILED[what].search(question(problem)) is not None


def speaks(what: str, problem: str) -> bool:
    """Return whether the problem's text speaks of ``what``."""
    return _COMPILED[what].search(problem[-MAX_CHARS:]) is not None


def asks_for_point(problem: str) -> bool:
    """Return whether ``(1, 2)`` is a pair, not an interval."""
    return asks("point", problem) and not speaks("interval", problem)


def asks_for_percent(problem: str) -> bool:
    r"""Return whether the question, not only the story, speaks of percent, beside a ``10 \%``."""
    return any(match["number"] is None for match in _PERCENT.finditer(question(problem)))


def asks_for_base(problem: str, digits: str, base: int) -> bool:
    """Return whether it asks for such digits "in base 7", "in base seven" or "to binary"."""
    found = [*_BASE.finditer(problem.lower())]
    found = [each for each in found if each["into"]] or found
    words = [each["base"] or each["name"] for each in found]
    known = NUMBERS | _NAMED_BASES
    bases = {int(word) if word.isdigit() else known.get(word) for word in words}
    return bases == {base} and int(max(digits)) < base


@functools.lru_cache(maxsize=256)
def _words_of(problem: str) -> frozenset[str]:
    return frozenset(map(_singular, _WORD.findall(_without_possessives(problem))))


def _without_possessives(text: str) -> str:
    return re.sub(r"(?<=[A-Za-z])['’]s\b", "", text[-MAX_CHARS:])


def _singular(word: str) -> str:
    return word.lower().removesuffix("s")


def _is_told(word: str, problem: str) -> bool:
    parts = {_singular(part) for part in word.split("-")}
    return parts <= _words_of(problem) or (not word.isascii() and word in problem)


def may_say(words: Sequence[str], problem: str) -> bool:
    """Return whether words before a value only say what it is: ``There are``, ``Area =``."""
    return all(
        word.lower() in _SAID
        or ((is_plain_noun(word) or word.lower() == "remainder") and _is_told(word, problem))
        for word in words
    )


def has_noun(noun: str, problem: str) -> bool:
    """Return whether a counted noun is the problem's own.

    Its words have to be in the text and, if it says ``how many``, in what that asks for. One that
    may compare or change a value has to begin or end what is asked for: ``more apples``.
    """
    words = noun.split()
    tail = next(
        (e for e in sorted(TAILS, key=len, reverse=True) if f" {noun}".endswith(f" {e}")), ""
    )
    if tail:
        words = words[: -len(tail.split())]
        is_total = tail in TOTALS and not asks("share", problem)
        if not is_total and not re.search(rf"(?<!the )\b{tail}\b|\bages?\b", question(problem)):
            return False
    if words[-2:-1] == ["per"]:
        if not counts_by(words[-1], problem):
            return False
        words = words[:-2]
    words = [word for word in words if word not in COUNTERS]
    if not problem:  # unknown: a plain noun says what was counted
        return all(map(is_plain_noun, words))
    asked = {_singular(p) for word in _asked_words(problem) for p in word.lower().split("-")}
    for word in words:
        parts = {_singular(part) for part in word.split("-")}
        if not is_plain_noun(word) and not _is_asked_itself(word, problem):
            return False
        if not _is_told(word, problem) or (asked and word.isascii() and not parts <= asked):
            return False
    return True


def _is_asked_itself(word: str, problem: str) -> bool:
    """Tell whether a word such as ``more`` begins, or a plural such as ``pairs`` ends, the noun."""
    asked = [each.lower() for each in _asked_words(problem)]
    ends = asked[:1] + asked[-1:]
    return word in ends if word.endswith("s") else word in _COMPARING and word in asked[:1]


def counts_by(time: str, problem: str) -> bool:
    """Tell whether what the question asks for is counted by a time, as in "how many pages a day".

    Its clause has to name that time alone and no number: "in 3 weeks" asks for a sum.
    """
    clause = _ASKING.split(question(problem).lower())[-1]
    clause = re.split(r"[,;]|\b(?:if|when|who|while)\b", clause)[0]
    words = _WORD.findall(clause)
    times = [name_of(word) or "" for word in words]
    is_rate = bool({"per", "each", "every"} & {*words}) or words[1:2] in (["a"], ["an"])
    is_rate = is_rate and not {"over", "in", "for"} & {*words}
    has_number = any(map(str.isdigit, clause)) or NUMBERS.keys() & {*words}
    times = [each for each in times if kind_of(each) == "time"]
    return is_rate and not has_number and time in times and not {*times} - {time, "hour"}


def may_drop_unit(unit: Unit, problem: str, *, has_pi: bool = False) -> bool:
    """Return whether a unit may be left out against a value that has none.

    Where the problem asks for a unit, it has to be that one; else the text has to mention it, and
    no other of its kind. A time that the question counts by may divide it.

    Args:
        unit: The answer's.
        problem: The problem's text; without one, any may be left out.
        has_pi: The gold answer has the form of an angle in radians.
    """
    if not problem:
        return True
    asked = _asked_unit(problem)
    if unit == asked or unit in _PLAIN_UNITS:
        return True
    rates = [(name, power) for name, power in unit if power < 0 and kind_of(name) == "time"]
    if len(rates) == 1 and len(unit) > 1 and counts_by(rates[0][0], problem):
        rest = tuple(each for each in unit if each not in rates)
        return may_drop_unit(rest, problem)
    if asked or _asked_words(problem):  # another unit, or no unit at all
        temperatures = ((("degree_Celsius", 1),), (("degree_Fahrenheit", 1),))
        return unit == (("degree", 1),) and asked in temperatures
    if rates and any(kind_of(name) == "money" for name, _ in unit):
        return False
    kind = next((each for each in ("money", "mass") if asks(each, problem)), "")
    if kind and all(kind_of(name) != kind for name, _ in unit):
        return False
    return all(_has_power(name, power, unit, problem) for name, power in unit) and all(
        _is_mentioned(name, problem, has_pi=has_pi) for name, _ in unit
    )


def _has_power(name: str, power: int, unit: Unit, problem: str) -> bool:
    asked = [n for n, what in ((2, "area"), (3, "volume")) if asks(what, problem)]
    is_length = kind_of(name) == "length"
    return len(unit) > 1 or abs(power) == (asked[0] if asked and is_length else 1)


def _is_mentioned(name: str, problem: str, *, has_pi: bool) -> bool:
    units = mentioned_units(problem)
    others = {other for other in units - {name} if kind_of(other) == kind_of(name)}
    if name in ("degree", "radian") and name not in units:
        return not others and speaks("angle", problem) and has_pi == (name == "radian")
    is_asked = name == "dollar" and asks("money", problem) and not speaks("coins", problem)
    return not others and (name in units or is_asked)


@functools.lru_cache(maxsize=256)
def _asked_words(problem: str) -> tuple[str, ...]:
    """Return the noun after the question's, or problem's, last ``how many``; empty without one."""
    for text in (question(problem), problem[-MAX_CHARS:]):
        if asked := list(_ASKED.finditer(_with_plain_units(_without_possessives(text)))):
            words = asked[-1][1].split()
            return tuple(itertools.takewhile(lambda word: word.lower() not in _CUT, words))
    return ()


def _asked_unit(problem: str) -> Unit:
    """Return the unit after the last ``how many`` or the question's ``in``."""
    words = _asked_words(problem)
    for start in range(min(3, len(words))):
        if unit := _longest_unit(words[start:]):
            return unit
    found = [
        _longest_unit(_split_unit(match[1]))
        for match in _MEASURED_IN.finditer(_with_plain_units(question(problem)))
    ]
    return next((unit for unit in reversed(found) if unit), ())


def _with_plain_units(text: str) -> str:
    r"""Return a text whose ``cm²`` and ``$\text{cm}^{2}$`` are ``cm^2``."""
    text = re.sub(r"\^\{([23])\}", r"^\1", text.replace("²", "^2").replace("³", "^3"))
    return _SET_UNIT.sub(r"\1\2", text).replace("per cent", "percent")


def _split_unit(text: str) -> list[str]:
    parts = _UNIT_PART.findall(text)
    return [each for part in parts for each in (("^", part) if part.isdigit() else (part,))]


def _longest_unit(words: Sequence[str]) -> Unit:
    for end in range(len(words), 0, -1):
        unit = read_unit([part for word in words[:end] for part in _split_unit(word)])
        if unit and words[0] != "in" and words[0].lower() not in _ORDINARY:
            return unit
    return ()


# More often something else in the singular: the second side, a bit, the back yard, a real number.
_ORDINARY = frozenset("second bit yard mole real won".split())
_MENTION = re.compile(
    r"(?P<sign>[$€£₹¥₩₽](?=[0-9][0-9.,]{0,20}"
    r"(?:(?<=\.) |[ /-]{0,2}[A-Za-z]{2}| [aAI] |[)?]|\s*$)))"  # a price, no formula
    r"|(?P<marked>(?<=[0-9])[ ~{},;:!\\$-]{0,4}|\bper |(?<=[A-Za-z]) ?/ ?|(?<=°)"
    r"|(?<=\\circ))?"
    r"(?P<word>[^\W\d_]+|°|\\circ|\\?%)"
)
# Abbreviations that can mean nothing else count as words do.
_CLEAR = frozenset("km cm mm kg ft yd lb lbs oz hrs hr mph kph kWh".split())
_ENDS_UNIT = re.compile(r"[.,;:?!)]{0,2}(?:\s+[A-Za-z]{2}|\s*$)|\s?/\s?[a-z]")


@functools.lru_cache(maxsize=256)
def mentioned_units(problem: str) -> frozenset[str]:
    r"""Return the canonical names of all units in a text, and of the parts of compound ones.

    A word for a unit mentions it. A symbol does where it is read as one: after a number, in
    ``\text``, after ``per``. So a variable m, a point C and the second side mention none.
    """
    text = _without_possessives(_with_plain_units(problem))
    names = {
        name
        for match in _MENTION.finditer(text)
        if (name := name_of(match["sign"] or match["word"])) and _is_unit_here(match, text)
    }
    return frozenset(part for name in names for part, _ in (*canonical({name: 1}), (name, 1)))


def _is_unit_here(match: re.Match[str], text: str) -> bool:
    """Tell whether what can be a unit is one at its place: m after a number, metres always."""
    word, is_marked = match["word"], match["marked"] is not None
    if word is None:
        return True
    if not is_symbol(word):
        return is_marked or word.lower() not in _ORDINARY
    if len(word) == 1 and word.isalpha() or word in ("in", "min", "sec", "deg"):
        is_end = _ENDS_UNIT.match(text, match.end()) is not None
        return is_marked and "-" not in match["marked"] and is_end
    return is_marked or word in _CLEAR
