"""Starts a program and its asserts in two sandboxed processes and ends both."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipe.hint.schema import Reason
from recipe.hint.verify.options import GradeOptions, Isolation
from recipe.hint.verify.programs.sandbox import available_layers

_ROOT = Path(__file__).resolve().parents[4]
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from recipe.hint.verify.programs.{} import main
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program; ``detail`` is for people."""

    reason: Reason
    detail: str = ""


@functools.cache
def layers_for(isolation: Isolation) -> tuple[str, ...] | None:
    """All layers that this machine has; ``None`` when they do not reach ``isolation``."""
    layers = available_layers()
    return layers if set(layers) >= _NEEDED[isolation] else None


def run_program(source: str, tests: str, options: GradeOptions) -> Outcome:
    """Run a program, then its asserts, each in a process that is gone afterwards.

    Args:
        source: The program, plain Python.
        tests: Imports and asserts that call what the program defines.
        options: Limits, and the least isolation.
    """
    layers = layers_for(options.program_isolation)
    if layers is None:
        found = ", ".join(available_layers()) or "nothing"
        return Outcome(
            "error",
            f"program_isolation={options.program_isolation}, and this machine offers {found}; "
            f"run on Linux on x86_64 or aarch64, or allow less",
        )
    return run_with_layers(source, tests, options, layers)


def run_with_layers(
    source: str, tests: str, options: GradeOptions, layers: tuple[str, ...]
) -> Outcome:
    """Same as ``run_program`` with the layers of the sandbox chosen by hand."""
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
        try:
            reply = _exchange(control, {"source": source, "tests": tests}, deadline)
        except TimeoutError:
            return Outcome("timeout", f"no verdict in {options.program_wall_s:g} s")
        return _outcome(reply, program, asserts, options.program_cpu_s)


def _outcome(
    reply: bytes, program: subprocess.Popen[bytes], asserts: subprocess.Popen[bytes], cpu_s: int
) -> Outcome:
    reason, detail, is_over = json.loads(reply) if reply else ("error", "", True)
    # The kernel counts ticks for the limit, and exactly for the usage: they differ by some percent.
    least_s = 0.8 * cpu_s
    if is_over and any(_cpu_s_of(process) >= least_s for process in (program, asserts)):
        return Outcome("timeout", "out of processor time")
    if not reply:
        return Outcome("error", f"the process of the asserts ended with {asserts.poll()}")
    return Outcome(reason, detail)


def _cpu_s_of(process: subprocess.Popen[bytes]) -> float:
    """What a process that has just ended used of the processor; 0.0 if it has not ended.

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
    """A process that has ended, and been waited for, when the block is left."""
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
        process.wait()


def _exchange(control: socket.socket, request: dict[str, str], deadline: float) -> bytes:
    """One line out, one line back; empty when the other side is gone."""
    reply = b""
    try:
        control.settimeout(max(deadline - time.monotonic(), 0.001))
        control.sendall(json.dumps(request).encode("ascii") + b"\n")
        while not reply.endswith(b"\n"):
            control.settimeout(max(deadline - time.monotonic(), 0.001))
            chunk = control.recv(1 << 16)
            if not chunk:
                return b""
            reply += chunk
    except TimeoutError:
        raise
    except OSError:
        return b""
    return reply
