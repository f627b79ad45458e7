"""Processes forked from a warm one look like ones that were started."""

import os
import subprocess
import sys

import psutil
import pytest

from recipe.laptop import fork_server_process
from recipe.laptop.fork_client_process import SOCKET
from recipe.laptop.fork_server_process import fork_server
from recipe.run.environment import PYTHON_OF_RUN

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python():
    """The program that stands for Python, with the imports of a run behind it."""
    with fork_server():
        yield os.environ[PYTHON_OF_RUN]


def run(python, code, *args, **kwargs):
    return subprocess.run(
        [python, "-c", code, *args], capture_output=True, text=True, timeout=300, **kwargs
    )


def test_arguments_output_and_exit_code_arrive_and_the_imports_are_there(python):
    code = (
        "import sys; print(sys.argv, 'torch' in sys.modules, 'ray' in sys.modules); "
        "print('no', file=sys.stderr); sys.exit(3)"
    )
    end = run(python, code, "a")  # Ray keeps what it finds at its import
    assert (end.returncode, end.stdout, end.stderr) == (3, "['-c', 'a'] True False\n", "no\n")


def test_environment_and_folder_are_those_of_the_caller(python, tmp_path):
    code = "import os; print(os.environ.get('A'), os.environ.get('HOME'), os.getcwd())"
    environment = {
        name: value for name, value in os.environ.items() if name.startswith("HINT_")
    } | {"A": "b", "PATH": os.environ["PATH"]}
    end = run(python, code, env=environment, cwd=tmp_path)
    assert end.stdout == f"b None {tmp_path}\n"


def test_descriptors_keep_their_numbers(python):
    read, write = os.pipe()
    end = run(python, f"import os; os.write({write}, b'x')", pass_fds=(write,))
    os.close(write)
    assert end.returncode == 0, end.stderr
    assert os.read(read, 10) == b"x"
    assert os.read(read, 10) == b""  # nobody else holds the other end
    os.close(read)


def test_forks_draw_different_random_numbers_and_ids_of_ray(python):
    # Ray's generator seeds itself once: used before the fork, all forks would go on with one seed.
    code = "import random, numpy, ray; print(random.random(), numpy.random.rand(), "
    code += "ray.ObjectID.from_random().hex())"
    drawn = [each for _ in range(3) for each in run(python, code).stdout.split()]
    assert len(set(drawn)) == len(drawn) == 9


def test_a_killed_caller_takes_its_process_along(python):
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    assert pid != process.pid
    process.kill()
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=120)
    assert not psutil.pid_exists(pid)


def test_the_processes_of_a_fork_come_from_the_server_too(python):
    code = (
        "import multiprocessing\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    spawn.Process(target=print, args=('ok',)).start()"
    )
    end = run(python, code)
    assert (end.returncode, end.stdout) == (0, "ok\n"), end.stderr


def test_without_a_server_it_is_the_real_python(python):
    [server] = [
        each
        for each in psutil.Process().children()
        if fork_server_process.__name__ in each.cmdline()
    ]
    assert server.environ()[SOCKET] == os.environ[SOCKET]
    server.kill()
    end = run(python, "import sys; print(sys.executable)")
    assert end.stdout == f"{sys.executable}\n"
