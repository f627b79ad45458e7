"""What a process does to itself before it runs a program that nobody has read.

Works without privileges and without namespaces, so in a container too, for root and for others.
``docs/programs.md`` lists what is covered. Kept free of imports that cost time: two
processes per program go through here.

The system calls are a list of what is allowed: a call that nobody thought of is refused with
``EPERM``, which a Python program sees as a ``PermissionError``. Nothing on it makes a process,
opens a file for writing, makes a socket, or signals another process. Source: the kernel's
seccomp(2) and bpf filter layout; call numbers are those of the kernel's asm/unistd_64.h (x86_64).
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_GET_SECCOMP, _PR_SET_SECCOMP = 1, 4, 21, 22
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9
_CAPSET, _CAPABILITY_VERSION_3 = 126, 0x20080522
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR, _EXECUTE = 1 << 2, 1 << 3, 1 << 0
# Rights on files that each version of Landlock knows.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NUM_OPEN_FILES = 64

_libc = ctypes.CDLL(None, use_errno=True)

# The ones in ``_checked`` are allowed for some arguments only.
_CALLS = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14,
    "rt_sigreturn": 15, "ioctl": 16, "pread64": 17, "pwrite64": 18, "readv": 19, "writev": 20,
    "access": 21, "pipe": 22, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28,
    "dup": 32, "dup2": 33, "pause": 34, "nanosleep": 35, "getitimer": 36, "alarm": 37,
    "setitimer": 38, "getpid": 39, "recvfrom": 45, "sendto": 44, "shutdown": 48,
    "getsockname": 51, "getpeername": 52, "socketpair": 53, "setsockopt": 54, "getsockopt": 55,
    "exit": 60, "kill": 62, "uname": 63, "fcntl": 72, "getcwd": 79, "chdir": 80, "readlink": 89,
    "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100,
    "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "getpgrp": 111,
    "getgroups": 115, "getresuid": 118, "getresgid": 120, "rt_sigpending": 127,
    "rt_sigtimedwait": 128, "rt_sigsuspend": 130, "sigaltstack": 131, "arch_prctl": 158,
    "setrlimit": 160, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "epoll_create": 213, "getdents64": 217, "set_tid_address": 218, "restart_syscall": 219,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "openat": 257, "newfstatat": 262,
    "readlinkat": 267, "faccessat": 269, "pselect6": 270, "ppoll": 271, "set_robust_list": 273,
    "epoll_pwait": 281, "eventfd2": 290, "epoll_create1": 291, "dup3": 292, "pipe2": 293,
    "prlimit64": 302, "getrandom": 318, "membarrier": 324, "statx": 332, "rseq": 334,
    "faccessat2": 439,
}  # fmt: skip
# Write-only, read-write, O_CREAT, O_TRUNC, O_TMPFILE.
_OPEN_FOR_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
# O_DIRECT: a program that reads past the cache waits for the disk as long as it likes.
_OPEN_DIRECT = 0o40000
# Descriptors may be copied and made non-blocking. F_SETOWN is missing on purpose: with it the
# kernel sends any signal to any process of the same user.
_FCNTL = (0, 1, 2, 3, 1030)  # F_DUPFD F_GETFD F_SETFD F_GETFL F_DUPFD_CLOEXEC
_F_SETFL = 4
_IOCTL = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS FIONREAD FIONBIO FIONCLEX FIOCLEX
# Streams only: a datagram socket can be pointed at any local service.
_SOCKET_TYPES = tuple(1 | flags for flags in (0, 0o4000, 0o2000000, 0o2004000))

_ARCH = 0xC000003E
_LOAD, _AND, _JUMP_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # _REFUSE: errno 1, EPERM


def available_layers() -> tuple[str, ...]:
    """Return which of ``landlock`` and ``seccomp`` this machine can apply."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return ()
    found = {
        "landlock": _landlock_version() > 0,
        "seccomp": _libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
    }
    return tuple(name for name, is_there in found.items() if is_there)


def attempt(call: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """Return the value of a call and nothing, or nothing and what it raised; never raises."""
    try:
        return call(*arguments), None
    # Whatever code of others raises, SystemExit and KeyboardInterrupt included, is its result.
    except BaseException as problem:
        return None, problem


def bind_to(parent_pid: int) -> None:
    """Hide this process from others of the user, and let the kernel end it with its parent.

    A Python thread would notice the end of the parent too late: what is stuck inside C code holds
    the interpreter lock.
    """
    if sys.platform == "linux":
        _call(_libc.prctl, _PR_SET_DUMPABLE, 0, 0, 0, 0)
        _call(_libc.prctl, _PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the call
        os._exit(0)


def confine_self(cpu_s: str, memory_mib: str, layers: str, parent_pid: str) -> None:
    """Give up, for good, everything a pure function does not need; arguments of a command line.

    A process in which this raises anything must not go on.
    """
    bind_to(int(parent_pid))
    # SIGXCPU can be caught, the hard limit cannot.
    _limit(resource.RLIMIT_CPU, int(cpu_s), int(cpu_s) + 1)
    for kind, most in (
        (resource.RLIMIT_AS, int(memory_mib) << 20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _NUM_OPEN_FILES),
        (resource.RLIMIT_NPROC, 0),  # does not bind root; the filter does
    ):
        _limit(kind, most, most)
    if sys.platform == "linux":
        restrict(layers)


def restrict(layers: str) -> None:
    """Give up capabilities, and what these layers take; for good."""
    if layers:
        # No capabilities: root is a user like others, which cannot read what is not its own.
        header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
        _call(_libc.syscall, _CAPSET, header, bytes(24))
        _call(_libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "landlock" in layers:
        _apply_landlock()
    if "seccomp" in layers:
        _apply_seccomp()


def _limit(kind: int, soft: int, hard: int) -> None:
    """Lower a limit; one that is lower already stays."""
    ceiling = resource.getrlimit(kind)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(kind, (soft, hard))


def _call(function: Callable[..., int], *arguments: Any) -> int:
    result = function(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: the sandbox cannot be closed")
    return result


def _landlock_version() -> int:
    return _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)


def _apply_landlock() -> None:
    """Allow reading Python's own library and the system's; nothing else, and no writing."""
    version = _landlock_version()
    fields = [_FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]]
    if version >= 4:
        fields.append(0b11)  # bind and connect of TCP
    if version >= 6:
        fields.append(0b11)  # abstract sockets and signals of other domains
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(attributes))
    ruleset = _call(_libc.syscall, _LANDLOCK_CREATE, attributes, size, 0)
    python = (os.path.dirname(os.__file__), f"{sys.base_prefix}/lib")
    system = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
    for path in filter(os.path.exists, (*python, *system, "/dev/null")):
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = _READ_FILE | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0)
        rule = struct.pack("=Qi", rights, file)
        _call(_libc.syscall, _LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0)
        os.close(file)
    _call(_libc.syscall, _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _apply_seccomp() -> None:
    """Install the filter, an array of the kernel's ``struct sock_filter``."""
    code = [_op(_LOAD, 4), _op(_JUMP_EQUAL, _ARCH, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, 0)]
    checked = _checked(os.getpid())
    for name, number in _CALLS.items():
        block = checked.get(name, [_op(_RETURN, _ALLOW)])
        code += [_op(_JUMP_EQUAL, number, 0, len(block)), *block]
    code.append(_op(_RETURN, _REFUSE))
    program = ctypes.create_string_buffer(b"".join(code))
    header = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(program))
    _call(_libc.prctl, _PR_SET_SECCOMP, 2, header, 0, 0)


def _checked(pid: int) -> dict[str, list[bytes]]:
    """Return the checks of the calls that are allowed for some arguments only.

    ``pid`` is the process that will be bound; the only one that it may signal.
    """
    flags = _check(2, (0,), mask=_OPEN_DIRECT)  # F_SETFL may set what openat refuses
    of_setfl = [_op(_LOAD, 16 + 8), _op(_JUMP_EQUAL, _F_SETFL, 0, len(flags)), *flags]
    return {
        "openat": _check(2, (0,), mask=_OPEN_FOR_WRITING | _OPEN_DIRECT),
        "fcntl": [*of_setfl, *_check(1, _FCNTL)],
        "ioctl": _check(1, _IOCTL),
        "socketpair": _check(1, _SOCKET_TYPES),
        "kill": _check(0, (pid,)),
        "tgkill": _check(0, (pid,)),
        "prlimit64": _check(0, (0, pid)),
    }


def _check(argument: int, allowed: tuple[int, ...], *, mask: int = 0xFFFFFFFF) -> list[bytes]:
    """Allow when the argument's low 32 bits, masked, are one of the values.

    The kernel takes these arguments as 32-bit integers, so the high half says nothing.
    """
    block = [_op(_LOAD, 16 + 8 * argument), _op(_AND, mask)]
    for value in allowed:
        block += [_op(_JUMP_EQUAL, value, 0, 1), _op(_RETURN, _ALLOW)]
    return [*block, _op(_RETURN, _REFUSE)]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
