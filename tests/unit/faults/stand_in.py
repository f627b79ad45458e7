"""A training of nothing, with the files and lines of a real one: ``FOLDER STEPS FLAW``."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil

folder, last, flaw = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
checkpoints = folder / "checkpoints"
marks = checkpoints.glob("global_step_*/COMPLETE")
first = 1 + max((int(mark.parent.name.removeprefix("global_step_")) for mark in marks), default=0)
if flaw == "does not resume" and first > 1:
    sys.exit("error: damaged")
(folder / "logs").mkdir(parents=True, exist_ok=True)


def keep_before(path: Path, step: int) -> None:
    rows = path.read_text().splitlines(keepends=True) if path.exists() else []
    path.write_text("".join(row for row in rows if json.loads(row)["step"] < step))


keep_before(folder / "records.jsonl", first)
keep_before(folder / "metrics.jsonl", first)
actors = {
    name: subprocess.Popen([f"ray::{name}", "600"], executable="/bin/sleep")
    for name in ("HintTaskRunner", "WorkerDict")
}
try:
    with (folder / "logs/console.log").open("w", buffering=1) as console:
        print("ready", file=console)
        for step in range(first, last + 1):
            for _ in range(8):
                time.sleep(0.1)
                while any(
                    psutil.Process(each.pid).status() == "stopped" for each in actors.values()
                ):
                    time.sleep(0.1)
                for name, actor in actors.items():
                    if actor.poll() is not None:
                        sys.stderr.write(f"error: {name} died\n")
                        sys.exit(2)
            num_prompts = 7 if flaw == "loses a prompt" and step == first > 1 else 8
            with (folder / "records.jsonl").open("a") as file:
                for number in range(num_prompts):
                    row = {"step": step, "uid": f"{step}-{number}", "problem_id": str(number)}
                    file.write(json.dumps(row | {"rows": [0, 1, 2, 3]}) + "\n")
            checkpoint = checkpoints / f"global_step_{step}"
            (checkpoint / "actor").mkdir(parents=True)
            ids = np.frombuffer(json.dumps([str(number) for number in range(8)]).encode(), np.uint8)
            np.savez(checkpoint / "hint_state.npz", ids=ids, version=3, level=np.full(8, step))
            (checkpoint / "COMPLETE").touch()
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps({"step": step, "hint/prompts": 8}) + "\n")
            print(f"step {step}/{last}  0.8 s", file=console)
finally:
    for actor in actors.values():
        actor.kill()
        actor.wait()
