"""Turn a file or a named public data set into a training or benchmark file.

main_prepare.py IN OUT.parquet         IN is a .jsonl, .json, .csv, .tsv (or one of them with .gz)
                                       or .parquet file, or a folder of them or of save_to_disk;
                                       its other columns are kept
main_prepare.py SOURCE OUT.parquet     SOURCE is a name, such as gsm8k; --from PATH reads a copy
main_prepare.py sources                lists the names
main_prepare.py hints IN OUT --model M  writes hints of a served model into columns

Ends with exit code 2, one line on stderr and no output file when the input is not usable.
docs/data.md describes the file that is written, the checks and every option.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recipe.problems import checks
from recipe.problems.columns import check_target, listed, read_file, write_rows
from recipe.problems.prepare import Keys, Origin, Prepared, read_local
from recipe.problems.programs import check_programs
from recipe.problems.schema import KINDS, PROBLEM, SOLUTION, TRUTH
from recipe.problems.sources import SOURCES, Source, find_source, read_source
from recipe.run.arguments import Parser, text
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.typed import finite
from recipe.verify.answer import unasked_warning
from recipe.verify.pool.workers import VerifierPool

# Where each is looked for, if the command does not say.
_HELP = {
    "problem": f"default: {', '.join(PROBLEM)}, else the last user turn",
    "answer": f"default: {', '.join(TRUTH)}; a dot names a nested field",
    "solution": f"default: {', '.join(SOLUTION)}",
    "id": "default: extra_info.index, id",
    "options": "list of a choice's options",
}


def _parser() -> Parser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=raw, allow_abbrev=False)
    add = parser.add_argument
    add("input", metavar="IN", help="a file, or the name of a source")
    add("output", type=Path, metavar="OUT.parquet")
    add("--source", type=text, help="data_source of the rows (default: the input's name)")
    add("--split", type=text, help="default: train; a named source has its own")
    add("--limit", type=int, help="take the first N problems")
    add("--system-prompt", type=text, help="text of the system turn, empty for none")
    add = parser.add_argument_group("named sources").add_argument
    add("--from", dest="given", type=Path, metavar="PATH", help="file or folder")
    add("--revision", default="", help="another commit than the pinned one")
    add = parser.add_argument_group("a file of your own").add_argument
    for name, where in _HELP.items():
        add(f"--{name}-key", metavar="COLUMN", default="", help=where)
    add("--kind", choices=KINDS, help="how answers are graded (default: maths)")
    add = parser.add_argument_group("checks").add_argument
    add("--check-overlap", nargs="+", default=[], metavar="BENCH.parquet")
    add("--overlap-words", type=int, default=checks.NGRAM_WORDS, help="words in a run")
    add("--overlap-share", type=finite, default=checks.MIN_SHARE, help="shared part of runs")
    add("--drop-overlap", action="store_true", help="leave shared problems out")
    add("--strict", action="store_true", help="refuse on any warning")
    return parser


def _check_arguments(given: argparse.Namespace) -> None:
    for name in ("limit", "overlap_words"):
        value = getattr(given, name)
        if value is not None and value < 1:
            raise DataError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if not 0 < given.overlap_share <= 1:
        raise DataError(f"--overlap-share must be above 0 and at most 1, got {given.overlap_share}")
    if given.drop_overlap and not given.check_overlap:
        raise DataError("--drop-overlap needs --check-overlap BENCH.parquet")
    if given.options_key and given.kind != "choice":
        raise DataError("--options-key needs --kind choice")
    check_target(given.output)
    for path in (given.input, given.given, *given.check_overlap):
        is_there = path and given.output.exists() and Path(path).exists()
        if is_there and given.output.samefile(path):
            raise DataError(f"{given.output}: is read too ({path}); name another OUT")


def _read(given: argparse.Namespace, source: Source | None) -> Prepared:
    columns = {name: getattr(given, f"{name}_key") for name in _HELP}
    if source is not None:
        if given.kind or any(columns.values()):
            raise DataError(f"{source.name} is a source: --kind and --...-key are not for it")
        split = given.split or source.default_split
        origin = Origin(given.source or source.name, split, given.system_prompt)
        return read_source(
            source, origin, given=given.given, revision=given.revision, limit=given.limit
        )
    path = Path(given.input)
    if not path.suffix and not path.is_dir():
        near = difflib.get_close_matches(given.input.lower(), SOURCES, 1)
        raise DataError(
            f"{path}: neither a source nor a file name with an ending"
            f"{f'; did you mean {near[0]}?' if near else ''}; `main_prepare.py sources` lists the"
            " sources"
        )
    if given.given or given.revision:
        raise DataError(f"--from and --revision belong to a named source, and {path} is a file")
    origin = Origin(given.source or "", given.split or "", given.system_prompt)
    return read_local(path, keys=Keys(**columns, kind=given.kind), origin=origin, limit=given.limit)


def _check(
    given: argparse.Namespace, prepared: Prepared, source: Source | None
) -> tuple[Prepared, list[str]]:
    """Return the rows to write, and lines about them.

    With ``--strict`` every warning is an error, but for shared text whose rows are dropped.
    """
    path = prepared.path
    shared = checks.overlaps(
        prepared, given.check_overlap, given.overlap_words, given.overlap_share
    )
    with VerifierPool() as pool:
        findings = checks.row_findings(prepared, pool)
    lines = [each.line(path) for each in findings]
    lines += filter(None, [check_programs(prepared)])
    rows = [row for row in prepared.rows if row["reward_model"]["kind"] != "program"]
    if warning := unasked_warning([row["prompt"] for row in rows]):
        lines.append(f"warning: {path}: {warning}")
    if source is not None and given.limit is None and not given.revision:
        split = given.split or source.default_split
        found, expected = len(prepared.rows), source.split(split).num_rows
        if expected not in (0, found):
            lines.append(f"warning: {path}: {found} rows, {source.name} {split} has {expected}")
    overlaps = [each.line(path, is_listed=True) for each in shared]
    refused = lines if given.drop_overlap else [*lines, *overlaps]
    refused = [line for line in refused if line.startswith("warning: ")]
    if given.strict and refused:
        more = f" (and {len(refused) - 1} more warnings)" if refused[1:] else ""
        raise DataError(f"--strict: {refused[0].removeprefix('warning: ')}{more}")
    lines += overlaps
    if prepared.found:
        where = (f"{what} in {listed(count)}" for what, count in prepared.found.items())
        lines.append(f"note: {path}: {'; '.join(where)}")
    if prepared.replaced:
        names = ", ".join(f"`{name}`" for name in prepared.replaced)
        lines.append(f"note: {path}: its own {names} are rewritten (docs/data.md)")
    dropped = {row for each in shared for row in each.rows} if given.drop_overlap else set()
    if dropped:
        lines.append(f"note: {path}: {len(dropped)} rows with shared text are left out")
    kept = tuple(row for number, row in enumerate(prepared.rows) if number not in dropped)
    if not kept:
        raise DataError(f"{path}: --drop-overlap leaves no problem; raise --overlap-share")
    return replace(prepared, rows=kept), lines


def _sources() -> None:
    """Print the table of named sources."""
    for source in SOURCES.values():
        counts = (f"{name} {split.num_rows or '?'}" for name, split in source.splits.items())
        pin = source.revision or "none on record: needs --revision"
        print(f"{source.name}\n    {source.home}\n    commit {pin}")
        print(f"    rows {', '.join(counts)}; licence {source.licence}; {source.paper}")


@errors_in_one_line(hears_sigterm=True)
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
        _sources()
        return
    # What the verifier logs of single answers is told in one warning for all.
    logging.getLogger("recipe.verify").setLevel(logging.ERROR)
    given = _parser().parse_args(argv)
    source = find_source(given.input)
    try:
        _check_arguments(given)
        prepared, lines = _check(given, _read(given, source), source)
        write_rows(prepared.rows, given.output)
        print("\n".join([*lines, read_file(given.output).summary()]))
        print(f"sha256 {hashlib.sha256(given.output.read_bytes()).hexdigest()}")
    except OSError as error:
        raise DataError(f"{given.output}: cannot be written: {error.strerror or error}") from error
