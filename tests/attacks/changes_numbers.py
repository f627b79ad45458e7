"""Edits of golds that are one plain number; each shows by arithmetic that the value changes."""

from __future__ import annotations

import random
from fractions import Fraction

from attacks.kinds import FONTS, changes, whole, wrapped
from attacks.shapes import Gold, read_number, spelled

Rng = random.Random
_UNITS = {
    "seconds": "second", "minutes": "minute", "hours": "hour", "days": "day", "weeks": "week",
    "months": "month", "years": "year", "miles": "mile", "meters": "meter", "feet": "feet",
    "inches": "inch", "kilometers": "kilometer", "kilograms": "kilogram", "pounds": "pound",
    "ounces": "ounce", "gallons": "gallon", "dollars": "dollar", "cents": "cent",
}  # fmt: skip
_FOREIGN = "٠٦۷५๓7７𝟕𝟔𝟘"
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def other(rng: Rng, gold: Gold) -> int:
    """A small whole number that is not the gold."""
    value = gold.number or Fraction(0)
    near = [int(value) + step for step in (-2, -1, 1, 2, 3)] + [rng.randint(2, 60)]
    return rng.choice([n for n in near if n != value and n > 0] or [int(abs(value)) + 7])


@changes("digits appended or prepended")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral:
        return None
    digit = str(rng.randint(0, 9))
    text = rng.choice([gold.numeral + digit, digit + gold.numeral.lstrip("-")])
    changed = read_number(text)
    return text if changed is not None and changed != gold.number else None


@changes("a digit in another font beside the number")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or not gold.number:
        return None
    digit = wrapped(rng, str(rng.randint(1, 9)))
    return rng.choice([gold.numeral + digit, digit + gold.numeral]) if gold.number > 0 else None


@changes("more digits of the number as text")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 1)
    if value is None:
        return None
    tail = rng.choice([",000", ",500", "000", ".5", ".25", "00", "e3", "e2", "E3", ",000,000"])
    gap = rng.choice(["", "", " ", "~"])
    return f"{value}{gap}{wrapped(rng, tail)}"


@changes("digits joined by spacing")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 1)
    joint = rng.choice([r"\!", "{}", r"\,", r"\hspace{0pt}", r"\kern0pt ", "{,}", r"\mkern0mu "])
    return None if value is None else f"{value}{joint}{rng.randint(100, 999)}"


@changes("an operator and an operand appended")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or abs(gold.number or 0) in (0, 1, 2):
        return None
    number = rng.randint(2, 9)
    tails = [f"+{number}", f"-{number}", rf"\cdot {number}", f"/{number}", f"^{number}", "!"]
    tails += [rf"\times {number}", rf"\div {number}", f"*{number}", f"^{{{number}}}", "!!"]
    tails += [rf"\pm {number}", rf"\mp {number}", f"**{number}", f"^{{-1}}", r"\times 10^{3}"]
    tails += [rf"\bmod {number}", f"({number})", rf"\frac{{{number}}}{{7}}", rf"\sqrt{{{number}}}"]
    tail = rng.choice(tails)
    if "frac" in tail and tail.startswith(r"\frac") and number == 7:
        return None
    if "bmod" in tail and abs(gold.number or 0) < number:
        return None
    if tail == "!!" and abs(gold.number or 0) == 3:
        return None  # 3!! = 3
    if tail in ("!", "!!") and gold.whole is None:
        return None
    return gold.numeral + tail


@changes("an operator and an operand as text")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or abs(gold.number or 0) in (0, 1, 2):
        return None
    number = rng.randint(2, 9)
    word = rng.choice(_WORDS[2:10])
    tails = [f"/{number}", f"+{number}", f"-{number}", f" x {number}", f"*{number}", f"^{number}"]
    tails += [f" minus {word}", f" plus {word}", f" times {word}", f" over {word}", " factorial"]
    tails += [f" plus or minus {number}", " cubed", " squared", f" choose {number}", " inverse"]
    tails += [f" divided by {word}", f" to the power of {word}", " less one", f"({number})", "!"]
    tail = rng.choice(tails)
    if "choose" in tail and abs(gold.number or 0) <= number + 1:
        return None
    if tail in ("!", " factorial") and gold.whole is None:
        return None
    return gold.numeral + wrapped(rng, tail, "text", "mbox", "mathrm", "textbf")


@changes("an operator left hanging")
def _(rng: Rng, gold: Gold) -> str | None:
    return gold.numeral + rng.choice(["+", r"\times", r"\cdot", r"\div"]) if gold.numeral else None


@changes("a scale word")
def _(rng: Rng, gold: Gold) -> str | None:
    words = "million thousand hundred billion dozen k M score gross pairs trillion lakh".split()
    word = rng.choice(words)
    if not gold.numeral or not gold.number or gold.mentions(word[:5] if len(word) > 1 else "illion"):
        return None
    if gold.mentions("thousand", "illion") or (len(word) == 1 and gold.has_letter(word)):
        return None
    return gold.numeral + rng.choice(["", " ", r"\ ", "~"]) + rng.choice(
        [wrapped(rng, word), wrapped(rng, " " + word), " " + word]
    )


@changes("half, double, squared and the like")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or abs(gold.number or 0) in (0, 1):
        return None
    number = gold.numeral
    before = "half of,half,double,twice,triple,minus,negative,the square of,a third of,one over"
    after = "halves,thirds,squared,cubed,tenths,doubled,and a half,point five,hundredths,percent"
    if gold.mentions("half", "halv", "percent", "%", "tenth", "third", "share", "twice"):
        return None
    if rng.random() < 0.5:
        word = rng.choice(before.split(","))
        return rf"{wrapped(rng, word + ' ', 'text', 'mbox')}{number}"
    word = rng.choice(after.split(","))
    return number + rng.choice([wrapped(rng, " " + word, "text", "mbox", "textbf"), " " + word])


@changes("percent and per mille")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.text.endswith("%") and (number := read_number(gold.text.rstrip("%\\"))):
        wrong = [number * 10, number / 10, number + 1, -number]
        plain = rng.choice(wrong)
        percent = rng.choice([r"\%", r"\text{ percent}"])
        per_mille = rf"{spelled(number)}\text{{ per mille}}"
        return rng.choice([spelled(plain) + percent, per_mille])
    if not gold.numeral or not gold.number or not gold.problem:
        return None
    if gold.mentions("percent", "%", "rate", "share", "probab", "chance", "part"):
        return None
    return gold.numeral + rng.choice([r"\%", "%", r"\text{ percent}", r"\text{\%}", "‰"])


@changes("two alternatives")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, str(other(rng, gold))
    texts = [rf"{a}\text{{ or }}{b}", rf"{a}\text{{ xor }}{b}", rf"{a}\vee {b}", rf"{a}\lor {b}"]
    texts += [rf"\text{{either }}{a}\text{{ or }}{b}", rf"\{{{a},{b}\}}", f"{a}, {b}", f"{a}; {b}"]
    texts += [rf"{a}\text{{ or {b}}}", rf"\text{{{a} or {b}}}", rf"{a}\text{{ (maybe {b})}}"]
    texts += [rf"{a}\text{{, maybe }}{b}", rf"{a}\text{{ and }}{b}", rf"{a}\land {b}", f"{a} or {b}"]
    texts += [rf"{b}\text{{ or }}{a}", rf"{a}\text{{ resp. }}{b}", f"({a},{b})", f"({a} | {b})"]
    texts += [rf"{a}\mathrm{{or}}{b}", rf"{a}\quad {b}", rf"{a}\\{b}", f"{a}\n{b}", rf"{a}\cup {b}"]
    texts += [rf"{a}\,\text{{or}}\,{b}", rf"{a}\text{{ (or }}{b}\text{{)}}", rf"{a} \& {b}"]
    texts += [rf"{a}\text{{ if it rains, else }}{b}"]
    texts += [rf"\begin{{array}}{{c}}{a}\\{b}\end{{array}}", rf"\begin{{cases}}{a}\\{b}\end{{cases}}"]
    return rng.choice(texts)


@changes("a range")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.number < 0:
        return None
    a, b = gold.text, spelled(gold.number + rng.randint(1, 9))
    dash = rng.choice(["-", "--", "–", r"\text{ to }", r"\ldots ", r"\dots ", r"\text{--}"])
    bounds = [rf"{a}{dash}{b}", rf"[{a},{b}]", rf"\text{{between }}{a}\text{{ and }}{b}"]
    return rng.choice([*bounds, rf"{a}\pm {rng.randint(1, 9)}", rf"{a}\pm 0.5"])


@changes("a relation instead of a number")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.mentions("least", "most", "imum", "est ", "bound", "more"):
        return None
    signs = [r"\neq ", "<", ">", r"\leq ", r"\ge ", "!=", "≠", "≤", r"\not=", r"\text{at least }"]
    signs += [r"\text{less than }", r"\text{more than }", r"\text{at most }", r"\text{not }"]
    signs += [r"\lnot ", r"\neg ", r"x\neq ", r"x<", "x > ", "not ", r"\text{anything but }"]
    text = rng.choice(signs) + gold.text
    forms = [text, rf"{gold.text}={other(rng, gold)}", rf"{gold.text}\to {other(rng, gold)}"]
    return rng.choice([*forms, rf"{gold.text}\Rightarrow {other(rng, gold)}"])


@changes("said not to be so")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    n = other(rng, gold)
    tails = ["is wrong", "is not the answer", "is too small", f"is wrong, it is {n}", "(no)"]
    tails += [f"rather {n}", f"no, {n}", f"(wrong: {n})", "is incorrect", "is false", "not"]
    tails += [f"; correction: {n}", f", I mean {n}", f"but in truth {n}", f", so {n}", "is excluded"]
    return gold.text + rng.choice(["", r"\ "]) + rf"\text{{ {rng.choice(tails)}}}"


@changes("the other sign")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number or not gold.text:
        return None
    text = spelled(-gold.number)
    minus = ["-", "−", r"\text{minus }", r"\text{negative }", "minus ", r"\text{-}", r"\mathrm{-}"]
    minus += [r"(-1)\cdot ", "-1*", r"{-}", r"-\,"]
    return rng.choice(minus) + gold.text if gold.number > 0 else text


@changes("decimal point moved")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or not gold.number:
        return None
    sign, digits = ("-", gold.numeral[1:]) if gold.number < 0 else ("", gold.numeral)
    shift = rng.choice([-3, -2, -1, 1, 2, 3])
    value = Fraction(digits) * Fraction(10) ** shift
    text = f"{float(value):.12f}".rstrip("0").rstrip(".")
    return sign + text if Fraction(text) == value else None


@changes("one digit replaced, dropped or swapped")
def _(rng: Rng, gold: Gold) -> str | None:
    places = [place for place, char in enumerate(gold.text) if char.isdigit()]
    if gold.number is None or not places:
        return None
    place = rng.choice(places)
    text = gold.text
    texts = [text[:place] + rng.choice("0123456789") + text[place + 1 :]]
    texts += [text[:place] + text[place + 1 :]]
    if place + 1 in places:
        texts += [text[:place] + text[place + 1] + text[place] + text[place + 2 :]]
    changed = rng.choice(texts)
    value = read_number(changed)
    return changed if value is not None and value != gold.number else None


@changes("perturbed by 1e-3 to 1e-6")
def _(rng: Rng, gold: Gold) -> str | None:
    return _perturbed(rng, gold, rng.randint(3, 6))


@changes("perturbed by 1e-7 to 1e-12")
def _(rng: Rng, gold: Gold) -> str | None:
    return _perturbed(rng, gold, rng.randint(7, 12))


def _perturbed(rng: Rng, gold: Gold, digits: int) -> str | None:
    """An exact gold (whole or a fraction) and a small multiple of it."""
    if not gold.number or "." in gold.text:
        return None
    sign = rng.choice([-1, 1])
    value = gold.number * (1 + sign * Fraction(rng.randint(1, 9), 10**digits))
    size = rng.randint(1, 9)
    texts = [spelled(value), rf"{gold.text}{'+' if sign > 0 else '-'}{size}\cdot 10^{{-{digits}}}"]
    texts += [rf"{gold.text}{'+' if sign > 0 else '-'}\frac{{{size}}}{{{10**digits}}}"]
    return rng.choice(texts)


@changes("perturbed by 1e-7 to 1e-12, as a decimal")
def _(rng: Rng, gold: Gold) -> str | None:
    value, digits = gold.whole, rng.randint(7, 12)
    if not value:
        return None
    tail = f"{rng.randint(1, 9)}"
    return rng.choice([f"{value}.{'0' * (digits - 1)}{tail}", f"{value - 1}.{'9' * digits}"])


@changes("perturbed by 1e-2 to 1e-5, as a decimal")
def _(rng: Rng, gold: Gold) -> str | None:
    value, digits = gold.whole, rng.randint(2, 5)
    if not value or value < 0:
        return None
    return rng.choice([f"{value}.{'0' * (digits - 1)}{rng.randint(1, 9)}", f"{value - 1}.{'9' * digits}"])


@changes("a decimal gold, its last digit changed")
def _(rng: Rng, gold: Gold) -> str | None:
    if "." not in gold.numeral:
        return None
    unit = Fraction(1, 10 ** len(gold.numeral.partition(".")[2]))
    value = (gold.number or 0) + rng.choice([-3, -2, -1, 1, 2, 3]) * unit
    return f"{float(value):.{len(gold.numeral.partition('.')[2])}f}"


@changes("read in another base")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 2)
    base = rng.choice([2, 3, 5, 7, 8, 16])
    if value is None or value < base or max(map(int, str(value))) >= base:
        return None
    if gold.mentions("base", "binary", "octal", "hex"):
        return None
    forms = [f"{value}_{base}", f"{value}_{{{base}}}", rf"{value}_{{\text{{{_WORDS[min(base, 16)]}}}}}"]
    forms += [rf"({value})_{{{base}}}", rf"{value}\text{{ in base }}{base}"]
    return rng.choice(forms)


@changes("complex part added")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number:
        return None
    i = rng.choice(["i", r"\mathrm{i}", "j", r"\text{i}", r"\mathbf{i}", r"\imath", r"\iota"])
    number = rng.choice(["", "2", "3", "0.001", r"\frac{1}{2}"])
    return rng.choice([f"{gold.text}+{number}{i}", f"{gold.text}-{number}{i}", f"{gold.text}{i}"])


@changes("times or plus a symbol")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number or gold.mentions("times"):
        return None
    letter = rng.choice(["x", "y", "z", "q", "w", r"\pi", r"\alpha", r"\varepsilon", "e", r"\theta"])
    texts = [f"{gold.text}{letter}", f"{gold.text}+{letter}", f"{gold.text}{letter}^2"]
    texts += [rf"{gold.text}\cdot {letter}", f"{gold.text}-{letter}", f"{letter}^{{{gold.text}}}"]
    texts += [rf"{gold.text}\text{{{letter}}}", rf"{gold.text}\,\mathrm{{{letter}}}"]
    return rng.choice(texts if len(letter) == 1 else texts[:6])


@changes("inside a function")
def _(rng: Rng, gold: Gold) -> str | None:
    if abs(gold.number or 0) in (0, 1, 2):
        return None
    names = [r"\sqrt{%s}", r"\sqrt[3]{%s}", r"\log(%s)", r"\ln %s", r"\sin(%s)", r"\Gamma(%s)"]
    names += [r"\text{sqrt}(%s)", r"\text{sqrt }%s", r"\text{square root of }%s", r"\exp(%s)", r"f(%s)"]
    names += [r"\frac{1}{%s}", r"\frac{%s}{2}", r"\sqrt%s", r"\operatorname{lg} %s", r"2^{%s}"]
    return rng.choice(names) % gold.text if (gold.number or 0) > 0 else None


@changes("struck out or below something")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, other(rng, gold)
    texts = [rf"\cancel{{{a}}}", rf"\cancel{{{a}}}{b}", rf"\sout{{{a}}}", rf"\bcancel{{{a}}} {b}"]
    texts += [rf"\xcancel{{{a}}}\ {b}", rf"\stackrel{{{a}}}{{{b}}}", rf"\overset{{{a}}}{{{b}}}"]
    texts += [rf"\underset{{{a}}}{{{b}}}", rf"\substack{{{a}\\{b}}}", rf"\binom{{{a}}}{{{b}}}"]
    texts += [rf"\phantom{{{a}}}", rf"\cancelto{{{b}}}{{{a}}}", rf"\st{{{a}}} {b}", rf"\not {a}"]
    texts += [rf"{{{a} \atop {b}}}", rf"{{{a} \choose {b}}}"]
    text = rng.choice(texts)
    is_binomial = "binom" in text or "choose" in text
    return None if is_binomial and gold.number - b in (0, 1, gold.number - 1) else text


@changes("TeX that prints another number")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 1)
    if value is None:
        return None
    digit = rng.randint(1, 9)
    code = 48 + digit
    texts = [f"{value}%{digit}", f"{value}%\n{digit}", rf"{value}\char{code}", rf'{value}\char"{code:X}']
    texts += [rf"{value}\symbol{{{code}}}", rf"{value}\unicode{{x{code:X}}}", rf"{value}^^{code:02x}"]
    texts += [rf"{value}\def\a{{{digit}}}\a", rf"\newcommand{{\a}}{{{digit}}}{value}\a"]
    texts += [rf"\let\a={digit}{value}\a", rf"{value}\rlap{{{digit}}}", rf"{value}\llap{{{digit}}}"]
    texts += [rf"{value}\number{digit}", rf"{value}\rule{{1pt}}{{9pt}}{digit}", rf"{value}\ensuremath{{{digit}}}"]
    texts += [rf"{value}\makebox{{{digit}}}", rf"{value}\raisebox{{0pt}}{{{digit}}}", rf"{value}\hbox{{{digit}}}"]
    return rng.choice(texts)


@changes("foreign digits and signs")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 3)
    if value is None:
        return None
    tails = [*_FOREIGN, "½", "²", "³", "⁵", "⁄2", "∕2", "÷2", "·2", "∙2", "×2", "٫5", "‼", "⅓"]
    tails += ["½½", "²³", "√2", "π", "∞", "⅋", "\u0338", "\u0336", "\u20e0", "°C²"]
    if gold.mentions("base", "degree"):
        return None
    return f"{value}{rng.choice(tails)}"


@changes("a box within the box")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, other(rng, gold)
    texts = [rf"{a}\boxed{{{b}}}", rf"\boxed{{{a}}}{b}", rf"\boxed{{{a}}}\text{{ or }}{b}"]
    return rng.choice([*texts, rf"\boxed{{{a}}}+{b}", rf"\fbox{{{a}}}{b}", rf"{a} \fbox{{{b}}}"])


@changes("numbers in words")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.whole
    if value is None or not 1 <= value <= 9:
        return None
    word = _WORDS[value]
    texts = [f"{rng.choice(_TENS)}-{word}", f"{rng.choice(_TENS)} {word}", f"{word} hundred"]
    texts += [f"{word} million", f"minus {word}", f"{word} and a half", f"{word} point two"]
    texts += [f"{word} or {_WORDS[value + 1]}", f"{word} thousand and one", f"not {word}"]
    texts += [f"{word} dozen", f"{word} squared and one", f"hundred {word}", _WORDS[value + 1]]
    if gold.mentions("dozen", "thousand", "illion", "hundred"):
        return None
    return wrapped(rng, rng.choice(texts), "text", "mbox", "textbf", "mathrm")


@changes("a ratio, a date or a time")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 2)
    number = rng.randint(10, 59)
    if value is None or value < 0 or gold.mentions("ratio", "time", "o'clock", "a.m", "p.m"):
        return None
    return rng.choice([f"{value}:{number}", rf"{value}:{number}:30", f"{value}\\text{{ to }}{number}"])


@changes("another unit than the one asked for")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = [name for name, stem in _UNITS.items() if f"how many {name}" in gold.problem.lower()]
    if not gold.numeral or not gold.number or len(asked) != 1 or gold.problem.count("?") != 1:
        return None
    name = rng.choice([name for name in _UNITS if name != asked[0]])
    return gold.numeral + rng.choice([rf"\text{{ {name}}}", rf"\ \mathrm{{{name}}}", f" {name}"])


@changes("another currency")
def _(rng: Rng, gold: Gold) -> str | None:
    last = gold.problem.rstrip().rstrip("?").rpartition(".")[2].lower()
    if not gold.numeral or not gold.number or "$" not in gold.problem or "how much" not in last:
        return None
    if not any(word in last for word in (" pay", "cost", "earn", "spend", "money", "price")):
        return None
    if gold.mentions("cent", "euro", "€", "penn", "yen", "£", "per ", "percent", "how much more than"):
        return None
    a = gold.numeral
    texts = [rf"{a}\text{{ cents}}", f"€{a}", rf"{a}\text{{ euros}}", f"£{a}", f"{a}¢", f"¥{a}"]
    return rng.choice([*texts, rf"{a}\text{{ yen}}", rf"{a}\text{{ rupees}}", rf"\pounds {a}"])


@changes("a noun that the problem does not have")
def _(rng: Rng, gold: Gold) -> str | None:
    nouns = "elephants,violins,volcanoes,submarines,penguins,cathedrals,trombones,glaciers".split(",")
    noun = rng.choice(nouns)
    if not gold.numeral or "how many" not in gold.problem.lower() or gold.mentions(noun[:5]):
        return None
    return gold.numeral + wrapped(rng, f" {noun}", "text", "mbox", "mathrm", "textbf")


@changes("operators and numbers around a unit")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = [name for name in _UNITS if f"how many {name}" in gold.problem.lower()]
    if not gold.numeral or abs(gold.number or 0) in (0, 1) or len(asked) != 1:
        return None
    unit, n = asked[0], rng.randint(2, 9)
    tails = [f" {unit} and {n} {unit}", f" {unit} or {n} {unit}", f" million {unit}", f" {unit} + {n}"]
    tails += [f" {unit} squared", f" dozen {unit}", f" half {unit}", f" per {unit}", f"/{unit}"]
    tails += [f" {unit} times {n}", f" {unit} minus {n} {unit}", f" to {n} {unit}"]
    tails += [f" {n} {unit}", f",000 {unit}", f" thousand {unit}", f" {unit} ({n})"]
    return gold.numeral + wrapped(rng, rng.choice(tails), *FONTS[:3])
