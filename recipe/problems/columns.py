"""The parquet contract: written, read and checked in one place (docs/data.md).

Rows are counted from 0 in every message, as a data frame counts them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from recipe.problems.schema import (
    ANSWER_SYSTEM_PROMPT,
    FieldFault,
    Problem,
    check_truth,
    content_id,
    find,
    problem_from_row,
)
from recipe.run.errors import DataError, one_line
from recipe.run.whole_file import whole_file
from recipe.verify.schema import Kind

Row = dict[str, Any]

_TEXT = pa.string()
SCHEMA = pa.schema(
    {
        "prompt": pa.list_(pa.struct({"role": _TEXT, "content": _TEXT})),
        **dict.fromkeys(("problem", "solution", "answer", "data_source", "ability"), _TEXT),
        "reward_model": pa.struct(dict.fromkeys(("style", "ground_truth", "kind"), _TEXT)),
        "extra_info": pa.struct({"index": _TEXT, "split": _TEXT}),
    }
)
# Names that verl's batches and its queue use themselves. Columns of a file that are called so stay
# behind when verl's data set is built.
RESERVED = frozenset(
    "uid raw_prompt raw_prompt_ids dummy_tensor tools_kwargs interaction_kwargs agent_name validate"
    " global_steps __rollout_n__ __do_sample__ prompts responses input_ids attention_mask"
    " position_ids response_mask loss_mask rollout_log_probs old_log_probs ref_log_prob rm_scores"
    " token_level_scores token_level_rewards advantages returns values entropys entropy num_turns"
    " extra_fields metrics multi_modal_data multi_modal_inputs reward_extra_info routed_experts"
    " teacher_logprobs teacher_ids teacher_log_probs rollout_is_weights tool_extra_fields acc"
    " reward hint_state_of_problem __num_turns__ log_probs no_lora_adapter prompt_ids response_ids"
    " session_id response_logprobs reward_score prompt_length response_length priority"
    " mm_processor_kwargs spec_num_accepted_tokens spec_num_draft_tokens"
    " spec_num_verify_steps".split()
)
MEDIA = ("images", "videos", "audios")  # verl's names; prompts are of text here
# The turn of a mathematics problem is the problem alone: the system prompt asks for the box.
REQUESTS: dict[str, str] = {
    "choice": "\n\nGive the letter of the right option as the final answer, as in \\boxed{A}.",
    "program": "\n\nGive the whole program in one ```python block.",
}
SYSTEM_PROMPTS: dict[str, str] = {
    "program": "Please reason step by step, and give your final program in a ```python block.",
    "reasoning_gym": "Please reason step by step, and put your final answer alone between <answer>"
    " and </answer>.",
}
_ABILITIES = {"maths": "math", "choice": "choice", "program": "code", "reasoning_gym": "reasoning"}


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """A file that keeps the contract; a problem's place in the list is its row.

    ``found`` are the places of text, solution and truth in the first row with a solution.
    """

    path: str
    problems: list[Problem]
    found: tuple[str, str, str]

    def summary(self) -> str:
        """Return one line: how many problems, with a solution, and where each thing was found."""
        num_solved = sum(bool(problem.solution.strip()) for problem in self.problems)
        text, solution, truth = self.found
        return (
            f"{self.path}: {len(self.problems)} problems, {num_solved} with a solution (problem: "
            f"{text or 'the last user turn'}; solution: {solution or 'none'}; answer: {truth})"
        )


def make_row(
    problem: str,
    answer: str,
    *,
    solution: str = "",
    row_id: str = "",
    source: str = "local",
    kind: Kind = "maths",
) -> Row:
    """Return one row of the contract.

    Args:
        problem: What is asked; the user turn adds the kind's request for the form of the answer.
        answer: The ground truth: an answer, a letter, or Python source with asserts.
        solution: What hints are written from; empty when there is none.
        row_id: Stable id; made from the problem's text when empty.
        source: The row's ``data_source``.
        kind: How it is graded.
    """
    asked = [{"role": "user", "content": problem + REQUESTS.get(kind, "")}]
    return {
        "prompt": with_system(asked, SYSTEM_PROMPTS.get(kind, ANSWER_SYSTEM_PROMPT)),
        "problem": problem,
        "solution": solution,
        "answer": answer,
        "data_source": source,
        "ability": _ABILITIES[kind],
        "reward_model": {"style": "rule", "ground_truth": answer, "kind": kind},
        "extra_info": {"index": row_id or content_id(problem), "split": "train"},
    }


def with_system(turns: Iterable[dict[str, str]], text: str) -> list[dict[str, str]]:
    """Return a conversation with another system turn; with none if the text is empty."""
    system = [{"role": "system", "content": text}] if text else []
    return system + [turn for turn in turns if turn["role"] != "system"]


def write_rows(rows: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write ``rows`` in their order; equal rows give equal bytes.

    Columns beyond the contract (``hint_level_1``) are kept, in the order of their names. The file
    appears whole or not at all.

    Raises:
        DataError: If the rows break the contract, or the name does not end in ``.parquet``.
    """
    path, rows = Path(path), list(rows)
    check_target(path)
    for _ in _checked(path, rows, ""):
        pass
    columns = {}
    for name in [*SCHEMA.names, *sorted({name for row in rows for name in row} - {*SCHEMA.names})]:
        values = [row.get(name) for row in rows]
        kind: Any = SCHEMA.field(name).type if name in SCHEMA.names else None
        if isinstance(kind, pa.StructType):
            fields = {each for value in values if isinstance(value, Mapping) for each in value}
            kind = kind if len(fields) <= len(kind) else None  # more than the contract's
        if {} in values and all(value in (None, {}) for value in values):
            continue  # parquet has no empty objects
        try:
            columns[name] = pa.array(values, kind)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            raise DataError(
                f"{path}, column `{name}`: cannot be stored: {one_line(error, 200)}; "
                f"write all its values alike, or take the column out"
            ) from error
    write_table(pa.table(columns), path)


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table as it is; the file appears whole or not at all."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_file(path) as file:
            pq.write_table(table, file)
    except pa.ArrowNotImplementedError as error:  # an empty object within a value
        raise DataError(f"{path}: cannot be stored: {one_line(error, 200)}") from error


def check_target(path: str | Path) -> None:
    """Check that a file can be written there, before work that is paid for; nothing is made."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise DataError(f"{path}: the name must end in .parquet, by which verl picks its reader")
    folder = next(each for each in path.absolute().parents if each.exists())
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise DataError(f"{path}: cannot be written; name an OUT.parquet in a folder that can")


def read_problems(path: str | Path, solution_key: str = "") -> list[Problem]:
    """Return the problems of a file, in its order; errors as of ``read_file``."""
    return read_file(path, solution_key).problems


def read_file(path: str | Path, solution_key: str = "") -> ProblemFile:
    """Read a whole file before anything is started.

    Args:
        path: The file.
        solution_key: Where its solutions are, if not where the contract looks; dotted.

    Raises:
        DataError: Naming the file, and the row and the column if one is at fault.
    """
    problems, found = [], ("", "", "")
    try:
        for problem, row in _checked(path, parquet_rows(Path(path)), solution_key):
            problems.append(problem)
            found = found if found[1] else find(row, solution_key)
    except (OSError, pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        what = "not a readable parquet file (docs/data.md says how one is made)"
        raise DataError(f"{path}: {what}: {one_line(error, 200)}") from error
    return ProblemFile(str(path), problems, found)


def parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a parquet file; each of its columns has a name of its own."""
    with pq.ParquetFile(path) as file:
        check_names(path, file.schema_arrow.names)
        for batch in file.iter_batches(1024):
            yield from batch.to_pylist()


def check_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a file that has two columns of one name, of which only one would be read."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{path}: column `{twice[0]}` is there more than once; rename or drop it")


def _checked(
    path: str | Path, rows: Iterable[Mapping[str, Any]], solution_key: str
) -> Iterator[tuple[Problem, Mapping[str, Any]]]:
    """Yield checked problems, each with its row; ids are unique."""
    first_row: dict[str, int] = {}
    for number, row in enumerate(tqdm(rows, f"checking {path}", delay=2, disable=None)):
        try:
            problem = problem_from_row(row, solution_key)
            check_truth(problem.kind, problem.answer, find(row)[2])
            if problem.kind == "reasoning_gym":  # here: other kinds need none of it
                from recipe.verify.gym import data_sets

                data_sets()
            if media := next((name for name in MEDIA if row.get(name)), None):
                what = "is not empty, and prompts are of text alone here; take out such problems"
                raise FieldFault(media, what)
            if (first := first_row.setdefault(problem.id, number)) != number:
                raise FieldFault(
                    "extra_info.index",
                    f"row {first} has the same id {problem.id!r}, and both would share one record;"
                    f" `hint prepare {path} OUT.parquet` leaves repeated problems out, else give"
                    " each an id of its own",
                )
        except FieldFault as fault:
            raise DataError(f"{path}: row {number}, column `{fault.column}`: {fault}") from fault
        yield problem, row
    if not first_row:
        raise DataError(f"{path}: no rows; at least one problem is needed")
