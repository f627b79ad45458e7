"""The public data sets that are known by name, in ``sources.yaml``; read from the hub or a copy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from recipe.problems.columns import Row
from recipe.problems.layouts import LAYOUTS, fields_of
from recipe.problems.prepare import Given, Prepared, given_id, own_row, prepare
from recipe.problems.records import Fields, read_records, text
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_yaml

PROBE_LIMIT_S = 10.0
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KEYS = Given("problem", "answer", id="id")


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
        made = fields_of(source.layouts, fields)
        row = own_row(made, given)
        row_id = given_id(made, given, row["problem"]).removesuffix(".json").strip("/") or numbered
        is_whole = row_id.startswith(f"{source.name}/")
        row["extra_info"]["index"] = row_id if is_whole else f"{source.name}/{row_id}"
        return row

    path = str(copy or f"{source.repo}@{(revision or source.revision)[:12]}")
    prepared = prepare(path, records(), make, limit)
    expected, found = source.splits[split][0], len(prepared.rows)
    if limit is None and not revision and expected not in (0, found):
        told = f"warning: {path}: {found} rows, {source.name} {split} has {expected}"
        return replace(prepared, notes=(told,))
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
