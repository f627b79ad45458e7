"""Every attack is really made, and fails; what a program may do is in docs/programs.md."""

from __future__ import annotations

import os
import socket
import time

import psutil
import pytest
from processes import descendants

from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.programs import run as program
from recipe.verify.programs.sandbox import available_layers
from recipe.verify.schema import Item

LAYERS = available_layers()
pytestmark = pytest.mark.skipif("seccomp" not in LAYERS, reason="the sandbox needs Linux's seccomp")
BOTH_WAYS = pytest.mark.parametrize("layers", [LAYERS, ("seccomp",)], ids=["all", "seccomp alone"])
NEEDS_LANDLOCK = pytest.mark.skipif("landlock" not in LAYERS, reason="no Landlock on this kernel")
TESTS = "assert f(2) == 4\nassert f(3) == 6"
GRADE_MODULE = """
import ctypes
from recipe.verify.schema import Verdict
def grade(item, options):
    return Verdict(0.0, "wrong", detail=f"dumpable: {ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)}")
"""
# attack() returns the name of what stopped it.
CAUGHT = """
def attack():
    try:
{}
    except BaseException as problem:
        return type(problem).__name__
    return "nothing stopped it"
"""


def run(source, tests=TESTS, *, layers=LAYERS, **limits):
    before = descendants()
    outcome = program.run_program(source, tests, GradeOptions(**limits), layers)
    assert descendants() <= before  # nothing is left of any program
    return outcome


def assert_stopped(code, by="PermissionError", *, layers=LAYERS):
    lines = "\n".join(f"        {line}" for line in code.strip().splitlines())
    outcome = run(CAUGHT.format(lines), f"assert attack() == {by!r}, attack()", layers=layers)
    assert outcome == program.Outcome("correct"), code


IGNORING = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"


@pytest.mark.parametrize("before", ["", IGNORING])
def test_an_endless_loop_ends_with_its_processor_time(before):
    # Not the wall time, which would say "no verdict in ... s".
    outcome = run(f"{before}while True:\n    pass", program_cpu_s=1, program_wall_s=300.0)
    assert outcome == program.Outcome("too_slow", "out of processor time")


@pytest.mark.parametrize("source", ["import time\ntime.sleep(600)", "def f(x):\n    while True: 1"])
def test_a_program_ends_with_its_wall_time(source):
    outcome = run(source, program_wall_s=1.0)
    assert outcome == program.Outcome("timeout", "no verdict in 1 s")


@BOTH_WAYS
def test_no_program_reads_past_the_cache_to_wait_for_the_disk(layers):
    opened = f"import fcntl, os\nfile = os.open({os.__file__!r}, os.O_RDONLY{{}})"
    assert_stopped(opened.format(" | os.O_DIRECT"), layers=layers)
    flags = f"{opened.format('')}\nfcntl.fcntl(file, fcntl.F_SETFL, {{}})"
    assert_stopped(flags.format("os.O_DIRECT | os.O_NONBLOCK"), layers=layers)
    assert_stopped(
        flags.format("os.O_NONBLOCK") + "\nraise ValueError", "ValueError", layers=layers
    )


def test_a_crash_of_the_tests_process_is_an_error():
    for crash in ("import ctypes\nctypes.string_at(0)", "import os\nos.kill(os.getpid(), 9)"):
        outcome = run("def f(x):\n    return 2 * x", f"assert f(2) == 4\n{crash}")
        assert outcome == program.Outcome("error", "the process of the asserts ended")


def test_no_program_of_the_same_user_reads_the_memory_of_a_worker(grade_path):
    with VerifierPool(1, 60.0, grade_path=grade_path) as pool:
        [verdict] = pool.grade_many_blocking([Item("a response", "its tests", False, "program")])
    assert verdict.detail == "dumpable: 0"


@BOTH_WAYS
@pytest.mark.parametrize(
    ("code", "by"),
    [
        ("import os\nwhile True: os.fork()", "PermissionError"),
        ("import subprocess\nsubprocess.run(['true'])", "PermissionError"),
        ("import os\nos.execv('/bin/true', ['true'])", "PermissionError"),
        ("import os\nos.posix_spawn('/bin/true', ['true'], {})", "PermissionError"),
        ("import threading\nthreading.Thread(target=print).start()", "RuntimeError"),
    ],
    ids=["fork bomb", "subprocess", "exec", "spawn", "thread"],
)
def test_a_fork_bomb_gets_no_process(code, by, layers):
    assert_stopped(code, by, layers=layers)


@BOTH_WAYS
def test_a_memory_bomb_meets_its_limit(layers):
    assert_stopped("x = bytearray(1 << 40)", "MemoryError", layers=layers)
    growing = "x = []\nwhile True:\n    x.append(bytearray(1 << 22))"
    assert_stopped(growing, "MemoryError", layers=layers)


@BOTH_WAYS
def test_no_file_is_written_anywhere(tmp_path, layers):
    victim, new = tmp_path / "victim", tmp_path / "new"
    victim.write_text("untouched")
    for code in (
        f"open({str(new)!r}, 'w')",
        f"open({str(victim)!r}, 'a')",
        f"open({str(victim)!r}, 'r+')",
        f"import os\nos.unlink({str(victim)!r})",
        f"import os\nos.truncate({str(victim)!r}, 0)",
        f"import os\nos.rename({str(victim)!r}, {str(new)!r})",
        f"import os\nos.chmod({str(victim)!r}, 0o777)",
        f"import os\nos.mkdir({str(new)!r})",
        f"import os\nos.symlink({str(victim)!r}, {str(new)!r})",
        "import os\nos.memfd_create('x')",
        "open('/dev/shm/written_by_a_program', 'w')",
    ):
        assert_stopped(code, layers=layers)
    assert victim.read_text() == "untouched"
    assert list(tmp_path.iterdir()) == [victim]
    assert not os.path.exists("/dev/shm/written_by_a_program")


@NEEDS_LANDLOCK
def test_the_answer_file_cannot_be_read(tmp_path):
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"tests": "assert f(2) == 4"}')
    for path in (answers, tmp_path, "/etc/passwd", "/proc/self/environ", os.path.abspath(__file__)):
        reader = "import os\nos.listdir" if os.path.isdir(path) else "open"
        assert_stopped(f"{reader}({str(path)!r})")


@BOTH_WAYS
def test_the_memory_and_environment_of_other_processes_cannot_be_read(layers):
    for pid in (os.getpid(), "os.getppid()"):
        if pid == os.getpid() and "landlock" not in layers:
            continue  # a process of the same user that does not hide itself: not covered
        for name in ("mem", "environ", "maps"):
            assert_stopped(f"import os\nopen(f'/proc/{{{pid}}}/{name}').read(1)", layers=layers)


@BOTH_WAYS
def test_the_asserts_are_nowhere_in_the_process_of_the_program(layers):
    source = """
import gc, os, sys
def f(x):
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(repr(frame.f_locals) + repr(frame.f_globals))
        frame = frame.f_back
    seen += [each for each in gc.get_objects() if isinstance(each, str)]
    seen += [repr(each)[:10000] for each in gc.get_objects() if isinstance(each, (dict, list))]
    seen += [repr(sys.argv), repr(os.environ)]
    return [x in text for text in seen].count(True) > 0, "an-expected-" + "value" in "".join(seen)
"""
    # The argument is in there, the expected value is not.
    tests = "assert f('an-argument') == (True, False), 'an-expected-value'"
    assert run(source, tests, layers=layers) == program.Outcome("correct")


@BOTH_WAYS
def test_no_network_is_reached(layers):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for code in (
            f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)",
            "import socket\nsocket.socket(socket.AF_UNIX)",
            "import socket\nsocket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
            "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        ):
            assert_stopped(code, layers=layers)
        with pytest.raises(TimeoutError, match="timed out"):
            server.accept()


@BOTH_WAYS
def test_no_other_process_is_signalled(layers):
    owner = "import fcntl, os\nfcntl.fcntl(0, fcntl.F_SETOWN, {})"
    for code in (
        "import os\nos.kill(os.getppid(), 9)",
        f"import os\nos.kill({os.getpid()}, 9)",
        "import os\nos.kill(-1, 9)",
        "import os\nos.killpg(0, 9)",
        "import os\nos.setsid()",
        "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
        "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        owner.format("os.getppid()"),
    ):
        assert_stopped(code, layers=layers)


@BOTH_WAYS
@pytest.mark.parametrize(
    "call", ["ptrace", "mount", "unshare", "setns", "bpf", "io_uring_setup", "process_vm_readv"]
)
def test_calls_below_python_are_refused_too(call, layers):
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers below are those of x86_64")
    numbers = {
        "ptrace": 101, "mount": 165, "unshare": 272, "setns": 308, "process_vm_readv": 310,
        "bpf": 321, "io_uring_setup": 425,
    }  # fmt: skip
    source = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "def f(n):\n    return libc.syscall(n, 0, 0, 0, 0, 0, 0), ctypes.get_errno()"
    )
    tests = f"assert f({numbers[call]}) == (-1, 1), f({numbers[call]})"  # errno 1: EPERM
    assert run(source, tests, layers=layers) == program.Outcome("correct")


def test_a_machine_without_the_sandbox_gives_no_verdict_unless_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(program, "layers_for", lambda isolation: None)
    outcome = run("def f(x):\n    return 4", layers=None)
    assert outcome.reason == "error" and "this machine offers" in outcome.detail
    assert run("def f(x):\n    return 2 * x", layers=()).reason == "correct"


def test_a_killed_worker_takes_the_program_with_it():
    program = Item(
        "```python\nimport time\ntime.sleep(600)\n```", "assert f(1) == 1", False, "program"
    )
    options = GradeOptions(program_wall_s=300.0)
    pool = VerifierPool(1, 600.0, options=options)
    [future] = pool.submit([program])
    deadline = time.monotonic() + 120.0
    while (
        len(tree := psutil.Process().children(recursive=True)) < 4 and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    assert len(tree) == 4  # the worker factory, its worker, the program, the asserts
    time.sleep(0.3)  # both have closed their sandboxes
    pool.close()
    assert future.done()
    assert psutil.wait_procs(tree, timeout=60.0)[1] == []
