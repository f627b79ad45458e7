"""What a process does to itself before it runs a program that nobody has read.

Works without privileges and without namespaces, so in a container too, for root and for others.
``docs/programs.md`` lists what is covered. Kept free of imports that cost time: two
processes per program go through here.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

from recipe.hint.verify.programs.seccomp import build_filter

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


def available_layers() -> tuple[str, ...]:
    """Which of ``landlock`` and ``seccomp`` this machine can apply."""
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
    _limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)  # SIGXCPU can be caught, the hard limit not
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
    """``confine`` with arguments of a command line; why it failed, or nothing."""
    names = tuple(filter(None, layers.split(",")))
    _, problem = attempt(
        confine, int(cpu_s), int(memory_mib), layers=names, parent_pid=int(parent_pid)
    )
    return str(problem) if problem else ""


def attempt(
    call: Callable[..., Any], *arguments: Any, **named: Any
) -> tuple[Any, BaseException | None]:
    """The value of a call and nothing, or nothing and what it raised; never raises."""
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
    """Root without them is a user like others: it cannot read what is not its own."""
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
