r"""Find answers that are not single numbers: formulas, lists, the answer's own text.

``12, 15, and 20`` and ``x = -2 or x = 3`` are lists, of as many values as the answer has. The own
text of ``April 11``, ``3:2`` or ``Zoë`` is looked for word for word.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from recipe.hint.hints.leak_numbers import lowered
from recipe.hint.hints.leak_stated import ASSUMED
from recipe.hint.hints.leak_text import Value, compact, plain, unmarked, values, written

TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")
_MAX_GAP_CHARS = 40
_NAME = r"[A-Za-z](?:_\{?\w\}?|\d)?"
_GAP = re.compile(
    r"[\s$]*(?:\\text\s*\{\s*)?(?:,\s*(?:and|or)\b|[,;]|\b(?:and|or)\b)(?:\s*\})?[\s$]*"
    rf"(?:{_NAME}\s*=[\s$]*)?"
)
# What parts the answer into the values of a list.
_AND = re.compile(r"[,;]|\b(?:and|or)\b")
_LABELS = re.compile(
    r"(?i)\b(?:part|line|step|equation|question|case|problem|hint|level|figure|row|column)s$"
)
_TELLING = re.compile(r"[^\W\d_]{2}|:|,.*[^\W\d_]|[^\W\d_].*,")  # `_lists` has plain numbers
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# Words that say little where they stand, also with a capital: "No two terms are equal".
_COMMON_WORDS = set(
    "yes no true false none never always all even odd neither both right left prime composite"
    " positive negative zero increasing decreasing convergent divergent equal greater less more"
    " rational irrational correct incorrect possible impossible up down".split()
)


def formulas(text: str, answer: str) -> list[Value]:
    """Return the formulas and numbers of a text, and its lists of as many values as the answer."""
    text = plain(text)
    found = [each for each in values(text) if each.shape != "word"]
    # A formula much longer than the answer is one on the way to it; a box holds the end.
    longest = 1.5 * len(compact(answer)) + 1
    size = len(_AND.split(answer))
    lists = _lists(text, found, size) if size > 1 else ()
    is_short = (each.shape == "boxed" or len(compact(each.text)) <= longest for each in found)
    return [*(each for each, short in zip(found, is_short, strict=True) if short), *lists]


def _lists(text: str, found: Sequence[Value], size: int) -> Iterator[Value]:
    """Yield each list of so many numbers with "and" or a comma between them, or names and "="."""
    run: list[Value] = []
    for one in [*(each for each in found if each.shape == "literal"), None]:
        is_near = one and run and one.start - run[-1].end <= _MAX_GAP_CHARS
        if one and is_near and _GAP.fullmatch(text, run[-1].end, one.start):
            run.append(one)
            continue
        if len(run) == size and not _is_by_chance(text, run):
            names = {each.left for each in run if re.fullmatch(_NAME, each.left)}
            # "y = 3 and x = 2" are (2, 3).
            order = sorted(run, key=lambda each: each.left) if len(names) == size else run
            joined = ", ".join(each.text for each in order)
            yield run[0]._replace(end=run[-1].end, text=joined, shape="formula")
        run = [one] if one else []


def _is_by_chance(text: str, run: Sequence[Value]) -> bool:
    """Return whether small numbers are those of steps, or are assumed: "try x = 2 or x = 3"."""
    if any(len(each.text.strip("-–− ")) > 1 for each in run):
        return False
    before = text[max(0, run[0].start - _MAX_GAP_CHARS) : run[0].start]
    assumed = text[max(0, run[0].statement - _MAX_GAP_CHARS) : run[0].statement]
    return bool(
        _LABELS.search(before.rstrip(" ($"))
        or (run[0].place and ASSUMED.search(assumed.rstrip(" $") + " "))
    )


def own_words(text: str, answer: str) -> list[Value]:
    """Return where a text has the answer word for word, if it has a word, a colon or a comma."""
    own = _own_pattern(answer)
    if own is None or not all(word in lowered(text) for word in own[0]):
        return []
    found = own[1].finditer(unmarked(text))
    shape = "common" if is_common_word(answer) else "words"
    return [Value(each.start(), each.end(), answer, shape, each.start()) for each in found]


@functools.lru_cache(maxsize=64)
def _own_pattern(answer: str) -> tuple[list[str], re.Pattern[str]] | None:
    r"""Return the words to look for first, and the pattern; ``None`` for a formula."""
    words = written(TEXT_COMMAND.sub(r"\1", answer)).text.replace(r"\%", "%").replace(r"\$", "$")
    if not _TELLING.search(words) or re.search(r"[\\{}()\[\]^=<>|]", words):
        return None
    tokens = re.findall(r"\w+|[^\w\s%$]", words)
    # A part of a longer word, of a longer ratio or of a longer list is another one.
    pattern = r"[\s%$]*".join("['’]" if each in "'’" else re.escape(each) for each in tokens)
    ends = r"(?<!\w)(?<!\w-)(?<!\d[.:,])", r"(?![\w°])(?!-\w|[.:,]\d|(?<=\d)\s?:\s?\d)"
    own = [each for each in map(lowered, tokens) if each.isalnum()]
    return own, re.compile(f"(?i){ends[0]}{pattern}{ends[1]}")


@functools.lru_cache(maxsize=64)
def is_common_word(answer: str) -> bool:
    """Return whether an answer is one word and not a name."""
    words = TEXT_COMMAND.sub(r"\1", answer).strip()
    is_name = words[:1].isupper() and words.lower() not in _COMMON_WORDS
    return bool(_WORD.fullmatch(words)) and not is_name
