"""Words of an answer: numbers, scales, percent, units of measure, counted nouns.

A word is never dropped because it is unknown: what is not read here makes the whole answer a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from recipe.verify.maths.units import (
    OVER,
    PERCENT,
    POWER_WORDS,
    Unit,
    is_symbol,
    kind_of,
    name_of,
    read_unit,
)

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
NUMBERS = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value
    for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
SCALES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "dozen": 12, "dozens": 12, "score": 20, "gross": 144, "millions": 10**6, "billions": 10**9,
}  # fmt: skip
PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
PARTS |= {("halves" if word == "half" else f"{word}s"): value for word, value in PARTS.items()}
_COUNTS = frozenset({*NUMBERS, *SCALES, *PARTS, *POWER_WORDS})
# Words that change what a value says, count or compare; never part of a counted noun.
_NO_NOUNS = frozenset(
    "a about above after all almost an and any approximately are around as at away be before below "
    "between both but by can could couple down double doubled during each either else equal equals "
    "even every except few fewer for from greater had has have if in incorrect instead into is it "
    "just last least left less may maybe mod modulo minus more most multiplied must near nearly "
    "negative neither next no none nor not nothing odd of off on once one only or other otherwise "
    "over own pair pairs per perhaps plus positive possibly probably right roughly same several "
    "should since so some than that the their them then there these they this those times to "
    "triple twice thrice under unless unlike until unknown up upto vs was were when where "
    "which while with within without would wrong xor yes false true correct factorial root "
    "roots inverse reciprocal square squares cube cubes logarithm log sine cosine tangent hundreds "
    "thousands tens trillions percent percentage power powers modulus quadrillion quintillion lakh "
    "lakhs crore crores googol binary octal hexadecimal base imaginary sine cosine tangent secant "
    "exponent excluding including besides remaining missing extra additional another further non "
    "anti fake never nonsense remainder short eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth "
    "seventieth eightieth ninetieth millionth billionth trillionth".split()
) | _COUNTS  # fmt: skip

# Of these the words that count nothing else where the problem itself asks for them: more apples.
_MAY_BE_ASKED = frozenset(
    "more left less fewer times pair pairs square squares cube cubes quarter quarters extra "
    "additional remaining missing other root roots ones power powers halves tens hundreds "
    "thousands short positive negative odd even correct incorrect right wrong imaginary "
    "double triple true false log logs of".split()
)
# Of those the words that leave the value as it is: "5 more" of "how many more apples".
_HARMLESS = frozenset(
    "more left less fewer times pair pairs extra additional remaining missing other ones".split()
)
# They look like nouns, but may change the value before them: tripled, daily, tenfold, octuples.
_CHANGING = re.compile(
    r"(?:[a-z]{2}(?<!e)ed|[a-z]{3}ly|(?:[a-z]fold|uple|uplet|illion)s?)(?![a-z])"
)
_CHANGING_NOUNS = frozenset(
    "cubic permil permille promille basis bp ppm ppb myriad googol hex ternary quaternary quinary "
    "radical squareroot cuberoot conjugate complement supplement opposite transpose derivative "
    "approx circa infinite infinity undefined nil null naught void invalid impossible unsure "
    "apiece ago hence multiple exponent percentile exponential recurring repeating halve halving "
    "doubling tripling double triple penny pennie pence nickel dime fortnight millennia "
    "millennium kilo mega giga milli micro nano hecto deca centi mille mil sqrt grosse dozenth "
    "trio triplet quartet twin ream grand quid buck deka deci semi".split()
)
TAILS = frozenset("left remaining old".split())  # 12 miles left, 15 years old
TOTALS = frozenset({"in total", "in all", "total", "altogether"})  # 3 bolts in total
PLAIN_ADJECTIVES = frozenset("different distinct possible such".split())  # 12 such pairs
_MAX_NOUN_WORDS = 4
_MAX_NUMBER_WORDS = 12
_ROUND = frozenset({"a dozen", "a hundred", "a thousand", "a million", "a billion"})


@dataclass(frozen=True, slots=True)
class Suffix:
    """The words that follow a value.

    Attributes:
        scale: What the value is multiplied with (``million``).
        power: What it is raised to (``squared``).
        unit: ``((canonical name, exponent), ...)``, ``(("percent", 1),)`` for percent.
        noun: Words that are not a unit.
        text: All of it, as written.
    """

    scale: Fraction = Fraction(1)
    power: int = 1
    unit: Unit = ()
    noun: str = ""
    text: str = ""

    @property
    def is_clock(self) -> bool:
        """Whether the unit is a.m. or p.m."""
        return bool(self.unit) and kind_of(self.unit[0][0]) == "clock"

    @property
    def is_percent(self) -> bool:
        """Whether the unit is percent."""
        return self.unit == ((PERCENT, 1),)


def number_of(words: Sequence[str]) -> Fraction | None:
    """Return the value of ``minus twenty-five``, ``three million``, ``two thirds`` and the like."""
    words = [part.lower() for word in words for part in word.split("-")]
    if words and words[0] in ("minus", "negative"):
        value = number_of(words[1:])
        return None if value is None else -value
    if not words or len(words) > _MAX_NUMBER_WORDS:
        return None
    if words[-1] in PARTS and len(words) <= 2:
        return _part(words)
    if words[0] in ("a", "an") and len(words) > 1:
        words = ["one", *words[1:]]
    if words[0] in SCALES:
        words = ["one", *words]
    return _whole_number(words)


def _part(words: Sequence[str]) -> Fraction | None:
    """Read ``half``, ``a third``, ``two thirds``; ``third``, ``twenty-fifth`` are ordinals."""
    part = words[-1]
    is_plural = part.endswith("s") or part == "halves"
    if len(words) == 1:
        return Fraction(1, PARTS[part]) if part in ("half", "quarter") else None
    top = 1 if words[0] in ("a", "an") else NUMBERS.get(words[0], 0)
    if not 1 <= top < 20 or is_plural != (top > 1):
        return None
    return Fraction(top, PARTS[part])


def is_noun(word: str) -> bool:
    """Return whether a word can name something: no comparison, negation, number or operation."""
    return not any(
        part in _NO_NOUNS or _is_count(part.removesuffix("s")) for part in word.lower().split("-")
    )


def _is_count(word: str) -> bool:
    return word in _COUNTS or (word.endswith("th") and word in _NO_NOUNS)  # thirteenths


def is_plain_noun(word: str) -> bool:
    """Return whether a word is a noun that only has to be in the problem, and not a unit."""
    return is_noun(word) and name_of(word) is None and not changes_value(word)


def changes_value(word: str) -> bool:
    """Return whether it may change the number before it: ``square``, ``hundreds``, ``tripled``."""
    lower = word.lower()
    parts = {form for part in lower.split("-") for form in (part, part.removesuffix("s"))}
    is_listed = lower in _MAY_BE_ASKED - _HARMLESS or not parts.isdisjoint(_CHANGING_NOUNS)
    return is_listed or _CHANGING.search(lower) is not None


def _whole_number(words: Sequence[str]) -> Fraction | None:
    total, current, last = 0, 0, 10**15
    previous = ""
    for word in words:
        if word in NUMBERS:
            fits = (
                not previous
                or previous in SCALES
                or (NUMBERS.get(previous, 0) >= 20 and 0 < NUMBERS[word] < 10)
            )
            if not fits:
                return None
            current += NUMBERS[word]
        elif word in SCALES and current:
            scale = SCALES[word]
            if scale == 100:
                current *= 100
            elif scale < last:
                total, current, last = total + current * scale, 0, scale
            else:
                return None
        else:
            return None
        previous = word
    return Fraction(total + current)


def read_suffix(words: Sequence[str]) -> Suffix | None:
    r"""Read the words that follow a value; ``None`` when some of them are not understood.

    Args:
        words: Words, currencies, the marks ``%``, ``/``, ``^``, ``\degree``, numerals after ``^``.
    """
    rest = list(words)
    text = " ".join(words)
    scale, power = Fraction(1), 1
    while rest and rest[0].lower() in SCALES:
        scale *= SCALES[rest.pop(0).lower()]
    if rest and rest[0].lower() in POWER_WORDS and scale == 1:
        power = POWER_WORDS[rest.pop(0).lower()]
    if not rest:
        return Suffix(scale, power, text=text)
    rest = _with_per(rest)
    unit = read_unit(rest)
    if unit is not None:
        return Suffix(scale, power, unit, text=text)
    head, tail = split_tail(rest)
    if tail and (not head or (unit := read_unit(head)) is not None):
        return Suffix(scale, power, unit or (), noun=tail, text=text)
    noun = _read_noun(head)
    return Suffix(scale, power, noun=f"{noun} {tail}".strip(), text=text) if noun else None


def read_counted(words: Sequence[str]) -> tuple[Fraction, Suffix] | None:
    """Read a whole number in words and its unit or noun: ``four apples``, ``ninety kilometers``."""
    first = words[1:] if words[0].lower() in ("minus", "negative") else words
    begins = " ".join(first[:2]).lower()
    if begins not in _ROUND and re.split("[ -]", begins)[0] not in NUMBERS:
        return None
    for size in range(min(len(words) - 1, _MAX_NUMBER_WORDS), 0, -1):
        value = number_of(words[:size])
        if value is not None:
            suffix = read_suffix(words[size:])
            if suffix is None or not suffix.scale == suffix.power == value.denominator == 1:
                return None
            return value, suffix
    return None


def split_tail(words: Sequence[str]) -> tuple[list[str], str]:
    """Split a noun from what is said of it at its end: ``left``, ``in total``, ``per day``."""
    for size in (2, 1):
        tail = " ".join(words[-size:]).lower()
        if tail in TAILS | TOTALS or (is_rate(words[-size:]) or is_share(words[-size:])):
            return [*words[:-size]], tail
    return [*words], ""


def is_rate(words: Sequence[str]) -> bool:
    """Tell whether two words are ``per`` or the like and a time: ``per day``, ``every week``."""
    if len(words) != 2 or words[0].lower() not in OVER:
        return False
    is_time = kind_of(name_of(words[1]) or "") == "time"
    return is_time and (words[0] in ("per", "/") or not is_symbol(words[1]))  # a m is not a minute


def is_share(words: Sequence[str]) -> bool:
    """Tell whether two words are ``per`` and a noun: ``per stamp``."""
    return len(words) == 2 and words[0].lower() == "per" and is_plain_noun(words[1])


def _with_per(words: list[str]) -> list[str]:
    """Write a rate at the end with ``per``: ``dollars every week``."""
    return [*words[:-2], "per", name_of(words[-1]) or ""] if is_rate(words[-2:]) else words


def _read_noun(words: Sequence[str]) -> str:
    are_nouns = len(words) <= _MAX_NOUN_WORDS and all(
        word.replace("-", "").isalpha() and word.isascii()
        and (word in _MAY_BE_ASKED | PLAIN_ADJECTIVES or (len(word) > 2 and is_noun(word)))
        for word in (each.lower() for each in words)
    )  # fmt: skip
    return " ".join(words).lower() if are_nouns else ""
