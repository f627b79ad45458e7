"""Do things to runs that a long training meets, one by one, and write down what follows.

    python tests/faults/campaign.py OUT [--only REGEX] [--limit N] [--jobs N] [--lock FILE]

Results go to OUT/results.jsonl; a fault that is in it is not done again. A fault passes when the
run goes on, or ends with one line on stderr within its limit and leaves no process; and when the
same command then goes on with nothing lost or doubled. Faults that need the same preparation are
done to one training, one after the other. In mode `sync` each of its steps is compared with that
of a run that nothing happened to.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from catalogue import Fault, faults  # noqa: E402
from chain import LONGEST, Chain, straight_run  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="faults whose name matches this expression")
    parser.add_argument("--limit", type=int, default=10**6, help="at most so many faults now")
    parser.add_argument("--chain", type=int, default=LONGEST, help="at most so many in a training")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at the same time")
    parser.add_argument("--lock", type=Path, help="hold the lock of this file during each training")
    parser.add_argument("--table", action="store_true", help="print what is known, and end")
    args = parser.parse_args()
    args.out = args.out.absolute()
    results = args.out / "results.jsonl"
    if args.table:
        print("\n".join(table(read(results))))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    done = {row["name"] for row in read(results) if row["followed"] != "not hit"}
    wanted = [fault for fault in faults() if re.search(args.only, fault.name)]
    todo = [fault for fault in wanted if fault.name not in done][: args.limit]
    if any(fault.is_sync for fault in todo):
        with locked(args.lock):
            straight_run(args.out, "sync")

    def run(chain: list[Fault]) -> None:
        with locked(args.lock):
            found = [dataclasses.asdict(result) for result in Chain(chain, args.out).run()]
        with results.open("a") as file:
            file.write("".join(json.dumps(row) + "\n" for row in found))
        print("\n".join(map(row_of, found)), flush=True)

    with ThreadPoolExecutor(args.jobs) as threads:
        list(threads.map(run, chains(todo, min(args.chain, LONGEST))))


def chains(todo: list[Fault], longest: int) -> Iterator[list[Fault]]:
    """Yield faults that can be done to one training, in their order."""
    groups: dict[str, list[Fault]] = {}
    for fault in todo:
        groups.setdefault(f"{fault.mode} {fault.preparation}", []).append(fault)
    for group in groups.values():
        for first in range(0, len(group), longest):
            yield group[first : first + longest]


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@contextlib.contextmanager
def locked(path: Path | None) -> Iterator[None]:
    if path is None:
        yield
        return
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def table(rows: list[dict]) -> list[str]:
    rows = list({row["name"]: row for row in rows}.values())  # the last of each
    head = ["| fault | what followed | after | in the end |", "|---|---|---|---|"]
    return [*head, *(row_of(row) for row in rows)]


def row_of(row: dict) -> str:
    what = f"{row['followed']}: {row['said'].removeprefix('error: ')[:160]}".rstrip(": ")
    problems = f"; **{'; '.join(row['problems'])}**" if row["problems"] else ""
    return f"| {row['name']} | {what} | {row['after_s']} s | {row['resumed']}{problems} |"


if __name__ == "__main__":
    os.environ.pop("RAY_ADDRESS", None)
    main()
