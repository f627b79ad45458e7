"""A hung, crashed or unstartable worker costs its own grade and nothing else."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from processes import is_alive, wait_for

from recipe.run.errors import VerifierError
from recipe.verify import pool as pools
from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

ROOT = Path(__file__).resolve().parents[3]
# What a hung grade is waited for; a sound one beside it needs milliseconds, also on a busy machine.
LIMIT_S = 4.0
LIMITS = {"timeout_s": LIMIT_S, "options": GradeOptions(wall_factor=1.0)}

# The response is a command; anything else is compared with the answer.
GRADE_MODULE = """
import ctypes, os, signal, time
from recipe.verify.schema import Verdict

def grade(item, options):
    response, answer, *_ = item
    if response == "sleep":
        time.sleep(3600)
    if response == "spin inside C":
        9 ** 9 ** 9 ** 2
    if response == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if response == "segfault":
        ctypes.string_at(0)
    if response == "raise":
        raise RuntimeError("a bug in a grade function")
    if response == "memory":
        bytearray(1 << 40)
    if response == "pid":
        return Verdict(0.0, "wrong", str(os.getpid()))
    is_correct = response == answer
    return Verdict(float(is_correct), "correct" if is_correct else "wrong", response)
"""


def reasons(verdicts):
    return [verdict.reason for verdict in verdicts]


def worker_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("verifier worker")]


def test_verdicts_come_back_in_the_order_of_the_items():
    items = [Item(rf"\boxed{{\sqrt{{{n * n * 2}}}}}", rf"{n}\sqrt{{2}}") for n in range(2, 8)]
    items[3] = Item(r"\boxed{\sqrt{3}}", r"5\sqrt{2}")
    items[4] = Item("no box", "5", True)
    with VerifierPool() as pool:
        verdicts = pool.grade_many_blocking(items)
        assert reasons(verdicts) == ["correct"] * 3 + ["wrong", "truncated", "correct"]


@pytest.mark.parametrize("hang", ["sleep", "spin inside C"])
def test_a_hung_grade_times_out_alone(grade_path, hang):
    with VerifierPool(1, **LIMITS, grade_path=grade_path) as pool:
        verdicts = pool.grade_many_blocking([Item("a", "a"), Item(hang, "")])
        assert reasons(verdicts) == ["correct", "timeout"]


@pytest.mark.parametrize("crash", ["sigkill", "segfault", "raise", "memory"])
def test_a_crash_is_an_error_of_one_grade(grade_path, crash):
    items = [Item("a", "a"), Item(crash, ""), Item("b", "b"), Item("pid", "")]
    with VerifierPool(1, grade_path=grade_path) as pool:
        verdicts = pool.grade_many_blocking(items)
        assert reasons(verdicts) == ["correct", "error", "correct", "wrong"]


def test_an_undecided_verdict_is_logged_with_the_id_of_its_prompt(grade_path, caplog):
    items = [Item("sleep", ""), Item("a", "a"), Item("raise", "")]
    with VerifierPool(1, **LIMITS, grade_path=grade_path) as pool:
        pool.grade_many_blocking(items, ["p1", "p2", "p3"])
    messages = [record.message for record in caplog.records if "on prompt" in record.message]
    assert len(messages) == 2
    assert "error on prompt p3: RuntimeError: a bug in a grade function" in messages
    assert any(re.match(r"timeout on prompt p1: no verdict after 0\.\d s", m) for m in messages)


def test_a_cancelled_call_leaves_the_pool_usable(grade_path):
    async def cancel_then_grade(pool):
        task = asyncio.create_task(pool.grade_many([Item("sleep", "")]))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await pool.grade_many([Item("a", "a")])

    with VerifierPool(1, **LIMITS, grade_path=grade_path) as pool:
        assert reasons(asyncio.run(cancel_then_grade(pool))) == ["correct"]


def run_script(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_daemonic_process_can_own_a_pool():
    script = """
import multiprocessing, sys
def work():
    from recipe.verify.schema import Item
    from recipe.verify.pool import VerifierPool
    with VerifierPool() as pool:
        [verdict] = pool.grade_many_blocking([Item(r"\\boxed{\\sqrt{8}}", r"2\\sqrt{2}")])
    sys.exit(0 if verdict.reason == "correct" else 3)
process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
process.start()
process.join()
print(process.exitcode)
"""
    output, _ = run_script(script).communicate(timeout=120)
    assert output.strip() == "0"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_end_with_a_killed_parent_even_inside_c_code(grade_path):
    script = """
import sys
from recipe.verify.schema import Item
from recipe.verify.pool import VerifierPool
pool = VerifierPool(2, 600.0, grade_path=sys.argv[1])
pool.submit([Item("spin inside C", "")])
while not pool._workers: pass
print(pool._factory.pid, *(worker.pid for worker in pool._workers), flush=True)
import time; time.sleep(600)
"""
    parent = run_script(script, grade_path)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert pids and all(map(is_alive, pids))
    time.sleep(0.3)  # the grade is inside C now, where no Python thread of the worker runs
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not any(map(is_alive, pids)))


def test_a_worker_that_never_gets_ready_is_named(grade_path, monkeypatch):
    monkeypatch.setattr(pools, "_START_LIMIT_S", 0.5)
    pool = VerifierPool(1, grade_path="slow_to_import:grade")
    with pool, pytest.raises(VerifierError, match=r"slow_to_import:grade: no answer within 0\.5 s"):
        pool.grade_many_blocking([Item("a", "a")])


def test_a_grade_that_cannot_be_imported_is_named(grade_path):
    pool = VerifierPool(1, grade_path="no_such_module:grade")
    with (
        pool,
        pytest.raises(
            VerifierError, match="cannot import no_such_module:grade: ModuleNotFoundError"
        ),
    ):
        asyncio.run(pool.grade_many([Item("a", "a"), Item("b", "b")]))


def test_closing_ends_the_processes_and_fails_the_waiting_calls(grade_path):
    pool = VerifierPool(1, 600.0, grade_path=grade_path)
    futures = pool.submit([Item("sleep", ""), Item("a", "a")])
    wait_for(lambda: pool._workers)
    [pid] = [worker.pid for worker in pool._workers]
    pool.close()
    for future in futures:
        with pytest.raises(VerifierError, match="pool is closed"):
            future.result(timeout=60)
    assert not Path(f"/proc/{pid}").exists()  # reaped: not even a zombie
    assert worker_threads() == []
    pool.close()
    with pytest.raises(VerifierError, match="pool is closed"):
        pool.grade_many_blocking([Item("a", "a")])


def test_a_killed_worker_factory_is_replaced(grade_path):
    with VerifierPool(1, grade_path=grade_path) as pool:
        pool.grade_many_blocking([Item("a", "a")])
        [factory] = psutil.Process().children()
        factory.kill()
        factory.wait()
        assert reasons(pool.grade_many_blocking([Item("a", "a")] * 2)) == ["correct"] * 2
        assert psutil.Process().children() != [factory]
        [factory] = psutil.Process().children()
        wait_for(lambda: not factory.children())  # not even an ended grade is left
    assert psutil.Process().children(recursive=True) == []


def test_files_of_the_working_folder_shadow_no_module_of_a_grade(grade_path, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("json", "socket", "recipe"):
        (folder / f"{name}.py").write_text("raise RuntimeError('this is not the module')\n")
    monkeypatch.chdir(folder)
    with VerifierPool(1, grade_path=grade_path) as pool:
        assert reasons(pool.grade_many_blocking([Item("a", "a")])) == ["correct"]
