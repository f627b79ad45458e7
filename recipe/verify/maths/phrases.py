r"""Words of an answer that say what a formula says: ``\text{arctan}(2)``, ``\text{Total: }5``.

Each pattern has its own closed list of words or takes letters alone, so that no digit, sign or
negation is rewritten; what is said of a value is still weighed where the value is compared.
"""

from __future__ import annotations

import re

from recipe.verify.maths.lexer import FUNCTIONS
from recipe.verify.maths.wrappers import GAP

_TEXT = r"\\text(?:rm|bf|it|normal)?\s?\{\s?"
_FUNCTION = re.compile(  # with its argument; after a number "sec" is a unit
    rf"{_TEXT}({'|'.join(sorted(FUNCTIONS - {'sec'}))})\s?\}}(?={GAP}{{0,3}}[({{_^0-9A-Za-z\\])"
)
_INFINITY = re.compile(
    rf"{_TEXT}(?:(negative |minus )|positive |plus )?inf(?:inity)?\s?\}}", re.IGNORECASE
)
_VALUE_OF = re.compile(rf"\A{_TEXT}(?:the )?value of\s?\}}", re.IGNORECASE)
_NAME_IS = re.compile(  # \text{Total: }5, \text{Domain}: x > 1, \text{The slope is }5
    rf"\A({_TEXT}[A-Za-z][A-Za-z ]{{1,60}}?)(?:(?::| is:?| are:?)\s?\}}|\s?\}}\s?:)(?=.)", re.DOTALL
)
_IS = re.compile(rf"{_TEXT}(?:is|equals)(?: equal to)?:?\s?\}}")
_IN_BRACKETS = re.compile(  # 18 \text{ (dollars)}
    rf"(?<=[0-9}})])({GAP}{{0,3}}\\text\s?\{{\s?)\(([A-Za-z][A-Za-z ]{{1,40}})\)(?=\s?\}}\.?\Z)"
)
_UNIT = r"(\\(?:text|mathrm)\s?\{[A-Za-z ]{1,20}\}(?:\^(?:[23]|\{[23]\}))?)"
_FRACTION_OF_UNITS = re.compile(
    rf"(?<=[0-9}}~,;:\s])\\[dt]?frac\s?\{{\s?{_UNIT}\s?\}}\s?\{{\s?{_UNIT}\s?\}}(?=[\s.$]*\Z)"
)
_ARTICLE = re.compile(
    r"\A(?:an?|the) ((?=[a-z]{0,19}[aeiou])[a-z]{4,20})(?=(?: [a-z]{1,20}){0,6}\.?\Z)",
    re.IGNORECASE,
)
_FORMULAS = (*FUNCTIONS, *"sqrt theta alpha beta gamma infty".split())


def without_phrases(text: str) -> str:
    """Return an answer whose words for functions, infinity, ``is`` and ``per`` are formulas."""
    if "\\" not in text:
        return _ARTICLE.sub(lambda m: m[0] if m[1].startswith(_FORMULAS) else m[1], text)
    text = _FUNCTION.sub(r"\\\1 ", text)
    text = _INFINITY.sub(lambda m: r"-\infty " if m[1] else r"\infty ", text)
    text = _IS.sub(" = ", _NAME_IS.sub(r"\1} = ", _VALUE_OF.sub("", text)))
    text = _IN_BRACKETS.sub(r"\1\2", text)
    return _FRACTION_OF_UNITS.sub(r"\1/\2", text)
