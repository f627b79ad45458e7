"""Edits of golds that are one plain number; each shows by arithmetic that the value changes."""

from __future__ import annotations

import random

from attacks.kinds import changes, whole, wrapped
from attacks.numbers import WORDS
from attacks.shapes import Gold, read_number, spelled

Rng = random.Random


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
    tails += [rf"\pm {number}", rf"\mp {number}", f"**{number}", "^{-1}", r"\times 10^{3}"]
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
    word = rng.choice(WORDS[2:10])
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
    if (
        not gold.numeral
        or not gold.number
        or gold.mentions(word[:5] if len(word) > 1 else "illion")
    ):
        return None
    if gold.mentions("thousand", "illion") or (len(word) == 1 and gold.has_letter(word)):
        return None
    return (
        gold.numeral
        + rng.choice(["", " ", r"\ ", "~"])
        + rng.choice([wrapped(rng, word), wrapped(rng, " " + word), " " + word])
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


@changes("the other sign")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number or not gold.text:
        return None
    text = spelled(-gold.number)
    minus = ["-", "−", r"\text{minus }", r"\text{negative }", "minus ", r"\text{-}", r"\mathrm{-}"]
    minus += [r"(-1)\cdot ", "-1*", r"{-}", r"-\,"]
    return rng.choice(minus) + gold.text if gold.number > 0 else text
