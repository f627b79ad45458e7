"""No grade can change a later one: after hostile items the pool grades as a fresh one does."""

from __future__ import annotations

import random
import time

import psutil
import pytest

from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

# Each spoils one thing that grades share in a process; then the item is graded as always.
GRADE_MODULE = """
import builtins, decimal, logging, os, random, resource, signal, subprocess, sys, threading, time
from recipe.verify.schema import Verdict
from recipe.verify.grading import grade as real, prepare
KEPT, COUNTS = [], {"grades": 0}

def recurse():
    return recurse()

def sympy_cache():
    import sympy
    sympy.Symbol.__hash__ = lambda self: 1 / 0

SPOILERS = {
    "recursion": lambda: sys.setrecursionlimit(60),
    "logging": lambda: logging.disable(logging.CRITICAL),
    "environment": os.environ.clear,
    "folder": lambda: os.chdir("/"),
    "sympy": sympy_cache,
    "builtins": lambda: setattr(builtins, "len", lambda _: 0),
    "modules": sys.modules.clear,
    "path": sys.path.clear,
    "random": lambda: random.seed(0),
    "decimal": lambda: setattr(decimal.getcontext(), "prec", 1),
    "memory": lambda: KEPT.append(bytearray(300 << 20)),
    "too much memory": lambda: KEPT.append(bytearray(1 << 40)),
    "memory in pieces": lambda: [KEPT.append(bytearray(1 << 20)) for _ in range(1 << 20)],
    "limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)),
    "signals": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "threads": lambda: threading.Thread(target=time.sleep, args=(3600,)).start(),
    "thread that spins": lambda: threading.Thread(target=recurse).start(),
    "child": lambda: subprocess.Popen(["sleep", "3600"]),
    "pipes": lambda: [os.write(fd, b"[1.0, ") for fd in range(3, 64) if is_socket(fd)],
    "descriptors": lambda: os.closerange(3, 256),
    "depth": recurse,
    "loop": lambda: 9 ** 9 ** 9 ** 2,
    "exit": lambda: os._exit(0),
    "abort": os.abort,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "interrupt the parent": lambda: os.kill(os.getppid(), signal.SIGINT),
}

def is_socket(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("socket")
    except OSError:
        return False

def grade(item, options):
    COUNTS["grades"] += 1
    if item.response in SPOILERS:
        SPOILERS[item.response]()
        return Verdict(0.0, "wrong", "spoiled")
    if item.response == "count":
        return Verdict(0.0, "wrong", str(COUNTS["grades"]))
    return real(item, options)
"""
SPOILED = [
    "recursion", "logging", "environment", "folder", "sympy", "builtins", "modules", "path",
    "random", "decimal", "memory", "too much memory", "memory in pieces", "limits", "signals",
    "threads", "thread that spins", "child", "pipes", "descriptors", "depth", "loop", "exit",
    "abort", "stop", "interrupt the parent",
]  # fmt: skip
SOUND = [
    Item("count", ""),
    Item(r"\boxed{\sqrt{8}}", r"2\sqrt{2}"),
    Item(r"\boxed{\sqrt{7}}", r"2\sqrt{2}"),
    Item(r"\boxed{(x+1)^2}", "x^2+2x+1"),
    Item(r"\boxed{\frac{1}{3}}", "0.333333333333333"),
    Item(r"\boxed{\sin^2 x+\cos^2 x+1}", r"\sqrt{4}"),
    Item(r"\boxed{x^2}", "x^3"),
]
MEMORY_MIB = 256


def pool_of(grade_path, num_workers=1):
    options = GradeOptions(wall_factor=2.0, worker_memory_mib=MEMORY_MIB)
    return VerifierPool(num_workers, 2.0, options=options, grade_path=grade_path)


@pytest.mark.slow
def test_after_every_hostile_grade_the_next_are_those_of_a_fresh_pool(grade_path):
    with pool_of(grade_path) as pool:
        fresh = pool.grade_many_blocking(SOUND)
    assert [each.reason for each in fresh[1:4]] == ["correct", "wrong", "correct"]
    assert fresh[0].extracted == "1"
    order = list(SPOILED)
    random.Random(1).shuffle(order)
    with pool_of(grade_path) as pool:
        for name in order:
            # Sent together, so that the next grade follows at once.
            _, *later = pool.grade_many_blocking([Item(name, ""), *SOUND])
            assert later == fresh, name
    assert psutil.Process().children(recursive=True) == []


def test_nothing_that_a_grade_started_is_left_after_it(grade_path):
    with pool_of(grade_path) as pool:
        pool.grade_many_blocking([Item(name, "") for name in ("child", "threads", "count")])
        deadline = time.monotonic() + 60
        while len(psutil.Process().children(recursive=True)) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(psutil.Process().children(recursive=True)) == 1  # the worker factory
    assert not [each for each in psutil.process_iter(["cmdline"])
                if each.info["cmdline"] == ["sleep", "3600"]]  # fmt: skip
