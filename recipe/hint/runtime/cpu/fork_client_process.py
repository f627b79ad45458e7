"""Stands where a process of the run calls for Python: asks the fork server for a warm one.

A program of its own that imports next to nothing. It lives as long as the process it asked for,
passes signals on to it and ends with its exit code, so whoever started it sees a usual process.
Without a server it becomes the real Python with the same arguments.
"""

import json
import os
import signal
import socket
import struct
import sys
import time

SOCKET = "HINT_FORK_SERVER"
SERVER_PID = "HINT_FORK_SERVER_PID"
PYTHON = "HINT_PYTHON"
EXECUTABLE = "HINT_FORK_EXECUTABLE"  # this program, as it is started
# The server imports for this long at most before it answers; then it is done without.
_LIMIT_S = 60.0
_MAX_FDS = 250
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(argv: list[str]) -> None:
    """Run ``python *argv`` in a fork of the server."""
    channel = _connect(os.environ.get(SOCKET, ""))
    if channel is None:
        os.execv(os.environ[PYTHON], [os.environ[PYTHON], *argv])
    fds = _open_fds(channel.fileno())
    request = {
        "argv": argv,
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "fds": fds,
        "group": 0 if os.getpgrp() == os.getpid() else os.getpgrp(),
    }
    text = json.dumps(request).encode()
    socket.send_fds(channel, [struct.pack("!I", len(text))], fds)
    channel.sendall(text)
    pid = struct.unpack("!i", _read(channel, 4))[0]
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: os.kill(pid, received))
    for fd in fds:  # a pipe must end when the process does, not when this one does
        os.close(fd)
    _end_as(struct.unpack("!i", _read(channel, 4))[0])


def _connect(path: str) -> "socket.socket | None":
    deadline = time.monotonic() + _LIMIT_S
    while path and time.monotonic() < deadline:
        channel = socket.socket(socket.AF_UNIX)
        try:
            channel.connect(path)
            return channel
        except (FileNotFoundError, ConnectionRefusedError):
            channel.close()
            if not _is_running(os.environ.get(SERVER_PID, "0")):
                break
            time.sleep(0.05)
    return None


def _is_running(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _open_fds(own: int) -> list[int]:
    fds = [int(name) for name in os.listdir("/proc/self/fd")]
    return [fd for fd in sorted(fds) if fd != own and _is_open(fd)][:_MAX_FDS]


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _read(channel: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:  # the server is gone, and its processes with it
            os._exit(1)
        data += part
    return data


def _end_as(status: int) -> None:
    """With the same exit code, or by the same signal."""
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
