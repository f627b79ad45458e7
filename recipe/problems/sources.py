"""The public data sets that are known by name: where each is, and how its records become rows.

``sources.yaml`` lists them. A layout is the set of columns by which a record is known, and what is
made of them: ``problem``, ``answer``, and where there are some ``solution``, ``id`` and
``reward_model.kind``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.problems.columns import Row
from recipe.problems.prepare import (
    Fields,
    Given,
    Prepared,
    given_id,
    own_row,
    prepare,
    read_records,
    text,
    texts,
    with_options,
)
from recipe.problems.schema import FieldFault
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_yaml
from recipe.verify.maths.grade import last_box

PROBE_LIMIT_S = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KEYS = Given("problem", "answer", id="id")
Made = dict[str, Any]
_KIND = {kind: {"kind": kind} for kind in ("choice", "program")}


def _renamed(old: str, new: str) -> Callable[[Fields], Made]:
    return lambda fields: {
        **{name: fields[name] for name in fields if name != old},
        new: fields[old],
    }


def _release(fields: Fields) -> Made:
    # The release's own rows, whose indexes need not be unique.
    return {**fields, "id": None, "extra_info": {**(fields["extra_info"] or {}), "index": None}}


def _plain_choice(fields: Fields) -> Made:
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


def _olympiadbench(fields: Fields) -> Made:
    # Lists of answers and solutions; a context precedes some questions.
    answers = [each.replace("$", "").strip() for each in texts(fields, "final_answer")]
    if not any(answers):
        raise FieldFault("final_answer", "is empty")
    asked = [text(fields, name).strip() for name in ("context", "question")]
    solution = "\n\n".join(texts(fields, "solution"))
    made = {"problem": "\n\n".join(filter(None, asked)), "answer": ", ".join(answers)}
    return made | {"solution": solution, "id": fields.get("id")}


def _gpqa(fields: Fields) -> Made:
    # Options are shuffled by the digest of the id: the right one is stored first.
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    options = [text(fields, name, is_required=True) for name in names]
    row_id = f"gpqa_diamond/{text(fields, 'Record ID', is_required=True)}"
    order = sorted(range(4), key=lambda n: hashlib.sha256(f"{row_id}\x1f{n}".encode()).digest())
    letter, asked = "ABCD"[order.index(0)], text(fields, "Question", is_required=True)
    problem = with_options(asked, [options[n] for n in order], letter, "Incorrect Answer 1")
    made = {"problem": problem, "answer": letter, "solution": text(fields, "Explanation")}
    return made | {"id": row_id, "reward_model": _KIND["choice"]}


def _mmlu_pro(fields: Fields) -> Made:
    # A list of options, and the answer as a letter and as a number.
    letter = text(fields, "answer", is_required=True).strip()
    asked = text(fields, "question", is_required=True)
    problem = with_options(asked, texts(fields, "options"), letter, "options")
    index = text(fields, "answer_index")
    if index and index != str(ord(letter[0]) - ord("A")):
        raise FieldFault("answer_index", f"{index} is not the place of the answer {letter}")
    row_id = f"{text(fields, 'category')}/{text(fields, 'question_id')}"
    made = {"problem": problem, "answer": letter, "id": row_id}
    return made | {"reward_model": _KIND["choice"]}


def _gsm8k(fields: Fields) -> Made:
    # Worked steps with ``<<calculator notes>>``, then ``####`` and the number.
    steps, mark, number = text(fields, "answer").rpartition("####")
    if not mark:
        raise FieldFault("answer", "has no line that begins with ####")
    solution = re.sub(r"<<.*?>>", "", steps).strip()
    answer = number.strip().replace(",", "")
    return {"problem": fields["question"], "answer": answer, "solution": solution}


def _math(fields: Fields) -> Made:
    # The answer is the solution's last box; some write \fbox{...}, or \boxed and a bare word.
    solution = text(fields, "solution", is_required=True)
    boxed = solution.replace("\\fbox", "\\boxed")
    box = last_box(re.sub(r"\\boxed\s+([^\s{$.\\]+)", r"\\boxed{\1}", boxed))
    if box.state != "closed" or not box.text:
        raise FieldFault("solution", "has no complete last \\boxed{...}, which holds the answer")
    return {"problem": fields["problem"], "answer": box.text, "solution": solution}


def _ghpo(fields: Fields) -> Made:
    # ``solution`` is the answer, boxed or bare, ``solution_hint`` the solution.
    given = text(fields, "solution", is_required=True)
    box = last_box(given)
    answer = box.text if box.state == "closed" else given.strip().strip("$")
    return {"problem": fields["problem"], "answer": answer, "solution": fields["solution_hint"]}


def _program(problem: str, tests: str, row_id: str) -> Callable[[Fields], Made]:
    # Imports and asserts in lists, which the prompt shows, and a reference program.
    def make(fields: Fields) -> Made:
        if not (asserts := texts(fields, tests)):
            raise FieldFault(tests, "is empty; a program is graded by its asserts")
        source = "\n".join([*texts(fields, "test_imports"), *asserts])
        code, task = (text(fields, name).strip() for name in ("code", problem))
        return {
            "problem": f"{task}\n\nThe program must pass these tests:\n\n{source}",
            "answer": source,
            "solution": f"```python\n{code}\n```" if code else "",
            "id": fields.get(row_id),
            "reward_model": _KIND["program"],
        }

    return make


# Name -> the columns a record must have, and what makes its fields.
LAYOUTS: dict[str, tuple[tuple[str, ...], Callable[[Fields], Made]]] = {
    "question": (("question", "answer"), _renamed("question", "problem")),
    "math500": (("unique_id", "answer"), _renamed("unique_id", "id")),
    "matharena": (("problem_idx", "answer"), _renamed("problem_idx", "id")),
    "plain": (("problem", "answer"), dict),
    "plain_choice": (("problem", "answer"), _plain_choice),
    "plain_program": (("problem", "tests"), _program("problem", "tests", "id")),
    "release": (("problem", "answer", "data_source", "extra_info"), _release),
    "olympiadbench": (("question", "final_answer"), _olympiadbench),
    "gpqa": (("Question", "Correct Answer"), _gpqa),
    "mmlu_pro": (("question", "options", "answer"), _mmlu_pro),
    "gsm8k": (("question", "answer"), _gsm8k),
    "math": (("problem", "solution"), _math),
    "ghpo": (("problem", "solution", "solution_hint"), _ghpo),
    "mbpp": (("prompt", "test_list"), _program("prompt", "test_list", "task_id")),
}


def _fields_of(names: Sequence[str], fields: Fields) -> Made:
    """Return the contract's fields of a record, by the first layout whose columns it has."""
    for needs, make in (LAYOUTS[name] for name in names):
        if all(name in fields for name in needs):
            return make(fields)
    needs = [LAYOUTS[name][0] for name in names]
    missing = next(name for name in needs[0] if name not in fields)
    expected = " or ".join(map("+".join, needs))
    raise FieldFault(missing, f"expected {expected}; there are {', '.join(fields) or 'none'}")


@dataclass(frozen=True, slots=True)
class Source:
    """One public data set; ``splits`` are rows (0: not known) and files, the first the default.

    ``revision`` is a commit of the hub repository, empty when none is on record.
    """

    name: str
    repo: str
    paper: str
    layouts: tuple[str, ...]
    splits: Mapping[str, tuple]
    revision: str = ""
    licence: str = "not on record; see its page"

    @property
    def default_split(self) -> str:
        """The split that is read when none is named."""
        return next(iter(self.splits))

    def told(self) -> str:
        """Return where it is, at which commit, how many rows it has, and its terms."""
        counts = ", ".join(f"{name} {rows or '?'}" for name, (rows, *_) in self.splits.items())
        return (
            f"{self.name}\n    https://huggingface.co/datasets/{self.repo}\n"
            f"    commit {self.revision or 'none on record: needs --revision'}\n"
            f"    rows {counts}; licence {self.licence}; {self.paper}"
        )


SOURCES: dict[str, Source] = {
    name: Source(name, **entry)
    for name, entry in read_yaml(Path(__file__).with_suffix(".yaml").read_text("utf-8")).items()
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

    ``said`` has no names of columns. ``copy`` is a file, or a folder as the hub lays the data set
    out, to read in place of the hub, ``revision`` another commit than the pinned one.
    """
    split = said.split or source.default_split
    files = _files(source, split, copy, revision)

    def records() -> Iterator[tuple[str, tuple[str, Fields]]]:
        for name, path in files.items():
            # The folders of a set in several files are its subjects.
            folder = f"{split}/{name.split('/')[0]}" if len(files) > 1 else split
            for number, (place, fields) in enumerate(read_records(path)):
                place = place if len(files) == 1 else f"{name}, {place}"
                yield place, (f"{folder}/{number}", fields)

    def make(record: tuple[str, Fields]) -> Row:
        numbered, fields = record
        of_row = text(fields, "data_source").strip() if "release" in source.layouts else ""
        name = said.source or of_row or source.name
        given = replace(_KEYS, source=name, split=split, system_prompt=said.system_prompt)
        made = _fields_of(source.layouts, fields)
        row = own_row(made, given)
        row_id = given_id(made, given, row["problem"]).removesuffix(".json").strip("/") or numbered
        is_whole = row_id.startswith(f"{source.name}/")
        row["extra_info"]["index"] = row_id if is_whole else f"{source.name}/{row_id}"
        return row

    path = str(copy or f"{source.repo}@{(revision or source.revision)[:12]}")
    prepared = prepare(path, records(), make, limit)
    expected, found = source.splits[split][0], len(prepared.rows)
    if limit is None and not revision and expected not in (0, found):
        return replace(prepared, note=f"{found} rows, {source.name} {split} has {expected}")
    return prepared


def _files(source: Source, split: str, copy: Path | None, revision: str) -> dict[str, Path]:
    """Return the files to read, by their paths inside the source."""
    if split not in source.splits:
        known = ", ".join(source.splits)
        raise DataError(f"{source.name} has no split {split!r}; choose from {known}")
    _, *names = source.splits[split]
    revision = revision or source.revision
    if copy is not None:
        return {name: copy / name for name in names} if copy.is_dir() else {copy.name: copy}
    if not revision:
        raise DataError(
            f"{source.name}: no commit of {source.repo} is on record; give --revision COMMIT"
            f" (they are listed on https://huggingface.co/datasets/{source.repo}/commits/main), or"
            " --from PATH, a copy with the columns "
            + " or ".join("+".join(LAYOUTS[name][0]) for name in source.layouts)
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

    if not _COMMIT.fullmatch(revision):
        raise DataError(f"the revision must be a commit of 40 hex digits, got {revision!r}")
    of: Any = {"revision": revision, "repo_type": "dataset"}
    try:
        cached = hub.try_to_load_from_cache(repo, file, **of)
        if not isinstance(cached, str):
            hub.get_hf_file_metadata(hub.hf_hub_url(repo, file, **of), timeout=probe_limit_s)
        return Path(hub.hf_hub_download(repo, file, **of))
    except (HTTPError, OSError, RuntimeError) as error:  # the last one from the transfer library
        raise DataError(
            f"{repo}, file {file}, commit {revision[:12]}: {type(error).__name__}: "
            f"{one_line(error, 200)}; without the network, copy the file"
            f" (https://huggingface.co/datasets/{repo}/tree/{revision}) and give it with --from"
            " PATH; a gated set needs its terms accepted on its page, and `hf auth login`"
        ) from error
