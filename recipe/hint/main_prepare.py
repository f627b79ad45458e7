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
from collections.abc import Callable, Sequence
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
from recipe.study import offline_hints
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
    parser = Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("input", metavar="IN", help="a file, or the name of a source")
    parser.add_argument("output", type=Path, metavar="OUT.parquet")
    parser.add_argument(
        "--source", type=text, help="data_source of the rows (default: the input's name)"
    )
    parser.add_argument("--split", type=text, help="default: train; a named source has its own")
    parser.add_argument("--limit", type=int, help="take the first N problems")
    parser.add_argument(
        "--system-prompt",
        type=text,
        help="text of the system turn, empty for none (default: the kind's)",
    )
    named = parser.add_argument_group("named sources")
    named.add_argument("--from", dest="given", type=Path, metavar="PATH", help="file or folder")
    named.add_argument("--revision", default="", help="another commit than the pinned one")
    columns = parser.add_argument_group("a file of your own")
    for name in _HELP:
        columns.add_argument(f"--{name}-key", metavar="COLUMN", help=_HELP[name])
    columns.add_argument("--kind", choices=KINDS, help="how answers are graded (default: maths)")
    group = parser.add_argument_group("checks")
    group.add_argument("--tokenizer", help="model folder or name, for --max-prompt-tokens")
    group.add_argument("--max-prompt-tokens", type=int, metavar="N")
    group.add_argument("--check-overlap", nargs="+", default=[], metavar="BENCH.parquet")
    group.add_argument(
        "--overlap-words", type=int, default=checks.NGRAM_WORDS, help="words in a run"
    )
    group.add_argument(
        "--overlap-share", type=finite, default=checks.MIN_SHARE, help="shared part of runs"
    )
    group.add_argument("--drop-overlap", action="store_true", help="leave shared problems out")
    group.add_argument("--strict", action="store_true", help="refuse on any warning")
    return parser


def _check_arguments(given: argparse.Namespace, source: Source | None) -> None:
    for name in ("limit", "max_prompt_tokens", "overlap_words"):
        value = getattr(given, name)
        if value is not None and value < 1:
            raise DataError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if not 0 < given.overlap_share <= 1:
        raise DataError(f"--overlap-share must be above 0 and at most 1, got {given.overlap_share}")
    if bool(given.tokenizer) != bool(given.max_prompt_tokens):
        raise DataError("--tokenizer and --max-prompt-tokens are given together or not at all")
    if given.drop_overlap and not given.check_overlap:
        raise DataError("--drop-overlap needs --check-overlap BENCH.parquet")
    own = [f"--{name}-key" for name in _named_columns(given)] + ["--kind"] * bool(given.kind)
    if source is not None and own:
        raise DataError(
            f"{own[0]} belongs to a file of your own, and {source.name} is a source; drop it"
        )
    if given.options_key is not None and given.kind != "choice":
        got = f"--kind {given.kind}" if given.kind else "no --kind"
        raise DataError(f"--options-key needs --kind choice, got {got}")
    _check_columns(given)
    _check_output(given)


def _check_columns(given: argparse.Namespace) -> None:
    """Refuse one column for two things; a solution may be what the answer is taken from."""
    used: dict[str, str] = {}
    for name in ("problem", "answer", "id", "options"):
        column = getattr(given, f"{name}_key")
        other = used.setdefault(column, name) if column else name
        if other != name:
            raise DataError(
                f"--{other}-key and --{name}-key are both column {column!r}; give each its own"
            )


def _check_output(given: argparse.Namespace) -> None:
    check_target(given.output)
    for name, path in (
        ("IN", given.input),
        ("--from", given.given),
        *(("--check-overlap", each) for each in given.check_overlap),
    ):
        if path and given.output.exists() and Path(path).exists():
            if given.output.samefile(path):
                raise DataError(f"{given.output}: the same file as {name}; name another OUT")


def _named_columns(given: argparse.Namespace) -> dict[str, str]:
    """Return the columns that the command names, by what they hold."""
    columns = {name: getattr(given, f"{name}_key") for name in _HELP}
    return {name: column for name, column in columns.items() if column is not None}


def _read(given: argparse.Namespace, source: Source | None) -> Prepared:
    if source is not None:
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
        raise DataError(
            f"--from and --revision belong to a named source, and {path} is a file; drop them"
        )
    columns = _named_columns(given)
    keys = Keys(**columns, kind=given.kind)
    origin = Origin(given.source or "", given.split or "", given.system_prompt)
    needs = {f"--{name}-key": column for name, column in columns.items()}
    return read_local(path, keys=keys, origin=origin, needs=needs, limit=given.limit)


def _check(
    given: argparse.Namespace, prepared: Prepared, source: Source | None
) -> tuple[Prepared, list[str]]:
    """Return the rows to write, and lines about them.

    With ``--strict`` every warning is an error, but for shared text whose rows are dropped.
    """
    tokenizer = checks.load_tokenizer(given.tokenizer) if given.tokenizer else None
    shared = checks.overlaps(
        prepared, given.check_overlap, size=given.overlap_words, min_share=given.overlap_share
    )
    findings = [
        *checks.row_findings(prepared),
        *checks.repeated_problems(prepared),
    ]
    with VerifierPool() as pool:
        findings += checks.unreadable_answers(prepared, pool)
    if tokenizer:
        findings += checks.long_prompts(prepared, tokenizer, given.max_prompt_tokens)
    lines = [each.line(prepared.path) for each in findings]
    lines += filter(None, [check_programs(prepared)])
    rows = [row for row in prepared.rows if row["reward_model"]["kind"] != "program"]
    if warning := unasked_warning([row["prompt"] for row in rows]):
        lines.append(f"warning: {prepared.path}: {warning}")
    if source is not None and given.limit is None and not given.revision:
        split = given.split or source.default_split
        found, expected = len(prepared.rows), source.split(split).num_rows
        if expected not in (0, found):
            counts = f"{found} rows, {source.name} {split} has {expected}"
            lines.append(f"warning: {prepared.path}: {counts}")
    overlaps = [each.line(prepared.path, is_listed=True) for each in shared]
    left = lines if given.drop_overlap else [*lines, *overlaps]
    refused = [line for line in left if line.startswith("warning: ")]
    lines += overlaps
    if prepared.found:
        where = (f"{what} in {listed(count)}" for what, count in prepared.found.items())
        lines.append(f"note: {prepared.path}: {'; '.join(where)}")
    if prepared.replaced:
        names = ", ".join(f"`{name}`" for name in prepared.replaced)
        lines.append(f"note: {prepared.path}: its own {names} are rewritten (docs/data.md)")
    dropped = {row for each in shared for row in each.rows} if given.drop_overlap else set()
    if dropped:
        lines.append(f"note: {prepared.path}: {len(dropped)} rows with shared text are left out")
    if given.strict and refused:
        more = f" (and {len(refused) - 1} more warnings)" if refused[1:] else ""
        raise DataError(f"--strict: {refused[0].removeprefix('warning: ')}{more}")
    kept = [number for number in range(len(prepared.rows)) if number not in dropped]
    if not kept:
        raise DataError(
            f"{prepared.path}: --drop-overlap leaves no problem: all {len(dropped)} share text with"
            f" {', '.join(given.check_overlap)}; take benchmarks out, or raise --overlap-share"
        )
    return prepared.only(kept), lines


def _sources(argv: Sequence[str]) -> None:
    """Return the table of named sources."""
    Parser(
        prog=f"{Path(sys.argv[0]).name} sources", description="Lists the named sources."
    ).parse_args(argv)
    lines = []
    for source in SOURCES.values():
        counts = (f"{name} {split.num_rows or '?'}" for name, split in source.splits.items())
        pin = source.revision or "none on record: needs --revision"
        lines += [
            source.name,
            f"    {source.home}",
            f"    commit {pin}",
            f"    rows {', '.join(counts)}; licence {source.licence}; {source.paper}",
        ]
    print("\n".join(lines))


_COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "hints": offline_hints.main,
    "sources": _sources,
}


@errors_in_one_line(hears_sigterm=True)
def main(argv: Sequence[str] | None = None) -> None:
    """Read, check, write, and check what was written."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in _COMMANDS:
        _COMMANDS[argv[0]](argv[1:])
        return
    # What the verifier logs of single answers is told in one warning for all.
    logging.getLogger("recipe.verify").setLevel(logging.ERROR)
    given = _parser().parse_args(argv)
    source = find_source(given.input)
    try:
        _check_arguments(given, source)
        prepared = _read(given, source)
        prepared, lines = _check(given, prepared, source)
        write_rows(prepared.rows, given.output)
        print("\n".join([*lines, read_file(given.output).summary()]))
        print(f"sha256 {hashlib.sha256(given.output.read_bytes()).hexdigest()}")
    except OSError as error:
        raise DataError(f"{given.output}: cannot be written: {error.strerror or error}") from error


if __name__ == "__main__":
    main()
