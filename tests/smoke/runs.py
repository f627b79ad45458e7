"""Running the real command and reading what it left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "recipe/hint/main_hint.py"
# Every process is started anew, as on a GPU.
AS_ON_A_GPU = {"HINT_NO_FORK_SERVER": "1"}
# Small and short: what a smoke needs beyond the laptop preset.
SMALL = (
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
    "trainer.save_freq=-1",
    "data.train_batch_size=8",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.rollout.n=4",
)


@dataclass
class Run:
    """One finished (or killed) command."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def records(self) -> list[dict]:
        return _lines(self.folder / "records.jsonl")

    @property
    def samples(self) -> list[dict]:
        return _lines(self.folder / "samples.jsonl")

    @property
    def metrics(self) -> list[dict]:
        """Of the training steps, in order."""
        return [row for row in _lines(self.folder / "metrics.jsonl") if "hint/prompts" in row]

    def by_step(self) -> dict[int, list[dict]]:
        steps: dict[int, list[dict]] = {}
        for record in self.records:
            steps.setdefault(record["step"], []).append(record)
        return steps


def command(folder: Path, *overrides: str, preset: tuple[str, ...] = SMALL) -> list[str]:
    return [sys.executable, str(MAIN), *preset, f"hint.run_dir={folder}", *overrides]


def train(
    folder: Path,
    *overrides: str,
    timeout_s: float = 1500,
    preset: tuple[str, ...] = SMALL,
    env: dict[str, str] | None = None,
) -> Run:
    """The command to its end."""
    done = subprocess.run(
        command(folder, *overrides, preset=preset),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=environment(folder, env),
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, folder)


@contextlib.contextmanager
def started(folder: Path, *overrides: str) -> Iterator[subprocess.Popen]:
    """The command in the background; nothing of it is left when the block ends."""
    process = subprocess.Popen(
        command(folder, *overrides),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for other in processes_of(folder):
            with contextlib.suppress(psutil.NoSuchProcess):
                other.kill()


def killed_after(folder: Path, step: int, *overrides: str) -> None:
    """The command, killed as soon as the checkpoint of ``step`` is whole."""
    complete = folder / f"checkpoints/global_step_{step}/COMPLETE"
    with started(folder, *overrides) as process:
        wait_for(complete.exists, f"the checkpoint of step {step}", process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(folder: Path, more: dict[str, str] | None = None) -> dict[str, str]:
    """Marks every process of the run, Ray's and vLLM's too, with its folder."""
    return {**os.environ, "HINT_TEST_RUN": str(folder), **(more or {})}


def processes_of(folder: Path) -> list[psutil.Process]:
    """What is still running of a run, this process and zombies apart."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.environ().get("HINT_TEST_RUN") == str(folder):
                found.append(process)
    return found


def assert_nothing_is_left(folder):
    """Ray's processes may take a moment to go after the command has ended."""
    deadline = time.monotonic() + 120
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [process.name() for process in processes_of(folder)] == []


def wait_for(condition, what: str, process: subprocess.Popen, limit_s: float = 900):
    """The first true value of ``condition()``; fails with ``what`` when it cannot come any more."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        if process.poll() is not None:
            raise AssertionError(f"the run ended before {what}: {process.communicate()[1]}")
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {limit_s:g} s")


def check_records(run: Run, steps: int, prompts: int = 8, group: int = 4) -> None:
    """Every step has whole groups of as many prompts as a batch, each once."""
    assert run.code == 0, run.err
    by_step = run.by_step()
    assert sorted(by_step) == list(range(1, steps + 1))
    for records in by_step.values():
        assert len(records) == len({record["uid"] for record in records}) == prompts
        for record in records:
            assert len(record["rows"]) == len(record["rewards"]) == group
            first = record["rounds"][record["rows"][0][0]]
            assert first["level"] == record["accepted_level"]


def check_probabilities(run: Run, steps: int) -> None:
    """Trainer and vLLM give every sampled token the same probability."""
    assert len(run.metrics) == steps
    for row in run.metrics:
        assert row["training/rollout_probs_diff_mean"] <= 1e-6, row["step"]
        assert row["training/rollout_probs_diff_max"] <= 1e-4, row["step"]


def check_weights(run: Run, steps: int) -> None:
    """Weights change, and after every update trainer and vLLM agree."""
    check_probabilities(run, steps)
    # Not in every step: eight groups may all be equal by chance.
    assert any(row["actor/grad_norm"] > 0 for row in run.metrics)


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
