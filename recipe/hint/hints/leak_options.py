r"""Where a hint gives the right option of a multiple choice away.

By its letter, its place ("the second option"), its text, or by ruling out all others. A letter that
is not presented as the answer ("angle B", "compare A with B") or is called wrong does not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from recipe.hint.hints.leak_numbers import lowered
from recipe.hint.hints.leak_stated import NOT
from recipe.hint.hints.leak_text import boxes, unmarked
from recipe.verify.choice_text import texts_of
from recipe.verify.maths.words import NUMBERS

_WINDOW_CHARS = 80
_CAPITAL = re.compile(r"\b[A-Z]\b")
_CHOOSE = (
    r"choose|chosen|chose|select(?:ed)?|pick(?:ed)?|mark|tick|circle|take|go(?:ing)? (?:with|for)"
    r"|opt for|settle on|submit|(?:reply|respond|answer) with|(?:it|that)(?:['’]s| is)"
    r"|(?:must|should|has to|can only) be|so|thus|hence|therefore|leaves?|leaving|left with"
    r"|points? to|only|but|write"
)
# What precedes an option where it is chosen.
_BEFORE = re.compile(
    r"(?:(?i:\b(?:answers?|ans|options?|choices?|letter|solution|alternative|one)\b)"
    r"(?:(?!\b[A-Z]\b)[^.;\n]){0,40}?(?:\b(?i:is|be|to|as|are|was|with|reads?)\b|[:=?!(.\s])\W*"
    rf"|(?i:\b(?:{_CHOOSE})\b))\W*"
    r"(?i:(?:that|it|just|only|simply|in|option|choice|letter|answer|the|with|for|be|you|saying|says)"
    r"\W+)*$"
)
# After these a letter counts where its clause ends: "so B" may begin a sentence about a point B.
_WEAK = re.compile(
    r"(?i)\b(?:so|thus|hence|therefore|only|but|take|write|mark|(?:it|that)(?:['’]s| is)"
    r"|(?:must|should) be)\W*$"
)
_CLAUSE_END = re.compile(r"[\s)*]*(?:[.,;!?\n]|$)")
# After a letter that is an article, a point, or one of a list.
_GOES_ON = re.compile(
    r"['’\w]|\s+(?!(?:works?|fits?|remains?|is|it|and|because|since|as|for|which|here|holds?|matches"
    r"|instead|then|so)\b)[a-z]|\s*(?:,|,?\s*(?:and|or|nor|with)\b|/|&)\s*\(?[A-Z]\b"
)
_IS_RIGHT = re.compile(
    r"(?i)\W{0,6}(?:is right\b(?! angle)|(?:(?!or |and |nor )[a-z]+ ){0,2}?"
    r"(?:is|was|has to be|must be)\s+(?:(?:clearly|surely|indeed)\s+)?"
    r"(?:correct\b|true\b|(?:the|your|our)\s+(?:[a-z]+\s+){0,2}?"
    r"(?:correct|right|best|answer|one|choice|option|solution)\b)"
    r"|it is\b|[-–,:]+\s*that(?:['’]s| is) (?:it|the)\b|as (?:the|your) (?:final )?answer\b)"
)
_ONLY = re.compile(r"(?i)\b(?:only|just)\s+(?:option\s+)?$")
_REMAINS = re.compile(r"\.?\s+(?:can|is|fits?|works?|remains?|holds?|matches|survives?|agrees?)\b")
_EXCEPT = re.compile(
    r"(?i)\b(?:all|every|any|everything|each|none|nothing|no)\b[^.;\n]{0,40}?\b(?:except(?:\s+for)?"
    r"|but|besides|other than|apart from|save)\s+(?:(?:option|choice)\s+)?$"
)
_EXCEPTING = ("except", "for", "but", "besides", "than", "from", "save", "option", "choice")
_NAMED = re.compile(r"(?:\b(?:options?|choices?|letter)|\b(?:answer|ans)\s*(?:is|:|=))\s*$")
_OF_A_THING = re.compile(
    r"(?i)\b(?:angle|point|vertex|triangle|line|side|vitamin|hepatitis|type|group|set|event|matrix"
    r"|class)\s+$"
)
_WRONG_WORDS = (
    r"[\s)]*(?:(?:is|are|was|were|cannot|can)\s*)?(?:n['’]t|not|all\s+wrong|both\s+wrong|wrong|false"
    r"|incorrect|too|never|cannot|fails?|out\b|impossible|ruled out"
    r"|(?:can|may) be (?:ruled out|excluded|eliminated))"
)
_WRONG = re.compile(f"(?i){_WRONG_WORDS}")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_CARDINALS = list(NUMBERS)[1:11]
_PLACE = (
    r"(?i)\b(?:(?:{ordinal}|{number}(?:st|[nr]d|th))\s+(?:[a-z]+\s+)?"
    r"(?:options?|choices?|answers?|alternatives?|one"
    r"|of the (?:options|choices|answers|alternatives))"
    r"|(?:option|choice|alternative)\s+(?:number\s+|no\.?\s*|\#\s*)?(?:{number}|{cardinal}))\b"
)
_LIST = (
    r"(?:(?:options?|answers?|choices?)\s+)?[A-Z]\b"
    r"(?:(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+|\s*/\s*)(?:not\s+|option\s+)?"
    r"\s*[A-Z]\b){0,11}"
)
_EXCLUDED = re.compile(
    r"(?i:\b(?:not|neither|none of|n['’]t|rule out|eliminate|exclude|discard|cross out|reject"
    rf"|strike|dismiss|nor)\b)(?i:\s+(?:is|be|choose|pick|with))?\s*(?P<after>{_LIST})"
    rf"|\b(?P<before>{_LIST})(?=(?i:{_WRONG_WORDS}))"
)


def option_leaks(hint: str, letter: str, question: str) -> Iterator[tuple[int, int]]:
    """Yield each span of a hint that names an option; none if ``letter`` is not a letter."""
    if not re.fullmatch("[A-Z]", letter):
        return
    text = unmarked(hint)
    low = lowered(text)
    capitals = set(_CAPITAL.findall(text))
    options = _squashed_options(question)
    if letter in capitals:
        yield from _by_letter(text, letter)
    if (others := options.keys() - {letter}) and others <= capitals:
        yield from _by_exclusion(text, others)
    for match in re.finditer(rf"\b{letter.lower()}\b", low):
        start, end = match.span()
        is_named = _NAMED.search(low[max(0, start - 20) : start]) and not _GOES_ON.match(text, end)
        if is_named and text[start] != letter and not _is_denied(text, start, end):
            if letter != "A" or _CLAUSE_END.match(text, end):
                yield start, end
    yield from _chosen(text, _of_place(low, ord(letter) - 65, len(options)), is_place=True)
    if own := options.get(letter, ""):
        yield from _chosen(text, _of_text(text, own, options.values()))
    for box in boxes(hint):
        inside = _squashed(re.sub(r"\\[A-Za-z]+", "", box.text))
        if inside and inside in (letter.lower(), own, f"{letter.lower()} {own}"):
            yield box.start, box.end


@functools.lru_cache(maxsize=64)
def _squashed_options(question: str) -> dict[str, str]:
    return {letter: _squashed(unmarked(each)) for letter, each in texts_of(question).items()}


def _by_letter(text: str, letter: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(rf"\b{letter}\b", text):
        start, end = match.span()
        before, after = text[max(0, start - _WINDOW_CHARS) : start], text[end : end + _WINDOW_CHARS]
        line = before.rpartition("\n")[2] + after.partition("\n")[0]
        if not line.strip(" .:)(") or (
            re.search(r"[?:]\s+$", before) and re.match(r"\s*[.!]?\s*(?:$|\n)", after)
        ):
            yield start, end
        elif before.rstrip().endswith(_EXCEPTING) and _EXCEPT.search(before):
            yield start, end
        elif _IS_RIGHT.match(after) or (_ONLY.search(before) and _REMAINS.match(after)):
            if not _OF_A_THING.search(before) and not NOT.search(before[-20:]):
                yield start, end
        elif (opened := _BEFORE.search(before)) and not _GOES_ON.match(after):
            if not _WEAK.search(before) or _CLAUSE_END.match(after):
                if not _is_denied(text, start, end, len(opened[0])):
                    yield start, end


def _is_denied(text: str, start: int, end: int, num_before: int = 0) -> bool:
    before = text[max(0, start - num_before - 12) : start]
    is_not = NOT.search(before) and not re.search(r"(?i)\bbut\W*$", before)
    return bool(is_not or _WRONG.match(text[end : end + _WINDOW_CHARS]))


def _chosen(
    text: str, spans: list[tuple[int, int]], *, is_place: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield the places of an option that stand where one is chosen."""
    for start, end in spans:
        before, after = text[max(0, start - _WINDOW_CHARS) : start], text[end : end + _WINDOW_CHARS]
        opened = _BEFORE.search(before) or (
            is_place and re.search(r"[:=]\s*(?:the\s+)?\W*$", before)
        )
        if opened and not _is_denied(text, start, end, len(opened[0])):
            yield start, end
        elif _IS_RIGHT.match(after) and not NOT.search(before[-15:]):
            yield start, end


def _of_place(low: str, place: int, num_options: int) -> list[tuple[int, int]]:
    if place >= len(_ORDINALS):
        return []
    names = [_ORDINALS[place], *(["last"] if place == num_options - 1 else [])]
    if not any(each in low for each in (*names, _CARDINALS[place], str(place + 1))):
        return []
    pattern = _PLACE.format(ordinal="|".join(names), cardinal=_CARDINALS[place], number=place + 1)
    return [each.span() for each in re.finditer(pattern, low)]


def _of_text(text: str, own: str, options: Iterable[str]) -> list[tuple[int, int]]:
    """Return where an option's text stands, but not where it is part of a longer one's."""
    wanted, folded = own.split(), text.casefold()
    if not all(each in folded for each in wanted):
        return []
    words = [*re.finditer(r"\w+", text)]
    said = [each[0].casefold() for each in words]
    longer = [each.split() for each in options if each != own and f"{each} ".startswith(f"{own} ")]
    return [
        (words[place].start(), words[place + len(wanted) - 1].end())
        for place in range(len(words) - len(wanted) + 1)
        if said[place] == wanted[0]
        and said[place : place + len(wanted)] == wanted
        and not any(said[place : place + len(each)] == each for each in longer)
    ]


def _by_exclusion(text: str, others: set[str]) -> Iterator[tuple[int, int]]:
    found = [*_EXCLUDED.finditer(text)]
    spans = [each.span("after" if each["after"] else "before") for each in found]
    if (
        spans
        and {name for span in spans for name in _CAPITAL.findall(text[slice(*span)])} == others
    ):
        yield spans[0][0], spans[-1][1]


def _squashed(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
