"""Check a machine with one GPU: ``main_gpu_check.py [--device cpu] [--only PART,...]``.

Needs no network. Prints one Markdown block and writes gpu_check.json; the exit code is 1 when a
part failed. Each finished part is saved at once; ``--only`` with the ``--out`` of an
earlier check repeats those parts and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from recipe.hint.adapter.preflight.machine import has_gpu
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError, DataError, HintError
from recipe.run.typed import finite
from recipe.run.whole_file import write_whole
from recipe.study.bench.gpu_check import PARTS, Check, NotHereError

Result = dict[str, Any]


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts one after the other; a part that fails hides no other."""
    given = read_arguments(argv)
    if given.device == "cuda" and not has_gpu():
        raise ConfigError(
            "this machine shows no NVIDIA GPU; --device cpu tries the parts without one"
        )
    folder = given.out.absolute()
    written = folder / "gpu_check.json"
    with errors_in_one_line(advice="; name another --out"):
        folder.mkdir(parents=True, exist_ok=True)
        results = read_results(written)
    check = Check(given.device, folder, time.monotonic() + 60 * given.minutes)
    for name in given.only:
        print(f"{name} ...", end=" ", flush=True)
        shutil.rmtree(folder / name, ignore_errors=True)
        results[name] = run_part(name, check)
        print(results[name]["result"], flush=True)
        write_whole(written, json.dumps(results, indent=1))
    print("\n" + "\n".join(markdown(results, given.device)))
    print(f"\n{written}")
    return int(any(each["result"] == "FAILED" for each in results.values()))


def read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; an unknown part ends the program with a message."""
    parser = Parser(description=str(__doc__).splitlines()[0])
    default = Path(f"outputs/gpu-check-{datetime.now():%Y%m%d-%H%M%S}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {','.join(PARTS)}")
    parser.add_argument("--minutes", type=finite, default=90, help="limit of all parts together")
    parser.add_argument("--out", type=Path, default=default, help="a folder")
    given = parser.parse_args(argv)
    if given.minutes <= 0:
        parser.error(f"--minutes {given.minutes:g}: it must be above 0")
    given.only = given.only.split(",")
    if unknown := sorted(set(given.only) - set(PARTS)):
        parser.error(f"--only: unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    return given


def read_results(path: Path) -> dict[str, Result]:
    """Return what an earlier check wrote, by part; nothing where there was none.

    Raises:
        DataError: If the file is damaged.
    """
    try:
        results = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}") from error
    if not isinstance(results, dict) or not results.keys() <= PARTS.keys():
        raise DataError(f"{path} is not what a check writes")
    return results


def run_part(name: str, check: Check) -> Result:
    """Return ``ok``, ``not here`` or ``FAILED`` with numbers or the reason, and the seconds."""
    began = time.monotonic()
    try:
        result: Result = {"result": "ok", "numbers": PARTS[name](check)}
    except NotHereError as error:
        result = {"result": "not here", "reason": str(error)}
    except (HintError, OSError, LookupError, ValueError, RuntimeError, ImportError) as error:
        result = {"result": "FAILED", "reason": f"{type(error).__name__}: {error}"}
    return result | {"seconds": round(time.monotonic() - began)}


def markdown(results: dict[str, Result], device: str) -> list[str]:
    """Return the table, a row per part."""
    stand_in = ", the CPU in a GPU's place" if device == "cpu" else ""
    lines = [f"### GPU check, {datetime.now():%Y-%m-%d}{stand_in}", ""]
    lines += ["| part | result | seconds | numbers |", "|---|---|---|---|"]
    for name in sorted(results, key=list(PARTS).index):
        each = results[name]
        numbers = each.get("numbers", {})
        shown = "; ".join(f"{key} {_shown(value)}" for key, value in numbers.items())
        note = (shown or each["reason"]).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {name} | {each['result']} | {each['seconds']} | {note} |")
    return lines


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
