r"""Where a hint gives the right option of a multiple choice away.

By its letter, its place ("the second option"), its text, or by ruling out all others. A letter that
is said of nothing ("angle B", "compare A with B"), or said to be wrong, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recipe.hint.hints import leak_words as vocabulary
from recipe.hint.hints.leak_markup import unmarked
from recipe.hint.hints.leak_values import boxes

_LINE = re.compile(r"(?m)^[ \t]*(?:\\text(?:bf)?\{)?\(?([A-Z])[.):]\)?(?:[ ~]*\})?[ \t]*(\S.*)$")
_INLINE = re.compile(r"\(([A-Z])\)\s*([^()\n]*[^()\s])")
_LETTER = r"\(?\b(?P<letter>[A-Z])\b\)?"
_BEHIND = (
    "works? fits? remains? is it and because since as for which here holds? matches instead then so"
).replace(" ", "|")
# No article, no name of a point, no list.
_END = (
    rf"(?!['’\w]|\s+(?!(?:{_BEHIND})\b)[a-z]"
    r"|\s*(?:,|,?\s*(?:and|or|nor|with)\b|/|&)\s*\(?[A-Z]\b)"
)
_CHOOSE = (
    r"choose|chosen|chose|select(?:ed)?|pick(?:ed)?|mark|tick|circle|take|go(?:ing)? (?:with|for)"
    r"|opt for|settle on|submit|(?:reply|respond|answer) with|(?:it|that)(?:['’]s| is)"
    r"|(?:must|should|has to|can only) be|so|thus|hence|therefore"
)
_OPENS = (
    r"(?i:\b(?:answers?|ans|options?|choices?|letter|solution|alternative)\b)"
    r"(?:(?!\b[A-Z]\b)[^.;\n]){0,40}?(?:\b(?i:is|be|to|as|are|was|with|reads?)\b|[:=?!(.\s])\W{0,6}"
    r"(?i:(?:that|it|just|only|option)\s+)*"
    rf"|(?i:\b(?:{_CHOOSE}|leaves?|leaving|left with|points? to|only|but|write)\b)\s*"
    r"(?i:(?:option|choice|letter|answer|the|just|only|with|for|be|you)\s+)*\W{0,4}"
)
_ALONE = rf"[?:]\s+{_LETTER.replace('letter', 'other')}\s*[.!]?\s*(?:$|\n)"
_NAMED = re.compile(rf"(?:{_OPENS}){_LETTER}{_END}|{_ALONE}")
# Behind these a letter counts where its clause ends: "so B" may begin a sentence about a point B.
_WEAK = re.compile(
    r"(?i)\b(?:so|thus|hence|therefore|only|but|take|write|mark|(?:it|that)(?:['’]s| is)"
    r"|(?:must|should) be)\W*$"
)
_CLAUSE_END = re.compile(r"[\s)*]*(?:[.,;!?\n]|$)")
_SMALL = re.compile(
    r"(?i:\b(?:options?|choices?|letter)\b\s*|\b(?:answer|ans)\b\s*(?:is|:|=)\s*)\(?"
    r"(?P<letter>[b-z]\b|a(?=\)|\W*(?:$|\n)))(?!['’-]|\s+[a-z])"
)
_IS_RIGHT = (
    r"\s*(?:(?:is|was|has to be|must be)\s+(?:(?:clearly|surely|indeed)\s+)?(?:correct\b|true\b"
    r"|(?:the|your|our)\s+(?:[a-z]+\s+){0,2}?"
    r"(?:correct|right|best|answer|one|choice|option|solution)\b)"
    r"|it is\b|[-–,:]+\s*that(?:['’]s| is) (?:it|the)\b|as (?:the|your) (?:final )?answer\b)"
)
_RIGHT = re.compile(
    rf"{_LETTER}\.?(?i:{_IS_RIGHT}|\s+is right\b)"
    rf"|(?i:\b(?:only|just)\s+(?:option\s+)?){_LETTER.replace('letter', 'other')}\.?"
    r"(?i:\s+(?:can|is|fits?|works?|remains?|holds?|matches|survives?|agrees?)\b)"
)
_OF_A_THING = re.compile(
    r"(?i)\b(?:angle|point|vertex|triangle|line|side|vitamin|hepatitis|type|group|set|event|matrix"
    r"|class)\s+\(?$"
)
_WRONG_WORDS = (
    r"[\s)]*(?:(?:is|are|was|were|cannot|can)\s*)?(?:n['’]t|not|all\s+wrong|both\s+wrong|wrong|false"
    r"|incorrect|too|never|cannot|fails?|out\b|impossible|ruled out"
    r"|(?:can|may) be (?:ruled out|excluded|eliminated))"
)
_WRONG = re.compile(f"(?i){_WRONG_WORDS}")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_CARDINALS = vocabulary.SMALL[1:11]
_PLACE = re.compile(
    rf"(?i)\b(?:(?P<ordinal>{'|'.join(_ORDINALS)}|last|\d{{1,2}}(?:st|[nr]d|th))\s+(?:[a-z]+\s+)?"
    r"(?:options?|choices?|answers?|alternatives?|one"
    r"|of the (?:options|choices|answers|alternatives))"
    r"|(?:option|choice|alternative)\s+(?:number\s+|no\.?\s*|\#\s*)?"
    rf"(?P<number>\d{{1,2}}|{'|'.join(_CARDINALS)}))\b"
)
_CHOOSES = re.compile(
    r"(?i)(?:\b(?:answer|choice|option|solution)\s+(?:is|must be|should be|has to be)|[:=]"
    rf"|\b(?:{_CHOOSE}))\s*(?:in|just|simply)?\s*(?:the\s+)?\W*$"
)
_LIST = (
    r"(?:(?:options?|answers?|choices?)\s+)?\(?[A-Z]\)?"
    r"(?:(?:\s*,\s*(?:and\s+|or\s+|nor\s+)?|\s+(?:and|or|nor)\s+|\s*/\s*)(?:not\s+|option\s+)?"
    r"\(?[A-Z]\b\)?){0,11}"
)
_EXCLUDED = re.compile(
    r"(?i:\b(?:not|neither|none of|n['’]t|rule out|eliminate|exclude|discard|cross out|reject"
    rf"|strike|dismiss|nor)\b)(?i:\s+(?:is|be|choose|pick|with))?\s*(?P<after>{_LIST})\b"
    rf"|\b(?P<before>{_LIST})(?=(?i:{_WRONG_WORDS}))"
)
_EXCEPT = re.compile(
    r"(?i:\b(?:all|every|any|everything|each|none|nothing|no)\b)[^.;\n]{0,40}?"
    r"(?i:\b(?:except(?:\s+for)?|but|besides|other than|apart from|save)\b)\s+"
    rf"(?i:(?:option|choice)\s+)?{_LETTER}"
)
_TEXT_BEHIND = re.compile(
    r"(?i)\b(?:(?:answer|option|choice|solution|one)\b[^.;\n]{0,30}?(?:\b(?:is|be|as)\b|[:=])"
    rf"|(?:{_CHOOSE})\b)\s*"
    r"(?:(?:option|choice|the (?:one|option) (?:that )?(?:says|saying)|just)\s+)?"
)
_WINDOW_CHARS = 60


def options_of(question: str) -> dict[str, str]:
    """Return the options of a problem by their letters, in order; none if they are not lettered."""
    for pattern in (_LINE, _INLINE):
        found = {each[1]: each[2].strip() for each in pattern.finditer(question)}
        if len(found) > 1 and list(found) == [chr(65 + place) for place in range(len(found))]:
            return found
    return {}


def option_leaks(hint: str, letter: str, options: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Yield each span of a hint that names the option of this letter."""
    text = unmarked(hint)
    yield from _by_small_letter(text, letter)
    if letter in text:
        yield from _by_letter(text, letter)
    yield from _by_place(text, letter, list(options))
    yield from _by_exclusion(text, letter, set(options))
    squashed = {name: _squashed(said) for name, said in options.items()}
    said = squashed.get(letter, "")
    if said:
        yield from _by_text(text, said, set(squashed.values()))
    for box in boxes(hint):
        inside = _squashed(re.sub(r"\\[A-Za-z]+", "", box.text))
        if inside and inside in (letter.lower(), said, f"{letter.lower()} {said}"):
            yield box.start, box.end


def _by_small_letter(text: str, letter: str) -> Iterator[tuple[int, int]]:
    for match in _SMALL.finditer(text):
        start, end = match.span("letter")
        if match["letter"] == letter.lower() and not _is_denied(text, match.start(), start, end):
            yield start, end


def _by_letter(text: str, letter: str) -> Iterator[tuple[int, int]]:
    for match in _NAMED.finditer(text):
        start, end = match.span("letter" if match["letter"] else "other")
        is_open = not _WEAK.search(text[match.start() : start]) or _CLAUSE_END.match(text, end)
        if text[start:end] == letter and is_open:
            if not _is_denied(text, match.start(), start, end):
                yield start, end
    said = [*vocabulary.OPTION_ITSELF.finditer(text), *_RIGHT.finditer(text)]
    for start, end in (match.span(match.lastgroup or 0) for match in said):
        before = text[max(0, start - 20) : start]
        if text[start:end] == letter and not _OF_A_THING.search(before):
            if not vocabulary.NOT.search(before):
                yield start, end
    for match in _EXCEPT.finditer(text):
        if match["letter"] == letter:
            yield match.span("letter")


def _is_denied(text: str, opened: int, start: int, end: int) -> bool:
    before = text[max(0, opened - 12) : start]
    return bool(
        (vocabulary.NOT.search(before) and not re.search(r"(?i)\bbut\W*$", before))
        or _WRONG.match(text[end : end + _WINDOW_CHARS])
    )


def _by_place(text: str, letter: str, letters: list[str]) -> Iterator[tuple[int, int]]:
    place = ord(letter) - 64
    for match in _PLACE.finditer(text):
        named = (match["ordinal"] or match["number"]).lower()
        if named == "last":
            number = len(letters)
        elif named[0].isdigit():
            number = int(re.sub(r"\D", "", named))
        else:
            words: list[str] = [*(_ORDINALS if match["ordinal"] else _CARDINALS)]
            number = words.index(named) + 1
        before = text[max(0, match.start() - _WINDOW_CHARS) : match.start()]
        after = text[match.end() : match.end() + _WINDOW_CHARS]
        is_chosen = _CHOOSES.search(before) or re.match(f"(?i){_IS_RIGHT}|\\s+is right\\b", after)
        if number == place and is_chosen:
            if not _WRONG.match(after) and not vocabulary.NOT.search(before[-15:]):
                yield match.span()


def _by_exclusion(text: str, letter: str, letters: set[str]) -> Iterator[tuple[int, int]]:
    others = letters - {letter}
    ruled_out: set[str] = set()
    spans = []
    for match in _EXCLUDED.finditer(text) if others else ():
        name = "after" if match["after"] else "before"
        ruled_out |= set(re.findall(r"\b[A-Z]\b", match[name]))
        spans.append(match.span(name))
    if ruled_out == others and spans:
        yield spans[0][0], spans[-1][1]


def _by_text(text: str, said: str, options: set[str]) -> Iterator[tuple[int, int]]:
    """Yield where the text stands behind or before a statement, or is a line of its own."""
    lowered = _squashed(text)
    if said not in lowered:
        return
    for match in _TEXT_BEHIND.finditer(text):
        if vocabulary.NOT.search(text[max(0, match.start() - 12) : match.end()]):
            continue
        rest = _squashed(text[match.end() : match.end() + 3 * len(said) + _WINDOW_CHARS])
        if _longest(rest, options) == said:
            yield match.end(), _end_of(text, match.end(), said)
    for match in re.finditer(f"(?i){_IS_RIGHT}", text):
        before = text[max(0, match.start() - 3 * len(said) - _WINDOW_CHARS) : match.start()]
        squashed = _squashed(before)
        if squashed.endswith(said) and not vocabulary.NOT.search(before[-len(said) - 15 :]):
            start = match.start() - len(before) + _start_of(before, said)
            yield start, match.start()


def _longest(rest: str, options: set[str]) -> str:
    found = [each for each in options if each and f"{rest} ".startswith(f"{each} ")]
    return max(found, key=len, default="")


def _squashed(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _end_of(text: str, start: int, said: str) -> int:
    """Return where as many words as are said end."""
    words = list(re.finditer(r"\w+", text[start : start + 3 * len(said) + _WINDOW_CHARS]))
    return start + words[min(len(words), len(said.split())) - 1].end()


def _start_of(before: str, said: str) -> int:
    words = list(re.finditer(r"\w+", before))
    return words[-len(said.split())].start()
