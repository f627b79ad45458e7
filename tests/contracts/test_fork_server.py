"""Processes forked from a warm one look like ones that were started."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from recipe.laptop import fork_server_process
from recipe.laptop.fork_client_process import SOCKET
from recipe.laptop.fork_server_process import fork_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python():
    """The program that stands for Python, with the imports of a run behind it."""
    before = dict(os.environ)
    with fork_server() as executable:
        yield executable
    os.environ.clear()
    os.environ.update(before)


def run(python, code, *args, **kwargs):
    return subprocess.run(
        [python, "-c", code, *args], capture_output=True, text=True, timeout=300, **kwargs
    )


def test_arguments_output_and_exit_code_arrive(python):
    end = run(python, "import sys; print(sys.argv); print('no', file=sys.stderr); sys.exit(3)", "a")
    assert (end.returncode, end.stdout, end.stderr) == (3, "['-c', 'a']\n", "no\n")


def test_the_imports_are_there_before_the_code_runs(python):
    end = run(python, "import sys; print('torch' in sys.modules, 'ray' in sys.modules)")
    assert end.stdout == "True False\n"  # Ray keeps what it finds at its import


def test_a_process_shows_the_title_that_it_gives_itself(python):
    code = (
        "import os, setproctitle\n"
        "setproctitle.setproctitle('VLLM::EngineCore')\n"
        "print(open(f'/proc/{os.getpid()}/cmdline').read().rstrip(chr(0)))"
    )
    assert run(python, code).stdout == "VLLM::EngineCore\n"


def test_environment_and_folder_are_those_of_the_caller(python, tmp_path):
    code = "import os; print(os.environ.get('A'), os.environ.get('HOME'), os.getcwd())"
    environment = {
        name: value for name, value in os.environ.items() if name.startswith("HINT_")
    } | {"A": "b", "PATH": os.environ["PATH"]}
    end = run(python, code, env=environment, cwd=tmp_path)
    assert end.stdout == f"b None {tmp_path}\n"


def test_an_error_ends_with_its_traceback_and_code_one(python):
    end = run(python, "raise ValueError('seven')")
    assert end.returncode == 1
    assert "ValueError: seven" in end.stderr


def test_a_process_that_says_why_it_ends_is_heard(python):
    end = run(python, "import sys; sys.exit('for this reason')")
    assert (end.returncode, end.stderr) == (1, "for this reason\n")


def test_descriptors_keep_their_numbers(python):
    read, write = os.pipe()
    end = run(python, f"import os; os.write({write}, b'x')", pass_fds=(write,))
    os.close(write)
    assert end.returncode == 0, end.stderr
    assert os.read(read, 10) == b"x"
    assert os.read(read, 10) == b""  # nobody else holds the other end
    os.close(read)


def test_forks_draw_different_random_numbers(python):
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    first, second = run(python, code).stdout.split(), run(python, code).stdout.split()
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_forks_draw_different_ids_from_ray(python):
    # Its generator seeds itself once: used before the fork, all forks would go on with one seed.
    code = "import ray; print(ray.ObjectID.from_random().hex(), ray.NodeID.from_random().hex())"
    ids = [each for _ in range(3) for each in run(python, code).stdout.split()]
    assert len(set(ids)) == len(ids) == 6


def test_what_our_modules_define_for_ray_has_ids_of_its_own(python):
    code = (
        "import ray.actor\n"
        "from ray import ActorClassID\n"
        "assert ray.actor.ActorClassID is ActorClassID\n"
        "from transfer_queue.controller import TransferQueueController as a\n"
        "from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ as b\n"
        "ids = [each.__ray_metadata__.class_id for each in (a, b)]\n"
        "print(all(type(each) is ActorClassID for each in ids), ids[0] != ids[1])"
    )
    end = run(python, code)
    assert end.stdout == "True True\n", end.stderr


def test_a_fork_has_a_group_of_its_own_where_its_caller_leads_one(python):
    # Ray's workers are such callers, and Ray kills the whole group of a worker that ends.
    code = "import os; print(os.getpid() == os.getpgrp(), os.getpgid(os.getppid()))"
    first, group_of_server = run(python, code, process_group=0).stdout.split()
    assert first == "True"
    assert int(group_of_server) != os.getpgrp()


def test_a_process_of_a_fork_stays_in_the_group_of_that_fork(python):
    code = (
        "import os, subprocess\n"
        "print(os.getpid(), flush=True)\n"
        "code = 'import os; print(os.getpgrp())'\n"
        "subprocess.run([os.environ['HINT_FORK_EXECUTABLE'], '-c', code])"
    )
    end = run(python, code, process_group=0)
    leader, group = end.stdout.split()
    assert group == leader, end.stderr


def test_a_killed_caller_takes_its_process_along_and_a_signal_is_passed_on(python):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    for number, expected in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, -signal.SIGTERM)):
        process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True)
        pid = int(process.stdout.readline())
        assert pid != process.pid
        process.send_signal(number)
        assert process.wait(120) == expected
        deadline = time.monotonic() + 120
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{pid}")


def test_the_processes_of_a_fork_come_from_the_server_too(python):
    code = (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    spawn.Process(target=print, args=('ok',)).start()"
    )
    end = run(python, code)
    assert (end.returncode, end.stdout) == (0, "ok\n"), end.stderr


def test_without_a_server_it_is_the_real_python(python, tmp_path):
    gone = {SOCKET: str(tmp_path / "gone" / "socket")}
    end = run(python, "import sys; print(sys.executable)", env=os.environ | gone)
    assert end.stdout == f"{sys.executable}\n"


def server_of_this_process():
    [found] = [
        each
        for each in psutil.Process().children()
        if fork_server_process.__name__ in each.cmdline()
    ]
    return found


def test_a_server_that_does_not_answer_is_named(python, tmp_path):
    source = Path(python).read_text()
    hurried = tmp_path / "python"
    hurried.write_text(source.replace("_LIMIT_S = 30.0", "_LIMIT_S = 1.0"))
    hurried.chmod(0o755)
    assert run(python, "print('ok')").stdout == "ok\n"  # it has its imports
    server = server_of_this_process()
    server.suspend()
    try:
        with (tmp_path / "errors").open("w+") as errors:
            # Not by a pipe: the request, which the server has not read, keeps its end open.
            code = subprocess.run([hurried, "-c", "print(7)"], stderr=errors, timeout=60).returncode
    finally:
        server.resume()
    assert code == 1
    said = (tmp_path / "errors").read_text()
    assert said.startswith("the fork server did not answer within 1 s\n")
    assert run(python, "print('ok')").stdout == "ok\n"


def test_a_server_without_files_left_does_not_end(python):
    server = server_of_this_process()
    limits = server.rlimit(psutil.RLIMIT_NOFILE)
    assert limits[0] == min(limits[1], 65536)
    server.rlimit(psutil.RLIMIT_NOFILE, (server.num_fds(), limits[1]))
    try:
        process = subprocess.Popen([python, "-c", "print('ok')"], stdout=subprocess.PIPE)
        time.sleep(1)
    finally:
        server.rlimit(psutil.RLIMIT_NOFILE, limits)
    assert process.communicate(timeout=120)[0] == b"ok\n"
    assert server_of_this_process() == server


@pytest.fixture
def environment(python):
    """The environment as it was, behind a second server."""
    before = dict(os.environ)
    yield
    os.environ.update(before)


def test_a_server_that_dies_is_named_and_nobody_waits_for_it(environment, capfd):
    with fork_server() as executable:
        environment_there = dict(os.environ)
        [server] = [
            each
            for each in psutil.Process().children()
            if fork_server_process.__name__ in each.cmdline()
            and each.environ().get(SOCKET) == environment_there[SOCKET]
        ]
        server.kill()
        while not Path(environment_there[SOCKET]).exists():
            time.sleep(0.05)
        command = [executable, "-c", "print('ok')"]
        end = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment_there,
            timeout=25,  # of the 30 that a server's imports may take
        )
        assert end.stdout == "ok\n", end.stderr
    assert f"the fork server died (pid {server.pid}, code -9)" in capfd.readouterr().err


def test_a_temporary_folder_with_a_long_name_gets_its_socket_elsewhere(
    environment, monkeypatch, tmp_path
):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with fork_server() as executable:
        assert executable.startswith("/tmp/hint-")
    assert not list(long.iterdir())


def test_where_no_program_runs_there_is_no_server(environment, monkeypatch, capfd):
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # as on a disk that is mounted noexec
    names = dict(os.environ)
    with fork_server() as executable:
        assert executable == ""
        assert os.environ == names
    assert "does not run: each process imports by itself" in capfd.readouterr().err
