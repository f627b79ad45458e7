"""The public data sets that are known by name: where they are, at which commit, under what terms.

Commits are those that public code names for each set; where none is on record the user gives
one. Row counts are those of the pinned files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from recipe.problems import layouts
from recipe.problems.columns import Row
from recipe.problems.layouts import Layout, plain, plain_choice, plain_program
from recipe.problems.prepare import Origin, Prepared, prepare
from recipe.problems.records import read_records
from recipe.run.errors import DataError, one_line

PROBE_LIMIT_S = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}")


class Split(NamedTuple):
    """Files of one split, in reading order; ``num_rows`` is 0 when it is not known."""

    files: tuple[str, ...]
    num_rows: int = 0


class Source(NamedTuple):
    """One public data set; the first split is the default.

    ``revision`` is a commit of the hub repository, empty when none is on record. The first
    layout is the hub's, but for ``math``, whose local copies have a solution too.
    """

    name: str
    repo: str
    revision: str
    licence: str
    paper: str
    layouts: tuple[Layout, ...]
    splits: Mapping[str, Split]

    @property
    def home(self) -> str:
        """The page of the data set."""
        return f"https://huggingface.co/datasets/{self.repo}"

    @property
    def default_split(self) -> str:
        """The split that is read when none is named."""
        return next(iter(self.splits))

    def split(self, name: str) -> Split:
        """Return a split by name; refuse one that the source has not."""
        if name not in self.splits:
            known = ", ".join(self.splits)
            raise DataError(f"{self.name} has no split {name!r}; choose from {known}")
        return self.splits[name]


def _one(split: str, file: str, num_rows: int = 0) -> dict[str, Split]:
    return {split: Split((file,), num_rows)}


_SHARD = "-00000-of-00001.parquet"
_SUBJECTS = (
    "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra"
    " precalculus"
).split()
_MATH = {
    split: Split(tuple(f"{subject}/{split}{_SHARD}" for subject in _SUBJECTS), num_rows)
    for split, num_rows in {"train": 7500, "test": 5000}.items()
}
_MBPP = {
    split: Split((f"sanitized/{split}{_SHARD}",), num_rows)
    for split, num_rows in {"test": 257, "train": 120, "validation": 43, "prompt": 7}.items()
}
_MBPP["all"] = Split(tuple(each.files[0] for each in _MBPP.values()), 427)
_UNSTATED = "not on record; see its page"
_ALL = (
    Source("sage_train", "baohao/sage_train", "", _UNSTATED, "arXiv:2602.03143",
           (layouts.sage, plain), _one("train", "train.parquet")),
    Source("sage_validation", "baohao/sage_validation", "", _UNSTATED, "arXiv:2602.03143",
           (layouts.sage, plain), _one("test", "test.parquet")),
    Source("aime24", "HuggingFaceH4/aime_2024", "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
           "problems (c) MAA", "maa.org",
           (plain,), _one("test", f"data/train{_SHARD}", 30)),
    Source("aime25", "math-ai/aime25", "563bb8404243c5f09de6ec262f2db674fe5bce9b",
           "Apache-2.0; problems (c) MAA", "maa.org",
           (plain,), _one("test", "test.jsonl", 30)),
    # Public code names these three, and pins none.
    Source("aime26", "MathArena/aime_2026", "", _UNSTATED, "maa.org",
           (layouts.matharena, plain), _one("train", f"data/train{_SHARD}", 30)),
    Source("hmmt25", "MathArena/hmmt_feb_2025", "", _UNSTATED, "hmmt.org",
           (layouts.matharena, plain), _one("train", f"data/train{_SHARD}", 30)),
    Source("hmmt26", "MathArena/hmmt_feb_2026", "", _UNSTATED, "hmmt.org",
           (layouts.matharena, plain), _one("train", f"data/train{_SHARD}")),
    Source("amc23", "math-ai/amc23", "80815d37005feb82cd7f8fbc6901d5d3eff43057",
           "problems (c) MAA", "maa.org",
           (layouts.question, plain), _one("test", f"test{_SHARD}", 40)),
    Source("math500", "HuggingFaceH4/MATH-500", "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
           "MIT", "arXiv:2305.20050",
           (layouts.math500, plain), _one("test", "test.jsonl", 500)),
    Source("minerva", "math-ai/minervamath", "ee46ddc498933b1977577953250ca5c66be64f96",
           _UNSTATED, "arXiv:2206.14858",
           (layouts.question, plain), _one("test", "test.jsonl", 272)),
    Source("olympiadbench", "Hothan/OlympiadBench", "91184b52131e7fc9455fef848035173aea8cc01a",
           "Apache-2.0", "arXiv:2402.14008", (layouts.olympiadbench, plain),
           _one("test", "OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet", 674)),
    Source("gpqa_diamond", "Idavidrein/gpqa", "633f5ee89ab8ad4522a9f850766b73f62147ffdd",
           "CC BY 4.0, gated", "arXiv:2311.12022",
           (layouts.gpqa, plain_choice), _one("test", "gpqa_diamond.csv", 198)),
    Source("mmlu_pro", "TIGER-Lab/MMLU-Pro", "b189ec765aa7ed75c8acfea42df31fdae71f97be",
           "MIT", "arXiv:2406.01574", (layouts.mmlu_pro, plain_choice),
           _one("test", f"data/test{_SHARD}", 12032)
           | _one("validation", f"data/validation{_SHARD}", 70)),
    Source("gsm8k", "openai/gsm8k", "740312add88f781978c0658806c59bc2815b9866",
           "MIT", "arXiv:2110.14168", (layouts.gsm8k, plain),
           _one("test", f"main/test{_SHARD}", 1319) | _one("train", f"main/train{_SHARD}", 7473)),
    Source("math", "EleutherAI/hendrycks_math", "21a5633873b6a120296cce3e2df9d5550074f4a3",
           "MIT", "arXiv:2103.03874", (plain, layouts.math), _MATH),
    Source("mbpp", "google-research-datasets/mbpp", "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
           "CC BY 4.0", "arXiv:2108.07732", (layouts.mbpp, plain_program), _MBPP),
    # The hub's usual path; we found no public code that names it.
    Source("ghpo", "hkgc/math3to5_olympiads_aime", "", _UNSTATED, "arXiv:2507.10628",
           (layouts.ghpo, plain), _one("train", f"data/train{_SHARD}")),
)  # fmt: skip
SOURCES: dict[str, Source] = {source.name: source for source in _ALL}


def find_source(name: str) -> Source | None:
    """Return the source of this name; case, ``-``, ``_`` and ``20`` before a year do not matter."""
    return {_bare(each): source for each, source in SOURCES.items()}.get(_bare(name))


def _bare(name: str) -> str:
    return re.sub("20(?=2[0-9]$)", "", re.sub("[-_ ]|feb", "", name.lower()))


def read_source(
    source: Source,
    origin: Origin,
    *,
    given: Path | None = None,
    revision: str = "",
    limit: int | None = None,
) -> Prepared:
    """Return rows of the parquet contract from a named source, ``limit`` of them at most.

    ``given`` is a file, or a folder as the hub lays the data set out, to read in place of the hub,
    and ``revision`` another commit to download than the pinned one.
    """
    files = _files(source, origin.split, given, revision)

    def rows() -> Iterator[tuple[str, Callable[[], Row]]]:
        for name, path in files.items():
            for place, number, fields in read_records(path):
                place = place if len(files) == 1 else f"{name}, {place}"
                here = replace(origin, name=source.name, file=name, number=number)
                yield place, partial(layouts.row_with, source.layouts, fields, here)

    path = str(given or f"{source.repo}@{(revision or source.revision)[:12]}")
    return prepare(path, rows(), limit=limit)


def _files(source: Source, split: str, given: Path | None, revision: str) -> dict[str, Path]:
    """Return the files to read, by their paths inside the source."""
    names = source.split(split).files
    revision = revision or source.revision
    if given is not None:
        return {name: given / name for name in names} if given.is_dir() else {given.name: given}
    if not revision:
        raise DataError(
            f"{source.name}: no commit of {source.repo} is on record; give --revision COMMIT"
            f" (they are listed on {source.home}/commits/main), or --from PATH, a copy with the"
            f" columns {' or '.join('+'.join(layout.needs) for layout in source.layouts)}"
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
    of = {"revision": revision, "repo_type": "dataset"}
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
