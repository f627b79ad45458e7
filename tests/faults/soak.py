"""Kill a long run again and again, and compare its end with that of a run left alone.

    python tests/faults/soak.py OUT [--steps 60] [--every 90] [--seed 1] [--lock FILE]

One process of a random kind is killed after a random time, `--every` seconds in the mean; the same
command then goes on, until the last step is made. The run left alone is made first, once.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from pathlib import Path

from campaign import locked
from catalogue import PROCESSES
from chain import left, said, start
from outcome import last_checkpoint
from processes import Observer, end, send

KILLED = [kind for kind in PROCESSES if kind != "verifier"]  # which is not there all the time
STALL_S = 600  # without a process to kill or an end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=float, default=90.0, help="mean seconds between kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lock", type=Path, help="hold the lock of this file during each start")
    args = parser.parse_args()
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    settings = (
        "trainer.save_freq=5",
        "trainer.max_actor_ckpt_to_keep=3",
        f"trainer.test_freq={args.steps}",
        "data.train_max_samples=-1",
        "data.val_max_samples=100",
    )
    draw = random.Random(args.seed)
    ends = {}
    for name, every_s in (("alone", None), ("killed", args.every)):
        folder, kills = out / name, 0
        while last_checkpoint(folder) < args.steps:
            with locked(args.lock):
                kind = draw.choice(KILLED)
                after_s = None if every_s is None else draw.expovariate(1 / every_s)
                code = one_start(folder, settings, args.steps, kind, after_s)
            kills += code != 0
            last = last_checkpoint(folder)
            print(f"{name}: step {last}, ended with {code} ({kind}: {said(folder)})", flush=True)
            if every_s is None and code:
                raise SystemExit("the run left alone failed")
        ends[name] = summary(folder)
        print(f"{name}: {kills} starts that did not reach the end")
    for name, numbers in ends.items():
        print(f"{name}: {json.dumps(numbers)}")
    raise SystemExit(ends["alone"] != ends["killed"])


def one_start(
    folder: Path, settings: tuple[str, ...], steps: int, kind: str, after_s: float | None
) -> int:
    """Run until the end or until a process of the kind has been killed, and what follows that."""
    process = start(folder, "sync", more=settings, steps=steps)
    observer = Observer(process, folder)
    try:
        if after_s is not None:
            try:
                process.wait(timeout=after_s)
            except subprocess.TimeoutExpired:
                kill_one(observer, kind)
        began = time.monotonic()
        while process.poll() is None and (after_s is None or time.monotonic() - began < STALL_S):
            time.sleep(0.5)
        return process.returncode if process.poll() is not None else -1
    finally:
        observer.close()
        end(left(observer, folder), process)


def kill_one(observer: Observer, kind: str) -> None:
    """Kill a process of the kind as soon as there is one, or the command has ended."""
    while observer.command.poll() is None:
        if victims := observer.of_kind(kind):
            send("kill", victims[0])
            return
        time.sleep(0.5)


def summary(folder: Path) -> dict[str, float]:
    """Return the accuracies of the last validation, and how many records there are."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    [*_, last] = [row for row in rows if any("/acc/mean@" in name for name in row)]
    found = {name: value for name, value in last.items() if "/acc/mean@" in name}
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    places = {(record["step"], record["problem_id"]) for record in records}
    return found | {"records": len(records), "different": len(places)}


if __name__ == "__main__":
    main()
