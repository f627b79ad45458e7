"""Replaces Python in a CPU run: asks the fork server for a process that has the imports.

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

SOCKET, PYTHON, EXECUTABLE = "HINT_FORK_SERVER", "HINT_PYTHON", "HINT_FORK_EXECUTABLE"
_LIMIT_S = 30.0  # for the server's imports; Ray waits 60 s for a worker
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main(argv: list[str]) -> None:
    """Run ``python *argv`` in a fork of the server."""
    deadline = time.monotonic() + _LIMIT_S
    path, channel = os.environ.get(SOCKET, ""), socket.socket(socket.AF_UNIX)
    while failure := channel.connect_ex(path):
        is_gone = failure == errno.ECONNREFUSED or not os.path.isdir(os.path.dirname(path))
        if is_gone or time.monotonic() > deadline:
            python = os.environ.get(PYTHON, sys.executable)  # a cluster that another process began
            os.execv(python, [python, *argv])
        time.sleep(0.05)
    fds = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    fds = [fd for fd in fds if fd != channel.fileno() and os.path.exists(f"/proc/self/fd/{fd}")]
    group = 0 if os.getpgrp() == os.getpid() else os.getpgrp()
    request = json.dumps([argv, dict(os.environ), os.getcwd(), fds, group]).encode()
    socket.send_fds(channel, [struct.pack("!I", len(request))], fds[:250])
    channel.sendall(request)
    reader = channel.makefile("rb")
    [pid] = struct.unpack("!i", reader.read(4))
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: os.kill(pid, received))
    for fd in fds:  # a pipe must end when the process does, not when this one does
        with contextlib.suppress(OSError):
            os.close(fd)
    status = reader.read(4)  # nothing: the server is gone, and its processes with it
    code = struct.unpack("!i", status)[0] if status else 1
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
