"""Turn a file or a named public data set into a training or benchmark file.

hint prepare IN OUT.parquet                  a .jsonl, .json, .csv, .tsv, .parquet or shards
hint prepare SOURCE OUT.parquet              a public set, such as gsm8k; --from PATH reads a copy
hint prepare reasoning_gym:NAME OUT.parquet  problems that this library draws
hint prepare sources                         list the public sets
hint prepare hints IN OUT --model NAME       add columns of hints that a served model writes
hint prepare model SOURCE OUT                make a model folder of a GGUF file

Unusable input: exit code 2, one line on stderr, no output file. docs/data.md has all options.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from recipe.problems.columns import check_target, read_file, read_problems, write_rows
from recipe.problems.prepare import KEYS, SOURCES_FILE, Given, Prepared, listed, read_rows
from recipe.problems.schema import KINDS
from recipe.run.ending import Parser
from recipe.run.errors import DataError
from recipe.run.typed import at_least_1
from recipe.run.whole_file import file_sha256
from recipe.verify.golds import is_placeholder
from recipe.verify.maths.grade import is_text_only

_COMMAND = re.compile(r"\\(?:[a-z]+|.)")
_WORD = re.compile(r"[^\W\d_]+|\d+|[+*/=<>^-]")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a problem: lower case, without LaTeX commands, letters, digits apart."""
    levelled = unicodedata.normalize("NFKC", text).casefold()
    return tuple(_WORD.findall(_COMMAND.sub(" ", levelled)))


def findings(prepared: Prepared) -> list[str]:
    """Return warnings of golds that no response matches, and of problems that come again."""
    found: dict[str, list[str]] = defaultdict(list)
    first: dict[int, str] = {}  # by a hash: a million lists of words are gigabytes
    for row, place in zip(prepared.rows, prepared.places, strict=True):
        gold = row["answer"] if row["reward_model"]["kind"] == "maths" else ""
        if is_placeholder(gold):
            what = "`answer`: no answer but a placeholder, so no response is correct; drop the rows"
            found[what].append(f"{place}: {gold!r}")
        elif gold and is_text_only(gold):
            what = "`answer`: not read as mathematics, so only the same text is right"
            found[what].append(f"{place}: {gold[:60]!r}")
        if (other := first.setdefault(hash(words(row["problem"])), place)) != place:
            found["`problem`: the same words as an earlier row"].append(f"{place} = {other}")
    if prepared.repeated:
        found["`problem`: an earlier row again, with its answer; left out"] += prepared.repeated
    told = [f"{len(at)} rows, column {what} ({listed(at)})" for what, at in found.items()]
    return [*prepared.warnings, *told]


def _parser() -> Parser:
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("input", metavar="IN", help="a file, or the name of a source")
    add("output", type=Path, metavar="OUT.parquet")
    add("--source", default="", help="data_source of the rows (default: IN's name)")
    add("--split", default="", help="default: train; a named source has its own")
    add("--limit", "--size", type=at_least_1, help="take N problems (reasoning_gym: default 1000)")
    add("--seed", type=int, default=0, help="of reasoning_gym:NAME; --config likewise")
    add("--config", nargs="+", default=[], metavar="KEY=VALUE")
    add("--system-prompt", help="text of the system turn, empty for none")
    for name, where in KEYS.items():
        add(f"--{name}-key", dest=name, metavar="COLUMN", default="", help=where)
    add("--kind", choices=KINDS, help="how answers are graded (default: maths)")
    add("--from", dest="copy", type=Path, metavar="PATH", help="file or folder, for a named source")
    add("--revision", default="", help="another commit than the pinned one, for a named source")
    add("--check-overlap", nargs="+", default=[], metavar="BENCH.parquet")
    add("--drop-overlap", action="store_true", help="leave shared problems out")
    return parser


def main(argv: Sequence[str]) -> None:
    if list(argv) == ["sources"]:
        print(SOURCES_FILE.read_text("utf-8"))
        return
    # What the verifier logs of single answers is told in one warning for all.
    logging.getLogger("recipe.verify").setLevel(logging.ERROR)
    given = _parser().parse_args(argv)
    check_target(given.output)
    for path in (given.input, given.copy, *given.check_overlap):
        if path and Path(path).exists() and given.output.exists() and given.output.samefile(path):
            raise DataError(f"{given.output}: is read too ({path}); name another OUT")
    said = Given(**{each.name: getattr(given, each.name) for each in fields(Given)})
    how = {"copy": given.copy, "revision": given.revision, "limit": given.limit}
    prepared = read_rows(given.input, said, **how)
    lines = findings(prepared)
    if said.solution and not any(row["solution"] for row in prepared.rows):
        lines.append(f"column `{said.solution}` has no text in any row, so there is no solution")
    known = {
        words(each.text): f"{path} {each.id}"
        for path in given.check_overlap
        for each in read_problems(path)
    }
    rows, shared = [], []
    for row, place in zip(prepared.rows, prepared.places, strict=True):
        if other := known.get(words(row["problem"])):
            shared.append(f"{place} = {other}")
        if not (other and given.drop_overlap):
            rows.append(row)
    if shared:
        what = "left out" if given.drop_overlap else "--drop-overlap leaves them out"
        lines.append(f"{len(shared)} rows share text with a benchmark; {what} ({listed(shared)})")
    write_rows(rows, given.output)
    warnings = [f"warning: {prepared.path}: {line}" for line in lines]
    print("\n".join([*warnings, read_file(given.output).summary()]))
    print(f"sha256 {file_sha256(given.output)}")
