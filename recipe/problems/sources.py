"""The public data sets that are known by name: where each is, and how its records become rows.

``sources.yaml`` lists them. Records that have ``problem`` and ``answer``, as local copies do, are
read as they are; ``LAYOUTS`` makes such fields of the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.problems.columns import Row
from recipe.problems.prepare import (
    Fields,
    Given,
    Prepared,
    own_row,
    prepare,
    read_records,
    text,
    texts,
    with_options,
)
from recipe.problems.schema import FieldFault, content_id
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_yaml
from recipe.verify.maths.grade import last_box

PROBE_LIMIT_S = 10.0
LIST = Path(__file__).with_suffix(".yaml")
_IDS = ("unique_id", "problem_idx", "id")  # the first that a record has
_KIND = {kind: {"kind": kind} for kind in ("choice", "program")}


def _release(fields: Fields) -> Fields:
    # The release's own rows, whose indexes need not be unique.
    if not {"data_source", "extra_info"} <= fields.keys():
        return fields
    return {**fields, "id": None, "extra_info": {**(fields["extra_info"] or {}), "index": None}}


def _plain_choice(fields: Fields) -> Fields:
    # Options as ``A. ...`` lines at the end of the problem, after ``Options:``.
    made = {**fields, "reward_model": _KIND["choice"]}
    asked, mark, block = text(fields, "problem").rpartition("\nOptions:\n")
    if not mark:
        return made
    options: list[str] = []
    for line in block.split("\n"):
        if line.startswith(f"{chr(ord('A') + len(options))}. "):
            options.append(line[3:])
        elif options:
            options[-1] += f"\n{line}"  # an option of several lines
    letter = text(fields, "answer", is_required=True)
    return made | {"problem": with_options(asked, options, letter, "problem")}


def _olympiadbench(fields: Fields) -> Fields:
    # Lists of answers and solutions; a context precedes some questions.
    if "final_answer" not in fields:
        return fields
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
    if names[0] not in fields:
        return _plain_choice(fields)
    options = [text(fields, name, is_required=True) for name in names]
    row_id = f"gpqa_diamond/{text(fields, 'Record ID', is_required=True)}"
    order = sorted(range(4), key=lambda n: hashlib.sha256(f"{row_id}\x1f{n}".encode()).digest())
    letter, asked = "ABCD"[order.index(0)], text(fields, "Question", is_required=True)
    problem = with_options(asked, [options[n] for n in order], letter, "Incorrect Answer 1")
    made = {"problem": problem, "answer": letter, "solution": text(fields, "Explanation")}
    return made | {"id": row_id, "reward_model": _KIND["choice"]}


def _mmlu_pro(fields: Fields) -> Fields:
    # A list of options, and the answer as a letter.
    if "options" not in fields:
        return _plain_choice(fields)
    letter = text(fields, "answer", is_required=True).strip()
    asked = text(fields, "question", is_required=True)
    problem = with_options(asked, texts(fields, "options"), letter, "options")
    row_id = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    made = {"problem": problem, "answer": letter, "id": row_id}
    return made | {"reward_model": _KIND["choice"]}


def _gsm8k(fields: Fields) -> Fields:
    # Worked steps with ``<<calculator notes>>``, then ``####`` and the number.
    if "question" not in fields:
        return fields
    steps, mark, number = text(fields, "answer", is_required=True).rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    solution = re.sub(r"<<.*?>>", "", steps).strip()
    answer = number.strip().replace(",", "")
    return {"problem": fields["question"], "answer": answer, "solution": solution}


def _math(fields: Fields) -> Fields:
    # The answer is the solution's last box; some write \fbox{...}, or \boxed and a bare word.
    if "answer" in fields:
        return fields
    solution = text(fields, "solution", is_required=True)
    boxed = solution.replace("\\fbox", "\\boxed")
    box = last_box(re.sub(r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", boxed))
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    return {"problem": text(fields, "problem"), "answer": box.text, "solution": solution}


def _ghpo(fields: Fields) -> Fields:
    # ``solution`` is the answer, boxed or bare, ``solution_hint`` the solution.
    if "solution_hint" not in fields:
        return fields
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    return {
        "problem": text(fields, "problem"),
        "answer": answer,
        "solution": fields["solution_hint"],
    }


def _mbpp(fields: Fields) -> Fields:
    # Imports and asserts in lists, which the prompt shows, and a reference program.
    is_own = "test_list" in fields
    problem, tests = ("prompt", "test_list") if is_own else ("problem", "tests")
    if not (asserts := texts(fields, tests)):
        raise FieldFault(tests, "is empty; a program is graded by its asserts")
    source = "\n".join([*texts(fields, "test_imports"), *asserts])
    code, task = (text(fields, name).strip() for name in ("code", problem))
    return {
        "problem": f"{task}\n\nThe program must pass these tests:\n\n{source}",
        "answer": source,
        "solution": f"```python\n{code}\n```" if code else "",
        "id": fields.get("task_id" if is_own else "id"),
        "reward_model": _KIND["program"],
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


@dataclass(frozen=True, slots=True)
class Source:
    """One public data set: its entry of ``sources.yaml``, whose head says what each field is."""

    name: str
    repo: str
    paper: str
    splits: Mapping[str, tuple]
    revision: str = ""
    licence: str = "not on record; see its page"


SOURCES: dict[str, Source] = {
    name: Source(name, **entry) for name, entry in read_yaml(LIST.read_text("utf-8")).items()
}


def read_source(
    source: Source,
    said: Given,
    *,
    copy: Path | None = None,
    revision: str = "",
    limit: int | None = None,
) -> Prepared:
    """Return rows of the parquet contract from a named source, ``limit`` of them at most.

    ``copy`` is a file, or a folder as the hub lays the data set out, to read in place of the hub,
    ``revision`` another commit than the pinned one.
    """
    split, revision = said.split or next(iter(source.splits)), revision or source.revision
    files = _files(source, split, copy, revision)

    def records() -> Iterator[tuple[str, tuple[str, Fields]]]:
        for name, path in files.items():
            of_file, numbered = "", split
            if len(files) > 1:  # by subject, which the folder is called after
                of_file, numbered = f"{name}, ", f"{split}/{name.split('/')[0]}"
            for number, (place, fields) in enumerate(read_records(path)):
                yield f"{of_file}{place}", (f"{numbered}/{number}", fields)

    def make(record: tuple[str, Fields]) -> Row:
        numbered, fields = record
        layout = LAYOUTS.get(source.name, dict)
        made = layout(fields)
        given = replace(
            said,
            answer=said.answer or "answer",
            id=said.id or next((name for name in _IDS if name in made), ""),
            source=said.source or (text(made, "data_source") if layout is _release else ""),
            split=split,
        )
        row = own_row(made, replace(given, source=given.source or source.name))
        row_id = row["extra_info"]["index"].removesuffix(".json").strip("/")
        if row_id == content_id(row["problem"]):  # it has none
            row_id = numbered
        is_whole = row_id.startswith(f"{source.name}/")
        row["extra_info"]["index"] = row_id if is_whole else f"{source.name}/{row_id}"
        return row

    return prepare(str(copy or f"{source.repo}@{revision[:12]}"), records(), make, limit)


def _files(source: Source, split: str, copy: Path | None, revision: str) -> dict[str, Path]:
    """Return the files to read, by their paths inside the source."""
    if split not in source.splits:
        known = ", ".join(source.splits)
        raise DataError(f"{source.name} has no split {split!r}; choose from {known}")
    _, *names = source.splits[split]
    if copy is not None:
        return {name: copy / name for name in names} if copy.is_dir() else {copy.name: copy}
    if not revision:
        raise DataError(
            f"{source.name}: no commit is on record; give --revision COMMIT, one of"
            f" https://huggingface.co/datasets/{source.repo}/commits/main, or --from PATH, a copy"
        )
    return {name: fetch(source.repo, name, revision=revision) for name in names}


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
