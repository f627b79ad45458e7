"""What a process does to itself before it runs a program that nobody has read.

Works without privileges and without namespaces, so in a container too, for root and for others.
``docs/programs.md`` lists what is covered. Kept free of imports that cost time: two
processes per program go through here.

The system calls are a list of what is allowed: a call that nobody thought of is refused with
``EPERM``, which a Python program sees as a ``PermissionError``. Nothing on it makes a process,
opens a file for writing, makes a socket, or signals another process. Source: the kernel's
seccomp(2) and bpf filter layout; call numbers are those of the kernel's asm/unistd_64.h (x86_64)
and asm-generic/unistd.h (aarch64).
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without the import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 21, 22, 38
_PR_SET_DUMPABLE = 4
_SIGKILL = 9
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
# Landlock's calls have the same numbers everywhere.
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR, _EXECUTE = 1 << 2, 1 << 3, 1 << 0
# Rights on files, on the network and on other processes that each version of Landlock knows.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NUM_OPEN_FILES = 64

_libc = ctypes.CDLL(None, use_errno=True)

_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NONE = -1  # the architecture lacks the call

# name -> numbers on x86_64 and aarch64; the ones in _CHECKED are allowed for some arguments only.
CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, _NONE),
    "fstat": (5, 80), "lstat": (6, _NONE), "poll": (7, _NONE), "lseek": (8, 62),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "ioctl": (16, 29), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65),
    "writev": (20, 66), "access": (21, _NONE), "pipe": (22, _NONE), "select": (23, _NONE),
    "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233), "dup": (32, 23),
    "dup2": (33, _NONE), "pause": (34, _NONE), "nanosleep": (35, 101), "getitimer": (36, 102),
    "alarm": (37, _NONE), "setitimer": (38, 103), "getpid": (39, 172), "recvfrom": (45, 207),
    "sendto": (44, 206), "shutdown": (48, 210), "getsockname": (51, 204),
    "getpeername": (52, 205), "socketpair": (53, 199), "setsockopt": (54, 208),
    "getsockopt": (55, 209), "exit": (60, 93), "kill": (62, 129), "uname": (63, 160),
    "fcntl": (72, 25), "getcwd": (79, 17), "chdir": (80, 49), "readlink": (89, _NONE),
    "gettimeofday": (96, 169), "getrlimit": (97, 163), "getrusage": (98, 165),
    "sysinfo": (99, 179), "times": (100, 153), "getuid": (102, 174), "getgid": (104, 176),
    "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173), "getpgrp": (111, _NONE),
    "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150),
    "rt_sigpending": (127, 136), "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133),
    "sigaltstack": (131, 132), "arch_prctl": (158, _NONE), "setrlimit": (160, 164),
    "gettid": (186, 178), "time": (201, _NONE), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "epoll_create": (213, _NONE), "getdents64": (217, 61),
    "set_tid_address": (218, 96), "restart_syscall": (219, 128), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94),
    "epoll_wait": (232, _NONE), "epoll_ctl": (233, 21), "tgkill": (234, 131),
    "openat": (257, 56), "newfstatat": (262, 79), "readlinkat": (267, 78),
    "faccessat": (269, 48), "pselect6": (270, 72), "ppoll": (271, 73),
    "set_robust_list": (273, 99), "epoll_pwait": (281, 22), "eventfd2": (290, 19),
    "epoll_create1": (291, 20), "dup3": (292, 24), "pipe2": (293, 59), "prlimit64": (302, 261),
    "getrandom": (318, 278), "membarrier": (324, 283), "statx": (332, 291), "rseq": (334, 293),
    "faccessat2": (439, 439),
}  # fmt: skip

# Write-only, read-write, O_CREAT, O_TRUNC, O_TMPFILE: the same bits on both architectures.
_OPEN_FOR_WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
# O_DIRECT: a program that reads past the cache waits for the disk as long as it likes.
_OPEN_DIRECT = {"x86_64": 0o40000, "aarch64": 0o200000}
# Descriptors may be copied and made non-blocking. F_SETOWN is missing on purpose: with it the
# kernel sends any signal to any process of the same user.
_FCNTL = (0, 1, 2, 3, 1030)  # F_DUPFD F_GETFD F_SETFD F_GETFL F_DUPFD_CLOEXEC
_F_SETFL = 4
_IOCTL = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)  # TCGETS FIONREAD FIONBIO FIONCLEX FIOCLEX
# Streams only: a datagram socket can be pointed at any local service.
_SOCKET_TYPES = tuple(1 | flags for flags in (0, 0o4000, 0o2000000, 0o2004000))

_LOAD, _AND, _JUMP_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # _REFUSE: errno 1, EPERM


def available_layers() -> tuple[str, ...]:
    """Return which of ``landlock`` and ``seccomp`` this machine can apply."""
    if sys.platform != "linux" or os.uname().machine not in _CAPSET:
        return ()
    names = []
    if _landlock_version() > 0:
        names.append("landlock")
    if _libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0:
        names.append("seccomp")
    return tuple(names)


def confine(cpu_s: int, memory_mib: int, *, layers: tuple[str, ...], parent_pid: int) -> None:
    """Give up, for good, everything a pure function does not need.

    Raises:
        OSError: A layer cannot be applied; the process must not go on.
        ValueError: A layer is not known.
    """
    if unknown := set(layers) - {"landlock", "seccomp"}:
        raise ValueError(f"unknown layers: {', '.join(sorted(unknown))}")
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # the parent died before the call
        os._exit(0)
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)  # SIGXCPU can be caught, the hard limit cannot
    _limit(resource.RLIMIT_AS, memory_mib << 20)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _NUM_OPEN_FILES)
    _limit(resource.RLIMIT_NPROC, 0)  # does not bind root; the filter does
    if sys.platform != "linux":
        return
    # Other processes of the user cannot look into this one, nor this one into them.
    _call(_libc.prctl, _PR_SET_DUMPABLE, 0, 0, 0, 0)
    _drop_capabilities()
    if layers:
        _call(_libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "landlock" in layers:
        _apply_landlock()
    if "seccomp" in layers:
        _apply_seccomp()


def confine_self(cpu_s: str, memory_mib: str, layers: str, parent_pid: str) -> str:
    """Call ``confine`` with arguments of a command line; return why it failed, or nothing."""
    names = tuple(filter(None, layers.split(",")))
    _, problem = attempt(
        confine, int(cpu_s), int(memory_mib), layers=names, parent_pid=int(parent_pid)
    )
    return str(problem) if problem else ""


def attempt(
    call: Callable[..., Any], *arguments: Any, **named: Any
) -> tuple[Any, BaseException | None]:
    """Return the value of a call and nothing, or nothing and what it raised; never raises."""
    try:
        return call(*arguments, **named), None
    # Whatever code of others raises, SystemExit and KeyboardInterrupt included, is its result.
    except BaseException as problem:
        return None, problem


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Lower a limit; one that is lower already stays."""
    ceiling = resource.getrlimit(kind)[1]
    values = [soft, soft if hard is None else hard]
    if ceiling != resource.RLIM_INFINITY:
        values = [min(value, ceiling) for value in values]
    resource.setrlimit(kind, (values[0], values[1]))


def _call(function: Callable[..., int], *arguments: Any) -> int:
    result = function(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: the sandbox cannot be closed")
    return result


def _drop_capabilities() -> None:
    """Make root a user like others, which cannot read what is not its own."""
    number = _CAPSET.get(os.uname().machine)
    if number is not None:
        header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
        _call(_libc.syscall, number, header, bytes(24))


def _landlock_version() -> int:
    size = ctypes.c_size_t(0)
    return _libc.syscall(_LANDLOCK_CREATE, None, size, _LANDLOCK_VERSION)


def _apply_landlock() -> None:
    """Allow reading Python's own library and the system's; nothing else, and no writing."""
    version = _landlock_version()
    rights = _FILE_RIGHTS[max(known for known in _FILE_RIGHTS if known <= version)]
    fields = [rights]
    if version >= 4:
        fields.append(0b11)  # bind and connect of TCP
    if version >= 6:
        fields.append(0b11)  # abstract sockets and signals of other domains
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(attributes))
    ruleset = _call(_libc.syscall, _LANDLOCK_CREATE, attributes, size, 0)
    for path in _readable_paths():
        _allow_reading(ruleset, path)
    _call(_libc.syscall, _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _readable_paths() -> tuple[str, ...]:
    python = (os.path.dirname(os.__file__), f"{sys.base_prefix}/lib")
    libraries = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
    return (*python, *libraries, "/usr/share/zoneinfo", "/dev/null")


def _allow_reading(ruleset: int, path: str) -> None:
    if not os.path.exists(path):
        return
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rights = _READ_FILE | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0)
    rule = struct.pack("=Qi", rights, file)
    _call(_libc.syscall, _LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0)
    os.close(file)


def _apply_seccomp() -> None:
    code = build_filter(os.uname().machine, os.getpid())
    program = ctypes.create_string_buffer(code, len(code))
    address = ctypes.addressof(program)
    header = struct.pack("HxxxxxxQ", len(code) // 8, address)
    _call(_libc.prctl, _PR_SET_SECCOMP, 2, header, 0, 0)


def build_filter(machine: str, pid: int) -> bytes:
    """Return the filter as an array of ``struct sock_filter``.

    Args:
        machine: ``os.uname().machine``.
        pid: The process that will be bound; the only one that it may signal.

    Raises:
        KeyError: The architecture is not known here.
    """
    arch, column = _ARCHES[machine]
    checked = {
        "openat": (2, _OPEN_FOR_WRITING | _OPEN_DIRECT[machine], (0,)),
        "fcntl": (1, None, _FCNTL),
        "ioctl": (1, None, _IOCTL),
        "socketpair": (1, None, _SOCKET_TYPES),
        "kill": (0, None, (pid,)),
        "tgkill": (0, None, (pid,)),
        "prlimit64": (0, None, (0, pid)),
    }
    code = [_op(_LOAD, 4), _op(_JUMP_EQUAL, arch, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, 0)]
    for name, numbers in CALLS.items():
        if numbers[column] == _NONE:
            continue
        block = _check(*checked[name]) if name in checked else [_op(_RETURN, _ALLOW)]
        if name == "fcntl":  # F_SETFL may set what openat refuses
            flags = _check(2, _OPEN_DIRECT[machine], (0,))
            block = [_op(_LOAD, 16 + 8), _op(_JUMP_EQUAL, _F_SETFL, 0, len(flags)), *flags, *block]
        code += [_op(_JUMP_EQUAL, numbers[column], 0, len(block)), *block]
    return b"".join([*code, _op(_RETURN, _REFUSE)])


def _check(argument: int, mask: int | None, allowed: tuple[int, ...]) -> list[bytes]:
    """Allow when the argument's low 32 bits, masked, are one of the values.

    The kernel takes these arguments as 32-bit integers, so the high half says nothing.
    """
    block = [_op(_LOAD, 16 + 8 * argument)]
    if mask is not None:
        block.append(_op(_AND, mask))
    for value in allowed:
        block += [_op(_JUMP_EQUAL, value, 0, 1), _op(_RETURN, _ALLOW)]
    return [*block, _op(_RETURN, _REFUSE)]


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
