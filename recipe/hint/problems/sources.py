"""The public data sets that are known by name: where they are, at which commit, under what terms.

Commits are those that public code names for each set; where none is on record the user gives
one. Row counts are those of the pinned files.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recipe.hint.errors import DataError
from recipe.hint.problems import layouts
from recipe.hint.problems.drafts import Defaults, Draft, Prepared, prepare
from recipe.hint.problems.hub import fetch
from recipe.hint.problems.layouts import Layout, SourceLocation, draft_with
from recipe.hint.problems.records import read_records

_SHARD = "-00000-of-00001.parquet"
_SUBJECTS = (
    "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra"
    " precalculus"
).split()


@dataclass(frozen=True, slots=True)
class Split:
    """Files of one split, in reading order; ``num_rows`` is 0 when it is not known."""

    files: tuple[str, ...]
    num_rows: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """One public data set.

    ``revision`` is a commit of the hub repository, empty when none is on record. The first
    layout is the hub's. The first split is the default.
    """

    name: str
    repo: str
    revision: str
    licence: str
    paper: str
    layouts: tuple[Layout, ...]
    splits: Mapping[str, Split] = field(default_factory=dict)

    @property
    def home(self) -> str:
        """The page of the data set."""
        return f"https://huggingface.co/datasets/{self.repo}"

    def split(self, name: str) -> Split:
        """A split by name.

        Raises:
            DataError: If the source has no such split.
        """
        if name not in self.splits:
            known = ", ".join(self.splits)
            raise DataError(f"{self.name} has no split {name!r}; choose from {known}")
        return self.splits[name]

    @property
    def default_split(self) -> str:
        """The split that is read when none is named."""
        return next(iter(self.splits))


def _one(split: str, file: str, num_rows: int = 0) -> dict[str, Split]:
    return {split: Split((file,), num_rows)}


_UNSTATED = "not on record; see its page"
_MATH_FILES = {s: tuple(f"{each}/{s}{_SHARD}" for each in _SUBJECTS) for s in ("train", "test")}
_MBPP_PARTS = {"test": 257, "train": 120, "validation": 43, "prompt": 7}
_MBPP = {s: Split((f"sanitized/{s}{_SHARD}",), count) for s, count in _MBPP_PARTS.items()}
_MBPP_ALL = Split(tuple(each.files[0] for each in _MBPP.values()), sum(_MBPP_PARTS.values()))

_ALL = (
    Source(
        "sage_train", "baohao/sage_train", "", _UNSTATED, "arXiv:2602.03143",
        (layouts.CONTRACT, layouts.PLAIN), _one("train", "train.parquet"),
    ),
    Source(
        "sage_validation", "baohao/sage_validation", "", _UNSTATED, "arXiv:2602.03143",
        (layouts.CONTRACT, layouts.PLAIN), _one("test", "test.parquet"),
    ),
    Source(
        "aime24", "HuggingFaceH4/aime_2024", "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
        "problems (c) MAA", "maa.org",
        (layouts.PLAIN,), _one("test", f"data/train{_SHARD}", 30),
    ),
    Source(
        "aime25", "math-ai/aime25", "563bb8404243c5f09de6ec262f2db674fe5bce9b",
        "Apache-2.0; problems (c) MAA", "maa.org",
        (layouts.PLAIN,), _one("test", "test.jsonl", 30),
    ),
    Source(
        "amc23", "math-ai/amc23", "80815d37005feb82cd7f8fbc6901d5d3eff43057",
        "problems (c) MAA", "maa.org",
        (layouts.maths("question"), layouts.PLAIN), _one("test", f"test{_SHARD}", 40),
    ),
    Source(
        "math500", "HuggingFaceH4/MATH-500", "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
        "MIT", "arXiv:2305.20050",
        (layouts.Layout(("unique_id", "answer"), layouts.maths(id="unique_id").draft),
         layouts.PLAIN),
        _one("test", "test.jsonl", 500),
    ),
    Source(
        "minerva", "math-ai/minervamath", "ee46ddc498933b1977577953250ca5c66be64f96",
        _UNSTATED, "arXiv:2206.14858",
        (layouts.maths("question"), layouts.PLAIN), _one("test", "test.jsonl", 272),
    ),
    Source(
        "olympiadbench", "Hothan/OlympiadBench", "91184b52131e7fc9455fef848035173aea8cc01a",
        "Apache-2.0", "arXiv:2402.14008",
        (layouts.OLYMPIADBENCH, layouts.PLAIN),
        _one("test", "OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet", 674),
    ),
    Source(
        "gpqa_diamond", "Idavidrein/gpqa", "633f5ee89ab8ad4522a9f850766b73f62147ffdd",
        "CC BY 4.0, gated", "arXiv:2311.12022",
        (layouts.GPQA, layouts.PLAIN_CHOICE), _one("test", "gpqa_diamond.csv", 198),
    ),
    Source(
        "mmlu_pro", "TIGER-Lab/MMLU-Pro", "b189ec765aa7ed75c8acfea42df31fdae71f97be",
        "MIT", "arXiv:2406.01574",
        (layouts.MMLU_PRO, layouts.PLAIN_CHOICE),
        {**_one("test", f"data/test{_SHARD}", 12032),
         **_one("validation", f"data/validation{_SHARD}", 70)},
    ),
    Source(
        "gsm8k", "openai/gsm8k", "740312add88f781978c0658806c59bc2815b9866",
        "MIT", "arXiv:2110.14168",
        (layouts.GSM8K, layouts.PLAIN),
        {**_one("test", f"main/test{_SHARD}", 1319), **_one("train", f"main/train{_SHARD}", 7473)},
    ),
    Source(
        "math", "EleutherAI/hendrycks_math", "21a5633873b6a120296cce3e2df9d5550074f4a3",
        "MIT", "arXiv:2103.03874",
        (layouts.PLAIN, layouts.BOXED),
        {"train": Split(_MATH_FILES["train"], 7500), "test": Split(_MATH_FILES["test"], 5000)},
    ),
    Source(
        "mbpp", "google-research-datasets/mbpp", "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        "CC BY 4.0", "arXiv:2108.07732",
        (layouts.MBPP, layouts.PLAIN_PROGRAM), {**_MBPP, "all": _MBPP_ALL},
    ),
    # The file's place is the hub's usual one; no public code was found that names it.
    Source(
        "ghpo", "hkgc/math3to5_olympiads_aime", "", _UNSTATED, "arXiv:2507.10628",
        (layouts.GHPO, layouts.PLAIN), _one("train", f"data/train{_SHARD}"),
    ),
)  # fmt: skip
SOURCES: dict[str, Source] = {source.name: source for source in _ALL}


def find_source(name: str) -> Source | None:
    """The source of this name; case does not matter, nor ``-`` for ``_``."""
    return SOURCES.get(name.lower().replace("-", "_"))


def read_source(
    source: Source,
    *,
    split: str,
    given: Path | None,
    revision: str = "",
    defaults: Defaults,
    limit: int | None = None,
) -> Prepared:
    """Rows of the parquet contract from a named source.

    Args:
        source: The data set.
        split: One of its splits.
        given: A file, or a folder laid out as the hub lays the data set out, to read in place
            of the hub; ``None`` downloads.
        revision: Commit to download instead of the pinned one.
        stamp: What all rows have in common.
        limit: Number of problems at most; all if not given.

    Raises:
        DataError: If nothing can be read, or naming the file, the row and the column.
    """
    files = list(_files(source, split, given, revision))
    path = str(given or f"{source.repo}@{(revision or source.revision)[:12]}")
    return prepare(path, _drafts(source, split, files), defaults=defaults, limit=limit)


def _files(source: Source, split: str, given: Path | None, revision: str) -> Iterator[tuple]:
    """The files to read, each with its path inside the source."""
    names = source.split(split).files
    if given is not None and not given.is_dir():
        yield given.name, given
        return
    revision = revision or source.revision
    if given is None and not revision:
        raise DataError(
            f"{source.name}: no commit of {source.repo} is on record; give --revision COMMIT"
            f" (they are listed on {source.home}/commits/main), or --from PATH"
        )
    for name in names:
        if given is None:
            yield name, fetch(source.repo, name, revision=revision)
        elif (given / name).is_file():
            yield name, given / name
        else:
            raise DataError(f"{given}: no file {name}, where {source.name} has its split {split}")


def _drafts(
    source: Source, split: str, files: list[tuple[str, Path]]
) -> Iterator[tuple[str, Callable[[], Draft]]]:
    for name, path in files:
        for record in read_records(path):
            place = record.place if len(files) == 1 else f"{name}, {record.place}"
            location = SourceLocation(source.name, split, name, record.index)
            yield place, functools.partial(draft_with, source.layouts, record.fields, location)
