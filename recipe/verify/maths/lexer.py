r"""Cut an answer into tokens; every character of it is in one, or is known to mean nothing.

What means nothing is a closed list: white space and spacing commands, ``$`` in pairs, sizes,
colours, ``\left`` and ``\right``. A character or command that is not known becomes a token of
kind ``other``, which no rule of the parser takes: the answer is then compared as text.

One pass, in time linear in the text (each pattern is one token, without nested repetition).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

# run: two or three letters side by side, a product or the name of a unit
Kind = Literal["num", "vulgar", "sym", "run", "word", "op", "other"]
_MAX_DEPTH = 6  # \text inside \text
_MAX_GLUE = 40  # characters of a text between two members


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``is_spaced`` when white space comes before it."""

    kind: Kind
    text: str
    is_spaced: bool = False


_UNICODE = {
    "−": "-", "–": "-", "‐": "-", "‑": "-", "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ",
    "∗": "*", "∙": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/", "∞": r"\infty ", "°": r"\degree ",
    "º": r"\degree ", "˚": r"\degree ",
    "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "±": r"\pm ", "∓": r"\mp ",
    "…": r"\ldots ", "⋯": r"\ldots ", "€": r"\euro ", "£": r"\pounds ", "∅": r"\emptyset ",
    "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}",
    "ℂ": r"\mathbb{C}", "√": r"\surd ", "∛": r"\cuberoot ", "′": "'", "’": "'", "∠": r"\angle ",
    "△": r"\triangle ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "⟨": r"\langle ", "⟩": r"\rangle ", "∨": r"\lor ", "∖": r"\setminus ", "∣": "|",
    "\u3002": ".", "\u3001": ", ", "\ufe63": "-", "\u200b": "", "\ufeff": "", "\u2060": "",
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2002": " ", "\u2003": " ", "\u2005": " ",
    "\u2236": ":", "￥": "¥",
}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "pi rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma "
    "Upsilon Phi Psi Omega ell hbar"
).split()
_UNICODE |= {
    unicodedata.lookup(f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}"): (
        f"\\{name if size == 'SMALL' else name.title()} "
    )
    for name in _GREEK
    if name.islower() and not name.startswith("var") and name not in ("ell", "hbar")
    for size in ("SMALL", "CAPITAL")
    if size == "SMALL" or name.title() in _GREEK
}
# Full-width signs; a comma among them never separates thousands.
_WIDE = "!%()+-./0123456789:;<=>ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz|"
_UNICODE |= {chr(ord(char) + 0xFEE0): char for char in _WIDE}
_UNICODE |= {"\uff0c": ", ", "\uff04": r"\$", "\uff5b": r"\{", "\uff5d": r"\}"}
_TRANSLATION = str.maketrans(_UNICODE)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

# One spelling for many; the values are what the parser knows.
_COMMANDS = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "nicefrac": "frac", "sfrac": "frac",
    "flatfrac": "frac", "dbinom": "binom", "tbinom": "binom",
    "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "neq": "ne", "lt": "<",
    "gt": ">", "times": "cdot", "ast": "*", "div": "/", "dots": "ldots", "dotsc": "ldots",
    "dotsb": "ldots", "dotso": "ldots", "cdots": "ldots", "lbrace": "{", "rbrace": "}",
    "langle": "(", "rangle": ")", "lvert": "|", "rvert": "|", "vert": "|", "lparen": "(",
    "rparen": ")", "lbrack": "[", "rbrack": "]", "varnothing": "emptyset",
    "prime": "'", "backslash": "setminus", "vee": "lor", "wedge": "land",
    "colon": ":", "arctg": "arctan", "tg": "tan", "ctg": "cot", "cotg": "cot", "reals": "R",
    "mid": "|", "cr": r"\\", "simeq": "approx", "ln": "ln", "exp": "exp", "dollar": "$",
    "textdollar": "$", "mathdollar": "$", "textdegree": "degree", "bigcup": "cup", "bigcap": "cap",
    "overrightarrow": "vec", "widehat": "hat", "widetilde": "tilde", "lg": "log",
}  # fmt: skip
FUNCTIONS = frozenset(
    "sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan arccot ln exp log cis".split()
)
ACCENTS = frozenset("vec hat bar overline tilde dot underline widehat angle triangle".split())
_KNOWN = FUNCTIONS | ACCENTS | frozenset(
    "frac binom sqrt surd cuberoot le ge ne cdot ldots emptyset degree setminus lor land circ "
    "approx infty cup cap in pm mp euro pounds lfloor rfloor lceil rceil R equiv".split()
)  # fmt: skip
_NOTHING = frozenset(
    "left right displaystyle textstyle scriptstyle limits nolimits big Big bigg Bigg bigl bigr "
    "Bigl Bigr biggl biggr Biggl Biggr bigm quad qquad thinspace enspace large Large LARGE huge "
    "Huge small ensuremath normalsize tiny boldmath it bf rm middle bfseries itshape "
    "nobreak mathstrut strut normalfont mathbin mathrel".split()
)  # fmt: skip
_TEXT_COMMANDS = frozenset(
    "text mbox hbox textbf textit textrm textsf textsc textnormal textup textmd emph mathrm "
    "mathbf mathit mathsf mathtt texttt mathnormal boldsymbol bm operatorname mathbb mathcal "
    "mathscr pmb ce".split()
)  # fmt: skip
_IN_TEXT = frozenset(
    "text mbox hbox textbf textit textrm textsf textsc textnormal textup textmd texttt emph "
    "operatorname".split()
)
_PLAIN_WORDS = frozenset(
    "sqrt pi theta alpha beta gamma infty inf oo sin cos tan cot sec csc log ln exp arcsin arccos "
    "arctan arccot sinh cosh tanh infinity".split()
)
# Words of two or three letters that need no \text; "per" and units are found by the parser.
SHORT_WORDS = frozenset(
    "yes no odd one two six ten and or not nor xor all any few mod per but for the of is at to iff "
    "if are non".split()
)
_UNIT_LETTERS = frozenset("mgshlLNJWVAKCF")
_UNIT_PART = (
    rf"(?:[A-Za-z]{{2,5}}|[{''.join(sorted(_UNIT_LETTERS))}])"
    r"(?:\^(?:-?[1-4]|\{-?[1-4]\}))?"
)
# \mathrm{m/s}, \mathrm{m\cdot s^{-1}}
_UNIT_OR_PRODUCT = re.compile(
    rf"(?=.*[/^ ~\\]){_UNIT_PART}(?:(?:[ ~/]|\\[,; ]|\\cdot){{1,3}}{_UNIT_PART}){{0,3}}"
)

# Letters of other scripts make words: Cyrillic, accented Latin, kana, Chinese, Hangul.
_FOREIGN = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u04ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
)
_RAISED_O = re.compile(
    r"\^\s?(?:\{\s?(?:o|%s)\s?\}|%s|o(?![A-Za-z]))" % ((r"\\(?:text|mathrm)\s?\{\s?o\s?\}",) * 2)
)
_SI = re.compile(r"\\(?:SI|qty)\s?\{([^{}]*)\}\s?\{([^{}]*)\}|\\(?:si|unit)\s?\{([^{}]*)\}")

# Between thousands: 1{,}000, 1\,000, 1{\ }000, 1\!,\!000.
_THIN = (
    r"(?:\{,\}(?:\\[!,])?|,?\\!\s?|\\!,(?:\\!)?|\\text\{,\}|\{(?:\\[,;: ]|[ ~])\}|\\[,;: ]"
    r"|\\thinspace\s{0,3}|~)"
)
_MASTER = re.compile(
    r"(?P<space>(?:\s|~|\\[,;:!> ]|\\$)+)"
    r"|(?P<dot>\\(?:left|right)\s{0,9}\.)"
    rf"|(?P<number>[1-9][0-9]{{0,2}}(?:{_THIN}[0-9]{{3}})+(?![0-9])"
    r"(?:\.[0-9]+)?"
    r"|[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9.])|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"|(?P<glued>\{,\})"
    r"|(?P<colour>\\(?:textcolor|color|colorbox)\s?\{[A-Za-z]{1,30}\})"
    r"|(?P<gap>\\hspace\*?\{-?[0-9.]{1,5}\s?(?:em|ex|pt|mm|cm|in|px)\})"
    r"|(?P<env>\\(?:begin|end)\{[A-Za-z]{1,20}\*?\}(?:\{[clr|]{1,40}\})?)"
    r"|(?P<command>\\[A-Za-z]+)"
    r"|(?P<vulgar>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"
    r"|(?P<delimiter>\\[()\[\]])"
    r"|(?P<row>\\\\\[-?[0-9.]{1,5}\s?(?:em|ex|pt|mm|cm|in|px)\])"
    r"|(?P<escape>\\[{}%$|\\&#_])"
    rf"|(?P<foreign>[A-Za-z]*[{_FOREIGN}][A-Za-z{_FOREIGN}]*)"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<super>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+)|(?P<sub>[₀₁₂₃₄₅₆₇₈₉]+)"
    r"|(?P<relation>\*\*|<=|>=|!=|=>|==|&=)"
    r"|(?P<op>[-+*/^_(){}\[\]|,;:=<>!'&%$.₹¥₩₽])"
)
_CLOCK = re.compile(
    r"(\{?:\}?\s?[0-9]{2}|(?<![0-9.,:])(?:1[0-2]|[1-9])(?=[\s~]{0,2}\\text\{|\s[ap]\.m)"
    r"|(?:\A|(?<=\\text\{))(?:1[0-2]|[1-9])(?=\s[AP]M\.?\}?\Z))"
    r"((?:[\s~{}]|\\[,;: ]|\\(?:text|mathrm|mbox|textrm)\{){0,6})([apAP])\.?\s?[mM](?![A-Za-z])\.?"
)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?")
_RELATIONS = {"**": "^", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "&=": "="}
TEXT_POWER = r"\text^"  # of a unit, never of a number
_EDGES = re.compile(r"\A(?:[\s~]|\\[,;: ])+|[\s~]+\Z")
_DOLLAR, _IN_NUMBER = re.compile(r"(?<!\\)\$"), re.compile(r"[^0-9.]")


def tokens(text: str) -> list[Token]:
    """Cut ``text`` into tokens."""
    return _Lexer(spelled(text)).run()


def spelled(text: str) -> str:
    """Spell signs as LaTeX does: ``≤`` as a command, full-width ones as ASCII."""
    text = _RAISED_O.sub(r"\\degree ", text)
    return with_clock(_SI.sub(_with_unit, text).translate(_TRANSLATION))


def _with_unit(found: re.Match[str]) -> str:
    r"""Write ``\SI{3}{\metre\per\second}`` as a number and words."""
    unit = re.sub(r"\\([a-z]+)", r" \1 ", found[2] or found[3] or "").replace(".", " ")
    return rf"{found[1] or ''}\text{{ {unit}}}"


def with_clock(text: str) -> str:
    """Write ``9:15 a.m.`` and ``9:15 AM`` with one word, a unit, and 9 AM with its minutes."""
    return _CLOCK.sub(lambda m: f"{m[1]}{':00' * m[1].isdigit()}{m[2]} {m[3].lower()}mclock", text)


def spelled_command(name: str) -> str:
    """Give the one name that a command shares with its twins: ``dfrac`` is ``frac``."""
    return _COMMANDS.get(name, name)


class _Lexer:
    def __init__(self, text: str, *, in_text: bool = False, depth: int = 0) -> None:
        self._text = text
        self._in_text = in_text
        self._depth = depth
        self._at = 0
        self._is_spaced = False
        self._out: list[Token] = []
        # A pair of them delimits formulas; a single one is the currency.
        bare = len(_DOLLAR.findall(text)) if "$" in text else 0
        self._drops_dollars = bare % 2 == 0

    def run(self) -> list[Token]:
        while self._at < len(self._text):
            match = _MASTER.match(self._text, self._at)
            if match is None:
                self._put("other", self._text[self._at])
                self._at += 1
                continue
            self._at = match.end()
            getattr(self, f"_{match.lastgroup}")(match[0])
        return self._out

    def _put(self, kind: Kind, text: str) -> None:
        self._out.append(Token(kind, text, self._is_spaced))
        self._is_spaced = False

    def _space(self, text: str) -> None:
        self._is_spaced = True

    _gap = _space

    def _dot(self, text: str) -> None:
        r"""Take the dot of ``\left.``, a bracket that is not there."""

    _colour = _delimiter = _dot

    def _glued(self, text: str) -> None:
        self._put("other", text)  # ``1{,}5`` is set like a decimal comma

    def _vulgar(self, text: str) -> None:
        self._put("vulgar", text)

    def _number(self, text: str) -> None:
        if self._in_text:  # text has no lists: its commas separate thousands
            grouped = _GROUPED.match(self._text, self._at - len(text))
            if grouped is not None:
                text = grouped[0]
                self._at = grouped.end()
        if text.endswith(".") and (self._in_text or self._at == len(self._text)):
            self._at -= 1  # the dot ends the sentence
            text = text[:-1]
        self._put("num", _IN_NUMBER.sub("", text))

    def _env(self, text: str) -> None:
        self._put("op", text.split("}")[0] + "}" if text.startswith(r"\begin") else text)

    def _row(self, text: str) -> None:
        self._put("op", r"\\")  # a new row, however far below

    def _escape(self, text: str) -> None:
        known = {"\\{": r"\{", "\\}": r"\}", "\\%": "%", "\\$": r"\$", "\\|": r"\|", "\\\\": r"\\"}
        self._put("op" if text in known and text != r"\|" else "other", known.get(text, text))

    def _command(self, text: str) -> None:
        name = _COMMANDS.get(text[1:], text[1:])
        if name in _NOTHING:
            return
        if name in _TEXT_COMMANDS:
            self._text_command(name)
        elif name in _GREEK:
            self._put("sym", f"\\{name}")
        elif name in ("{", "}"):
            self._put("op", f"\\{name}")
        elif name in ("land", "lor"):
            self._put("op", "and" if name == "land" else "or")
        elif not name[0].isalpha():
            self._put("op", r"\$" if name == "$" else name)
        elif name in ("square", "Box"):
            self._put("sym", r"\square")
        elif name == "R":
            self._put("sym", r"\mathbb{R}")
        else:
            self._put("op" if name in _KNOWN else "other", f"\\{name}")

    def _text_command(self, name: str) -> None:
        content = self._group()
        if content is None or self._depth >= _MAX_DEPTH:
            self._put("other", f"\\{name}")
            return
        stripped = _EDGES.sub("", content)
        if name in ("mathbb", "mathcal", "mathscr"):
            is_letter = len(stripped) == 1 and stripped.isalpha() and stripped.isascii()
            self._put("sym" if is_letter else "other", f"\\{name}{{{stripped}}}")
            return
        if not stripped:
            self._is_spaced = True
            return
        if name in ("mathrm", "operatorname") and stripped in FUNCTIONS:
            self._command(f"\\{stripped}")
            return
        if name not in _IN_TEXT and self._takes_letters(name, stripped):
            return
        if stripped == "." and not self._text[self._at :].strip(" $}"):
            return
        if not any(char.isalnum() for char in stripped) and stripped.strip("\\") not in ("$", "%"):
            self._put("word" if name in _IN_TEXT and stripped in "/" else "other", stripped)
            return
        in_text = (
            name in _IN_TEXT or re.fullmatch(r"[A-Za-z]{2,}[A-Za-z .'-]*", stripped) is not None
        )
        parts = _DOLLAR.split(content)
        parts = parts if in_text and len(parts) % 2 else [content]
        inner = [
            token
            for number, part in enumerate(parts)  # formulas are between pairs of dollars
            for token in _Lexer(
                part, in_text=in_text and number % 2 == 0, depth=self._depth + 1
            ).run()
        ]
        if not in_text:
            inner = [Token("op", "{"), *inner, Token("op", "}")]
        if inner:
            is_spaced = self._is_spaced or inner[0].is_spaced
            self._out += [Token(inner[0].kind, inner[0].text, is_spaced), *inner[1:]]
        self._is_spaced = content[-1:].isspace()

    def _takes_letters(self, name: str, text: str) -> bool:
        """Take one letter, or after a number what may be its unit or letters to multiply."""
        if len(text) == 1 and text.isascii() and text.isalpha():
            # \mathrm{m} may be the metre, \mathbf{x} and \mathrm{e} are x and e
            self._put("run" if name == "mathrm" and text in _UNIT_LETTERS else "sym", text)
            return True
        is_after = bool(self._out) and (self._out[-1].kind == "num" or self._out[-1].text in ")}")
        if not is_after or not _UNIT_OR_PRODUCT.fullmatch(text):
            return False
        parts = [_as_run(each) for each in _Lexer(text, depth=self._depth + 1).run()]
        self._out += [Token(parts[0].kind, parts[0].text, True), *parts[1:]]
        return True

    def _group(self) -> str | None:
        """Return the content of the braces that follow, or the one character without braces."""
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        if self._text[self._at : self._at + 1] != "{":
            char = self._text[self._at : self._at + 1]
            if not (char.isascii() and char.isalnum()):
                return None
            self._at += 1
            return char
        depth = 0
        for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(self._text, self._at):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                content = self._text[self._at + 1 : match.start()]
                self._at = match.end()
                return content
        return None

    def _letters(self, text: str) -> None:
        if self._in_text:
            lower = text.lower()
            self._put(
                "op" if lower in ("and", "or") else "word",
                lower if lower in ("and", "or") else text,
            )
        elif text in _PLAIN_WORDS:
            name = {"infinity": "infty", "inf": "infty", "oo": "infty"}.get(text, text)
            self._command(f"\\{name}")
        elif text.lower() in ("and", "or"):
            self._put("op", text.lower())
        elif len(text) == 1:
            self._put("sym", text)
        elif len(text) > 3 or text.lower() in SHORT_WORDS:
            self._put("word", text)
        else:
            self._put("run", text)

    def _foreign(self, text: str) -> None:
        self._put("word", text)

    def _super(self, text: str) -> None:
        self._put("op", "^")
        self._braced(text.translate(_SUPERSCRIPTS))

    def _sub(self, text: str) -> None:
        self._put("op", "_")
        self._braced(text.translate(_SUBSCRIPTS))

    def _braced(self, text: str) -> None:
        self._out += [Token("op", "{"), *_Lexer(text).run(), Token("op", "}")]

    def _relation(self, text: str) -> None:
        known = text in _RELATIONS
        self._put("op" if known else "other", _RELATIONS.get(text, text))

    def _op(self, text: str) -> None:
        if text == "$":
            if not self._drops_dollars:
                self._put("op", r"\$")
        elif text == ".":
            is_end = not self._text[self._at :].strip(" $}") or self._in_text
            if not is_end:
                self._put("other", text)
        elif text == "!" and self._in_text:
            self._put("other", text)
        elif text == "^" and self._in_text:
            self._put("op", TEXT_POWER)
        elif text == "," and self._in_text and not self._parts_members():
            self._put("other", text)
        else:
            self._put("op", text)

    def _parts_members(self) -> bool:
        """Return whether a comma in text is alone, or after a numeral and before a space."""
        if len(self._text) < _MAX_GLUE and self._text.strip() in (",", ", and", ", or"):
            return True
        is_after = bool(self._out) and self._out[-1].kind == "num"
        return is_after and self._text[self._at : self._at + 1].isspace()


def _as_run(token: Token) -> Token:
    return Token("run", token.text) if token.kind == "sym" else token


def vulgar(char: str) -> Fraction:
    """Return the value of a character such as ``½``."""
    return Fraction(unicodedata.numeric(char)).limit_denominator(10)
