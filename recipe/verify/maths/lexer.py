r"""Cut an answer into tokens; every character of it is in one, or is known to mean nothing.

What means nothing is a closed list: white space and spacing commands, ``$`` in pairs, sizes,
colours, ``\left`` and ``\right``. A character or command that is not known becomes a token of
kind ``other``, which no rule of the parser takes: the answer is then compared as text.

One pass, in time linear in the text (each pattern is one token, without nested repetition).
``latex.json`` has the signs, the commands that mean the same, and what each command is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

# run: two or three letters side by side, a product or the name of a unit
Kind = Literal["num", "sym", "run", "word", "op", "other"]
_MAX_DEPTH = 6  # \text inside \text


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``is_spaced`` when white space comes before it."""

    kind: Kind
    text: str
    is_spaced: bool = False


_LATEX = json.loads(Path(__file__).with_name("latex.json").read_text(encoding="utf-8"))
# Full-width signs; a comma among them never separates thousands.
_WIDE = {char + 0xFEE0: chr(char) for char in range(0x21, 0x7E) if chr(char) not in '",$\\{'}
_SIGNS = str.maketrans(_LATEX["signs"]) | _WIDE
_COMMANDS = {twin: name for name, twins in _LATEX["commands"].items() for twin in twins.split()}
_GREEK, FUNCTIONS, _KNOWN, _NOTHING, _TEXTS, _FONTS = (
    frozenset(_LATEX[name].split())
    for name in ("greek", "functions", "known", "nothing", "texts", "fonts")
)
_PLAIN_WORDS = FUNCTIONS | frozenset("sqrt pi theta alpha beta gamma infty inf oo infinity".split())
# Words of two or three letters that need no \text; "per" and units are found by the parser.
SHORT_WORDS = frozenset(
    "yes no odd one two six ten and or not nor xor all any few mod per but for the of is at to iff "
    "if are non".split()
)
# Letters of other scripts make words: Cyrillic, accented Latin, kana, Chinese, Hangul.
_FOREIGN = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u04ff\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3"
)
_RAISED_O = r"\\circ|o|\\(?:text|mathrm)\s?\{\s?o\s?\}"
_SPELLINGS = [
    (re.compile(pattern), text)
    for pattern, text in (
        (rf"\^\s?(?:\{{\s?(?:{_RAISED_O})\s?\}}|(?:{_RAISED_O})(?![A-Za-z]))", r"\\degree "),
        (r"√\s?(?:([0-9]+|[A-Za-z])|(?=[({\\]))", r"\\sqrt{\1}"),
        (r"\\sqrt\{\}(?=[({\\])", r"\\sqrt"),
        (  # 52 in base 8
            r"(?<=[0-9])\s?\(?(?:\\text\{)?\s?\(?(?:in )?base\s?\}?\s?([0-9]{1,2})(?![0-9])\)?\}?",
            r"_{\1}",
        ),
        (r"(?<=[])}])\s*U\s*(?=\[|\(|\\)", r"\\cup "),
        (r"(?<=[0-9])\\(?:mathrm|text)\s?\{([eE])\}\{?([-+]?[0-9]{1,3})\}?", r"\1\2"),
        (  # 3.8e35; 2e-1 is 2e - 1
            r"(?<![0-9.A-Za-z])([0-9]+\.[0-9]*(?=[eE])|[0-9]+(?=[eE](?:[0-9]|[-+][0-9]{2})))"
            r"[eE]\+?(-?[0-9]{1,4})(?![0-9.])",
            r"\1\\cdot 10^{\2}",
        ),
        (r"\\(?:SI|qty)\s?\{([^{}]*)\}\s?\{\\?([^{}\\]*)\}", r"\1\\text{ \2}"),
        (r"\\(?:si|unit)\s?\{\\?([^{}\\]*)\}", r"\\text{ \1}"),
    )
]
_RAISED, _LOWERED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+"), re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉", "0123456789+-n0123456789")

# Between thousands: 1{,}000, 1\,000, 1{\ }000, 1\!,\!000.
_THIN = (
    r"(?:\{,\}(?:\\[!,])?|,?\\!\s?|\\!,(?:\\!)?|\\text\{,\}|\{(?:\\[,;: ]|[ ~])\}|\\[,;: ]"
    r"|\\thinspace\s{0,3}|~)"
)
_LENGTH = r"-?[0-9.]{1,5}\s?(?:em|ex|pt|mm|cm|in|px)"
_MASTER = re.compile(
    rf"(?P<space>(?:\s|~|\\[,;:!> ]|\\$|\\hspace\*?\{{{_LENGTH}\}})+)"
    r"|(?P<nothing>\\(?:left|right)\s{0,9}\.|\\(?:textcolor|color|colorbox)\s?\{[A-Za-z]{1,30}\}"
    r"|\\bbox\s?\[[^\[\]]{0,40}\]|\\[()\[\]]|\{\}(?=\^|\\degree))"
    rf"|(?P<number>[1-9][0-9]{{0,2}}(?:{_THIN}[0-9]{{3}})+(?![0-9])"
    r"(?:\.[0-9]+)?"
    r"|[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9.])|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"|(?P<other>\{,\}|\\[|&#_])"  # 1{,}5 is set like a decimal comma
    r"|(?P<env>\\(?:begin|end)\{[A-Za-z]{1,20}\*?\}(?:\{[clr|]{1,40}\})?)"
    r"|(?P<command>\\[A-Za-z]+)"
    rf"|(?P<escape>\\\\\[{_LENGTH}\]|\\[{{}}%$\\])"
    rf"|(?P<word>[A-Za-z]*[{_FOREIGN}][A-Za-z{_FOREIGN}]*)"
    r"|(?P<letters>[A-Za-z]+)"
    r"|(?P<relation>\*\*|<=|>=|!=|&=)"
    r"|(?P<op>[-+*/^_(){}\[\]|,;:=<>!'&%$.₹¥₩₽])"
)
_GROUPED = re.compile(r"(?<![0-9,])([1-9][0-9]{0,2}),([0-9]{3})(?![0-9,])")
_SHORT = {"**": "^", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "&=": "=", r"\%": "%"}
TEXT_POWER = r"\text^"  # of a unit, never of a number
_DOLLAR, _IN_NUMBER = re.compile(r"(?<!\\)\$"), re.compile(r"[^0-9.]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def tokens(text: str) -> list[Token]:
    """Cut ``text`` into tokens."""
    return _Lexer(spelled(text)).run()


def spelled(text: str) -> str:
    """Spell signs as LaTeX does: ``≤`` as a command, full-width ones as ASCII."""
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    text = _RAISED.sub(lambda run: f"^{{{run[0].translate(_SCRIPTS)}}}", text)
    text = _LOWERED.sub(lambda run: f"_{{{run[0].translate(_SCRIPTS)}}}", text)
    return text.translate(_SIGNS)


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
        self._drops_dollars = len(_DOLLAR.findall(text)) % 2 == 0

    def run(self) -> list[Token]:
        while self._at < len(self._text):
            match = _MASTER.match(self._text, self._at)
            if match is None:
                self._put("other", self._text[self._at])
                self._at += 1
                continue
            self._at = match.end()
            kind = match.lastgroup
            text = match[0]
            if kind == "space":
                self._is_spaced = True
            elif kind in ("word", "other"):
                self._put(kind, text)
            elif kind == "number":
                self._put("num", _IN_NUMBER.sub("", text))
            elif kind in ("escape", "relation"):
                self._put("op", _SHORT.get(text, text[:2]))  # a new row, however far below
            elif kind != "nothing":
                getattr(self, f"_{kind}")(text)
        return self._out

    def _put(self, kind: Kind, text: str) -> None:
        self._out.append(Token(kind, text, self._is_spaced))
        self._is_spaced = False

    def _env(self, text: str) -> None:
        self._put("op", text.split("}")[0] + "}" if text.startswith(r"\begin") else text)

    def _command(self, text: str) -> None:
        name = spelled_command(text[1:])
        if name in _NOTHING:
            return
        if name in _TEXTS | _FONTS:
            self._text_command(name)
        elif name in _GREEK or name == "mathbb{R}":
            self._put("sym", f"\\{name}")
        elif name in ("{", "}", "$"):
            self._put("op", f"\\{name}")
        elif name in ("and", "or") or not name[0].isalpha():
            self._put("op", name)
        else:
            self._put("op" if name in _KNOWN | FUNCTIONS else "other", f"\\{name}")

    def _text_command(self, name: str) -> None:
        content = self._group()
        if content is None or self._depth >= _MAX_DEPTH:
            self._put("other", f"\\{name}")
            return
        stripped = content.strip(" ~")
        is_letter = len(stripped) == 1 and stripped.isalpha() and stripped.isascii()
        if name in ("mathbb", "mathcal", "mathscr"):
            self._put("sym" if is_letter else "other", f"\\{name}{{{stripped}}}")
        elif not stripped:
            self._is_spaced = True
        elif name in ("mathrm", "operatorname") and stripped in FUNCTIONS:
            self._command(f"\\{stripped}")
        elif is_letter and name not in _TEXTS:
            self._put("sym", stripped)
        elif stripped == "." and not self._text[self._at :].strip(" $}"):
            pass
        elif any(char.isalnum() for char in stripped) or stripped.strip("\\") in ("$", "%"):
            is_words = len(stripped) > 1 and stripped.isalpha()  # \mathbf{no}
            self._content(content, in_text=name in _TEXTS or is_words)
        else:
            self._put("other", stripped)

    def _content(self, content: str, *, in_text: bool) -> None:
        if in_text:  # it has no lists: its commas separate thousands
            content = _GROUPED.sub(r"\1\2", content)
        inner = _Lexer(content, in_text=in_text, depth=self._depth + 1).run()
        if not in_text:
            inner = [Token("op", "{"), *inner, Token("op", "}")]
        if inner:
            is_spaced = self._is_spaced or inner[0].is_spaced
            self._out += [Token(inner[0].kind, inner[0].text, is_spaced), *inner[1:]]
        self._is_spaced = content[-1:].isspace()

    def _group(self) -> str | None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        start = self._at
        char = self._text[start : start + 1]
        if char != "{":
            self._at += 1
            return char if char.isascii() and char.isalnum() else None
        depth = 0
        for match in _BRACE.finditer(self._text, start):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                self._at = match.end()
                return self._text[start + 1 : match.start()]
        return None

    def _letters(self, text: str) -> None:
        lower = text.lower()
        if lower in ("and", "or"):
            self._put("op", lower)
        elif self._in_text:
            self._put("word", text)
        elif text in _PLAIN_WORDS:
            self._command("\\infty" if text in ("infinity", "inf", "oo") else f"\\{text}")
        elif len(text) == 1:
            self._put("sym", text)
        else:
            self._put("word" if len(text) > 3 or lower in SHORT_WORDS else "run", text)

    def _op(self, text: str) -> None:
        is_after = bool(self._out) and self._out[-1].kind == "num"
        is_between = is_after and self._text[self._at : self._at + 1].isspace()  # members
        if text == "$":
            if not self._drops_dollars:
                self._put("op", r"\$")
        elif text == ".":
            if not self._in_text and self._text[self._at :].strip(" $}"):
                self._put("other", text)
        elif self._in_text and (text == "!" or (text == "," and not is_between)):
            self._put("other", text)
        else:
            self._put("op", TEXT_POWER if text == "^" and self._in_text else text)
