"""How each fault is done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from catalogue import SIGNALS, Fault
from processes import Observer, send

DISK = "96m"  # three checkpoints of the embedded model take 30 MB
_CUT = 1000  # bytes that are left of a damaged file
_REWARDS = """
import time

def score(data_source, solution_str, ground_truth, extra_info):
    time.sleep(0.05)
    return float(f"{{{ground_truth}}}" in solution_str)
"""
_ACTOR = "actor/{}_world_size_1_rank_0.pt"


@contextlib.contextmanager
def prepared(
    fault: Fault, folder: Path, straight: Path | None
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Make what has to be there before the run; yield its further settings and environment."""
    with contextlib.ExitStack() as stack:
        settings: list[str] = []
        env: dict[str, str] = {}
        if fault.act == "fill":
            stack.enter_context(_small_disk(folder))
            settings = ["trainer.max_actor_ckpt_to_keep=3"]
        elif fault.act == "damage":
            assert straight is not None
            _copy_until_step_2(straight, folder)
            _damage(folder, fault.target)
        elif fault.act == "teacher":
            port = stack.enter_context(_teacher(fault.target))
            settings = [
                "hint.source=teacher",
                f"hint.teacher.base_url=http://127.0.0.1:{port}/v1",
                "hint.teacher.model=any",
                "hint.teacher.timeout_s=3",
                "hint.teacher.num_retries=1",
                f"hint.teacher.cache_dir={folder}/teacher",
            ]
        elif fault.target == "verifier":
            # The embedded problems need no process: what a function of the user's own grades does.
            folder.parent.mkdir(parents=True, exist_ok=True)
            rewards = folder.with_suffix(".py")
            rewards.write_text(_REWARDS)
            settings = [
                f"reward.custom_reward_function.path={rewards}",
                "reward.custom_reward_function.name=score",
                "hint.verify.timeout_s=2",
            ]
        elif fault.act == "clock":
            env = {
                "HINT_TEST_FAULT": f"clock-{fault.target}",
                "VERL_USE_EXTERNAL_MODULES": "recipe.laptop.plugin,sabotage",
                "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "smoke"),
            }
        yield settings, env


def act(fault: Fault, observer: Observer, problems: list[str], folder: Path) -> None:
    """Do it, now."""
    if fault.act in SIGNALS:
        for process in observer.of_kind(fault.target):
            send(fault.act, process)
        if fault.target == "command" and fault.act == "stop":  # Ctrl-Z, and fg after a while
            time.sleep(8)
            os.kill(observer.command.pid, signal.SIGCONT)
    elif fault.act == "interrupt":
        os.killpg(observer.command.pid, signal.SIGINT)
    elif fault.act == "fill":
        with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * (1 << 16))
    elif fault.act == "second":
        words = [str(part) for part in observer.command.args]  # pyright: ignore
        second = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        if second.returncode != 2 or "error: " not in second.stderr:
            problems.append(f"the second run was not refused: {second.stderr[-200:]}")


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Put the run on a file system of its own; what is on it outlives that, without the filler."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)
    kept = folder.with_suffix(".kept")
    try:
        yield
    finally:
        (folder / "filler").unlink(missing_ok=True)
        shutil.copytree(folder, kept, symlinks=True)
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()
        kept.rename(folder)


def _copy_until_step_2(straight: Path, folder: Path) -> None:
    """Make a run that was killed in its third step, after it wrote the step's records."""
    later = [f"global_step_{step}" for step in range(3, 100)]
    shutil.copytree(straight, folder, symlinks=True, ignore=shutil.ignore_patterns(*later))
    for name, last in (("records", 3), ("samples", 3), ("metrics", 2)):
        path = folder / f"{name}.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if json.loads(line)["step"] <= last))
    (folder / "checkpoints/latest_checkpointed_iteration.txt").write_text("2")
    # The name of the run stands in the file: the preflight compares.
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace(str(straight), str(folder)))


def _damage(folder: Path, what: str) -> None:
    checkpoint = folder / "checkpoints/global_step_2"
    records = folder / "records.jsonl"
    files = {
        "model": checkpoint / _ACTOR.format("model"),
        "optimizer": checkpoint / _ACTOR.format("optim"),
        "data": checkpoint / "data.pt",
        "state": checkpoint / "hint_state.npz",
        "pointer": folder / "checkpoints/latest_checkpointed_iteration.txt",
    }
    name, _, kind = what.rpartition("-")
    doings: dict[str, Callable[[], object]] = {
        "mark-alone": lambda: _leave_only(checkpoint, "COMPLETE"),
        "foreign-folder": lambda: (folder / "checkpoints/global_step_9/actor").mkdir(parents=True),
        "foreign-file": lambda: (checkpoint / "actor/notes.txt").write_text("mine"),
        "records-cut": lambda: os.truncate(records, records.stat().st_size - 40),
        "records-missing": records.unlink,
    }
    if what in doings:
        doings[what]()
    elif kind == "missing":
        files[name].unlink()
    else:
        os.truncate(files[name], min(_CUT, files[name].stat().st_size // 2))


def _leave_only(folder: Path, name: str) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != name:
            path.unlink()


@contextlib.contextmanager
def _teacher(how: str) -> Iterator[int]:
    """Serve what a broken teacher says: nothing, nonsense, or one request and then no more."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            if how == "hangs":
                time.sleep(60)
                return
            body = b'{"choices": [{"message": {"role": "assistant", "content": "42 {{{"}}]}'
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if how == "dies":
                threading.Thread(target=stop, daemon=True).start()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def stop() -> None:
        server.shutdown()
        server.server_close()

    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        stop()


assert sys.platform == "linux"
