r"""Grade multiple choice: the one letter in the last ``\boxed{}`` against the gold letter.

Accepted: A to Z in either case and any font, with ``( )``, ``[ ]``, ``.`` or "option" around it,
alone or beside its own option's text: ``(B) Paris``, ``\text{B: }x^2``, ``Paris (B)``. All else is
``malformed``: two letters, another option's text, the option's text alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from recipe.verify.choice_text import key, options_of, plain
from recipe.verify.maths.around import has_other
from recipe.verify.maths.grade import last_box
from recipe.verify.schema import Verdict

_MAX_CHARS = 80  # a letter and its wrapping; longer text is something else
_MAX_OPTION_CHARS = 2000
_LABEL = (
    r"(?:(?i:(?:the[ ~])?(?:(?:final|correct|right)[ ~])?(?:option|choice|answer|letter))"
    r"(?i:[ ~]is)?[ ~:]*(?![A-Za-z]{2}))?"
)
_LETTER = re.compile(rf"'?[ ~]*{_LABEL}[(\[]*{_LABEL}([A-Za-z])[.:]?[)\]]*[.:]?[ ~]*'?")
_BEFORE = re.compile(rf"[ ~]*{_LABEL}[(\[]*[ ~]?([A-Za-z])(?![a-z])[ ~]?[)\]]*")
_LETTER_AFTER = re.compile(r"(.*[^ ~])[ ~]*[(\[][ ~]?([A-Za-z])[ ~]?[)\]]\.?")
_ARROWS = r"=>|->|\\(?:to|rightarrow|Rightarrow|implies) "
_SEPARATOR = re.compile(rf"(?:[ ~]?(?:\.(?![0-9])|[:;,|=)\]]|{_ARROWS}))*[ ~]?")
_DASH = re.compile(r"-+>?[ ~]")
Options = Mapping[str, tuple[str, ...]]


def choice_verdict(
    response: str, answer: str, problem: str = "", *, is_truncated: bool = False
) -> Verdict:
    """Grade one response; never slow, so it needs no worker.

    ``error`` means that the gold answer is not a letter; ``problem`` has the options, a line each.
    """
    box = last_box(response)
    if box.state != "closed" or not box.text:
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if box.state == "open" else "no_answer")
    gold = read_letter(answer)
    letter = read_letter(box.text) or _letter_of_option(box.text, problem)
    if not gold:
        return Verdict(0.0, "error", box.text)
    if not letter or has_other(response, *box.place, letter):
        return Verdict(0.0, "malformed", box.text)
    is_correct = letter == gold
    reason = "correct" if is_correct else "wrong"
    return Verdict(float(is_correct), reason, letter, basis="letter")


def read_letter(text: str) -> str:
    """Return the letter in upper case, empty when ``text`` is not one letter with wrapping."""
    match = _LETTER.fullmatch(plain(text)) if len(text) <= _MAX_CHARS else None
    return match[1].upper() if match else ""


def _letter_of_option(text: str, problem: str) -> str:
    """Return the letter beside the text of its own option; empty where there is no such pair."""
    if not problem or len(text) > _MAX_OPTION_CHARS:
        return ""
    text = plain(text)
    options = options_of(problem)
    if (found := _BEFORE.match(text)) and _is_of(found[1], text[found.end() :], options):
        return found[1].upper()
    found = _LETTER_AFTER.fullmatch(text)
    return found[2].upper() if found and _says(found[2], found[1], options) else ""


def _is_of(letter: str, rest: str, options: Options) -> bool:
    """Return whether ``rest`` is a separator and the letter's text.

    ``B - 5`` is read as -5 before 5, ``B.5`` as .5 before 5, and ``B ~P`` as P before not P.
    """
    separator = _SEPARATOR.match(rest)
    end = separator.end() if separator else 0
    texts = [rest[end:]]
    if rest[:1] == "." or rest[end - 1 : end] == "~":
        texts.append(rest[1:] if rest[:1] == "." else rest[end - 1 :])
    dash = _DASH.match(rest, end)
    if dash is not None and not rest[:end].strip(" ~"):
        texts.append(rest[dash.end() :])
    return any(_says(letter, text, options) for text in texts)


def _says(letter: str, text: str, options: Options) -> bool:
    """Return whether a plain text is the letter's own option rather than another one's."""
    own = options.get(letter.upper(), ())
    inner = text.lstrip(" ~")
    for said in (text, inner[1:-1] if inner[:1] + inner[-1:] == "()" else ""):
        if said and key(said) in map(key, own):
            exact = key(said, folds=False)
            is_own = any(key(each, folds=False) == exact for each in own)
            others = (key(each, folds=False) for texts in options.values() for each in texts)
            return is_own or (exact.upper() not in options and exact not in others)
    return False
