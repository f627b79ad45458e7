"""One problem, and how a row of a data file becomes one: the contract of ``docs/data.md``.

Needed are a prompt (turns, or a text) and a ground truth; everything else is looked for where
verl's own files, the release's and ours have it. Names with a dot are fields within a column.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, get_args

from recipe.run.errors import DataError, one_line
from recipe.verify.golds import gold_text, plain
from recipe.verify.schema import Kind

HINT_COLUMN_PREFIX = "hint_level_"
HINT_COLUMN = HINT_COLUMN_PREFIX + "{level}"
KINDS: tuple[Kind, ...] = get_args(Kind)
# Where the contract looks, in this order. A problem's text that is nowhere is the last user turn.
PROBLEM = ("problem", "question", "extra_info.question")
SOLUTION = ("solution", "extra_info.solution", "extra_info.answer")
TRUTH = ("reward_model.ground_truth", "answer")
# The system turn of mathematics and choice; copied verbatim, since data and checkpoints use it.
ANSWER_SYSTEM_PROMPT = "Please reason step by step, and put your final answer within \\boxed{}."


class FieldFault(DataError):
    """One field of one row cannot be used; the reader adds the file and the place."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(what)
        self.column = column


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of a data file, as methods and hint sources see it.

    ``messages`` asks for the answer, ``text`` is the question alone. ``hints[k - 1]`` are the
    file's texts for level k; where there are several, one is chosen (``complete_sets``), and some
    may be empty.
    ``row`` is JSON: the row's ``data_source``, ``ground_truth`` and ``extra_info`` as they stand
    there, for a user's own reward function.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    text: str
    solution: str
    answer: str
    data_source: str = ""
    kind: Kind = "maths"
    hints: tuple[tuple[str, ...], ...] = ()
    row: str = ""


def problem_from_row(row: Mapping[str, Any], solution_key: str = "") -> Problem:
    """Return the problem of one row, as the file or verl's data set class gives it.

    ``solution_key`` says where solutions are, if not where the contract looks; dotted.
    """
    turns = conversation(row)
    text_at, solution_at, truth_at = find(row, solution_key)
    kind, truth = read_kind(row), field(row, truth_at)
    source = row.get("data_source")
    source = "unknown" if source in (None, "") else str(source)  # as verl calls it
    extra_info = row.get("extra_info") or {}
    text = field(row, text_at) or turns[-1]["content"]
    call = {"data_source": source, "ground_truth": truth, "extra_info": extra_info}
    return Problem(
        id=row_id(row, text),
        messages=turns,
        text=text,
        solution=field(row, solution_at) or "",
        answer=truth_text(row, truth_at, kind),
        data_source=source,
        kind=kind,
        hints=hint_columns(row),
        row=json.dumps(call, default=plain),
    )


def field(row: Mapping[str, Any], name: str) -> Any:
    """Return a column, or by a dotted name a field within one; ``None`` where there is none."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def find(row: Mapping[str, Any], solution_key: str = "") -> tuple[str, str, str]:
    """Return where a row has its text, its solution and its ground truth; empty: nowhere.

    The ground truth alone is no solution, wherever it stands.
    """
    there = [name for name in TRUTH if name.split(".")[0] in row] or [TRUTH[-1]]
    truth = next((name for name in there if not is_missing(field(row, name))), there[0])
    text = next((name for name in PROBLEM if is_text(field(row, name))), "")
    own = str(field(row, truth)).strip()
    for name in (solution_key,) if solution_key else SOLUTION:
        if is_text(solution := field(row, name)) and solution.strip() != own:
            return text, name, truth
    return text, "", truth


def conversation(row: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
    """Return a row's turns; a prompt that is a text is the user's one turn.

    ``raw_prompt`` is verl's name for the column ``prompt`` once the row is loaded.
    """
    prompt: Any = row["prompt"] if row.get("prompt") is not None else row.get("raw_prompt")
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    try:
        turns = tuple({"role": turn["role"], "content": turn["content"]} for turn in given)
        is_asked = turns[-1]["role"] == "user" and is_text(turns[-1]["content"])
        if is_asked and all(isinstance(turn["content"], str) for turn in turns):
            return turns
    except (TypeError, KeyError, IndexError):
        pass  # no turns
    expected = "turns of role and text, the last one the user's, or a text (docs/data.md)"
    raise FieldFault("prompt", f"expected {expected}, got {short(prompt)}")


def read_kind(row: Mapping[str, Any]) -> Kind:
    """Return the kind that ``reward_model.kind`` names, ``maths`` where it does not."""
    kind = field(row, "reward_model.kind") or "maths"
    if kind not in KINDS:
        what = f"expected one of {', '.join(KINDS)}, got {short(kind)}"
        raise FieldFault("reward_model.kind", what)
    return kind


def truth_text(row: Mapping[str, Any], column: str, kind: Kind) -> str:
    """Return a row's ground truth as the verifier reads it."""
    if kind == "reasoning_gym" and not is_text(field(row, "extra_info.reasoning_gym.entry")):
        what = "is not there; `hint prepare reasoning_gym:NAME` makes rows of this kind"
        raise FieldFault("extra_info.reasoning_gym", what)
    try:
        return gold_text(field(row, column), kind, row)
    except ValueError as error:
        raise FieldFault(column, str(error)) from error


def row_id(row: Mapping[str, Any], text: str) -> str:
    """Return the id of a row: its ``extra_info.index``, a text; else one made from the problem.

    An integer numbers the rows of one file, as verl's own preparations do: files share it, so the
    text's digest stands behind it.
    """
    index: Any = field(row, "extra_info.index")
    if is_missing(index):
        return content_id(text)
    if isinstance(index, float) and index.is_integer():  # of a column with gaps
        index = int(index)
    if isinstance(index, Integral) and not isinstance(index, bool):
        return f"{index}-{content_id(text)[4:12]}"
    if not isinstance(index, str):
        raise FieldFault("extra_info.index", f"expected a text or an integer, got {short(index)}")
    return index


def content_id(text: str) -> str:
    """Return a stable id for a problem without one: 16 hex digits of its text's sha256."""
    return "sha-" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_missing(value: Any) -> bool:
    """Return whether a value is nothing, a blank text, an empty list, or a gap of a data frame."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, list | tuple):
        return not value
    return value is None or bool(value != value)  # noqa: PLR0124 - nan


def short(value: Any) -> str:
    """Return a value as a message shows it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def hint_columns(row: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the texts of ``hint_level_1``, ``hint_level_2``, ..., as far as they go.

    A column holds one text or a list of them, in which a blank one becomes empty and keeps its
    place; an empty tuple stands for a row without any.
    """
    levels: list[tuple[str, ...]] = []
    while (name := HINT_COLUMN.format(level=len(levels) + 1)) in row:
        value = row[name]
        listed = [value] if isinstance(value, str | float | int) else value
        texts = [] if listed is None else list(listed)
        if not all(isinstance(text, str | None) for text in texts):
            raise FieldFault(name, f"expected a list of texts, got {short(value)}")
        texts = [text if is_text(text) else "" for text in texts]
        levels.append(tuple(texts) if any(texts) else ())
    return tuple(levels)


def complete_sets(hints: Sequence[Sequence[str]], max_level: int) -> list[list[str]]:
    """Return the texts to choose from at levels 1..L, without sets in which a level is blank.

    Text i of every list belongs to set i, a single text to all sets. If the lists differ in
    length there are no sets, and only blank texts are left out. A level without texts gets an
    empty list.
    """
    levels = [list(texts) for texts in hints[:max_level]]
    levels += [[] for _ in range(max_level - len(levels))]
    num_sets = max(map(len, levels), default=0)
    if any(len(texts) not in (1, num_sets) for texts in levels):
        return [list(filter(None, texts)) for texts in levels]
    whole = [n for n in range(num_sets) if all(texts[n % len(texts)] for texts in levels)]
    return [[texts[n] for n in whole] if len(texts) > 1 else texts for texts in levels]


def check_truth(kind: Kind, truth: str, column: str) -> None:
    if kind == "choice" and not (len(truth) == 1 and "A" <= truth <= "Z"):
        what = f"the ground truth of a choice is one letter from A to Z, got {short(truth)}"
        raise FieldFault(column, what)
    if kind == "program":
        # Here: a worker on mathematics needs none of it.
        from recipe.verify.programs.tests import Tests, Unrunnable

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd escape in a test is not a fault of the row
                Tests(truth)
        except Unrunnable as error:
            raise FieldFault(column, f"{one_line(error, 200)} ({short(truth)})") from error
