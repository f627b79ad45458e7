r"""Grade multiple choice: the one letter in the last ``\boxed{}`` against the gold letter.

Accepted: A to Z in either case and any font, with ``( )``, ``[ ]``, ``.`` or "option" around it,
alone or beside its own option's text: ``(B) Paris``, ``\text{B: }x^2``, ``Paris (B)``. All else is
``malformed``: two letters, another option's text, the option's text alone.
"""

from __future__ import annotations

import re
import unicodedata

from recipe.verify.maths.box import has_other, last_box, without_answer
from recipe.verify.maths.lexer import spelled, spelled_command
from recipe.verify.schema import Verdict

_MAX_CHARS = 80  # a letter and its wrapping; longer text is something else
_MAX_OPTION_CHARS = 2000
_MAX_PROBLEM_CHARS = 20_000  # from its end; an option is a line of it
_LABEL = (
    r"(?:(?i:(?:the )?(?:(?:final|correct|right) )?(?:option|choice|answer|letter))"
    r"(?i: is)?[ :]*(?![A-Za-z]{2}))?"
)
_LETTER = re.compile(rf"'? *{_LABEL}[(\[]*{_LABEL}([A-Za-z])[.:]?[)\]]*[.:]? *'?")
_BEFORE = re.compile(rf"{_LABEL}[(\[]*([A-Za-z])(?![A-Za-z])[)\]]*[.:;,)\]]* *")
_AFTER = re.compile(r"(.*[^ ]) *[(\[]([A-Za-z])[)\]]\.?")
_OPTION = re.compile(r"(?:[-*] )?\(?([A-Za-z])[.):]\)?(?: (.*))?")
# Typesetting that says nothing: fonts, sizes and colours, ``$``, braces, the marks of Markdown.
_FONTS = (
    "boxed text textbf textit textrm textsf textnormal textup textmd texttt emph underline mathrm "
    "mathbf mathsf mathit mathtt mathnormal boldsymbol bm mbox hbox fbox operatorname rm bf it sf "
    "tt left right displaystyle textstyle large Large small normalsize big Big bfseries itshape"
)
_FONT = re.compile(
    rf"\\(?:textcolor|color)\s?\{{\w{{1,30}}\}}|\\(?:{_FONTS.replace(' ', '|')})(?![A-Za-z])"
)
_NOTHING = re.compile(r"(?<!\\)[{}$]|\\[()\[\]$]|\*\*|(?<!\w)\*|\*(?!\w)")
_SPACES = re.compile(
    r"\\(?:[,;:!> \\]|(?:q?quad|enspace|thinspace|newline)(?![A-Za-z]))|~(?=\\)|\s"
)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SIGNS = str.maketrans({"—": "-", "―": "-", "‘": "'", "“": "'", "”": "'", '"': "'", "`": "'"})
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")


def choice_verdict(
    response: str, answer: str, problem: str = "", *, is_truncated: bool = False
) -> Verdict:
    """Grade one response; never slow, so it needs no worker.

    ``error`` means that the gold answer is not a letter; ``problem`` has the options, a line each.
    """
    box = last_box(response)
    if verdict := without_answer(box, is_truncated):
        return verdict
    gold = read_letter(answer)
    if not gold:
        return Verdict(0.0, "error", box.text)
    letter = read_letter(box.text) or _letter_of_option(box.text, problem)
    if not letter or has_other(response, *box.place, letter):
        return Verdict(0.0, "malformed", box.text)
    is_correct = letter == gold
    return Verdict(float(is_correct), "correct" if is_correct else "wrong", letter, basis="letter")


def read_letter(text: str) -> str:
    """Return the letter in upper case, empty when ``text`` is not one letter with wrapping."""
    match = _LETTER.fullmatch(_plain(text)) if len(text) <= _MAX_CHARS else None
    return match[1].upper() if match else ""


def _letter_of_option(text: str, problem: str) -> str:
    """Return the letter beside the text of its own option; empty where there is no such pair."""
    if not problem or len(text) > _MAX_OPTION_CHARS:
        return ""
    lines = [_plain(line) for line in problem[-_MAX_PROBLEM_CHARS:].split("\n")]
    marks = [mark for line in lines if (mark := _OPTION.fullmatch(line))]
    options = {mark[1].upper(): _key(mark[2] or "") for mark in marks}  # the last list's
    text = _plain(text)
    before, after = _BEFORE.match(text), _AFTER.fullmatch(text)
    pairs = [(before[1], text[before.end() :])] if before else []
    pairs += [(before[1], text[before.end(1) :].lstrip(")]"))] if before else []  # ``B.5`` of .5
    pairs += [(after[2], after[1])] if after else []
    for letter, said in pairs:
        named = [name for name, option in options.items() if option == _key(said)]
        if named == [letter.upper()]:  # no other one's too
            return named[0]
    return ""


def _plain(text: str) -> str:
    """Return a text as it is read, on one line, with one space where there is any."""
    text = spelled(unicodedata.normalize("NFKC", text).translate(_SIGNS))
    text = _SPACES.sub(" ", _FONT.sub("", text))
    text = _COMMAND.sub(lambda found: f"\\{spelled_command(found[1])} ", text)
    text = _NOTHING.sub("", text)
    return " ".join(re.sub(r"\\([%&#_])", r"\1", text).split())


def _key(text: str) -> str:
    """Return what two spellings of one option's plain text share."""
    text = _THOUSANDS.sub("", "".join(text.split())).rstrip(".,;:")
    return text.replace("'", "").casefold()
