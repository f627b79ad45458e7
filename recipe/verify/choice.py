r"""Grade multiple choice: the one letter in the last ``\boxed{}`` against the gold letter.

Accepted: A to Z in either case and any font, with ``( )``, ``[ ]``, ``.`` or "option" around it,
alone or beside its own option's text: ``(B) Paris``, ``\text{B: }x^2``, ``Paris (B)``. All else is
``malformed``: two letters, another option's text, the option's text alone.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from recipe.verify.maths.box import has_other
from recipe.verify.maths.grade import last_box
from recipe.verify.maths.lexer import spelled, spelled_command
from recipe.verify.schema import Verdict

_MAX_CHARS = 80  # a letter and its wrapping; longer text is something else
_MAX_OPTION_CHARS = 2000
_MAX_PROBLEM_CHARS = 20_000  # from its end
_LABEL = (
    r"(?:(?i:(?:the[ ~])?(?:(?:final|correct|right)[ ~])?(?:option|choice|answer|letter))"
    r"(?i:[ ~]is)?[ ~:]*(?![A-Za-z]{2}))?"
)
_LETTER = re.compile(rf"'?[ ~]*{_LABEL}[(\[]*{_LABEL}([A-Za-z])[.:]?[)\]]*[.:]?[ ~]*'?")
_BEFORE = re.compile(rf"[ ~]*{_LABEL}[(\[]*[ ~]?([A-Za-z])(?![a-z])[ ~]?[)\]]*")
_LETTER_AFTER = re.compile(r"(.*[^ ~])[ ~]*[(\[][ ~]?([A-Za-z])[ ~]?[)\]]\.?")
_ARROWS = r"=>|->|\\(?:to|rightarrow|Rightarrow|implies) "
_SEPARATOR = re.compile(rf"(?:[ ~]?(?:\.(?![0-9])|[:;,|=)\]]|{_ARROWS}))*[ ~]?")
_DASH = re.compile(r"[ ~]?-+>?[ ~]")
# A text without its typesetting: fonts, sizes, colours, spaces, ``$`` and braces mean nothing.
_TOKEN = re.compile(
    r"(?P<colour>\\(?:textcolor|color|colorbox)\s?\{[A-Za-z]{1,30}\})|\\(?P<name>[A-Za-z]+)"
    r"|(?P<space>\s|\\[,;:!> ]|\\\\|\\$)|\\(?P<sign>[%&#_{}])|(?P<star>\*+)"
    r"|(?P<nothing>[{}$]|\\[()\[\]$])|(?P<rest>[^\\\s{}$*]+|\\)"
)
_FONTS = frozenset(
    "boxed text textbf textit textrm textsf textnormal textup textmd texttt emph underline mathrm "
    "mathbf mathsf mathit mathtt mathnormal boldsymbol bm mbox hbox fbox operatorname rm bf it sf "
    "tt left right displaystyle textstyle large Large LARGE huge Huge small normalsize tiny big "
    "Big bigl bigr Bigl Bigr bfseries itshape".split()
)
_SPACES = frozenset("quad qquad enspace thinspace newline hfill".split())
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_NOT_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SIGNS = str.maketrans({"—": "-", "―": "-", "‘": "'", "“": "'", "”": "'", '"': "'", "`": "'"})
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_OPTION = re.compile(r"(?:[-*] )?\(?([A-Za-z])[.):]\)?(?: (.*))?")
_INLINE = [re.compile(rf"(?<![^\s;,|]){mark}\s") for mark in (r"\(([A-Za-z])\)", r"([A-Za-z])[.)]")]


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
    return Verdict(float(is_correct), "correct" if is_correct else "wrong", letter, basis="letter")


def read_letter(text: str) -> str:
    """Return the letter in upper case, empty when ``text`` is not one letter with wrapping."""
    match = _LETTER.fullmatch(_plain(text)) if len(text) <= _MAX_CHARS else None
    return match[1].upper() if match else ""


def _letter_of_option(text: str, problem: str) -> str:
    """Return the letter beside the text of its own option; empty where there is no such pair."""
    if not problem or len(text) > _MAX_OPTION_CHARS:
        return ""
    text = _plain(text)
    if found := _BEFORE.match(text):
        rest = text[found.end() :]
        # ``B.5`` is .5 before 5, ``B ~P`` is not P before P, ``B - 5`` is -5 before 5.
        starts = [1 if rest[:1] == "." else 0, *_ends(rest)]
        texts = [rest[start:] for start in starts]
        if any(_says(found[1].upper(), each, problem) for each in texts):
            return found[1].upper()
    found = _LETTER_AFTER.fullmatch(text)
    return found[2].upper() if found and _says(found[2].upper(), found[1], problem) else ""


def _ends(rest: str) -> list[int]:
    """Return where the text after a letter may begin: after signs, a tilde being one, or a dash."""
    found, dash = _SEPARATOR.match(rest), _DASH.match(rest)
    end = found.end() if found else 0
    return [end, end - (rest[end - 1 : end] == "~"), *([dash.end()] if dash else [])]


def _says(letter: str, text: str, problem: str) -> bool:
    """Return whether a plain text is the letter's own option rather than another one's."""
    options = _options_of(problem)
    inner = text.lstrip(" ~")
    for said in (text, inner[1:-1] if inner[:1] + inner[-1:] == "()" else ""):
        if said and _key(said) in map(_key, options.get(letter, ())):
            exact = _key(said, folds=False)
            holders = {
                name for name, texts in options.items() for each in texts
                if _key(each, folds=False) == exact
            }  # fmt: skip
            return letter in holders or not (holders or exact.upper() in options)
    return False


def _plain(text: str) -> str:
    """Return a text as it is read, on one line, with one space where there is any."""
    text = _RAISED.sub(lambda run: f"^{run[0].translate(_NOT_RAISED)}", text)
    text = spelled(unicodedata.normalize("NFKC", text).translate(_SIGNS))
    parts: list[str] = []
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[match.lastgroup or 0]
        if kind == "name" and token not in _FONTS:
            parts.append(" " if token in _SPACES else f"\\{spelled_command(token)} ")
        elif kind == "space":
            parts.append(" ")
        elif kind == "star":  # between digits or letters it is a product, else it marks a font
            sides = (
                text[max(0, match.start() - 1) : match.start()]
                + text[match.end() : match.end() + 1]
            )
            parts.append(token if len(token) == 1 and len(sides) == 2 and sides.isalnum() else "")
        elif kind in ("sign", "rest"):
            parts.append(token)
    return " ".join("".join(parts).split()).replace(r"^\circ", r"\degree")


def _key(text: str, *, folds: bool = True) -> str:
    """Return what two spellings of one option's plain text share.

    ``folds`` drops case, quotes and ``~``, which is a space or, in logic, "not".
    """
    text = _THOUSANDS.sub("", "".join(text.split())).rstrip(".,;:")
    return text.replace("'", "").replace("~", "").casefold() if folds else text


@functools.lru_cache(maxsize=256)
def _options_of(problem: str) -> dict[str, tuple[str, ...]]:
    """Return the plain texts of each option: its first line, and all of it.

    The options are the last run of lines from A on, else of marks within a line.
    """
    text = problem[-_MAX_PROBLEM_CHARS:]
    lines = list(map(_plain, text.split("\n")))
    found = [(m[1].upper(), n) for n, line in enumerate(lines) if (m := _OPTION.fullmatch(line))]
    if run := _last_run(found):
        options = {}
        blank = next((n for n in range(run[-1][1], len(lines)) if not lines[n]), len(lines))
        for (letter, start), end in zip(
            run, [*(place for _, place in run[1:]), blank], strict=True
        ):
            first = (_OPTION.fullmatch(lines[start]) or [""] * 3)[2] or ""
            options[letter] = (first, " ".join([first, *lines[start + 1 : end]]))
        return options
    text = _plain(text)
    for mark in _INLINE:
        marks = {m.start(): m for m in mark.finditer(text)}
        if run := _last_run([(m[1].upper(), start) for start, m in marks.items()]):
            ends = [*(place for _, place in run[1:]), len(text)]
            pairs = zip(run, ends, strict=True)
            return {name: (text[marks[place].end() : end],) for (name, place), end in pairs}
    return {}


def _last_run(marks: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the last run of marks, at least A and B; a lone A inside an option is not a mark."""
    runs: list[list[tuple[str, int]]] = []
    for letter, place in marks:
        if letter == "A":
            runs.append([(letter, place)])
            continue
        for run in runs[:-3:-1]:
            if ord(letter) == ord(run[-1][0]) + 1:
                run.append((letter, place))
                break
    return next((run for run in reversed(runs) if len(run) > 1), [])
