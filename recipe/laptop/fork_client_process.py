"""Replace Python in a CPU run: ask the fork server for a process that has the imports.

It lives as long as that process, passes signals on and ends with its exit code. Without a server it
becomes the real Python.
"""

import contextlib
import errno
import json
import os
import signal
import socket
import struct
import sys
import time
from typing import NoReturn

SOCKET, PYTHON, EXECUTABLE = "HINT_FORK_SERVER", "HINT_PYTHON", "HINT_FORK_EXECUTABLE"
CHECK = "--hint-check"
MAX_FDS = 250  # the kernel takes 253 in one message
_LIMIT_S = 30.0  # for the server's imports; Ray waits 60 s for a worker
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(argv: list[str]) -> None:
    """Run ``python *argv`` in a fork of the server."""
    if argv == [CHECK]:
        return
    if not (channel := _connected()):
        _become_python(argv)
    fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    fds = [fd for fd in fds if fd != channel.fileno() and os.path.exists(f"/proc/self/fd/{fd}")]
    group = 0 if os.getpgrp() == os.getpid() else os.getpgrp()
    request = json.dumps([argv, dict(os.environ), os.getcwd(), fds, group]).encode()
    try:
        socket.send_fds(channel, [struct.pack("!I", len(request))], fds[:MAX_FDS])
        channel.sendall(request)
        started = channel.recv(4, socket.MSG_WAITALL)
    except TimeoutError:
        sys.exit(f"the fork server did not answer within {_LIMIT_S:g} s")
    except OSError:
        started = b""
    if len(started) < 4:  # it has no files or processes left, or died
        _become_python(argv)
    [pid] = struct.unpack("!i", started)
    channel.settimeout(None)
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: _pass_on(pid, received))
    for fd in fds:  # a pipe must end when the process does, not when this one does
        with contextlib.suppress(OSError):
            os.close(fd)
    # Nothing comes if the server is gone, and its processes with it.
    status = channel.recv(4, socket.MSG_WAITALL)
    code = struct.unpack("!i", status)[0] if status else 1
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _pass_on(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended, and its code is on the way
        os.kill(pid, number)


def _connected() -> socket.socket | None:
    """Return a connection to the server; none if there is no server."""
    deadline = time.monotonic() + _LIMIT_S
    path, channel = os.environ.get(SOCKET, ""), socket.socket(socket.AF_UNIX)
    channel.settimeout(_LIMIT_S)
    while failure := channel.connect_ex(path):
        is_gone = failure == errno.ECONNREFUSED or not os.path.isdir(os.path.dirname(path))
        if is_gone or time.monotonic() > deadline:
            return None
        time.sleep(0.05)
    return channel


def _become_python(argv: list[str]) -> NoReturn:
    python = os.environ.get(PYTHON, sys.executable)  # a cluster that another process began
    os.execv(python, [python, *argv])


if __name__ == "__main__":
    main(sys.argv[1:])
