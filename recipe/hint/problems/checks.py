"""What a person should know of a file before it is trained on: counts, with the places.

A finding is a warning, or a note when nothing has to be done about it. Faults that make a row
unusable are no findings but errors, raised while the file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.problems.columns import read_problems
from recipe.hint.problems.drafts import Prepared, places_text
from recipe.hint.problems.faults import one_line
from recipe.hint.problems.overlap import MIN_SHARE, NGRAM_WORDS, repeated, shared_pairs
from recipe.hint.schema import Item
from recipe.hint.verify.maths.grade import is_text_only
from recipe.hint.verify.pool.workers import VerifierPool

# Right for no answer, so that the verifier has to work on the gold answer to say "wrong".
_PROBE = r"\boxed{7919.0625}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that some rows have in common; ``rows`` are their numbers from 0."""

    column: str
    what: str
    rows: tuple[int, ...]
    places: tuple[str, ...]
    is_note: bool = False

    def line(self, path: str, *, is_listed: bool = False) -> str:
        """One line for the console; ``is_listed`` names every place, not the first ones."""
        count = f"{len(self.rows)} row{'s' if len(self.rows) != 1 else ''}"
        level = "note" if self.is_note else "warning"
        return (
            f"{level}: {path}: {count}, column `{self.column}`: {self.what}"
            f" ({', '.join(self.places) if is_listed else places_text(self.places)})"
        )


def missing_solutions(prepared: Prepared) -> list[Finding]:
    """Rows without a solution, which is allowed."""
    rows = [number for number, row in enumerate(prepared.rows) if not row["solution"].strip()]
    what = "empty, so these problems get no self-written hint"
    return _found(prepared, "solution", what=what, rows=rows, is_note=True)


def repeated_problems(prepared: Prepared) -> list[Finding]:
    """Rows with the words of an earlier row under an id of their own."""
    pairs = repeated([row["problem"] for row in prepared.rows])
    places = [f"{prepared.places[n]} = {prepared.places[first]}" for n, first in pairs]
    what = "the same words as an earlier row"
    return _found(prepared, "problem", what=what, rows=[n for n, _ in pairs], places=places)


def unreadable_answers(prepared: Prepared, pool: VerifierPool) -> list[Finding]:
    """Gold answers that are compared as text only, or cannot be judged in the time limit."""
    numbers = [n for n, row in enumerate(prepared.rows) if row["reward_model"]["kind"] == "maths"]
    items = [Item(_PROBE, prepared.rows[number]["answer"]) for number in numbers]
    ids = [prepared.rows[number]["extra_info"]["index"] for number in numbers]
    judged = list(zip(numbers, pool.grade_many_blocking(items, ids), strict=True))
    unread = [number for number in numbers if is_text_only(prepared.rows[number]["answer"])]
    slow = [number for number, verdict in judged if verdict.reason == "timeout"]
    what = "not read as mathematics, so only the same text is right"
    late = f"not read within {pool.timeout_s:g} s, so no answer can be judged"
    return [
        *_found(prepared, "answer", what=what, rows=unread, places=_quoted(prepared, unread)),
        *_found(prepared, "answer", what=late, rows=slow, places=_quoted(prepared, slow)),
    ]


def long_prompts(prepared: Prepared, tokenizer: Any, max_tokens: int) -> list[Finding]:
    """Prompts longer than ``max_tokens`` once the tokenizer's chat template is applied."""
    lengths = [_num_tokens(tokenizer, row["prompt"]) for row in prepared.rows]
    rows = [number for number, length in enumerate(lengths) if length > max_tokens]
    places = [f"{prepared.places[number]}: {lengths[number]}" for number in rows]
    what = f"longer than {max_tokens} tokens"
    return _found(prepared, "prompt", what=what, rows=rows, places=places)


def load_tokenizer(path: str) -> Any:
    """The tokenizer of a model folder or name, with a chat template.

    Raises:
        DataError: If there is none.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise DataError(f"--tokenizer {path}: cannot be loaded: {one_line(error)}") from error
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
    """One finding per benchmark file that shares problems with the rows.

    Raises:
        DataError: If a benchmark file breaks the contract.
    """
    texts = [row["problem"] for row in prepared.rows]
    findings: list[Finding] = []
    for path in benchmarks:
        known = read_problems(path)
        pairs = shared_pairs(
            texts, [problem.text for problem in known], size=size, min_share=min_share
        )
        places = [
            f"{prepared.places[pair.first]} = {known[pair.second].id} ({pair.share:.0%})"
            for pair in pairs
        ]
        rows = [pair.first for pair in pairs]
        what = f"text shared with {path}"
        findings += _found(prepared, "problem", what=what, rows=rows, places=places)
    return findings


def _found(
    prepared: Prepared,
    column: str,
    *,
    what: str,
    rows: Sequence[int],
    places: Sequence[str] | None = None,
    is_note: bool = False,
) -> list[Finding]:
    if not rows:
        return []
    if places is None:
        places = [prepared.places[number] for number in rows]
    return [Finding(column, what, tuple(rows), tuple(places), is_note)]


def _quoted(prepared: Prepared, rows: Sequence[int]) -> list[str]:
    return [f"{prepared.places[n]}: {prepared.rows[n]['answer'][:60]!r}" for n in rows]


def _num_tokens(tokenizer: Any, prompt: list[dict[str, str]]) -> int:
    # As text first: what apply_chat_template returns for tokens differs between versions.
    text = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])
