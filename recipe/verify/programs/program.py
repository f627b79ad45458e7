"""Grade a program: one Python code block of a response against tests.

The gold answer is plain Python, imports and asserts. A block that is not closed is ``malformed``.
The program and its tests run in two sandboxed processes that are gone afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.pool.processes import Line, WorkerDied
from recipe.verify.programs.asserts_process import STARTED
from recipe.verify.programs.blocks import LINE_END, code_block
from recipe.verify.programs.sandbox import available_layers
from recipe.verify.programs.setup import setup_of
from recipe.verify.schema import Reason, Verdict

_MAX_CODE_CHARS = 200_000
_MAX_DETAIL_CHARS = 1000
_DEFAULTS = GradeOptions()
_ROOT = Path(__file__).resolve().parents[3]
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from recipe.verify.programs.{} import main
main(sys.argv[1:])
"""
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # the order of a set is the same in every run
    "PYTHONUTF8": "1",
}
_NEEDED: dict[Isolation, frozenset[str]] = {
    "full": frozenset({"landlock", "seccomp"}),
    "partial": frozenset({"seccomp"}),
    "none": frozenset(),
}
# After the program's end is noticed: how long its exit code may take.
_EXIT_S = 1.0
_END_S = 10.0  # after SIGKILL
# Of /proc/PID/status: the state, and how often the process has left a processor.
_STATE = re.compile(r"^(?:State|(?:non)?voluntary_ctxt_switches):\t(\w+)", re.MULTILINE)
_WAITING = frozenset("STt")
# How the tests' process ends where Python itself fails on a value, as it does on some.
_CRASHES = frozenset({-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS})
# How often both processes are looked at: before the wall clock's limit and, 10 ms apart, at it.
_LOOKS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program; ``detail`` is for people, ``line`` the test that failed or 0."""

    reason: Reason
    detail: str = ""
    line: int = 0


def quick_verdict(response: str, answer: str, *, is_truncated: bool = False) -> Verdict | None:
    """Return the verdict when nothing has to be run, else ``None``."""
    block = code_block(response, answer)
    if block.state != "closed" or not block.code.strip():
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if block.state == "open" else "no_answer")
    if len(block.code) > _MAX_CODE_CHARS:
        return Verdict(0.0, "malformed", block.code[:200])
    return None if answer.strip() else Verdict(0.0, "error", block.code)


def grade_program(
    response: str,
    answer: str,
    *,
    is_truncated: bool = False,
    options: GradeOptions = _DEFAULTS,
) -> Verdict:
    """Run the program and its asserts; ends within ``options.program_wall_s``, about.

    ``wrong`` is a failed assert or any exception; ``too_slow`` a program that used its processor
    time up, or waits for nothing; ``timeout`` means that the machine gave it too little of the
    processor; ``error`` that the sandbox failed, or that the asserts cannot be run or decide.
    """
    verdict = quick_verdict(response, answer, is_truncated=is_truncated)
    if verdict is not None:
        return verdict
    code = code_block(response, answer).code
    outcome = run_program(code, answer, options)
    if outcome.reason == "error":
        logging.getLogger(__name__).warning("no verdict on a program: %s", outcome.detail)
    is_right = outcome.reason == "correct"
    detail = "" if outcome.reason == "error" else _with_test(outcome, answer)
    return Verdict(float(is_right), outcome.reason, code, "tests", detail=detail)


def _with_test(outcome: Outcome, tests: str) -> str:
    """Return a detail with its line of the tests, as text that can be encoded."""
    lines = LINE_END.split(tests)[outcome.line - 1 : outcome.line] if outcome.line else []
    shown = "\n".join([*(line.strip() for line in lines), outcome.detail])[:_MAX_DETAIL_CHARS]
    return shown.encode("utf-8", "replace").decode()


@functools.cache
def layers_for(isolation: Isolation) -> tuple[str, ...] | None:
    """Return all layers that this machine has; ``None`` when they do not reach ``isolation``."""
    layers = available_layers()
    return layers if set(layers) >= _NEEDED[isolation] else None


def run_program(
    source: str, tests: str, options: GradeOptions, layers: tuple[str, ...] | None = None
) -> Outcome:
    """Run a program, then its tests, each in a process that is gone afterwards.

    Args:
        source: The program, plain Python.
        tests: Imports and asserts that call what the program defines.
        options: Limits, and the least isolation.
        layers: Those of the sandbox, where not all that the machine has.
    """
    layers = layers_for(options.program_isolation) if layers is None else layers
    if layers is None:
        found = ", ".join(available_layers()) or "nothing"
        return Outcome(
            "error",
            f"program_isolation={options.program_isolation}, and this machine offers {found}; "
            f"run on Linux on x86_64 or aarch64, or allow less",
        )
    deadline = time.monotonic() + options.program_wall_s
    with contextlib.ExitStack() as stack:
        control, far_control = (stack.enter_context(end) for end in socket.socketpair())
        left, right = (stack.enter_context(end) for end in socket.socketpair())
        limits = [str(options.program_cpu_s), str(options.program_memory_mib), ",".join(layers)]
        try:
            program = stack.enter_context(_process("candidate_process", [right], limits))
            asserts = stack.enter_context(_process("asserts_process", [far_control, left], limits))
        except OSError as problem:
            return Outcome("error", f"no process can be started: {problem}")
        for end in (far_control, left, right):  # so that the end of a process is seen
            end.close()
        line = Line(control)
        reason, detail, number, is_over = "error", "", 0, True
        has_started = False
        try:
            line.send({"source": setup_of(tests) + source, "tests": tests}, deadline)
            reason, detail, number, is_over = _receive(line, deadline, program, asserts)
        except (TimeoutError, _Waited) as late:
            what: Reason = "too_slow" if isinstance(late, _Waited) else "timeout"
            return Outcome(what, f"no verdict in {options.program_wall_s:g} s")
        except WorkerDied as problem:
            detail = "the process of the asserts ended"
            has_started = isinstance(problem, _DiedAfterStart)
        # The kernel counts ticks for the limit, and exactly for the usage: they differ somewhat.
        least_s = 0.8 * options.program_cpu_s
        if is_over and any(_cpu_s_of(process) >= least_s for process in (program, asserts)):
            return Outcome("too_slow", "out of processor time")
        if has_started and asserts.returncode in _CRASHES:
            return Outcome("wrong", "what the program sent has crashed the process of the asserts")
        return Outcome(reason, detail, number)


class _Waited(Exception):
    """The deadline passed, and the processes had nothing to do."""


class _DiedAfterStart(WorkerDied):
    """The asserts ended after the program's text had been sent to its process."""


def _receive(line: Line, deadline: float, *processes: subprocess.Popen[bytes]) -> Any:
    """Wait for the verdict.

    Raises:
        _Waited: The processes waited most of the time before the deadline, or at it.
        TimeoutError: They did not, and so were short of the processor or of a disk.
        WorkerDied: The asserts ended; ``_DiedAfterStart`` where the program may have done it.
    """
    has_started = False
    wall_s = max(deadline - time.monotonic(), 0.0)
    num_waiting = num_looks = num_disk = 0
    while (left_s := deadline - time.monotonic()) > 0:
        with contextlib.suppress(TimeoutError):
            try:
                message = line.receive(time.monotonic() + min(left_s, wall_s / _LOOKS))
            except WorkerDied as problem:
                raise (_DiedAfterStart if has_started else WorkerDied) from problem
            if message != STARTED:
                return message
            has_started = True
            continue
        num_looks += 1
        num_waiting += _are_waiting(processes)
        # Until then Python is read from the disk; later a program can choose to wait for one.
        is_reading = any("State:\tD" in _told(each, "status") for each in processes)
        num_disk += is_reading and not has_started
    for _ in range(_LOOKS):
        if 2 * num_waiting > num_looks or _are_waiting(processes):
            raise _Waited
        time.sleep(0.01)
    # What sleeps ten thousand times a second, or is busy whenever it is looked at, has still used
    # and waited for little of a processor, by the kernel's count in ns.
    needed_ns = [_told(each, "schedstat").split()[:2] for each in processes]
    needed_s = sum(int(ns) for each in needed_ns for ns in each) / 1e9
    needed_s += wall_s * num_disk / max(num_looks, 1)
    raise _Waited if all(needed_ns) and needed_s < wall_s / 2 else TimeoutError


def _are_waiting(processes: Sequence[subprocess.Popen[bytes]]) -> bool:
    """Return whether none has anything to do: asleep, or stopped by a signal of its own.

    Each runs, or may run, while it has something to do for the other. They are read one after the
    other: only where none has run in between were all of them waiting at one moment.
    """
    first, second = (
        [_STATE.findall(_told(each, "status")) for each in processes] for _ in range(2)
    )
    return first == second and all(state and state[0] in _WAITING for state in first)


def _told(process: subprocess.Popen[bytes], name: str) -> str:
    """Return what the kernel says of a process; nothing where it has ended, or has no /proc."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process.pid}/{name}").read_text()
    return ""


def _cpu_s_of(process: subprocess.Popen[bytes]) -> float:
    """Return what a process that has just ended used of the processor; 0.0 if it has not ended.

    Its exit code would not do: a program may end itself with the signal of the limit.
    """
    deadline = time.monotonic() + _EXIT_S
    while time.monotonic() < deadline:
        number, status, usage = os.wait4(process.pid, os.WNOHANG)
        if number:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        time.sleep(0.002)
    return 0.0


@contextlib.contextmanager
def _process(
    name: str, sockets: list[socket.socket], limits: list[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that has ended, and been waited for, when the block is left.

    One that a disk keeps from ending is left behind after ``_END_S``, with a warning.
    """
    descriptors = [end.fileno() for end in sockets]
    process = subprocess.Popen(
        # -S, -s, -P: no site packages, no folder of the user's, no working folder.
        [sys.executable, "-S", "-s", "-P", "-c", _START.format(name)]
        + [str(_ROOT), *map(str, descriptors), *limits, str(os.getpid())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
        cwd="/",
        env=_ENVIRONMENT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # The sandbox lets it start no other, so this one is the whole tree; where there is no
        # sandbox the session is all that can be found.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            logging.getLogger(__name__).warning(
                "%s (pid %d) has not ended %g s after SIGKILL: it may wait for a disk; it is left "
                "behind",
                name,
                process.pid,
                _END_S,
            )
