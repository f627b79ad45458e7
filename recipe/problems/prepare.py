"""Read files of any form and public data sets, and turn their records into rows of the contract.

JSON lines, JSON, CSV and TSV, parquet, and a folder of parquet shards. Lines are counted from 1, as
an editor counts them; rows of the other forms from 0. ``sources.yaml`` lists the public sets that
are known by name.
"""

from __future__ import annotations

import csv
import hashlib
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from recipe.problems.columns import Row, check_names, make_row, parquet_rows, with_system
from recipe.problems.gym import PREFIX, TAKES_ALL, draw_records
from recipe.problems.schema import (
    PROBLEM,
    SOLUTION,
    TRUTH,
    FieldFault,
    check_truth,
    content_id,
    conversation,
    field,
    find,
    is_missing,
    problem_from_row,
    read_kind,
    row_id,
    short,
    truth_text,
)
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_json, read_yaml
from recipe.verify.golds import number_text
from recipe.verify.maths.grade import last_box
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import Kind

Fields = Mapping[str, Any]
_MAX_PLACES = 5
PROBE_LIMIT_S = 10.0
SOURCES_FILE = Path(__file__).with_name("sources.yaml")
SOURCES: dict[str, dict[str, Any]] = read_yaml(SOURCES_FILE.read_text("utf-8"))
_IDS = ("unique_id", "problem_idx", "id")  # of a public set; the first that a record has
_SETUP = ("setup", "test_imports", "entry_point")  # of a program: they go into its tests
# Names of columns that a command may give, and where each is looked for if it does not.
KEYS = {
    "problem": f"default: {', '.join(PROBLEM)}, else the last user turn",
    "answer": f"default: {', '.join(TRUTH)}; a dot names a nested field",
    "solution": f"default: {', '.join(SOLUTION)}",
    "id": "default: extra_info.index, id",
    "options": "list of a choice's options",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What is said of all rows of a file; what is empty is as the file has it.

    The first five are names of columns, a dot in which names a nested field. An empty
    ``system_prompt`` is a conversation without a system turn. The last two are of a data set of
    reasoning-gym.
    """

    problem: str = ""
    answer: str = ""
    solution: str = ""
    id: str = ""
    options: str = ""
    kind: Kind | None = None
    source: str = ""
    split: str = ""
    system_prompt: str | None = None
    seed: int = 0
    config: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows made of a file, and where each came from; both in the order of the file.

    ``repeated`` are the places of rows left out because an earlier one is the same problem with the
    same answer, ``warnings`` what else there is to tell.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    repeated: tuple[str, ...] = ()
    warnings: Sequence[str] = ()


def read_records(path: Path, split: str = "") -> Iterator[tuple[str, Fields]]:
    """Yield the records of a file or folder with their places; ``split`` begins a shard's name."""
    name = f"{split or 'train'}*.parquet"  # of the hub's shards
    shards = sorted(path.rglob(name)) if path.is_dir() else [path]
    if not shards:
        raise DataError(f"{path}: is a folder without {name}; give a file, or another --split")
    for shard in shards:
        if not (read := _READERS.get(shard.suffix)):
            known = f"in one of {', '.join(_READERS)}, or be of `hint prepare sources`"
            raise DataError(f"{path}: the name must end {known}")
        try:
            for place, fields in read(shard):
                place = place if shard == path else f"{shard.relative_to(path)}, {place}"
                if not isinstance(fields, Mapping):
                    raise DataError(f"{path}: {place}: expected an object, got {short(fields)}")
                yield place, fields
        except (pa.ArrowException, csv.Error, OSError, UnicodeError) as error:
            raise DataError(f"{shard}: cannot be read: {one_line(error, 200)}") from error


def _read_json(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        is_array = path.suffix == ".json" and file.read(4096).lstrip()[:1] == "["
        file.seek(0)
        for number, given in enumerate([file.read()] if is_array else file, 1):
            if not given.strip():
                continue
            try:
                value = read_json(given)
            except ValueError as error:
                told = f"line {number} is not JSON: {error}; one object a line, or an array"
                raise DataError(f"{path}: {told}") from error
            if is_array:
                yield from ((f"row {row}", each) for row, each in enumerate(value))
            else:
                yield f"line {number}", value


def _read_csv(path: Path) -> Iterator[tuple[str, Any]]:
    """Read rows whose header says what separates them: commas, semicolons, tabs or bars."""
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = max(",;\t|", key=file.readline().count)
        file.seek(0)
        rows = csv.DictReader(file, delimiter=separator, strict=True)
        check_names(path, rows.fieldnames or [])
        for row in rows:
            place = f"line {rows.line_num}"
            if None in row or None in row.values():  # a value that is not quoted would shift unseen
                told = f"has not the header's fields, separated by {separator!r}; quote texts"
                raise DataError(f"{path}: {place} {told} with those or line breaks in them")
            yield place, row


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, Any]]]] = {
    **{".jsonl": _read_json, ".json": _read_json},
    ".parquet": lambda path: ((f"row {n}", row) for n, row in enumerate(parquet_rows(path))),
}
_READERS |= {".csv": _read_csv, ".tsv": _read_csv}


def text(fields: Fields, column: str, *, is_required: bool = False) -> str:
    """Return the text of a field; numbers are written out, null and absent are empty."""
    value = field(fields, column)
    if isinstance(value, bool | list | Mapping | bytes):
        raise FieldFault(column, f"must be a text or a number, got {short(value)}")
    value = "" if is_missing(value) else number_text(value)
    if is_required and not value:
        check_there(fields, column)
        raise FieldFault(column, "is empty")
    return value


def check_there(fields: Fields, column: str) -> None:
    """Refuse a record without the column that is named, or in which it would be a field."""
    if not {column, column.split(".")[0]} & fields.keys():
        raise FieldFault(column, f"no such column; there are {', '.join(fields) or 'none'}")


def texts(fields: Fields, column: str) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list."""
    value = field(fields, column)
    if not isinstance(value, list | None):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value or []]


def with_options(question: str, options: Sequence[str], letter: str, column: str) -> str:
    """Return a question with its options below it, lettered from (A); ``column`` has them."""
    letters = string.ascii_uppercase[: len(options)]
    if not 2 <= len(options) <= len(letters):
        raise FieldFault(column, f"a choice needs 2 to 26 options, got {len(options)}")
    if letter > letters[-1]:
        raise FieldFault("answer", f"the options end with {letters[-1]}, the answer is {letter}")
    lines = [f"({name}) {option.strip()}" for name, option in zip(letters, options, strict=True)]
    return "\n".join([question.strip(), "", *lines])


def own_row(fields: Fields, given: Given) -> Row:
    """Return the row of one record, with its other columns.

    A conversation that the record has is kept where it asks the problem as it stands.
    """
    try:
        turns = conversation(fields)
    except FieldFault:
        turns = ()
    reward, extra = (
        value if isinstance(value := fields.get(name), Mapping) else {}
        for name in ("reward_model", "extra_info")
    )
    kind = given.kind or read_kind(fields)
    text_at, solution_at, truth_at = find(fields, given.solution)
    truth_at, text_at = given.answer or truth_at, given.problem or text_at
    for column in filter(None, (truth_at, given.solution, given.id)):
        check_there(fields, column)
    answer = truth_text(fields, truth_at, kind)
    if kind == "program":
        answer = with_entry_point(answer, text(fields, "entry_point"))
    if text_at or not turns:
        problem = text(fields, text_at or "problem", is_required=True)
    else:
        problem = turns[-1]["content"]
    check_truth(kind, answer, truth_at)
    if given.options:
        problem = with_options(problem, texts(fields, given.options), answer, given.options)
    has_own_id = given.id or is_missing(field(fields, "extra_info.index"))
    own_id = text(fields, given.id or "id").strip() if has_own_id else ""
    row = make_row(
        problem,
        answer,
        solution=text(fields, solution_at) if solution_at else "",
        row_id=own_id or row_id(fields, problem),
        source=given.source,
        kind=kind,
    )
    is_asked = bool(turns) and problem in turns[-1]["content"]
    if is_asked and text_at != "prompt" and kind == read_kind(fields):
        row["prompt"] = list(turns)
    if given.system_prompt is not None:
        row["prompt"] = with_system(row["prompt"], given.system_prompt)
    split = given.split or text(extra, "split") or "train"
    row["reward_model"] = {**reward, **row["reward_model"]}
    row["extra_info"] = {**extra, **row["extra_info"], "split": split}
    row["ability"] = text(fields, "ability") or row["ability"]
    read = {text_at, truth_at, solution_at, given.options, (given.id or "id") if has_own_id else ""}
    read.update(_SETUP if kind == "program" else ())
    return {name: fields[name] for name in fields if name not in read} | row


def _release(fields: Fields) -> Fields:
    # The release's own rows, whose indexes need not be unique.
    return {**fields, "id": None, "extra_info": {**(fields.get("extra_info") or {}), "index": None}}


def _olympiadbench(fields: Fields) -> Fields:
    # Lists of answers and solutions; a context precedes some questions.
    answers = [each.replace("$", "").strip() for each in texts(fields, "final_answer")]
    if not any(answers):
        raise FieldFault("final_answer", "is empty")
    asked = [text(fields, name).strip() for name in ("context", "question")]
    solution = "\n\n".join(texts(fields, "solution"))
    made = {"problem": "\n\n".join(filter(None, asked)), "answer": ", ".join(answers)}
    return made | {"solution": solution, "id": fields.get("id")}


def _gpqa(fields: Fields) -> Fields:
    # Options are shuffled by the digest of the id: the right one is stored first.
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    options = [text(fields, name, is_required=True) for name in names]
    row_id = text(fields, "Record ID", is_required=True)
    digests = [hashlib.sha256(f"gpqa_diamond/{row_id}\x1f{n}".encode()).digest() for n in range(4)]
    order = sorted(range(4), key=digests.__getitem__)
    letter, asked = "ABCD"[order.index(0)], text(fields, "Question", is_required=True)
    problem = with_options(asked, [options[n] for n in order], letter, "Incorrect Answer 1")
    made = {"problem": problem, "answer": letter, "solution": text(fields, "Explanation")}
    return made | {"id": row_id, "reward_model": {"kind": "choice"}}


def _mmlu_pro(fields: Fields) -> Fields:
    # A list of options, and the answer as a letter.
    letter = text(fields, "answer", is_required=True).strip()
    asked = text(fields, "question", is_required=True)
    problem = with_options(asked, texts(fields, "options"), letter, "options")
    row_id = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    made = {"problem": problem, "answer": letter, "id": row_id}
    return made | {"reward_model": {"kind": "choice"}}


def _gsm8k(fields: Fields) -> Fields:
    # Worked steps with ``<<calculator notes>>``, then ``####`` and the number.
    steps, mark, number = text(fields, "answer", is_required=True).rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    solution = re.sub(r"<<.*?>>", "", steps).strip()
    answer = number.strip().replace(",", "")
    return {"problem": text(fields, "question"), "answer": answer, "solution": solution}


def _math(fields: Fields) -> Fields:
    # The answer is the solution's last box; some write \fbox{...}, or \boxed and a bare word.
    solution = text(fields, "solution", is_required=True)
    boxed = solution.replace("\\fbox", "\\boxed")
    box = last_box(re.sub(r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", boxed))
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    return {"problem": text(fields, "problem"), "answer": box.text, "solution": solution}


def _ghpo(fields: Fields) -> Fields:
    # ``solution`` is the answer, boxed or bare, ``solution_hint`` the solution.
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    solution = text(fields, "solution_hint")
    return {"problem": text(fields, "problem"), "answer": answer, "solution": solution}


def _mbpp(fields: Fields) -> Fields:
    # Imports and asserts in lists, which the prompt shows, and a reference program.
    if not (asserts := texts(fields, "test_list")):
        raise FieldFault("test_list", "is empty; a program is graded by its asserts")
    source = "\n".join([*texts(fields, "test_imports"), *asserts])
    code, task = (text(fields, name).strip() for name in ("code", "prompt"))
    return {
        "problem": f"{task}\n\nThe program must pass these tests:\n\n{source}",
        "answer": source,
        "solution": f"```python\n{code}\n```" if code else "",
        "id": fields.get("task_id"),
        "reward_model": {"kind": "program"},
    }


LAYOUTS: dict[str, Callable[[Fields], Fields]] = {
    "sage_train": _release,
    "sage_validation": _release,
    "olympiadbench": _olympiadbench,
    "gpqa_diamond": _gpqa,
    "mmlu_pro": _mmlu_pro,
    "gsm8k": _gsm8k,
    "math": _math,
    "mbpp": _mbpp,
    "ghpo": _ghpo,
}


def read_rows(
    name: str,
    said: Given = Given(),
    *,
    copy: Path | None = None,
    revision: str = "",
    limit: int | None = None,
) -> Prepared:
    """Return the rows of a public set, or of a file or folder; repeated problems are left out.

    Args:
        name: The set, ``reasoning_gym:`` and one of that library's, or the path.
        said: What holds for all rows.
        copy: A file, or a folder as the hub lays the set out, to read in place of the hub.
        revision: Another commit of the set than the pinned one.
        limit: Number of problems after which no record is read any more.

    Raises:
        DataError: Naming the input, and place and column of the first rows that cannot be used.
    """
    if name.startswith(PREFIX):
        return _drawn(name, said, limit or 1000)
    split, files = _files(name, said.split, copy, revision)
    path, repeated = str(copy or name), []
    rows: dict[str, tuple[str, Row]] = {}
    faults: dict[str, list[str]] = {}  # their places
    records = (
        (file, number, place, fields)
        for file, each in files.items()
        for number, (place, fields) in enumerate(read_records(each, split))
    )
    for file, number, place, fields in tqdm(records, f"reading {path}", delay=2, disable=None):
        numbered = f"{split}/{number}"
        if len(files) > 1:  # by subject, which their folders are called after
            place, numbered = f"{file}, {place}", f"{split}/{file.split('/')[0]}/{number}"
        try:
            row = _row(name, fields, replace(said, split=split), numbered)
            problem_from_row(row)
            index = row["extra_info"]["index"]
            where, other = rows.setdefault(index, (place, row))
            if other is not row:
                if any(row[each] != other[each] for each in ("problem", "answer")):
                    same = f"{index!r} is that of {where} too, with another problem or answer"
                    raise FieldFault("id", f"{same}; drop one, or give each an id of its own")
                repeated.append(f"{place} = {where}")
        except FieldFault as fault:
            faults.setdefault(f"column `{fault.column}`: {fault}", []).append(place)
        if len(rows) == limit:
            break
    if faults:
        told = listed([f"{listed(at)}, {fault}" for fault, at in faults.items()], "; ")
        raise DataError(f"{path}: {told}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    places, kept = zip(*rows.values(), strict=True)
    return Prepared(path, kept, places, tuple(repeated))


def _drawn(name: str, said: Given, num: int) -> Prepared:
    set_name, split = name.removeprefix(PREFIX), said.split or "train"
    if set_name in TAKES_ALL and said.kind in (None, "reasoning_gym"):
        told = "its score takes one answer for almost every problem (docs/data.md)"
        raise DataError(f"{name}: {told}; choose another, or --kind maths for numbers")
    drawn, warnings = draw_records(set_name, split, num, said.seed, said.config)
    if not drawn:
        raise DataError(f"{name}: no problems; {listed(warnings, '; ')}")
    said = replace(said, source=said.source or name.replace(":", "_"), split=split)
    places = tuple(record.pop("place") for record in drawn)
    rows = tuple(own_row(record, said) for record in drawn)
    return Prepared(name, rows, places, warnings=warnings)


def _row(name: str, fields: Fields, said: Given, numbered: str) -> Row:
    """Return the row of one record; of a public set with an id that begins with the set's name."""
    if name not in SOURCES:
        source = said.source or text(fields, "data_source") or Path(name).stem
        return own_row(fields, replace(said, source=source))
    layout = LAYOUTS.get(name, dict)
    made = layout(fields)
    of_row = text(made, "data_source") if layout is _release else ""
    given = replace(
        said,
        answer=said.answer or "answer",
        id=said.id or next((each for each in _IDS if each in made), ""),
        source=said.source or of_row or name,
    )
    row = own_row(made, given)
    row_id = row["extra_info"]["index"].removesuffix(".json").strip("/")
    if row_id == content_id(row["problem"]):  # it has none
        row_id = numbered
    row["extra_info"]["index"] = f"{name}/{row_id}"
    return row


def _files(name: str, split: str, copy: Path | None, revision: str) -> tuple[str, dict[str, Path]]:
    """Return the split, and the files to read by their paths inside the set."""
    if name not in SOURCES:
        if copy or revision:
            raise DataError(f"--from and --revision belong to a named source, not to {name}")
        return split, {name: Path(name)}
    repo, splits = SOURCES[name]["repo"], SOURCES[name]["splits"]
    split, revision = split or next(iter(splits)), revision or SOURCES[name].get("revision", "")
    if split not in splits:
        raise DataError(f"{name} has no split {split!r}; choose from {', '.join(splits)}")
    _, *files = splits[split]
    if copy is not None:
        return split, {file: copy / file for file in files} if copy.is_dir() else {"": copy}
    if not revision:
        raise DataError(
            f"{name}: no commit is on record; give --revision COMMIT, one of"
            f" https://huggingface.co/datasets/{repo}/commits/main, or --from PATH, a copy"
        )
    return split, {file: fetch(repo, file, revision=revision) for file in files}


def fetch(repo: str, file: str, *, revision: str, probe_limit_s: float = PROBE_LIMIT_S) -> Path:
    """Return the local copy of one file of a data set on the hub, downloaded if it is not cached.

    The hub has ``probe_limit_s`` to say that it has the file: the download itself asks again and
    again while a server is silent, so it begins only after this.

    Raises:
        DataError: Saying what was tried, why it failed, and what to do without the network.
    """
    import huggingface_hub as hub
    from httpx import HTTPError

    of: Any = {"revision": revision, "repo_type": "dataset"}
    try:
        if not isinstance(hub.try_to_load_from_cache(repo, file, **of), str):
            hub.get_hf_file_metadata(hub.hf_hub_url(repo, file, **of), timeout=probe_limit_s)
        return Path(hub.hf_hub_download(repo, file, **of))
    except (HTTPError, OSError, RuntimeError) as error:  # the last one from the transfer library
        raise DataError(
            f"{repo}, file {file}, commit {revision[:12]}: {type(error).__name__}: "
            f"{one_line(error, 200)}; without the network give --from PATH, a copy of the file at"
            f" https://huggingface.co/datasets/{repo}/tree/{revision}, where a gated set has terms"
            " to accept (then `hf auth login`)"
        ) from error


def listed(places: Sequence[str], between: str = ", ") -> str:
    """Return what a message lists: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return between.join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")
