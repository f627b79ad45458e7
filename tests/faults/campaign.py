"""Do things to runs that a long training meets, one by one, and write down what follows.

    python tests/faults/campaign.py OUT [--only REGEX] [--limit N] [--jobs N] [--lock FILE]

Results go to OUT/results.jsonl; a fault that is in it is not done again. A fault passes when the
run goes on to its end, or ends with one line on stderr within its limit and leaves no process;
and when the same command then brings it to its end with nothing lost or doubled. In mode `sync`
the result is compared with that of a run that nothing happened to.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "smoke")]

from acts import act, prepared  # noqa: E402
from catalogue import MODES, Fault, faults  # noqa: E402
from outcome import STEPS, differences, losses  # noqa: E402
from processes import NotHit, Observer, end, title  # noqa: E402
from runs import AS_ON_A_GPU, SMALL, command, environment, processes_of  # noqa: E402

_WAITS = ("queue", "answer", "rollout", "progress", "sync", "save")
SETTINGS = (
    "trainer.method=sage",
    f"trainer.total_training_steps={STEPS}",
    "trainer.save_freq=1",
    "trainer.max_actor_ckpt_to_keep=3",
    "trainer.val_before_train=true",
    "data.val_max_samples=8",
    "data.train_max_samples=16",
    "hint.samples.second_judge_share=0",
    "hint.watchdog.start_s=150",
    *(f"hint.watchdog.{name}_s=30" for name in _WAITS),
    "hint.watchdog.update_s=60",
)
RUN_S = 420  # for a run that nothing happens to, on a busy machine
END_S = 150  # from a fault to the end: the longest limit that can apply, and the end itself
LEFT_S = 30  # after the command has ended, until no process of it is left


@dataclasses.dataclass
class Result:
    """What followed a fault; ``problems`` is empty when that is as promised."""

    name: str
    followed: str = ""  # error | went on | hung | killed | not hit
    code: int | None = None
    said: str = ""
    after_s: float = 0.0  # from the fault to the end of the command
    left: list[str] = dataclasses.field(default_factory=list)
    resumed: str = ""  # "", bit-identical, same but for ..., failed: ...
    problems: list[str] = dataclasses.field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="faults whose name matches this expression")
    parser.add_argument("--limit", type=int, default=10**6, help="at most so many faults now")
    parser.add_argument("--jobs", type=int, default=1, help="faults at the same time")
    parser.add_argument("--lock", type=Path, help="hold the lock of this file during each fault")
    parser.add_argument("--table", action="store_true", help="print what is known, and end")
    args = parser.parse_args()
    args.out = args.out.absolute()
    results = args.out / "results.jsonl"
    if args.table:
        print("\n".join(table(read(results))))
        return
    args.out.mkdir(parents=True, exist_ok=True)
    done = {row["name"] for row in read(results)}
    wanted = [fault for fault in faults() if re.search(args.only, fault.name)]
    todo = [fault for fault in wanted if fault.name not in done][: args.limit]
    for mode in dict.fromkeys(map(straight_mode, todo)):
        if not is_whole(args.out / f"straight-{mode}"):
            with locked(args.lock):
                straight_run(args.out, mode)
    for first in range(0, len(todo), args.jobs):
        some = todo[first : first + args.jobs]
        with locked(args.lock), ThreadPoolExecutor(args.jobs) as threads:
            found = list(threads.map(lambda fault: inflict(fault, args.out), some))
        with results.open("a") as file:
            file.writelines(json.dumps(dataclasses.asdict(result)) + "\n" for result in found)
        print("\n".join(row_of(dataclasses.asdict(result)) for result in found), flush=True)


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


def straight_run(out: Path, mode: str) -> Path:
    """Return the folder of a run that nothing happened to, made once for each mode."""
    folder = out / f"straight-{mode}"
    if not is_whole(folder):
        shutil.rmtree(folder, ignore_errors=True)
        process = start(folder, Fault("", "", "", mode), [])
        process.wait(timeout=RUN_S)
        if process.returncode:
            raise SystemExit(f"the run without a fault failed: {said(folder)}")
    return folder


def straight_mode(fault: Fault) -> str:
    return "sync" if fault.is_sync else fault.mode


def is_whole(folder: Path) -> bool:
    return (folder / f"checkpoints/global_step_{STEPS}/COMPLETE").exists()


def start(folder: Path, fault: Fault, more: list[str], env: dict | None = None) -> subprocess.Popen:
    """Start a run in the background; its output goes to files beside its folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    words = command(folder, *SETTINGS, *MODES[fault.mode], *more, preset=SMALL)
    with (
        folder.with_suffix(".out").open("w") as stdout,
        folder.with_suffix(".err").open("w") as stderr,
    ):
        return subprocess.Popen(
            words,
            stdout=stdout,
            stderr=stderr,
            env=environment(
                folder, (env or {}) | (AS_ON_A_GPU if fault.mode == "unforked" else {})
            ),
            start_new_session=True,
        )


def said(folder: Path) -> str:
    """Return the last line on stderr that tells of an error, or the last one."""
    text = folder.with_suffix(".err").read_text(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]


def inflict(fault: Fault, out: Path) -> Result:
    result = Result(fault.name)
    straight = straight_run(out, straight_mode(fault))
    folder = out / "runs" / fault.name
    shutil.rmtree(folder, ignore_errors=True)
    with prepared(fault, folder, straight) as (more, env):
        one_run(fault, folder, more, env, result)
    if result.followed in ("error", "killed", "hung"):
        if fault.act != "damage":
            resume(fault, folder, straight, result, more)
    elif result.followed == "went on":
        compare(fault, folder, straight, result)
    if not result.problems:
        shutil.rmtree(folder, ignore_errors=True)
    return result


def one_run(fault: Fault, folder: Path, more: list[str], env: dict, result: Result) -> None:
    """Start a run, do it to it, wait for what follows."""
    process = start(folder, fault, more, env)
    observer = Observer(process, folder)
    began = time.monotonic()
    limit_s = RUN_S
    try:
        if fault.phase:
            observer.await_phase(fault.phase, fault.target_kind, RUN_S)
            began = time.monotonic()
            act(fault, observer, folder, result.problems)
            limit_s = END_S
        await_end(process, folder, limit_s)
    except NotHit:
        result.followed = "not hit"
        result.problems.append(f"the moment did not come: {said(folder)}")
    except subprocess.TimeoutExpired:
        result.followed = "hung"
        result.problems.append(f"no end within {limit_s} s")
    else:
        result.code = process.returncode
        result.said = said(folder) if result.code else ""
        result.followed = judge_end(fault, result)
    result.after_s = round(time.monotonic() - began, 1)
    deadline = time.monotonic() + (LEFT_S if process.poll() is not None else 0)
    while left(observer, folder) and time.monotonic() < deadline:
        time.sleep(0.5)
    result.left = sorted({title(each)[:60] for each in left(observer, folder)})
    if result.left and result.followed != "hung":
        result.problems.append(f"{len(result.left)} kinds of processes are left")
    observer.close()
    end(left(observer, folder), process)


def await_end(process: subprocess.Popen, folder: Path, limit_s: float) -> None:
    """Wait while the run makes progress: it may go on, and then takes as long as it takes."""
    deadline = time.monotonic() + limit_s
    metrics, size = folder / "metrics.jsonl", 0
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired("run", limit_s)
        now = metrics.stat().st_size if metrics.exists() else 0
        if now != size:
            size, deadline = now, time.monotonic() + limit_s
        time.sleep(0.1)


def judge_end(fault: Fault, result: Result) -> str:
    if result.code == 0:
        return "went on"
    if result.code < 0 or fault.target == "command":
        if fault.target != "command":
            result.problems.append(f"the command died of signal {-result.code}")
        return "killed"
    if not result.said.startswith("error: "):
        result.problems.append("no line that says why")
    return "error"


def left(observer: Observer, folder: Path) -> list:
    found = {each.pid: each for each in [*observer.alive(), *processes_of(folder)]}
    return list(found.values())


def resume(fault: Fault, folder: Path, straight: Path, result: Result, more: list[str]) -> None:
    """Give the same command again: it must come to the end that a straight run has."""
    process = start(folder, fault, more)
    observer = Observer(process, folder)
    try:
        await_end(process, folder, RUN_S / 2)
    except subprocess.TimeoutExpired:
        result.resumed = "hung"
    else:
        if process.returncode:
            result.resumed = f"failed: {said(folder)}"
    observer.close()
    end(left(observer, folder), process)
    if result.resumed:
        result.problems.append(f"resumed: {result.resumed[:200]}")
    else:
        compare(fault, folder, straight, result)


def compare(fault: Fault, folder: Path, straight: Path, result: Result) -> None:
    is_sync = fault.is_sync and fault.act != "teacher" and fault.target != "verifier"
    result.problems += losses(folder, straight if is_sync else None)
    result.resumed = "whole"
    if is_sync:
        parts = differences(folder, straight)
        result.resumed = f"same but for {', '.join(parts)}" if parts else "bit-identical"
        result.problems += parts


def table(rows: list[dict]) -> list[str]:
    head = ["| fault | what followed | after | in the end |", "|---|---|---|---|"]
    return [*head, *(row_of(row) for row in rows)]


def row_of(row: dict) -> str:
    what = f"{row['followed']}: {row['said'].removeprefix('error: ')[:160]}".rstrip(": ")
    problems = f"; **{'; '.join(row['problems'])}**" if row["problems"] else ""
    return f"| {row['name']} | {what} | {row['after_s']} s | {row['resumed']}{problems} |"


if __name__ == "__main__":
    os.environ.pop("RAY_ADDRESS", None)
    main()
