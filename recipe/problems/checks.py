"""Report what to know about a file before training on it: counts, with the places.

A finding is a warning, or a note when nothing has to be done about it. Faults that make a row
unusable are no findings but errors, raised while the file is read.

Problems that two files share are found by runs of words after spelling is levelled. Covered: case,
spacing, LaTeX markup without meaning and usual spellings of signs, a text of five words and more
inside a longer one. Not covered: paraphrase, translation, other numbers in the same text.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recipe.hint.prompt import Message, fold_system
from recipe.problems.columns import read_problems
from recipe.problems.prepare import Prepared, places_text
from recipe.problems.progress import progress
from recipe.problems.rows import lists_options
from recipe.problems.schema import content_id
from recipe.run.errors import DataError, one_line
from recipe.verify.maths.grade import is_text_only
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item

# Right for no answer, so that the verifier has to work on the gold answer to say "wrong".
_PROBE = r"\boxed{7919.0625}"
_AT_ONCE = 1024  # answers between two looks at how far it is
# Words in a run. Runs of 10 are the shorter end of what training-data audits use (8 to 13):
# problems are short, and a match must still be more than a common phrase.
NGRAM_WORDS = 10
MIN_SHARE = 0.5
_FEWEST_WORDS = 5  # of a text that is looked for within longer ones
_MOST_HOLDERS = 10  # benchmark problems with one run, before it is taken for an instruction
_MARKUP = re.compile(
    r"\\(?:left|right|displaystyle|text(?:bf|it|rm)?|mathrm|mbox|q?quad)(?![a-z])|\\[,;:! ]|[${}~]"
)
# Spellings of one thing, and what they are levelled to.
_SPELLINGS = (
    (re.compile(r"\\[dt]?frac\s*([0-9])\s*([0-9])"), r"\\frac \1 \2"),
    (re.compile(r"\\[dt]frac(?![a-z])"), r"\\frac"),
    (re.compile(r"[\u2010-\u2015\u2212]"), "-"),
    (re.compile(r"\\leq?(?:slant)?(?![a-z])|[≤⩽]|<="), " le "),
    (re.compile(r"\\geq?(?:slant)?(?![a-z])|[≥⩾]|>="), " ge "),
    (re.compile(r"\\neq?(?![a-z])|≠|!="), " ne "),
    (re.compile(r"\\(?:times|cdot)(?![a-z])|[×·⋅]"), "*"),
    (re.compile(r"\^?\{?\s*\\(?:circ|degree)(?![a-z])\s*\}?|°"), " degrees "),
    (re.compile("π"), " pi "),
)
_NUMBER = re.compile(r"-?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)")
_THOUSANDS = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|,?\\!)(?=[0-9]{3})")
_WORD = re.compile(r"[^\W\d_]+|\d+|[+*/=<>^-]")

Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A property that some rows share; ``rows`` are their numbers from 0."""

    column: str
    what: str
    rows: tuple[int, ...]
    places: tuple[str, ...]
    is_note: bool = False

    def line(self, path: str, *, is_listed: bool = False) -> str:
        """Return one line for the console; ``is_listed`` names every place, not the first ones."""
        count = f"{len(self.rows)} row{'s' if len(self.rows) != 1 else ''}"
        level = "note" if self.is_note else "warning"
        return (
            f"{level}: {path}: {count}, column `{self.column}`: {self.what}"
            f" ({', '.join(self.places) if is_listed else places_text(self.places)})"
        )


def missing_solutions(prepared: Prepared) -> list[Finding]:
    """Find rows without a solution, which is allowed."""
    rows = [(n, "") for n, row in enumerate(prepared.rows) if not row["solution"].strip()]
    what = "empty, so these problems get no self-written hint"
    if prepared.solution_key and len(rows) == len(prepared.rows):
        what += "; --solution-key names another column"
    return _found(prepared, prepared.solution_key or "solution", what, rows, is_note=True)


def missing_ids(prepared: Prepared) -> list[Finding]:
    """Find rows whose ids are made from their texts, beside rows with an id of their own."""
    rows = [
        (number, "")
        for number, row in enumerate(prepared.rows)
        if row["extra_info"]["index"] == content_id(row["problem"])
    ]
    what = "no id of their own, so theirs are made from their texts and change with them"
    some = rows if len(rows) < len(prepared.rows) else []
    return _found(prepared, "extra_info.index", what, some, is_note=True)


def missing_options(prepared: Prepared) -> list[Finding]:
    """Find questions of choice that list no options, and lists of options graded as mathematics."""
    without: list[tuple[int, str]] = []
    letters: list[tuple[int, str]] = []
    for number, row in enumerate(prepared.rows):
        kind, has_list = row["reward_model"]["kind"], lists_options(row["problem"])
        if kind == "choice" and not has_list:
            without.append((number, ""))
        if kind == "maths" and has_list and re.fullmatch("[A-Z]", row["answer"].strip()):
            letters.append((number, ""))
    what = "no options on lines of their own, (A) and (B); --options-key names a column of them"
    found = _found(prepared, "problem", what, without)
    what = "a letter of the listed options, but graded as mathematics; --kind choice grades it"
    return found + _found(prepared, "answer", what, letters)


def other_results(prepared: Prepared) -> list[Finding]:
    """Find numbers as gold answers that their solutions never mention, in digits, of either sign.

    A solution may still be right: it can spell the number out, or write it as a fraction.
    """
    rows: list[tuple[int, str]] = []
    for number, row in enumerate(prepared.rows):
        answer = _NUMBER.fullmatch(row["answer"].strip())
        if row["reward_model"]["kind"] != "maths" or not answer:
            continue
        stated = {_value(each) for each in _NUMBER.findall(_THOUSANDS.sub(",", row["solution"]))}
        if stated and _value(answer[0]) not in stated:
            rows.append((number, f": {row['answer'][:60]!r}"))
    what = "a number that the solution does not mention, so hints may lead to another"
    return _found(prepared, "answer", what, rows, is_note=True)


def _value(number: str) -> float:
    return abs(float(number.replace(",", "")))


def repeated_problems(prepared: Prepared) -> list[Finding]:
    """Find rows with the same words as an earlier row but another id."""
    pairs = repeated([row["problem"] for row in prepared.rows])
    rows = [(number, f" = {prepared.places[first]}") for number, first in pairs]
    return _found(prepared, "problem", "the same words as an earlier row", rows)


def unreadable_answers(prepared: Prepared, pool: VerifierPool) -> list[Finding]:
    """Find gold answers that are compared as text only, or cannot be graded in the time limit."""
    numbers_of: dict[str, list[int]] = defaultdict(list)  # by the answer
    for number, row in enumerate(prepared.rows):
        if row["reward_model"]["kind"] == "maths":
            numbers_of[row["answer"]].append(number)
    answers = list(numbers_of)
    unread: list[tuple[int, str]] = []
    slow: list[tuple[int, str]] = []
    with progress("reading gold answers", total=len(answers), unit=" answers") as bar:
        for start in range(0, len(answers), _AT_ONCE):
            some = answers[start : start + _AT_ONCE]
            verdicts = pool.grade_many_blocking([Item(_PROBE, answer) for answer in some])
            for answer, verdict in zip(some, verdicts, strict=True):
                rows = [(number, f": {answer[:60]!r}") for number in numbers_of[answer]]
                unread += rows if is_text_only(answer) else []
                slow += rows if verdict.reason == "timeout" else []
            bar.update(len(some))
    what = "not read as mathematics, so only the same text is right"
    late = f"not read within {pool.timeout_s:g} s, so no response can be graded"
    return [
        *_found(prepared, "answer", what, sorted(unread)),
        *_found(prepared, "answer", late, sorted(slow)),
    ]


def long_prompts(prepared: Prepared, tokenizer: Any, max_tokens: int) -> list[Finding]:
    """Find prompts longer than ``max_tokens`` in the tokenizer's chat template.

    Raises:
        DataError: If the template refuses a prompt, also with its system turn in the user's.
    """
    rows = []
    for number, row in enumerate(progress("counting tokens", prepared.rows)):
        text = _rendered(tokenizer, row["prompt"], f"{prepared.path}: {prepared.places[number]}")
        length = len(tokenizer(text, add_special_tokens=False)["input_ids"])
        if length > max_tokens:
            rows.append((number, f": {length}"))
    return _found(prepared, "prompt", f"longer than {max_tokens} tokens", rows)


def _rendered(tokenizer: Any, messages: Sequence[Message], place: str) -> str:
    """Return a prompt as the template writes it; a system turn that it refuses is folded."""
    from jinja2 import TemplateError  # which transformers brings

    # As text first: what apply_chat_template returns for tokens differs between versions.
    render = partial(tokenizer.apply_chat_template, add_generation_prompt=True, tokenize=False)
    try:
        return render(messages)
    except TemplateError:
        try:
            return render(fold_system(messages))
        except TemplateError as error:
            raise DataError(
                f"{place}: the chat template of --tokenizer refuses the prompt: "
                f"{one_line(error, 200)}; write turns that it takes, or give a tokenizer with "
                "another template"
            ) from error


def load_tokenizer(path: str) -> Any:
    """Return the tokenizer of a model folder or name, with a chat template.

    Raises:
        DataError: If there is none.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise DataError(f"--tokenizer {path}: cannot be loaded: {one_line(error, 200)}") from error
    if not tokenizer.chat_template:
        raise DataError(f"--tokenizer {path}: has no chat template; prompts are conversations")
    return tokenizer


def overlaps(
    prepared: Prepared,
    benchmarks: Iterable[str | Path],
    *,
    size: int = NGRAM_WORDS,
    min_share: float = MIN_SHARE,
) -> list[Finding]:
    """Return one finding per benchmark file that shares problems with the rows.

    Raises:
        DataError: If a benchmark file breaks the contract.
    """
    texts = [row["problem"] for row in prepared.rows]
    findings: list[Finding] = []
    for path in benchmarks:
        known = read_problems(path)
        pairs = shared_pairs(texts, [each.text for each in known], size=size, min_share=min_share)
        rows = [(pair.first, f" = {known[pair.second].id} ({pair.share:.0%})") for pair in pairs]
        findings += _found(prepared, "problem", f"text shared with {path}", rows)
    return findings


def _found(
    prepared: Prepared,
    column: str,
    what: str,
    rows: Sequence[tuple[int, str]],
    *,
    is_note: bool = False,
) -> list[Finding]:
    """Return a finding, if there are rows; each comes with its number and a remark."""
    places = tuple(f"{prepared.places[number]}{remark}" for number, remark in rows)
    numbers = tuple(number for number, _ in rows)
    return [Finding(column, what, numbers, places, is_note)] if rows else []


class Pair(NamedTuple):
    """Two problems that share text, by their numbers in the two lists.

    ``share`` is the part of the runs of the shorter problem that the longer one has too, in (0, 1].
    """

    first: int
    second: int
    share: float


def words(text: str) -> Gram:
    """Return the words of a problem: lower case, without markup, letters and digits apart."""
    # Long runs of blanks would make some of the patterns quadratic.
    levelled = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    for pattern, one in _SPELLINGS:
        levelled = pattern.sub(one, levelled)
    return tuple(_WORD.findall(_MARKUP.sub(" ", levelled)))


def _runs(found: Gram, size: int) -> frozenset[Gram]:
    if len(found) <= size:
        return frozenset([found] if found else [])
    return frozenset(found[start : start + size] for start in range(len(found) - size + 1))


def shared_pairs(
    first: Sequence[str],
    second: Sequence[str],
    *,
    size: int = NGRAM_WORDS,
    min_share: float = MIN_SHARE,
) -> list[Pair]:
    """Return pairs of problems of two lists that share at least ``min_share`` of their runs.

    A problem of less than ``size`` words, but more than four and a number among them, is looked for
    in longer ones too. Runs that many problems of the second list hold, such as one instruction
    behind each of them, tell nothing and are left out of problems that have others.

    Args:
        first: Texts, of a training file for example.
        second: Texts of a benchmark; indexed in memory.
        size: Words in a run.
        min_share: Smallest share that is reported, in (0, 1].

    Returns:
        Pairs in the order of ``first``, then of ``second``.
    """
    own_words = [words(text) for text in progress("reading words", first)]
    known = [words(text) for text in second]
    runs = [_runs(each, size) for each in known]
    held = Counter(gram for each in dict(zip(known, runs, strict=True)).values() for gram in each)
    common = {gram for gram, count in held.items() if count > _MOST_HOLDERS}
    # Of a problem that has no others they tell something all the same.
    common -= {gram for each in runs if each <= common for gram in each}
    telling = [each - common for each in runs]
    holders = _holders(telling)
    short = _Short(own_words, known, size)
    pairs: list[Pair] = []
    for number, text in enumerate(progress("looking for shared text", own_words)):
        own = _runs(text, size) - common
        counts = Counter(holder for gram in own for holder in holders.get(gram, ()))
        shares = {
            other: count / min(len(own), len(telling[other])) for other, count in counts.items()
        }
        shares |= dict.fromkeys(short.held_with(number), 1.0)
        pairs += [
            Pair(number, other, share)
            for other, share in sorted(shares.items())
            if share >= min_share
        ]
    return pairs


def _holders(grams_of: Iterable[Iterable[Gram]]) -> dict[Gram, list[int]]:
    """Return run -> the numbers of the texts that hold it."""
    holders: dict[Gram, list[int]] = defaultdict(list)
    for number, each in enumerate(grams_of):
        for gram in each:
            holders[gram].append(number)
    return holders


class _Short:
    """Which texts hold a whole text of the other list that is shorter than a run."""

    def __init__(self, first: Sequence[Gram], second: Sequence[Gram], size: int) -> None:
        self._first, self._size = first, size
        self._of_second = self._index(second)
        self._holders: dict[int, list[int]] = defaultdict(list)  # of short texts of the first list
        of_first = self._index(first)
        for number, each in enumerate(second):
            for short in self._found(each, of_first):
                self._holders[short].append(number)

    def held_with(self, number: int) -> set[int]:
        """Return the texts of the second list that text ``number`` of the first holds or is in."""
        return {*self._found(self._first[number], self._of_second), *self._holders.get(number, ())}

    def _index(self, texts: Sequence[Gram]) -> dict[Gram, list[tuple[int, Gram]]]:
        """Return the first words of the short texts -> number and text."""
        index: dict[Gram, list[tuple[int, Gram]]] = defaultdict(list)
        for number, each in enumerate(texts):
            # Without a number it may be any phrase.
            if _FEWEST_WORDS <= len(each) < self._size and any(map(str.isdigit, each)):
                index[each[:_FEWEST_WORDS]].append((number, each))
        return index

    def _found(self, text: Gram, index: Mapping[Gram, list[tuple[int, Gram]]]) -> Iterator[int]:
        for start in range(len(text) - _FEWEST_WORDS + 1):
            for number, short in index.get(text[start : start + _FEWEST_WORDS], ()):
                end = start + len(short)
                around = (*text[max(0, start - 1) : start], *text[end : end + 1])
                # 2+3 is no problem within 2+3*4.
                if text[start:end] == short and all(map(str.isalpha, around)):
                    yield number


def repeated(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Return numbers of texts with the words of an earlier one, each with the earliest such."""
    earliest: dict[bytes, int] = {}  # by a digest: a million lists of words are gigabytes
    found: list[tuple[int, int]] = []
    for number, text in enumerate(progress("looking for repeated problems", texts)):
        digest = hashlib.sha256(" ".join(words(text)).encode("utf-8", "surrogatepass")).digest()
        first = earliest.setdefault(digest, number)
        if first != number:
            found.append((number, first))
    return found
