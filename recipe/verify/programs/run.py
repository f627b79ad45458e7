"""Grade a program: one Python code block of a response against tests.

The gold answer is plain Python, imports and asserts. A block that is not closed is ``malformed``.
The program and its tests run in two sandboxed processes that are gone afterwards; only plain data
passes between them.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, cast

from recipe.verify.line import Line, PeerDied
from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.programs.asserts import ENDED, STARTED
from recipe.verify.programs.blocks import code_block
from recipe.verify.programs.sandbox import available_layers
from recipe.verify.programs.tests import setup_of
from recipe.verify.schema import Item, Reason, Verdict

_MAX_CODE_CHARS = 200_000
_ROOT = Path(__file__).resolve().parents[3]
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from recipe.verify.programs.{} import main
del sys.path[0]
main(*sys.argv[1:])
"""
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",  # the order of a set is the same in every run
    "PYTHONUTF8": "1",
}
_NEEDED: dict[Isolation, set[str]] = {
    "full": {"landlock", "seccomp"},
    "partial": {"seccomp"},
    "none": set(),
}
# How the tests' process ends where Python itself fails on a value, as it does on some.
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
# The kernel counts ticks for the limit, and exactly for the usage: they differ somewhat.
_USED_UP = 0.8
_IDLE, _LATE, _LOST = "idle", "late", "lost"


class Outcome(NamedTuple):
    """What became of a program; ``detail`` is for people."""

    reason: Reason
    detail: str = ""


def quick_verdict(item: Item) -> Verdict | None:
    """Return the verdict when nothing has to be run, else ``None``."""
    block = code_block(item.response, item.answer)
    if block.state != "closed" or not block.code.strip():
        if item.is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if block.state == "open" else "no_answer")
    if len(block.code) > _MAX_CODE_CHARS:
        return Verdict(0.0, "malformed", block.code[:200])
    return None if item.answer.strip() else Verdict(0.0, "error", block.code)


def grade_program(item: Item, options: GradeOptions) -> Verdict:
    """Run the program and its asserts; ends within ``options.program_wall_s``, about.

    ``wrong`` is a failed assert or any exception; ``unsupported`` that something other than plain
    data had to be passed; ``too_slow`` a program that used its processor time up, or waits for
    nothing; ``timeout`` means that the machine gave it too little of the processor; ``error`` that
    the sandbox failed, or that the asserts cannot be run or decide.
    """
    if verdict := quick_verdict(item):
        return verdict
    code = code_block(item.response, item.answer).code
    reason, detail = run_program(code, item.answer, options)
    if reason == "error":
        logging.getLogger(__name__).warning("no verdict on a program: %s", detail)
        detail = ""
    return Verdict(float(reason == "correct"), reason, code, "tests", detail=detail)


@functools.cache
def layers_for(isolation: Isolation) -> tuple[str, ...] | None:
    """Return all layers that this machine has; ``None`` when they do not reach ``isolation``."""
    layers = available_layers()
    return layers if set(layers) >= _NEEDED[isolation] else None


def run_program(
    source: str, tests: str, options: GradeOptions, layers: tuple[str, ...] | None = None
) -> Outcome:
    """Run a program and its tests, each in a process that is gone afterwards.

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
            f"run on Linux on x86_64, or allow less",
        )
    wall_s, cpu_s = options.program_wall_s, options.program_cpu_s
    limits = [str(cpu_s), str(options.program_memory_mib), ",".join(layers)]
    processes: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        control, far_control = (stack.enter_context(end) for end in socket.socketpair())
        left, right = (stack.enter_context(end) for end in socket.socketpair())
        try:
            processes.append(_start("candidate", [right], limits))
            processes.append(_start("asserts", [far_control, left], limits))
            for end in (far_control, left, right):  # so that the end of a process is seen
                end.close()
            request = {"source": setup_of(tests) + source, "tests": tests}
            reason, detail = _receive(Line(control), request, wall_s, processes)
        except OSError as problem:
            reason, detail = "error", f"no process can be started: {problem}"
        finally:
            used_s = [_end(process) for process in processes]
    if reason in (_LATE, _IDLE):
        reason = "timeout" if reason == _LATE else "too_slow"
        detail = f"no verdict in {wall_s:g} s"
    elif reason in (ENDED, _LOST):
        if max(used_s) >= _USED_UP * cpu_s:
            return Outcome("too_slow", "out of processor time")
        is_crash = processes[1].returncode in _CRASHES
        reason = "wrong" if reason == ENDED or is_crash else "error"
    return Outcome(cast(Reason, reason), detail)


def _receive(
    line: Line, request: object, wall_s: float, processes: list[subprocess.Popen[bytes]]
) -> tuple[str, str]:
    """Return a verdict's reason and detail; ``_IDLE``, ``_LATE``, ``_LOST`` where none came."""
    has_started = False
    deadline = time.monotonic() + wall_s
    try:
        line.send(request, deadline)
        while (message := line.receive(deadline)) == STARTED:
            has_started = True
        return message
    except TimeoutError:
        return (_IDLE if has_started and _slept(processes, wall_s) else _LATE), ""
    except PeerDied:
        return _LOST, "the process of the asserts ended"


def _slept(processes: list[subprocess.Popen[bytes]], wall_s: float) -> bool:
    """Return whether the processes slept most of the time, by the kernel's count.

    Otherwise they ran or waited for a processor: the machine gave them too little of it. Until the
    program has begun they may wait for a disk; later a program can choose to.
    """
    try:
        told = [Path(f"/proc/{each.pid}/schedstat").read_text().split() for each in processes]
    except OSError:
        return False
    return sum(int(ns) for each in told for ns in each[:2]) / 1e9 < wall_s / 2


def _start(name: str, sockets: list[socket.socket], limits: list[str]) -> subprocess.Popen[bytes]:
    descriptors = [end.fileno() for end in sockets]
    return subprocess.Popen(
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


def _end(process: subprocess.Popen[bytes]) -> float:
    """Kill a process, wait for its end, and return the processor time that it used.

    Its exit code would not tell: a program may end itself with the signal of the limit.
    """
    # The sandbox lets it start no other, so this one is the whole tree; where there is no
    # sandbox the session is all that can be found.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime
