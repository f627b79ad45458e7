"""A process that ends while it is looked at, named or told something is no error."""

import contextlib
import errno
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from types import SimpleNamespace

import psutil
import pytest

from recipe.laptop import fork_client_process
from recipe.run import ray_services
from recipe.run.errors import ConfigError
from recipe.run.folder_lock import claimed
from recipe.run.ray_services import RayServices, starting


class Process:
    """A zombie of psutil; ``gone`` has left between the look at it and the question."""

    def __init__(self, name):
        self._name = name

    def name(self):
        if self._name == "gone":
            raise psutil.NoSuchProcess(7)
        return self._name

    def is_running(self):
        return True

    def status(self):
        return psutil.STATUS_ZOMBIE


def children(monkeypatch, *looks):
    """Let each look at this process's children find the next of these, the last for ever."""
    left = [[Process(name) for name in names] for names in looks]

    def found(recursive=False):
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(children=found))


def test_services_are_found_beside_a_process_that_has_just_ended(monkeypatch):
    children(monkeypatch, ["gone", "raylet", "python"])
    assert list(RayServices()._services) == ["raylet"]


def test_the_start_of_ray_stays_watched_after_a_process_that_has_just_ended(monkeypatch):
    children(monkeypatch, ["gone"], ["gone", "raylet"])
    told, is_told = [], threading.Event()

    def give_up(reason):
        told.append(reason)
        is_told.set()

    monkeypatch.setattr(ray_services, "_give_up", give_up)
    with starting(600):
        assert is_told.wait(60)
    assert told[0] == "Ray's process raylet died while Ray started"


def ended_pid():
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


def test_a_signal_for_a_process_that_has_just_ended_leaves_its_exit_code(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        client = subprocess.Popen(
            [sys.executable, fork_client_process.__file__, "-c", "pass"],
            env={**os.environ, fork_client_process.SOCKET: str(tmp_path / "socket")},
            stdout=subprocess.PIPE,
        )
        channel = listener.accept()[0]
    with channel:
        head, descriptors, _, _ = socket.recv_fds(channel, 4, fork_client_process.MAX_FDS)
        with channel.makefile("rb") as lines:
            lines.read(struct.unpack("!I", head)[0])
        for each in descriptors:
            os.close(each)
        channel.sendall(struct.pack("!i", ended_pid()))
        assert client.stdout.read() == b""  # it passes signals on now, and has closed its files
        client.send_signal(signal.SIGTERM)
        with contextlib.suppress(OSError):  # its code, below, tells
            channel.sendall(struct.pack("!i", 5))
        assert client.wait(60) == 5
    client.stdout.close()


def test_a_signal_for_a_process_that_is_gone_is_dropped():
    fork_client_process._pass_on(ended_pid(), signal.SIGTERM)


_KILLED = """
import subprocess, sys, time
from pathlib import Path
from recipe.run.folder_lock import claimed
with claimed(Path(sys.argv[1])) as number:
    child = subprocess.Popen(
        ["sleep", "600"], pass_fds=(number,), stdout=subprocess.DEVNULL, start_new_session=True
    )
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_a_folder_that_children_of_a_killed_command_hold_says_so(tmp_path):
    lock = tmp_path / ".lock"
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(lock)], stdout=subprocess.PIPE, text=True
    ) as command:
        child = int(command.stdout.readline())
        command.kill()
    try:
        told = (
            rf"in use by another run \(process {command.pid} on .*, which was killed; processes "
            rf"that it started, .*, have not ended\): end them, or give another folder"
        )
        with pytest.raises(ConfigError, match=told), claimed(lock):
            pass
        # Of a process on another machine nothing is known.
        lock.write_text(f"process {command.pid} on another-machine")
        told = rf"\(process {command.pid} on another-machine\): wait for its end, or give"
        with pytest.raises(ConfigError, match=told), claimed(lock):
            pass
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_disk_without_locks_is_told_with_what_may_happen(tmp_path, monkeypatch, caplog):
    def flock(file, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with claimed(tmp_path / ".lock"):
        pass
    [record] = caplog.records
    assert record.getMessage().startswith(f"{tmp_path}: its disk has no file locks (No locks av")
    assert "a second run in this folder" in record.getMessage()
