"""What to know about a file before training on it: lines with counts and places.

Faults that make a row unusable are no findings but errors. The solution of a program row, where it
is code, is run against the row's tests.
"""

from __future__ import annotations

import ast
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tqdm import tqdm

from recipe.problems.prepare import Prepared, listed
from recipe.problems.schema import lists_options
from recipe.run.errors import DataError
from recipe.verify.answer import unasked_warning
from recipe.verify.golds import is_placeholder
from recipe.verify.maths.grade import is_text_only
from recipe.verify.options import GradeOptions
from recipe.verify.programs.blocks import code_block
from recipe.verify.programs.run import layers_for, run_program

# Words in a run, the shorter end of what training-data audits use (8 to 13): problems are short,
# and a match must still be more than a common phrase. A pair shares half of the shorter one's runs.
_RUN_WORDS, _MIN_SHARE = 10, 0.5
_MOST_HOLDERS = 10  # benchmark problems with one run, before it is taken for an instruction
_SPELLINGS = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-") | dict.fromkeys("×·⋅", "*"))
_COMMAND = re.compile(r"\\(?:[a-z]+|.)")
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

Gram = tuple[str, ...]


def odd_golds(golds: Sequence[str], places: Sequence[str]) -> list[str]:
    """Find gold answers of mathematics that no response will match; of other kinds give ``""``."""
    found: dict[str, list[str]] = defaultdict(list)
    for gold, place in zip(golds, places, strict=True):
        if what := _gold_fault(gold):
            found[what].append(f"{place}: {gold[-40:]!r}")
    return [f"{len(at)} rows, column `answer`: {what} ({listed(at)})" for what, at in found.items()]


def _gold_fault(gold: str) -> str:
    if is_placeholder(gold):
        return "no answer but a placeholder, so no response is correct; drop the rows"
    return next((what for what, form in _ODD if form.fullmatch(gold)), "")


def row_findings(prepared: Prepared) -> list[str]:
    """Return warnings of missing solutions and options, of odd golds, and of repeated problems."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    first: dict[int, str] = {}  # by a hash: a million lists of words are gigabytes
    golds = []
    for row, place in zip(prepared.rows, prepared.places, strict=True):
        kind, is_listed = row["reward_model"]["kind"], lists_options(row["problem"])
        golds.append(gold := row["answer"] if kind == "maths" else "")
        if not row["solution"].strip():
            found["solution", _NO_SOLUTION].append(place)
        if kind == "choice" and not is_listed:
            found["problem", _NO_OPTIONS].append(place)
        if is_listed and re.fullmatch("[A-Z]", gold.strip()):
            found["answer", _LETTER].append(place)
        elif gold and not _gold_fault(gold) and is_text_only(gold):
            what = "not read as mathematics, so only the same text is right"
            found["answer", what].append(f"{place}: {gold[:60]!r}")
        if (other := first.setdefault(hash(words(row["problem"])), place)) != place:
            found["problem", "the same words as an earlier row"].append(f"{place} = {other}")
    if prepared.repeated:
        found["problem", "an earlier row again, with its answer; left out"] += prepared.repeated
    lines = [
        f"{len(at)} rows, column `{column}`: {what} ({listed(at)})"
        for (column, what), at in found.items()
    ]
    asked = [row["prompt"] for row in prepared.rows if row["reward_model"]["kind"] != "program"]
    lines += [*odd_golds(golds, prepared.places), unasked_warning(asked), prepared.note]
    return [f"warning: {prepared.path}: {line}" for line in lines if line]


def words(text: str) -> Gram:
    """Return the words of a problem: lower case, without LaTeX commands, letters, digits apart."""
    levelled = unicodedata.normalize("NFKC", text).casefold().translate(_SPELLINGS)
    return tuple(_WORD.findall(_COMMAND.sub(" ", levelled)))


def shared_pairs(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int, float]]:
    """Return pairs of problems of two lists that share at least half of their runs of words.

    Runs that many problems of the second list hold, such as one instruction behind each of them,
    are left out. A text shorter than a run is one run. Not covered: paraphrase, translation, other
    numbers in the same text.

    Returns:
        Numbers of the two and the part of the runs of the one with fewer that the other has too.
    """
    runs = [_runs(text) for text in second]
    held = Counter(gram for each in set(runs) for gram in each)
    common = {gram for gram, count in held.items() if count > _MOST_HOLDERS}
    telling = [each - common or each for each in runs]
    holders: dict[Gram, list[int]] = defaultdict(list)
    for number, each in enumerate(telling):
        for gram in each:
            holders[gram].append(number)
    pairs = []
    for number, text in enumerate(tqdm(first, "looking for shared text", delay=2, disable=None)):
        own = _runs(text) - common or _runs(text)
        counts = Counter(other for gram in own for other in holders.get(gram, ()))
        shares = {n: count / min(len(own), len(telling[n])) for n, count in counts.items()}
        pairs += [(number, n, share) for n, share in sorted(shares.items()) if share >= _MIN_SHARE]
    return pairs


def _runs(text: str) -> frozenset[Gram]:
    found = words(text)
    starts = range(max(len(found) - _RUN_WORDS + 1, 1))
    return frozenset(found[at : at + _RUN_WORDS] for at in starts) - {()}


def check_programs(prepared: Prepared) -> list[str]:
    """Run every program row's solution against its tests; refuse rows that cannot be used.

    Returns:
        A warning where the rows could not be run at all.
    """
    rows = [
        (row, place)
        for row, place in zip(prepared.rows, prepared.places, strict=True)
        if row["reward_model"]["kind"] == "program"
    ]
    if rows and layers_for(GradeOptions().program_isolation) is None:
        return [
            f"warning: {prepared.path}: the tests of {len(rows)} programs were not run, for this"
            " machine has no sandbox; prepare them on Linux, where solutions run"
        ]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        found = threads.map(lambda each: row_fault(each[0]["answer"], each[0]["solution"]), rows)
        found = tqdm(found, "running programs", len(rows), delay=2, disable=None)
        faults = [f"{place}, {told}" for (_, place), told in zip(rows, found, strict=True) if told]
    if faults:
        raise DataError(f"{prepared.path}: {listed(faults, '; ')}")
    return []


def row_fault(tests: str, solution: str) -> str:
    """Return why a row of a program cannot be used, by column; empty when it can."""
    code = reference_code(solution, tests)
    outcome = run_program(code or "pass", tests, GradeOptions())
    if outcome.reason in ("error", "unsupported"):
        return f"column `answer`: the tests cannot be run: {outcome.detail}"
    if code and outcome.reason != "correct":
        what = f"the program fails the row's tests, {outcome.reason}: {outcome.detail}"
        return f"column `solution`: {what}; correct the tests or the program"
    if not code and outcome.reason == "correct":
        return "column `answer`: an empty program would pass the tests; add asserts on values"
    return ""


def reference_code(solution: str, tests: str = "") -> str:
    """Return the program in a solution: its code block, all of it if Python, or nothing."""
    block = code_block(solution, tests)
    if block.state == "closed":
        return block.code
    try:
        tree = ast.parse(solution)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    defines = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign)
    return solution if any(isinstance(node, defines) for node in tree.body) else ""
