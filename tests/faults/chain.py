"""One training with faults one after the other: each start goes on from the one before it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from acts import act, prepared
from catalogue import MODES, Fault
from outcome import differences, last_checkpoint, losses
from processes import NotHit, Observer, end, title

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "smoke"))
from runs import AS_ON_A_GPU, SMALL, command, environment, processes_of  # noqa: E402

LONGEST = 5  # faults in one training
STEPS = 2 * LONGEST + 2  # of the run that nothing happens to; a fault takes at most two steps
_NO_END = 60  # steps of a training that is ended from outside
_SETTINGS = (
    "trainer.method=sage",
    "trainer.save_freq=1",
    "trainer.val_before_train=true",
    "data.val_max_samples=8",
    "data.train_max_samples=16",
    "hint.watchdog.start_s=120",
    "hint.watchdog.queue_s=60",
    "hint.watchdog.update_s=60",
    *(f"hint.watchdog.{name}_s=25" for name in ("answer", "rollout", "progress", "sync", "save")),
)
RUN_S = 300  # for a start that nothing happens to, on a busy machine
END_S = 180  # from a fault to the end: the longest limit that can apply, and the end itself
# After the command has ended, until no process of it is left: where Ray's GCS dies before its
# raylet, Ray's two agents try for a minute to tell it.
LEFT_S = 75


@dataclasses.dataclass
class Result:
    """What followed a fault; ``problems`` is empty when that is as promised."""

    name: str
    step: int = 0  # in which it was done
    followed: str = ""  # error | went on | killed | hung | not hit
    code: int | None = None
    said: str = ""
    after_s: float = 0.0  # from the fault to the end of the command
    left: list[str] = dataclasses.field(default_factory=list)
    resumed: str = ""  # bit-identical | whole | failed: ...
    problems: list[str] = dataclasses.field(default_factory=list)

    @property
    def is_as_before(self) -> bool:
        """Whether the training can go on, or be started again."""
        return self.followed in ("error", "went on", "killed")


def straight_run(out: Path, mode: str) -> Path:
    """Return the folder of a run that nothing happened to, made once for each mode."""
    folder = out / f"straight-{mode}"
    if last_checkpoint(folder) < STEPS:
        shutil.rmtree(folder, ignore_errors=True)
        process = start(folder, mode, steps=STEPS)
        process.wait(timeout=RUN_S)
        if process.returncode:
            raise SystemExit(f"the run without a fault failed: {said(folder)}")
    return folder


def start(
    folder: Path,
    mode: str,
    *,
    more: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    steps: int = _NO_END,
) -> subprocess.Popen:
    """Start a run in the background; its output goes to files beside its folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    settings = (
        *_SETTINGS,
        *MODES[mode],
        f"trainer.max_actor_ckpt_to_keep={STEPS}",
        f"trainer.total_training_steps={steps}",
        *more,
    )
    env = (env or {}) | (AS_ON_A_GPU if mode == "unforked" else {})
    with (
        folder.with_suffix(".out").open("w") as stdout,
        folder.with_suffix(".err").open("w") as stderr,
    ):
        return subprocess.Popen(
            command(folder, *settings, preset=SMALL),
            stdout=stdout,
            stderr=stderr,
            env=environment(folder, env),
            start_new_session=True,
        )


def said(folder: Path) -> str:
    """Return the last line on stderr that tells of an error, or the last one."""
    text = folder.with_suffix(".err").read_text(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]


def left(observer: Observer, folder: Path) -> list[psutil.Process]:
    """Return the living processes of a run."""
    found = {each.pid: each for each in [*observer.alive(), *processes_of(folder)]}
    return list(found.values())


class Chain:
    """One training, and the faults that are done to it."""

    def __init__(self, faults: list[Fault], out: Path) -> None:
        """Take faults of one mode that need the same preparation."""
        self.faults, self.mode = faults, faults[0].mode
        self.folder = out / "runs" / faults[0].name
        self.is_compared = all(fault.is_compared for fault in faults)
        self.straight = straight_run(out, "sync") if faults[0].is_sync else None
        self.results: list[Result] = []
        self._observer: Observer | None = None
        self._more: tuple[str, ...] = ()
        self._env: dict[str, str] = {}

    def run(self) -> list[Result]:
        """Do the faults, go on to a good end, and judge; return what is known of each.

        A training that cannot go on ends the list: the faults after that are not in it.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        with prepared(self.faults[0], self.folder, self.straight) as (settings, self._env):
            self._more = tuple(settings)
            for fault in self.faults:
                if last_checkpoint(self.folder) >= STEPS - 2:
                    break
                result = self._inflict(fault)
                if result is None:
                    break
                self.results.append(result)
                if not result.is_as_before:
                    break
            self._terminate()
        # What was prepared is gone: the disk has room again, the clock is right.
        self._env = {}
        if self.results and self.results[-1].is_as_before and not self.results[-1].resumed:
            self._finish()
        self._judge()
        if not any(result.problems for result in self.results):
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.results

    def _inflict(self, fault: Fault) -> Result | None:
        """Do a fault and wait for what follows; ``None`` where the one before it was fatal."""
        if fault.phase in ("start", "validation"):
            self._terminate()
        if self._observer is None:
            self._start()
        observer = self._observer
        assert observer is not None
        result = Result(fault.name)
        try:
            if fault.phase:
                observer.await_phase(fault.phase, fault.target_kind, RUN_S)
        except NotHit:
            failure = f"failed: {said(self.folder)}"
            self._end(result)
            if self.results and observer.command.returncode and not observer.steps_done():
                self.results[-1].resumed = failure
                self.results[-1].problems.append(f"resumed: {failure[:200]}")
                return None
            result.followed = "not hit"
            result.problems.append(f"the moment did not come: {failure}")
            return result
        result.step = 1 + max(observer.steps_done(), last_checkpoint(self.folder))
        began = time.monotonic()
        if fault.phase:
            act(fault, observer, result.problems, self.folder)
        limit_s = END_S if fault.phase else RUN_S
        if self._await_outcome(result.step + 1, limit_s):
            result.followed = "went on"
        else:
            self._judge_end(fault, result, limit_s)
        result.after_s = round(time.monotonic() - began, 1)
        if result.followed != "went on":
            self._end(result)
        return result

    def _await_outcome(self, step: int, limit_s: float) -> bool:
        """Wait for the end of the command, or of a step; return whether it was that of the step."""
        observer = self._observer
        assert observer is not None
        deadline, seen = time.monotonic() + limit_s, observer.steps_done()
        while observer.command.poll() is None and time.monotonic() < deadline:
            if (done := observer.steps_done()) != seen:
                seen, deadline = done, time.monotonic() + END_S
            if done >= step and not observer.has_stopped_ones():
                return True
            time.sleep(0.05)
        return observer.command.poll() == 0

    def _judge_end(self, fault: Fault, result: Result, limit_s: float) -> None:
        observer = self._observer
        assert observer is not None
        result.code = observer.command.poll()
        if result.code is None:
            result.followed = "hung"
            result.problems.append(f"no end within {limit_s} s")
        elif result.code < 0 or fault.target == "command":
            result.followed = "killed"
            result.said = said(self.folder)
            if fault.target != "command":
                result.problems.append(f"the command died of signal {-result.code}")
        else:
            result.followed = "error"
            result.said = said(self.folder)
            if not result.said.startswith("error: "):
                result.problems.append("no line that says why")

    def _start(self, steps: int = _NO_END) -> None:
        # Of the start before: what it said would be taken for what this one says.
        (self.folder / "logs/console.log").unlink(missing_ok=True)
        env = dict(self._env)
        process = start(self.folder, self.mode, more=self._more, env=env, steps=steps)
        self._observer = Observer(process, self.folder)

    def _end(self, result: Result) -> None:
        """Wait until no process is left; note and kill those that are."""
        observer = self._observer
        assert observer is not None
        deadline = time.monotonic() + (LEFT_S if observer.command.poll() is not None else 0)
        while left(observer, self.folder) and time.monotonic() < deadline:
            time.sleep(0.2)
        result.left = sorted({title(each)[:60] for each in left(observer, self.folder)})
        if result.left and observer.command.poll() is not None:
            result.problems.append(f"{len(result.left)} kinds of processes are left")
        observer.close()
        end(left(observer, self.folder), observer.command)
        self._observer = None

    def _terminate(self) -> None:
        """End a training that went on."""
        if self._observer is None:
            return
        result = self.results[-1]
        os.kill(self._observer.command.pid, signal.SIGTERM)
        try:
            code = self._observer.command.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            code = None
        if code not in (0, 143):
            result.problems.append(f"ended with {code} when it was told to: {said(self.folder)}")
        self._end(result)

    def _finish(self) -> None:
        """Bring the training to the end of the step after the last fault."""
        result = self.results[-1]
        if self.faults[0].act == "damage" and result.followed == "error":
            self._do_as_told(result)
        if last_checkpoint(self.folder) > result.step:
            return
        self._start(steps=result.step + 1)
        assert self._observer is not None
        try:
            code = self._observer.command.wait(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            code = None
        if code:
            result.resumed = f"failed: {said(self.folder)}"
        elif code is None:
            result.resumed = "hung"
        if result.resumed:
            result.problems.append(f"resumed: {result.resumed[:200]}")
        self._end(result)

    def _do_as_told(self, result: Result) -> None:
        """Move the checkpoint away that a start has refused, where it says so."""
        damaged = self.folder / f"checkpoints/global_step_{last_checkpoint(self.folder)}"
        if "move the checkpoint away" not in result.said or str(damaged) not in result.said:
            result.problems.append("the checkpoint to move away is not named")
        shutil.rmtree(damaged)

    def _judge(self) -> None:
        """Say of each fault that was gone on from whether something is lost or different."""
        known = [result for result in self.results if result.step and result.is_as_before]
        last = last_checkpoint(self.folder)
        if self.straight:
            last = min(last, STEPS)
        found = losses(self.folder, last)
        if self.straight and self.is_compared:
            for step, parts in differences(self.folder, self.straight, last).items():
                found.setdefault(step, []).extend(parts)
        if self.faults[0].target == "records-missing":  # what was deleted stays so
            found = {step: parts for step, parts in found.items() if step >= known[0].step}
        first_bad = min(found, default=last + 1)
        for number, result in enumerate(known):
            if result.resumed or last < result.step:
                continue
            following = known[number + 1].step if number + 1 < len(known) else last + 1
            if first_bad >= following:
                result.resumed = "bit-identical" if self.is_compared else "whole"
            elif first_bad >= result.step or number == 0:
                parts = ", ".join(dict.fromkeys(found[first_bad]))
                result.resumed = f"step {first_bad} differs: {parts}"
                result.problems.append(result.resumed)
            else:
                result.resumed = f"not judged: different since step {first_bad}"
