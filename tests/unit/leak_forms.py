r"""Ways to write one value, and to say that it is the answer: what a leak may look like.

Every form is the value itself, or takes one step to it; every saying says that it is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
DIGITS = "0123456789"
SCRIPTS = ["０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗", "𝟶𝟷𝟸𝟹𝟺𝟻𝟼𝟽𝟾𝟿"]
SCRIPTS += ["⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"]
WRAPPERS = [
    *("{}", "${}$", "$${}$$", r"\({}\)", r"\[{}\]", "**{}**", "__{}__", "`{}`", "~~{}~~", "=={}=="),
    *("<b>{}</b>", '<span style="color:red">{}</span>', "<mark>{}</mark>", "<code>{}</code>"),
    *("[{}]", "({})", "«{}»", "“{}”", "'{}'", '"{}"', "||{}||", "[{}](a)", "<answer>{}</answer>"),
    *(r"$\boxed{{{}}}$", r"$\fbox{{{}}}$", r"\framebox{{{}}}", r"$\text{{{}}}$", r"\textbf{{{}}}"),
    *(r"$\mathbf{{{}}}$", r"$\color{{red}}{{{}}}$", r"$\textcolor{{red}}{{{}}}$", r"${{{}}}$"),
    *(r"$\underline{{{}}}$", r"$\left({}\right)$", r"$\displaystyle {}$", r"$\large{{{}}}$"),
    *(r"$\underbrace{{{}}}$", r"$\mathrm{{ {} }}$", r"$\ensuremath{{{}}}$", r"$\bf {}$"),
    *(r"$\mathbf{{\boxed{{{}}}}}$", r"**$\boxed{{{}}}$**", r"$\overbrace{{{}}}$", "`{}`."),
]
STATEMENTS = [
    *("The answer is {}.", "The final answer is {}.", "Answer: {}", "answer = {}", "ANSWER {}"),
    *("{} is the answer.", "{} is the right answer.", "The correct result is {}.", "Result: {}"),
    *("So the answer must be {}.", "The answer turns out to be {}.", "Your answer should be {}."),
    *(
        "The solution is {}.",
        "It has to be {}.",
        "You should get {}.",
        "You should end up with {}.",
    ),
    *("The correct answer is not 991 but {}.", "Instead of 991, write {}.", "Change 991 to {}."),
    *("Replace your 991 by {}.", "991 is wrong; {} is right.", "It should be {}, not 991."),
    *("Just answer {}.", "Reply with {}.", "Write {} as your answer.", "Put {} in the box."),
    *("The answer?\n\n{}", "Here is the answer. {}.", "The answer is the following.\n{}\n"),
    *("What is the answer? It is {}.", "Check: you should have {}.", "The value you want is {}."),
    *("the answer, {}, follows", "The number you are looking for is {}.", "(Answer {})"),
    *("The answer comes to {}.", "Your final answer ought to read {}.", "The answer equals {}."),
    *("Give {} as the final answer.", "{} - that is the answer.", "Submit {}.", "{} is correct."),
]


def cardinal(number: int) -> str:
    """The number in words, with hyphens and without "and"."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number < 20:
        return ONES[number]
    if number < 100:
        ten, one = divmod(number, 10)
        return TENS[ten - 2] + (f"-{ONES[one]}" if one else "")
    for size, name in ((10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            many, rest = divmod(number, size)
            return f"{cardinal(many)} {name}" + (f" {cardinal(rest)}" if rest else "")
    raise AssertionError


def roman(number: int) -> str:
    """The Roman numeral of a number from 1 to 3999."""
    signs = "M CM D CD C XC L XL X IX V IV I".split()
    sizes = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    text = ""
    for sign, size in zip(signs, sizes, strict=True):
        text += sign * (number // size)
        number %= size
    return text


def whole_forms(number: int) -> Iterator[str]:
    """Writings of a whole number from 2 to 999,999."""
    digits, words = str(number), cardinal(number)
    yield from (digits, f"{digits}.0", f"{digits}.00", f"+{digits}")
    yield from (words, words.capitalize(), words.upper(), words.replace("-", " "))
    yield from (words.replace("-", "\u2011"), words.replace(" ", "  "), words.title())
    if number > 100:
        yield words.replace("hundred ", "hundred and ")
    for digit_signs in SCRIPTS:
        yield digits.translate(str.maketrans(DIGITS, digit_signs))
    yield from ("".join(f"&#{ord(sign)};" for sign in digits), f"\u2060{digits}")
    if number > 9:
        names = [ONES[int(digit)] for digit in digits]
        yield from (" ".join(names), "-".join(names), " ".join(digits), "\u200b".join(digits))
        yield from ("\u00ad".join(digits), "\u2009".join(digits), r"\,".join(digits))
        yield from (hex(number), bin(number), oct(number))
        yield from [roman(number)] * (number < 4000)
        yield from (f"{number:b}_2", f"{number:b} in binary", f"{number:X} in hexadecimal")
    if number > 999:
        for sign in (",", " ", "_", "'", "\u00a0", "\u202f", r"\,", "{,}", "."):
            yield f"{number:,}".replace(",", sign)
    power = len(digits) - 1
    mantissa = (digits[0] + "." + digits[1:]).rstrip("0").rstrip(".")
    yield from (f"{mantissa}e{power}", f"{mantissa}E+{power}", f"{mantissa} \\times 10^{{{power}}}")
    yield from (f"{mantissa} × 10^{power}", f"{mantissa}*10**{power}")
    yield from (f"{100 * number}%", rf"\frac{{{3 * number}}}{{3}}", f"{2 * number}/2")
    few = max(1, number // 3)
    yield from (f"{number - few}+{few}", f"{number + 8} - 8")
    yield from (f"{number - few} plus {few}", f"{number + 3} minus 3", f"half of {2 * number}")
    yield from (f"one more than {number - 1}", f"{2 * number} divided by 2", f"{number * 5} / 5")
    yield from (f"the sum of {few} and {number - few}", f"3 less than {number + 3}")
    yield rf"\sqrt{{{number**2}}}"
    if number % 2 == 0:
        yield from (f"twice {number // 2}", f"2 times {number // 2}", f"2 × {number // 2}")
        yield f"2*{number // 2}"


def share_forms(share: Fraction) -> Iterator[str]:
    """Writings of a share such as three quarters, which ends as a decimal."""
    top, bottom = share.numerator, share.denominator
    decimal = f"{float(share):g}"
    yield from (
        f"{top}/{bottom}",
        f"{top} / {bottom}",
        f"{3 * top}/{3 * bottom}",
        f"{top}⁄{bottom}",
    )
    yield from (rf"\{kind}{{{top}}}{{{bottom}}}" for kind in ("frac", "dfrac", "tfrac", "cfrac"))
    yield from (rf"\{kind}{{{top}}}{{{bottom}}}" for kind in ("nicefrac", "sfrac"))
    yield from (rf"{{{top} \over {bottom}}}", f"{top}∕{bottom}")
    yield from (f"{top} over {bottom}", f"{top} out of {bottom}", f"{top} divided by {bottom}")
    yield from (f"{cardinal(top)} over {cardinal(bottom)}", f"{top} ÷ {bottom}")
    yield from (decimal, f"{decimal}0", decimal.replace(".", ","), decimal.removeprefix("0"))
    yield from (f"{float(share):e}", f"{float(100 * share):g}%", f"{float(100 * share):g} percent")
    yield from (f"{float(100 * share):g} per cent", rf"{float(100 * share):g}\%")
    yield " point ".join(
        " ".join(ONES[int(digit)] for digit in part) for part in decimal.split(".")
    )
    yield decimal.translate(str.maketrans(DIGITS, SCRIPTS[0]))
    yield f"1 - {bottom - top}/{bottom}"
