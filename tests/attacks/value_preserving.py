"""Right answers written otherwise, without end: ``generate(golds, seed)``.

Each edit keeps what a reader of the answer reads: colour, size, fonts, spacing, Unicode for
LaTeX, ASCII relations, named left sides, the order of what has none, equal numbers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from attacks.kinds import PRESERVING, keeps
from attacks.shapes import Gold, spelled
from attacks.value_changing import Case

Rng = random.Random
_TRIES = 40
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_VULGAR = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/5": "⅕", "1/8": "⅛"}
_ASCII = ((r"\\leqslant|\\leq?", "<="), (r"\\geqslant|\\geq?", ">="), (r"\\neq?", "!="))
_UNICODE = ((r"\\leqslant|\\leq?", "≤"), (r"\\geqslant|\\geq?", "≥"), (r"\\neq?", "≠"))
_SYMBOLS = ((r"\\pi", "π"), (r"\\infty", "∞"), (r"\\cup", "∪"), (r"\\pm", "±"), (r"\\cdot", "·"))
_SYMBOLS += ((r"\\theta", "θ"), (r"\\times", "×"), (r"\^\{?\\circ\}?", "°"), (r"(?<![A-Za-z{])-", "−"))


def is_plain(gold: Gold) -> bool:
    """Something that a font or a size may be put around: no words, no matrix."""
    return not re.search(r"\\(?:text|mbox|begin)|\$", gold.answer)


def replaced(pattern: str, new: str, text: str) -> str:
    changed = re.sub(rf"(?:{pattern})(?![A-Za-z])", lambda _: new, text)
    return re.sub(rf"{re.escape(new)} +", new, changed) if changed != text else text


@keeps("colour")
def _(rng: Rng, gold: Gold) -> str | None:
    colour = rng.choice(["red", "blue", "black", "green", "purple"])
    a = gold.answer
    forms = [rf"\textcolor{{{colour}}}{{{a}}}", rf"{{\color{{{colour}}}{a}}}"]
    forms += [rf"\color{{{colour}}}{{{a}}}", rf"\color{{{colour}}} {a}", rf"\colorbox{{{colour}}}{{${a}$}}"]
    return rng.choice(forms[:4] if "$" in a else forms)


@keeps("size")
def _(rng: Rng, gold: Gold) -> str | None:
    sizes = ["large", "Large", "LARGE", "huge", "Huge", "small", "normalsize", "tiny", "displaystyle"]
    size = rng.choice([*sizes, "textstyle"])
    return rng.choice([rf"\{size} {gold.answer}", rf"{{\{size} {gold.answer}}}", rf"\{size}{{{gold.answer}}}"])


@keeps("spacing around")
def _(rng: Rng, gold: Gold) -> str | None:
    spaces = [" ", r"\,", r"\;", r"\:", r"\!", "~", r"\ ", r"\quad ", r"\qquad ", "\n", r"\> "]
    spaces += [r"\hspace{1em}", r"\thinspace ", "\u2009", "\u00a0", "\u202f", r"\enspace "]
    return rng.choice([*spaces, ""]) + gold.answer + rng.choice(spaces)


@keeps("spacing inside")
def _(rng: Rng, gold: Gold) -> str | None:
    spaces = [" ", r"\,", r"\; ", r"\!", "~", r"\ ", "  ", r"\: ", "\u2009", "\u00a0"]
    places = [m.end() for m in re.finditer(r"[,+=<>(\[](?=[^,+=<>])", gold.answer)]
    if not places or re.search(r"[0-9],[0-9]{3}|text|mbox|mathrm|\$|left|right|\{,", gold.answer):
        return None
    place = rng.choice(places)
    return gold.answer[:place] + rng.choice(spaces) + gold.answer[place:]


@keeps("fonts")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.numeral or (gold.number is not None and "," in gold.text):
        fonts = ["mathrm", "mathbf", "boldsymbol", "mathit", "text", "textbf", "mathsf", "mathtt", "bm", "mbox"]
        return rf"\{rng.choice(fonts)}{{{gold.answer}}}"
    if is_plain(gold) and gold.is_expression:
        return rf"\{rng.choice(['boldsymbol', 'bm', 'mathbf', 'mathrm', 'pmb'])}{{{gold.answer}}}"
    return None


@keeps("word fonts")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.word:
        return None
    fonts = ["text", "textbf", "mathrm", "mbox", "textit", "operatorname", "textrm", "textsf", "mathbf"]
    case = rng.choice([str, str.lower, str.capitalize, str.upper]) if len(gold.word) > 1 else str
    word = case(gold.word)
    return rng.choice([rf"\{rng.choice(fonts)}{{{word}}}", word, rf"\text{{ {word} }}", rf"\text{{{word}.}}"])


@keeps("fraction spelling")
def _(rng: Rng, gold: Gold) -> str | None:
    simple = re.fullmatch(r"(-?)\\frac\{(-?[0-9]+)\}\{([0-9]+)\}", gold.text)
    texts = []
    if simple:
        sign, a, b = simple.groups()
        texts += [f"{sign}{a}/{b}", rf"{sign}{a} / {b}", rf"{sign}{{{a} \over {b}}}", rf"{sign}({a})/({b})"]
        texts += [rf"{sign}\frac{{{a}}}{{{b}}}", rf"\left({sign}\frac{{{a}}}{{{b}}}\right)"]
        if len(a) == len(b) == 1:
            texts += [rf"{sign}\frac{a}{b}", rf"{sign}\frac {a}{b}", rf"{sign}\tfrac{a}{b}"]
    if r"\frac" in gold.text:
        for name in (r"\dfrac", r"\tfrac", r"\cfrac"):
            texts.append(gold.text.replace(r"\frac", name))
    return rng.choice(texts) if texts else None


@keeps("vulgar fractions")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.numeral:
        return None
    char = _VULGAR.get(f"{abs(gold.number.numerator)}/{gold.number.denominator}")
    return None if char is None else ("-" if gold.number < 0 else "") + char


@keeps("equal fractions and decimals")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.number
    if value is None:
        return None
    k = rng.randint(2, 9)
    sign = "-" if value < 0 else ""
    top, bottom = abs(value.numerator) * k, value.denominator * k
    texts = [rf"{sign}\frac{{{top}}}{{{bottom}}}", f"{sign}{top}/{bottom}"]
    exact = f"{float(value):.10f}".rstrip("0").rstrip(".")
    if re.fullmatch(r"-?[0-9]+(\.[0-9]{1,6})?", exact) and type(value)(exact) == value:
        texts += [exact, exact, f"{exact}{'0' if '.' in exact else '.0'}", f"{exact}0" if "." in exact else f"{exact}.00"]
        texts += [spelled(value)]
    return rng.choice(texts)


@keeps("thousands separators")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.number
    if value is None or value.denominator != 1 or abs(value) < 1000:
        return None
    grouped = f"{int(value):,}"
    joints = [",", "{,}", r"\,", r",\!", r"\;", "\u202f", "\u2009", r"\ ", "~"]
    return rng.choice([grouped.replace(",", rng.choice(joints)), str(int(value)), f"{grouped}.00"])


@keeps("leading plus")
def _(rng: Rng, gold: Gold) -> str | None:
    return rng.choice(["+", "+ "]) + gold.text if gold.number and gold.number > 0 else None


@keeps("redundant brackets and braces")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or r"\frac{-" in gold.text:
        return None
    a = gold.answer
    return rng.choice([f"({a})", f"{{{a}}}", f"{{{{{a}}}}}", rf"\left({a}\right)", rf"\left( {a} \right)", rf"\bigl({a}\bigr)",
                       rf"\big({a}\big)", rf"{{({a})}}"])  # fmt: skip


@keeps("sized brackets")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if not members:
        return None
    inner = ",".join(members)
    sizes = [("\\left", "\\right"), ("\\bigl", "\\bigr"), ("\\big", "\\big"), ("\\Bigl", "\\Bigr"), ("", "")]
    one, other = rng.choice(sizes)
    gap = rng.choice(["", " "])
    return f"{one}{left}{gap}{inner}{gap}{other}{right}"


@keeps("dollars and other delimiters")
def _(rng: Rng, gold: Gold) -> str | None:
    if "$" in gold.answer:
        return None
    a = gold.answer
    return rng.choice([f"${a}$", f"$ {a} $", rf"\({a}\)", rf"\[{a}\]", f"$${a}$$", rf"\ensuremath{{{a}}}"])


@keeps("trailing punctuation")
def _(rng: Rng, gold: Gold) -> str | None:
    return gold.answer + rng.choice([".", ",", ";", " .", r"\text{.}", "\\,.", r"\ ."])


@keeps("Unicode relations")
def _(rng: Rng, gold: Gold) -> str | None:
    return _signs(gold, _UNICODE)


@keeps("ASCII relations")
def _(rng: Rng, gold: Gold) -> str | None:
    return _signs(gold, _ASCII)


def _signs(gold: Gold, table: tuple[tuple[str, str], ...]) -> str | None:
    text = re.sub(r"\\left|\\right", "", gold.answer)
    for pattern, new in table:
        text = re.sub(rf"(?:{pattern})(?![A-Za-z])", lambda _, new=new: new, text)
    return text if text != re.sub(r"\\left|\\right", "", gold.answer) else None


@keeps("LaTeX relations otherwise spelled")
def _(rng: Rng, gold: Gold) -> str | None:
    table = {r"\le": r"\leq", r"\leq": r"\le", r"\ge": r"\geq", r"\geq": r"\geqslant"}
    table |= {r"\geqslant": r"\ge", r"\leqslant": r"\leq", "<": r"\lt ", ">": r"\gt "}
    text = re.sub(r"\\(?:leqslant|geqslant|leq?|geq?)(?![A-Za-z])|[<>]", lambda m: table[m[0]], gold.answer)
    return text if text != gold.answer else None


@keeps("Unicode symbols")
def _(rng: Rng, gold: Gold) -> str | None:
    if re.search(r"\\(?:text|mbox|begin)|\$", gold.answer):
        return None
    found = [(p, new) for p, new in _SYMBOLS if re.search(rf"(?:{p})(?![A-Za-z])", gold.answer)]
    found += [(p, new) for p, new in _SYMBOLS if p.startswith(r"(?<!") and re.search(p, gold.answer)]
    if not found:
        return None
    pattern, new = rng.choice(found)
    if new == "−":
        return gold.answer.replace("-", "−")
    return replaced(pattern, new, gold.answer)


@keeps("Unicode roots")
def _(rng: Rng, gold: Gold) -> str | None:
    text = re.sub(r"\\sqrt\{([0-9]+|[a-z])\}", r"√\1", gold.text)
    if re.search(r"√[0-9a-z]+[0-9a-zA-Z({\\]", text):  # what stands behind would be read as below it
        text = re.sub(r"\\sqrt\{([^{}]+)\}", r"√(\1)", gold.text)
    return text if text != gold.text else None


@keeps("Unicode powers")
def _(rng: Rng, gold: Gold) -> str | None:
    if re.search(r"\\(?:text|mbox|begin|sin|cos|tan|log)", gold.answer):
        return None
    text = re.sub(r"(?<=[A-Za-z0-9)])\^(?:\{([0-9]{1,4})\}|([0-9]))", lambda m: (m[1] or m[2]).translate(_SUPERSCRIPTS), gold.text)
    return text if text != gold.text else None


@keeps("ASCII powers and products")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or re.search(r"\\(?:text|binom|log|sin|cos|tan)|_", gold.text):
        return None
    star = re.sub(r"\\(?:cdot|times) ?", " * ", gold.text)
    power = re.sub(r"\^(?:\{([0-9]{1,4})\}|([0-9]))", lambda m: f"**{m[1] or m[2]}", star)
    caret = re.sub(r"\^\{([0-9]{1,4})\}(?![0-9])", r"^\1" if "^{" in star else r"^{\1}", star)
    text = rng.choice([star, caret] if "**" in power and re.search(r"\*\*[0-9]+[A-Za-z(\\]", power) else [star, power, caret])
    return text if text != gold.text else None


@keeps("product signs")
def _(rng: Rng, gold: Gold) -> str | None:
    sign = rng.choice([r"\cdot ", r"\times ", "*", "×", "·", r"\cdot"])
    text = re.sub(r"\\(?:cdot|times)(?![A-Za-z]) ?", lambda _: sign if sign != r"\cdot" else sign + " ", gold.answer)
    return text if text != gold.answer and "text" not in text else None


@keeps("a named left side")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    names = ["x", "y", "n", "N", "S", "x_1", r"\text{Answer}", "f(2)", "a_{10}", r"\text{Total}", "P(A)", r"\alpha"]
    return rng.choice(names) + rng.choice(["=", " = ", r"\,=\,"]) + gold.answer


@keeps("a left side left out")
def _(rng: Rng, gold: Gold) -> str | None:
    return gold.sides[1] if gold.name and gold.name != "y" else None


@keeps("another order of a list or set")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    parts = list(gold.parts if gold.parts else members if left == r"\{" else ())
    if len(parts) < 2 or any(re.fullmatch("[0-9]{3}", part) for part in parts):
        return None
    if gold.mentions("order", "respectively", "sequence", "first"):
        return None
    rng.shuffle(parts)
    joint = rng.choice([", ", ",", r",\ "] if left == r"\{" else [", ", ",", r"\text{ and }", r",\; ", r"\text{ or }"])
    return f"{left if not gold.parts else ''}{joint.join(parts)}{right if not gold.parts else ''}"


@keeps("another order of assignments")
def _(rng: Rng, gold: Gold) -> str | None:
    parts = gold.text.split(",")
    if len(parts) < 2 or not all(re.fullmatch(r"[a-z](?:\([a-z]\))?=[^=]+", part) for part in parts):
        return None
    rng.shuffle(parts)
    return rng.choice([", ", r",\quad ", r"\text{ and }" if len(parts) == 2 else ", "]).join(parts)


@keeps("sides of an equation exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    left, right = gold.sides
    return f"{right} = {left}" if left and not gold.name else None


@keeps("an inequality turned round")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([a-z]) ?(<|>|\\(?:leqslant|geqslant|leq?|geq?)) ?([^<>\\]+)", gold.text)
    if match is None:
        return None
    turned = {"<": ">", ">": "<"}.get(match[2]) or (r"\ge " if match[2].startswith(r"\l") else r"\le ")
    return f"{match[3]}{turned}{match[1]}"


@keeps("terms or factors in another order")
def _(rng: Rng, gold: Gold) -> str | None:
    text = gold.text
    if not gold.is_expression or gold.number is not None:
        return None
    terms = re.fullmatch(r"([^-+{}()\\]+|\\frac\{[^{}]*\}\{[^{}]*\})\+([^-+{}()\\]+)", text)
    if terms:
        return f"{terms[2]}+{terms[1]}"
    factors = re.fullmatch(r"(\([^()]+\))(\([^()]+\))", text)
    return f"{factors[2]}{factors[1]}" if factors else None


@keeps("zero added or one multiplied")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or not re.fullmatch(r"[^_!%,]*", gold.text) or "infty" in gold.text or "emptyset" in gold.text:
        return None
    if gold.text.startswith("-"):
        return f"{gold.text}+0"
    return rng.choice([f"{gold.text}+0", rf"1\cdot({gold.text})", rf"\frac{{{gold.text}}}{{1}}", rf"\frac{{2({gold.text})}}{{2}}"])


@keeps("degree signs")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\^\{?\\circ\}?", gold.text)
    if match is None:
        return None
    n = match[1]
    return rng.choice([f"{n}°", rf"{n}^\circ", rf"{n}^{{\circ}}", rf"{n}\text{{ degrees}}", rf"{n}\degree", n, rf"{n}^{{\text{{o}}}}"][:6])


@keeps("percent signs")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\\%", gold.text)
    if match is None:
        return None
    n = match[1]
    return rng.choice([rf"{n}\%", f"{n}%", rf"{n} \%", rf"{n}\,\%", rf"{n}\text{{ percent}}", rf"{n}\text{{\%}}", n])


@keeps("money signs")
def _(rng: Rng, gold: Gold) -> str | None:
    text = gold.answer.lstrip("\\$").replace("{,}", ",")
    asked = gold.mentions("in dollars", "how many dollars") and gold.numeral
    if not gold.answer.startswith(r"\$") and not asked:
        return None
    return rng.choice([rf"\${text}", rf"\$ {text}", rf"{text}\text{{ dollars}}", rf"{text} \text{{ dollars}}", text, rf"\text{{\$}}{text}",
                       rf"\text{{\${text}}}", rf"{text}\ \mathrm{{dollars}}"])  # fmt: skip


@keeps("units spelled otherwise, kept or dropped")
def _(rng: Rng, gold: Gold) -> str | None:
    number, unit, power = gold.quantity
    if not unit:
        return None
    tail = f"^{power}" if power else ""
    texts = [rf"{number}\text{{ {unit}}}{tail}", rf"{number}\ \mathrm{{{unit}}}{tail}", rf"{number}~\text{{{unit}}}{tail}"]
    texts += [rf"{number}\,\text{{{unit}}}{tail}", rf"{number} {unit}{tail}", rf"{number}\ \textrm{{{unit}}}{tail}", number]
    texts += [rf"{number}\mbox{{ {unit}}}{tail}", rf"\text{{{number} {unit}}}{tail}"]
    if power == "2":
        texts += [rf"{number}\text{{ square {unit}}}", rf"{number}\text{{ {unit}²}}", rf"{number}\text{{ {unit}$^2$}}"]
    return rng.choice(texts)


@keeps("the unit that is asked for")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = re.search(r"how many ([a-z]{3,12}) (?:does|do|did|are|is|will|were|was|of|can)\b", gold.problem.lower())
    if not asked or not gold.numeral:
        return None
    noun = asked[1]
    if noun in ("more", "fewer", "times", "different", "total", "such", "ways", "percent", "less") or not noun.endswith("s"):
        return None
    return gold.answer + rng.choice([rf"\text{{ {noun}}}", rf" \text{{ {noun}}}", rf"\ \mathrm{{{noun}}}", f" {noun}", rf"\mbox{{ {noun}}}"])


@keeps("matrix spelling")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.rows:
        return None
    kind = rng.choice(["pmatrix", "bmatrix"])
    gap = rng.choice(["", " ", "\n"])
    body = rf"{gap}\\{gap}".join(f"{gap}&{gap}".join(row) for row in gold.rows)
    text = rf"\begin{{{kind}}}{gap}{body}{gap}\end{{{kind}}}"
    columns = "c" * len(gold.rows[0])
    array = rf"\left(\begin{{array}}{{{columns}}}{gap}{body}{gap}\end{{array}}\right)"
    return rng.choice([text, text, array, text.replace(r"\end", r"\\ \end") if gap else text])


@keeps("choice letters")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"\\text\{\(([A-E])\)\}|([A-E])", gold.text)
    if match is None:
        return None
    letter = match[1] or match[2]
    return rng.choice([letter, f"({letter})", rf"\text{{{letter}}}", rf"\text{{({letter})}}", rf"\textbf{{({letter})}}", rf"\mathbf{{{letter}}}",
                       rf"\text{{{letter}.}}", rf"\mathrm{{({letter})}}", f"{letter}."])  # fmt: skip


@keeps("scientific notation")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\\times10\^\{(-?[0-9]+)\}", gold.text)
    if match is None:
        return None
    a, e = match.groups()
    return rng.choice([rf"{a} \cdot 10^{{{e}}}", f"{a}e{e}", f"{a}×10^{{{e}}}", f"{a}*10^{{{e}}}", rf"{a}\times {{10}}^{{{e}}}", f"{a}E{e}"])


@keeps("an own box or bold around")
def _(rng: Rng, gold: Gold) -> str | None:
    if not is_plain(gold):
        return None
    return rng.choice([rf"\boxed{{{gold.answer}}}", rf"\mathbf{{{gold.answer}}}" if gold.numeral else rf"\boxed{{{gold.answer}}}"])


def generate(golds: Sequence[Gold], seed: int, kinds: Sequence[str] = ()) -> Iterator[Case]:
    """Cases of all kinds in turn, none twice; ends when no kind has a new one."""
    rng = random.Random(seed)
    names = list(kinds or PRESERVING)
    fitting = {n: [g for g in golds if any(PRESERVING[n](rng, g) for _ in range(2))] for n in names}
    seen: set[tuple[str, str]] = set()
    while True:
        cases = [_new_case(rng, name, fitting[name], seen) for name in names]
        yield from (case for case in cases if case is not None)
        if not any(cases):
            return


def _new_case(
    rng: random.Random, name: str, golds: Sequence[Gold], seen: set[tuple[str, str]]
) -> Case | None:
    for _ in range(_TRIES if golds else 0):
        gold = rng.choice(golds)
        answer = PRESERVING[name](rng, gold)
        if answer is not None and (gold.answer, answer) not in seen:
            seen.add((gold.answer, answer))
            return Case(name, gold.answer, answer, gold.problem)
    return None
