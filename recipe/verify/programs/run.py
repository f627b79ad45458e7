"""Grade a program: one Python code block of a response against tests.

The gold answer is plain Python, imports and asserts. A block that is not closed is ``malformed``.
The program and its tests run in two sandboxed processes that are gone afterwards; only plain data
passes between them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from recipe.verify.maths.box import Box, without_answer
from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.programs.asserts import ENDED
from recipe.verify.programs.sandbox import available_layers
from recipe.verify.programs.tests import setup_of, used_names
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
# The kernel counts ticks for the limit, and exactly for the usage: on a busy machine they differ.
_USED_UP = 0.5

# At a line's start, or after a tag, a colon or the mark of a list. What follows is a language and
# its attributes (py, {.py}, py title="a.py"), or prose.
_FENCE = re.compile(r"(?P<before>[^`]*+)(?P<mark>`{3,}+)(?P<info>[^`]*+)")
_LANGUAGE = re.compile(r"\s*\{?\.?(?P<name>\w(?:[\w+#.-]*[\w+#])?)(?:\s+[\w-]+=.*)?\}?\s*")
_PYTHON = re.compile(r"py(?:thon)?[\d.]*", re.IGNORECASE)
# At a line's start, where a block's own names are; read as text, for the block may be anything.
_DEFINED = re.compile(
    r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE
)


class Outcome(NamedTuple):
    """What became of a program; ``detail`` is for people."""

    reason: Reason
    detail: str = ""


def quick_verdict(item: Item, options: GradeOptions) -> Verdict | None:
    """Return the verdict when nothing has to be run, else ``None``."""
    block = code_block(item.response, item.answer)
    if verdict := without_answer(block, item.is_truncated):
        return verdict
    if len(block.text) > _MAX_CODE_CHARS:
        return Verdict(0.0, "malformed", block.text[:200])
    return None if item.answer.strip() else Verdict(0.0, "error", block.text)


def full_verdict(item: Item, options: GradeOptions) -> Verdict:
    """Run the program and its asserts; ends within ``options.program_wall_s``, about.

    ``wrong`` is a failed assert or any exception; ``unsupported`` that something other than plain
    data had to be passed; ``too_slow`` a program that used its processor time up; ``timeout``
    that it waits, or got too little of the processor; ``error`` that the sandbox failed, or that
    the asserts cannot be run or decide.
    """
    code = code_block(item.response, item.answer).text
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
    request = json.dumps({"source": setup_of(tests) + source, "tests": tests}).encode()
    left, right = socket.socketpair()
    try:
        with (
            left,
            right,
            _Process("asserts", left, limits, subprocess.PIPE) as asserts,
            _Process("candidate", right, limits, subprocess.DEVNULL) as program,
        ):
            left.close()  # so that each process sees the end of the other
            right.close()
            told, _ = asserts.communicate(request, wall_s)
    except subprocess.TimeoutExpired:
        return Outcome("timeout", f"no verdict in {wall_s:g} s")
    except OSError as problem:
        return Outcome("error", f"no process can be started: {problem}")
    if told:
        reason, detail = json.loads(told)
    else:
        reason, detail = "error", "the process of the asserts ended"
    if asserts.returncode == -signal.SIGXCPU or (
        reason == ENDED and program.used_s >= _USED_UP * cpu_s
    ):
        return Outcome("too_slow", "out of processor time")
    return Outcome("wrong" if reason == ENDED else reason, detail)


class _Process(subprocess.Popen[bytes]):
    """A process of the sandbox, killed and waited for at the end of its context."""

    used_s = 0.0  # processor time, once it was killed

    def __init__(self, name: str, end: socket.socket, limits: list[str], stream: int) -> None:
        super().__init__(
            # -S, -s, -P: no site packages, no folder of the user's, no working folder.
            [sys.executable, "-S", "-s", "-P", "-c", _START.format(name), str(_ROOT)]
            + [str(end.fileno()), *limits, str(os.getpid())],
            stdin=stream,
            stdout=stream,
            stderr=subprocess.DEVNULL,
            pass_fds=[end.fileno()],
            cwd="/",
            env=_ENVIRONMENT,
            start_new_session=True,
        )

    def __exit__(self, *raised: Any) -> None:
        if self.returncode is None:
            # The sandbox lets it start no other, so this one is the whole tree; where there is no
            # sandbox the session is all that can be found.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            # Its exit code would not tell: a program may end itself with the signal of the limit.
            _, status, usage = os.wait4(self.pid, 0)
            self.returncode = os.waitstatus_to_exitcode(status)
            self.used_s = usage.ru_utime + usage.ru_stime
        super().__exit__(*raised)


@dataclass(slots=True)
class _Fenced:
    """A block, open until its end has been seen."""

    margin: int
    mark: str
    is_python: bool
    lines: list[str] = field(default_factory=list)
    is_closed: bool = False


def code_block(response: str, tests: str = "") -> Box:
    """Find the code block of a response that counts as its program.

    The last block that defines most of what the tests use is graded, so an example or a test below
    the program changes nothing. Where no block defines any of it, the last one marked ``python``
    counts, or the last of any language when none is marked. A draft before the last ``</think>`` is
    no answer.
    """
    blocks = _blocks(response.rpartition("</think>")[2])
    if not blocks:
        return Box("absent")
    used = used_names(tests) if len(blocks) > 1 else frozenset()
    codes = [textwrap.dedent("\n".join(block.lines)).strip("\n") for block in blocks]

    def rank(place: int) -> tuple[int, bool, int]:
        found = _DEFINED.finditer(codes[place]) if used else ()
        return len(used & {each[1] or each[2] for each in found}), blocks[place].is_python, place

    best = max(range(len(blocks)), key=rank)
    return Box("closed", codes[best]) if blocks[best].is_closed else Box("open")


def _blocks(text: str) -> list[_Fenced]:
    blocks: list[_Fenced] = []
    current: _Fenced | None = None
    for line in re.split(r"\r\n?|\n", text):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            if current:
                current.lines.append(line)
            continue
        before = fence["before"].expandtabs(4)
        margin, head = len(before) - len(before.lstrip()), before.strip()
        language = _LANGUAGE.fullmatch(fence["info"])
        is_plain = language is not None or not fence["info"].strip()
        opens = not head or (head[-1] in ":>*.)-" and is_plain)
        # A fence in a docstring is 4 columns deeper.
        is_code = current and (
            not fence["mark"].startswith(current.mark) or margin >= current.margin + 4
        )
        is_python = language is not None and _PYTHON.fullmatch(language["name"]) is not None
        # One left open: the next begins. After a space a word may be prose.
        names_one = is_python or (language is not None and not fence["info"][0].isspace())
        if not is_code and opens and (names_one or not current):
            blocks.append(current := _Fenced(margin, fence["mark"], is_python))
        elif current and (is_code or head):
            current.lines.append(line)
        elif current:
            current.is_closed, current = True, None
    return blocks
