"""The fork server's folder is gone however the block ends, and its end is not waited for for ever.

The server itself is in tests/contracts/test_fork_server.py.
"""

import os
import subprocess
import tempfile
import threading

import pytest

from recipe.laptop import fork_server_process
from recipe.laptop.fork_server_process import fork_server


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where its folder is made; short enough for a socket."""
    monkeypatch.setattr(fork_server_process, "_MAX_SOCKET_BYTES", 1000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_ctrl_c_while_the_client_is_tried_leaves_no_folder(place, monkeypatch):
    def interrupted(client):
        assert client.parent.parent == place
        raise KeyboardInterrupt

    monkeypatch.setattr(fork_server_process, "_runs", interrupted)
    with pytest.raises(KeyboardInterrupt), fork_server():
        pass
    assert list(place.iterdir()) == []


def test_a_server_that_cannot_be_started_leaves_neither_folder_nor_names(place, monkeypatch):
    def no_process(*_arguments, **_options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(fork_server_process, "_runs", lambda client: True)
    monkeypatch.setattr(subprocess, "Popen", no_process)
    before = dict(os.environ)
    with pytest.raises(BlockingIOError), fork_server():
        pass
    assert list(place.iterdir()) == []
    assert dict(os.environ) == before


def test_a_server_that_does_not_end_is_left_behind_and_named(place, monkeypatch, capfd):
    ends = threading.Event()

    class Stuck:
        """A server that a disk keeps from ending."""

        pid = 4711

        def __init__(self, *_arguments, **_options):
            pass

        def wait(self):
            ends.wait()
            return -9

        def kill(self):
            pass

    monkeypatch.setattr(fork_server_process, "_runs", lambda client: True)
    monkeypatch.setattr(fork_server_process, "_END_S", 0.05)
    monkeypatch.setattr(subprocess, "Popen", Stuck)
    try:
        with fork_server():
            pass
    finally:
        ends.set()
    told = "the fork server (pid 4711) has not ended 0.05 s after SIGKILL"
    assert told in capfd.readouterr().err
    assert list(place.iterdir()) == []
