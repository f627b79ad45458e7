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
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from catalogue import PHASES, SIGNALS, Fault, faults  # noqa: E402
from chain import LONGEST, Chain, straight_run  # noqa: E402

_SIGNALS = {"kill": "SIGKILL", "stop": "SIGSTOP", "term": "SIGTERM", "pause": "SIGSTOP for a while"}


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


def row_of(row: dict) -> str:
    problems = f"; PROBLEM: {'; '.join(row['problems'])}" if row["problems"] else ""
    what = f"{row['followed']} {short(row['said'])}".strip()
    return f"{row['name']}: {what} | {row['after_s']} s | {row['resumed']}{problems}"


def table(rows: list[dict]) -> list[str]:
    """Return a Markdown table; faults that differ in their phase alone share a row."""
    known = {fault.name: fault for fault in faults()}
    groups: dict[tuple[str, ...], list[dict]] = {}
    for row in {row["name"]: row for row in rows}.values():  # the last of each
        fault = known[row["name"]]
        what = short(row["said"]) if row["followed"] == "error" else row["followed"]
        ends = (row["resumed"], *row["problems"])
        groups.setdefault((fault.mode, words(fault), what, *ends), []).append(row)
    lines = [
        "| mode | fault | in | what followed | after, s | in the end |",
        "|---|---|---|---|---|---|",
    ]
    for (mode, fault, what, resumed, *problems), same in sorted(groups.items()):
        phases = [known[row["name"]].phase for row in same]
        after = sorted(round(row["after_s"]) for row in same)
        span = f"{after[0]}" if after[0] == after[-1] else f"{after[0]} - {after[-1]}"
        end = "; ".join([resumed, *(f"**{each}**" for each in problems)])
        where = ", ".join(phase for phase in PHASES if phase in phases)
        lines.append(f"| {mode} | {fault} | {where} | {what} | {span} | {end} |")
    bad = sum(bool(problems) for _, _, _, _, *problems in groups)
    return [*lines, "", f"{sum(map(len, groups.values()))} faults; {bad} rows with a problem."]


def words(fault: Fault) -> str:
    """Say what is done to whom."""
    if fault.act in SIGNALS:
        return f"{_SIGNALS[fault.act]} {fault.target}"
    return f"{fault.act} {fault.target}"


def short(said: str) -> str:
    """Return the beginning of an error, without what differs between two runs."""
    text = said.removeprefix("error: ").partition(" (logs: ")[0]
    text = re.sub(r"/\S*/", "", text)
    text = re.sub(r"The actor died.*?class_name: (?:\S*\.)?(\w+).*", r"the actor \1 died", text)
    text = re.sub(r"(\w+) \(pid \d+\) is gone: .*", r"the actor \1 died", text)
    text = re.sub(r"(within \S+ s)\b.*", r"\1", text)
    return textwrap.shorten(text, 120, placeholder=" ...").replace("|", "/")


if __name__ == "__main__":
    os.environ.pop("RAY_ADDRESS", None)
    main()
