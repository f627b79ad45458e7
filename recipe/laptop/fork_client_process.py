"""Replace Python in a CPU run: ask the fork server for a process that has the imports.

It lives as long as that process and ends with its exit code. Without a server it becomes Python.
"""

import json
import os
import socket
import struct
import sys
import time

SOCKET, PYTHON = "HINT_FORK_SERVER", "HINT_PYTHON"
MAX_FDS = 250  # the kernel takes 253 in one message
_LIMIT_S = 30.0  # for the server's imports; Ray waits 60 s for a worker


def main(argv: list[str]) -> None:
    """Run ``python *argv`` in a fork of the server."""
    open_fds = [int(name) for name in os.listdir("/proc/self/fd")]
    fds = sorted(fd for fd in open_fds if os.path.exists(f"/proc/self/fd/{fd}"))[:MAX_FDS]
    request = json.dumps([argv, dict(os.environ), os.getcwd(), fds]).encode()
    channel, deadline = socket.socket(socket.AF_UNIX), time.monotonic() + _LIMIT_S
    try:
        while not os.path.exists(os.environ[SOCKET]) and time.monotonic() < deadline:
            time.sleep(0.05)
        channel.settimeout(_LIMIT_S)
        channel.connect(os.environ[SOCKET])
        socket.send_fds(channel, [struct.pack("!I", len(request))], fds)
        channel.sendall(request)
        if not channel.recv(1):
            raise OSError("the server could not fork")
    except (OSError, KeyError):
        python = os.environ.get(PYTHON, sys.executable)  # a cluster that another process began
        os.execv(python, [python, *argv])
    channel.settimeout(None)
    for fd in fds:  # a pipe must end when the process does, not when this one does
        os.close(fd)
    code = channel.recv(4, socket.MSG_WAITALL)  # nothing if it was killed
    os._exit(struct.unpack("!i", code)[0] if code else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
