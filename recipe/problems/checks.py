"""Report what to know about a file before training on it: counts, with the places.

A finding is a warning, or a note when nothing has to be done about it. Faults that make a row
unusable are no findings but errors, raised while the file is read.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from recipe.problems.columns import read_problems
from recipe.problems.prepare import Prepared, places_text
from recipe.problems.schema import lists_options
from recipe.verify.maths.grade import is_text_only
from recipe.verify.placeholders import is_placeholder
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item

# Right for no answer, so that the verifier has to work on the gold answer to say "wrong".
_PROBE = r"\boxed{7919.0625}"
# Words in a run. Runs of 10 are the shorter end of what training-data audits use (8 to 13):
# problems are short, and a match must still be more than a common phrase.
NGRAM_WORDS = 10
MIN_SHARE = 0.5
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
)
_WORD = re.compile(r"[^\W\d_]+|\d+|[+*/=<>^-]")
# Golds of mathematics that no response will match, by what is wrong with them.
_ODD_GOLDS = (
    ("a worked solution that ends in ####; the answer is what stands behind it", r".*\S.*####.*"),
    ("a JSON list as a text; write a list, or the one answer", r'\s*\[\s*".*\]\s*'),
    ("a number and its words; leave the words out", r"[^()]*\d[^()]*\((?:[a-z]+[ -]?)+\)\.?"),
    ("two answers; a response gives one", r".*\d\s*(?:or|\\text\{\s*or\s*\})\s*[-$\\]?\d.*"),
)
_ODD = [(what, re.compile(form, re.DOTALL | re.IGNORECASE)) for what, form in _ODD_GOLDS]

_NO_SOLUTION = "empty, so these problems get no self-written hint; --solution-key names a column"
_NO_OPTIONS = "no options on lines of their own, (A) and (B); --options-key names a column of them"
_LETTER = "a letter of the listed options, but graded as mathematics; --kind choice grades it"
_TEXT_ONLY = "not read as mathematics, so only the same text is right"

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


def gold_fault(gold: str) -> str:
    """Return why no response will match a gold answer of mathematics; empty: nothing is known."""
    if is_placeholder(gold):
        return "no answer but a placeholder, so no response is correct; drop the rows"
    return next((what for what, form in _ODD if form.fullmatch(gold)), "")


def odd_golds(golds: Sequence[str], places: Sequence[str]) -> list[Finding]:
    """Find gold answers of mathematics that no response will match; of other kinds give ``""``."""
    table = _Table(places)
    for number, gold in enumerate(golds):
        if what := gold_fault(gold):
            table.add("answer", what, number, f": {gold[-40:]!r}")
    return table.findings()


class _Table:
    """Rows by what was found of them."""

    def __init__(self, places: Sequence[str]) -> None:
        self._places = places
        self._rows: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)

    def add(self, column: str, what: str, number: int, remark: str = "") -> None:
        self._rows[column, what].append((number, f"{self._places[number]}{remark}"))

    def findings(self) -> list[Finding]:
        return [
            Finding(column, what, *zip(*rows, strict=True), is_note=what == _NO_SOLUTION)
            for (column, what), rows in self._rows.items()
        ]


def row_findings(prepared: Prepared, pool: VerifierPool) -> list[Finding]:
    """Find solutions and options that are missing, repeated problems and golds that are none."""
    table = _Table(prepared.places)
    golds = [
        row["answer"] if row["reward_model"]["kind"] == "maths" else "" for row in prepared.rows
    ]
    graded: list[int] = []
    for number, row in enumerate(prepared.rows):
        is_listed, gold = lists_options(row["problem"]), golds[number]
        if not row["solution"].strip():
            table.add("solution", _NO_SOLUTION, number)
        if row["reward_model"]["kind"] == "choice" and not is_listed:
            table.add("problem", _NO_OPTIONS, number)
        if is_listed and re.fullmatch("[A-Z]", gold.strip()):
            table.add("answer", _LETTER, number)
        if gold and not gold_fault(gold):
            graded.append(number)
            if is_text_only(gold):
                table.add("answer", _TEXT_ONLY, number, f": {gold[:60]!r}")
    verdicts = pool.grade_many_blocking([Item(_PROBE, golds[number]) for number in graded])
    for number, verdict in zip(graded, verdicts, strict=True):
        if verdict.reason == "timeout":
            late = f"not read within {pool.timeout_s:g} s, so no response can be graded"
            table.add("answer", late, number, f": {golds[number][:60]!r}")
    return [*table.findings(), *odd_golds(golds, prepared.places), *_repeated(prepared)]


def _repeated(prepared: Prepared) -> list[Finding]:
    """Find rows with the same words as an earlier row but another id, and rows left out."""
    table = _Table(prepared.places)
    first: dict[bytes, int] = {}  # by a digest: a million lists of words are gigabytes
    for number, row in enumerate(prepared.rows):
        digest = hashlib.sha256(" ".join(words(row["problem"])).encode()).digest()
        if (other := first.setdefault(digest, number)) != number:
            same = "the same words as an earlier row"
            table.add("problem", same, number, f" = {prepared.places[other]}")
    found = table.findings()
    if prepared.repeated:
        numbers = tuple(range(len(prepared.repeated)))
        what = "an earlier row again, with its answer; left out"
        found.append(Finding("problem", what, numbers, prepared.repeated))
    return found


def overlaps(
    prepared: Prepared, benchmarks: Iterable[str | Path], size: int, min_share: float
) -> list[Finding]:
    """Return one finding per benchmark file that shares problems with the rows."""
    texts = [row["problem"] for row in prepared.rows]
    table = _Table(prepared.places)
    for path in benchmarks:
        known = read_problems(path)
        pairs = shared_pairs(texts, [each.text for each in known], size=size, min_share=min_share)
        for number, other, share in pairs:
            remark = f" = {known[other].id} ({share:.0%})"
            table.add("problem", f"text shared with {path}", number, remark)
    return table.findings()


def words(text: str) -> Gram:
    """Return the words of a problem: lower case, without markup, letters and digits apart."""
    # Long runs of blanks would make some of the patterns quadratic.
    levelled = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    for pattern, one in _SPELLINGS:
        levelled = pattern.sub(one, levelled)
    return tuple(_WORD.findall(_MARKUP.sub(" ", levelled)))


def shared_pairs(
    first: Sequence[str],
    second: Sequence[str],
    *,
    size: int = NGRAM_WORDS,
    min_share: float = MIN_SHARE,
) -> list[tuple[int, int, float]]:
    """Return pairs of problems of two lists that share at least ``min_share`` of their runs.

    Runs that many problems of the second list hold, such as one instruction behind each of them,
    are left out. A text shorter than a run is one run. Not covered: paraphrase, translation, other
    numbers in the same text.

    Returns:
        Numbers of the two and the part of the runs of the one with fewer that the other has too.
    """
    runs = [_runs(text, size) for text in second]
    held = Counter(gram for each in set(runs) for gram in each)
    common = {gram for gram, count in held.items() if count > _MOST_HOLDERS}
    telling = [each - common or each for each in runs]
    holders: dict[Gram, list[int]] = defaultdict(list)
    for number, each in enumerate(telling):
        for gram in each:
            holders[gram].append(number)
    pairs = []
    for number, text in enumerate(tqdm(first, "looking for shared text", delay=2, disable=None)):
        own = _runs(text, size)
        own = own - common or own
        counts = Counter(other for gram in own for other in holders.get(gram, ()))
        shares = {n: count / min(len(own), len(telling[n])) for n, count in counts.items()}
        pairs += [(number, n, share) for n, share in sorted(shares.items()) if share >= min_share]
    return pairs


def _runs(text: str, size: int) -> frozenset[Gram]:
    found = words(text)
    starts = range(max(len(found) - size + 1, 1))
    return frozenset(found[start : start + size] for start in starts) if found else frozenset()
