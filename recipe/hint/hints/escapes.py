r"""Resolving the backslashes of strings that may be JSON, LaTeX, or a bit of both.

``\nu`` is a newline and a ``u`` in JSON, and a letter in LaTeX. The strings of one object are
read together:

- They are **escaped** when a doubled backslash stands before two letters or more, or around
  brackets (``\\frac``, ``\\( .. \\)``), or four stand in a row, and no escape is invalid in JSON.
  They are then decoded as JSON: a single ``\n`` is a newline whatever follows, ``\t`` a tab.
  The same holds when nothing in them looks like LaTeX with single backslashes.
- They are **unescaped** when an escape is invalid in JSON (``\sqrt``), or when none is doubled and
  ``\n \r \t`` begins a known command or ``\b \f`` any word. Then every command keeps its backslash,
  ``\n`` before anything else is a newline, and ``\\`` stays a LaTeX line break, except before two
  letters or more: such a writer doubled some and forgot others.

Not covered: a writer who doubled some commands and forgot only ones that JSON can read
(``\\frac .. \theta``); the second becomes a tab. Valid JSON is never changed for its sake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# The commands of everyday mathematics that begin with b, f, n, r, t or u, where JSON has escapes.
_COMMANDS = frozenset(
    """
    backslash bar barwedge because begin beta beth between bf big bigcap bigcirc bigcup bigg biggl
    biggr bigl bigm bigoplus bigotimes bigr bigsqcup bigstar biguplus bigvee bigwedge binom
    blacksquare bm bmatrix bmod boldsymbol bot bowtie boxed bra brace brack breve bullet bumpeq
    fallingdotseq fbox fcolorbox flat floor footnote footnotesize forall frac frown
    nabla natural ncong ne nearrow neg neq newline nexists ngeq ngtr ni nleftarrow nleq nless nmid
    nolimits nonumber norm normalsize not notag notin nparallel nprec nrightarrow nsim nsubseteq
    nsucc nsupseteq ntriangleleft ntriangleright nu nvdash nwarrow
    raisebox rangle rbrace rbrack rceil ref rfloor rgroup rho right rightarrow rightarrowtail
    rightharpoondown rightharpoonup rightleftarrows rightleftharpoons rightrightarrows
    rightsquigarrow risingdotseq rm root rtimes rule rvert
    tag tan tanh tau tbinom tfrac text textbf textcolor textit textnormal textrm textsf textstyle
    texttt textup therefore theta thickapprox thicksim thinspace tilde times to top triangle
    triangledown triangleleft trianglelefteq triangleq triangleright trianglerighteq tt
    twoheadrightarrow
    underbrace underline underset uparrow updownarrow uplus upsilon
    """.split()
)

_ESCAPE = re.compile(r"\\(\\\\\\|\\|u[0-9a-fA-F]{4}|[A-Za-z]+|.)", re.DOTALL)
_HEX = re.compile(r"u[0-9a-fA-F]{4}")
_WORD = re.compile(r"[A-Za-z]+|.", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Style:
    """How the strings of one object use backslashes; ``delimiters`` are written doubled."""

    is_json: bool
    is_doubled: bool
    delimiters: frozenset[str]


def decode_together(strings: Sequence[str]) -> list[str]:
    """Return the texts the writer of ``strings`` meant; one style holds for all of them.

    Linear time. A surrogate without its partner becomes U+FFFD.
    """
    style = _style_of(strings)
    return [_decode(string, style) for string in strings]


def _style_of(parts: Iterable[str]) -> _Style:
    """Decide by the evidence of the module's docstring."""
    after_double: set[str] = set()
    is_doubled = is_invalid = is_like_latex = False
    for part in parts:
        for match in _ESCAPE.finditer(part):
            body = match[1]
            if body == "\\":
                after_double.add(_word_at(part, match.end()))
            elif body == "\\\\\\":
                is_doubled = True
            elif body[0] in _CONTROL:
                is_like_latex |= _is_command(body)
            elif body[0] not in "\"'/" and not _HEX.fullmatch(body):
                is_invalid = True
    pairs = ("()", "[]", "{}")
    delimiters = frozenset(char for pair in pairs if after_double >= set(pair) for char in pair)
    is_doubled |= bool(delimiters) or any(map(_is_word, after_double))
    return _Style(not is_invalid and (is_doubled or not is_like_latex), is_doubled, delimiters)


def _decode(part: str, style: _Style) -> str:
    def resolve(match: re.Match[str]) -> str:
        body = match[1]
        if body == "\\\\\\":
            return "\\\\" if style.is_json or style.is_doubled else match[0]
        if body == "\\":
            word = _word_at(part, match.end())
            is_one = style.is_json or _is_word(word) or word in style.delimiters
            return "\\" if is_one else match[0]
        if _HEX.fullmatch(body):
            return chr(int(body[1:], 16))
        if body in "\"'/":
            return body
        if body[0] in _CONTROL and (style.is_json or not _is_command(body)):
            return _CONTROL[body[0]] + body[1:]
        return match[0]

    text = _ESCAPE.sub(resolve, part)
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _word_at(text: str, at: int) -> str:
    match = _WORD.match(text, at)
    return match[0] if match else ""


def _is_word(text: str) -> bool:
    return len(text) > 1


def _is_command(body: str) -> bool:
    r"""Return whether a single backslash begins LaTeX here; nobody writes ``\b`` or ``\f``."""
    return body in _COMMANDS or (body[0] in "bf" and len(body) > 1)
