"""Turn a file or a named public data set into a training or benchmark file.

main_prepare.py IN OUT.parquet         IN is a .jsonl, .json, .csv, .tsv or .parquet file, or a
                                       folder of parquet shards; its other columns are kept
main_prepare.py SOURCE OUT.parquet     SOURCE is a name, such as gsm8k; --from PATH reads a copy
main_prepare.py sources                lists the names
main_prepare.py hints IN OUT --model M  writes hints of a served model into columns

Ends with exit code 2, one line on stderr and no output file when the input is not usable.
docs/data.md describes the file that is written, the checks and every option.
"""

from __future__ import annotations

import argparse
import difflib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from recipe.problems.checks import check_programs, row_findings, shared_pairs
from recipe.problems.columns import check_target, read_file, read_problems, write_rows
from recipe.problems.prepare import KEYS, Given, Prepared, read_local
from recipe.problems.schema import KINDS
from recipe.problems.sources import SOURCES, read_source
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.whole_file import file_sha256


def _parser() -> Parser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=raw, allow_abbrev=False)
    add = parser.add_argument
    add("input", metavar="IN", help="a file, or the name of a source")
    add("output", type=Path, metavar="OUT.parquet")
    add("--source", default="", help="data_source of the rows (default: IN's name)")
    add("--split", default="", help="default: train; a named source has its own")
    add("--limit", type=int, help="take the first N problems")
    add("--system-prompt", help="text of the system turn, empty for none")
    add = parser.add_argument_group("named sources").add_argument
    add("--from", dest="copy", type=Path, metavar="PATH", help="file or folder")
    add("--revision", default="", help="another commit than the pinned one")
    add = parser.add_argument_group("a file of your own").add_argument
    for name, where in KEYS.items():
        add(f"--{name}-key", dest=name, metavar="COLUMN", default="", help=where)
    add("--kind", choices=KINDS, help="how answers are graded (default: maths)")
    add = parser.add_argument_group("checks").add_argument
    add("--check-overlap", nargs="+", default=[], metavar="BENCH.parquet")
    add("--drop-overlap", action="store_true", help="leave shared problems out")
    return parser


def _check_arguments(given: argparse.Namespace) -> None:
    if given.limit is not None and given.limit < 1:
        raise DataError(f"--limit must be at least 1, got {given.limit}")
    if given.drop_overlap and not given.check_overlap:
        raise DataError("--drop-overlap needs --check-overlap BENCH.parquet")
    if given.options and given.kind != "choice":
        raise DataError("--options-key needs --kind choice")
    check_target(given.output)
    for path in (given.input, given.copy, *given.check_overlap):
        if path and Path(path).exists() and given.output.exists() and given.output.samefile(path):
            raise DataError(f"{given.output}: is read too ({path}); name another OUT")


def _read(given: argparse.Namespace) -> Prepared:
    keys = {name: getattr(given, name) for name in KEYS}
    of_rows = {name: getattr(given, name) for name in ("source", "split", "system_prompt")}
    if source := SOURCES.get(given.input):
        if given.kind or any(keys.values()):
            raise DataError(f"{source.name} is a source: --kind and --...-key are not for it")
        how = {"copy": given.copy, "revision": given.revision, "limit": given.limit}
        return read_source(source, Given(**of_rows), **how)
    path = Path(given.input)
    if not path.suffix and not path.is_dir():
        near = difflib.get_close_matches(given.input.lower(), SOURCES, 1)
        raise DataError(
            f"{path}: neither a source nor a file name with an ending"
            f"{f'; did you mean {near[0]}?' if near else ''}; `main_prepare.py sources` lists the"
            " sources"
        )
    if given.copy or given.revision:
        raise DataError(f"--from and --revision belong to a named source, and {path} is a file")
    return read_local(path, Given(**keys, kind=given.kind, **of_rows), given.limit)


def _write(given: argparse.Namespace) -> None:
    """Read, check and write, and check what was written."""
    prepared = _read(given)
    lines = [*row_findings(prepared), *check_programs(prepared)]
    texts, shared = [row["problem"] for row in prepared.rows], set()
    for path in given.check_overlap:
        known = read_problems(path)
        pairs = shared_pairs(texts, [each.text for each in known])
        shared |= {number for number, *_ in pairs}
        told = [f"{prepared.places[n]} = {known[m].id} ({share:.0%})" for n, m, share in pairs]
        if told:
            where = f"warning: {prepared.path}: {len(told)} rows, column `problem`"
            lines.append(f"{where}: text shared with {path} ({', '.join(told)})")
    rows = list(prepared.rows)
    if given.drop_overlap:
        rows = [row for number, row in enumerate(rows) if number not in shared]
        lines.append(f"note: {prepared.path}: {len(shared)} rows with shared text are left out")
    write_rows(rows, given.output)
    print("\n".join([*lines, read_file(given.output).summary()]))
    print(f"sha256 {file_sha256(given.output)}")


@errors_in_one_line()
def main(
    argv: Sequence[str] | None = None,
    *,
    commands: Mapping[str, Callable[[Sequence[str]], None]],
) -> None:
    """Read, check, write, and check what was written.

    Args:
        argv: The command line's words.
        commands: Further commands by their first word; they get the words behind it.
    """
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in commands:
        commands[argv[0]](argv[1:])
        return
    if list(argv) == ["sources"]:
        print("\n".join(source.told() for source in SOURCES.values()))
        return
    # What the verifier logs of single answers is told in one warning for all.
    logging.getLogger("recipe.verify").setLevel(logging.ERROR)
    given = _parser().parse_args(argv)
    _check_arguments(given)
    _write(given)
