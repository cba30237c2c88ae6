"""What a parser process gives up before it reads a byte: memory, time, files, and the network."""

import ctypes
import platform
import resource
import struct
import sys

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_RETURN_ALLOW = 0x7FFF0000
_RETURN_EPERM = 0x00050000 | 1
_RETURN_KILL = 0x80000000
_LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32_CALLS = 0x40000000
# Per machine: its audit number, and the calls socket, connect, execve, execveat, io_uring_setup, ptrace.
_MACHINES = {
    "x86_64": (0xC000003E, (41, 42, 59, 322, 425, 101)),
    "aarch64": (0xC00000B7, (198, 203, 221, 281, 425, 117)),
}
_FORBIDDEN_EVENTS = ("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.system", "os.fork", "pty.spawn")
# asyncio makes its wake-up pipe of a pair of local sockets; a pair reaches nobody else.
_ALLOWED_EVENTS = ("socket.__new__",)


def restrict(*, memory_bytes: int, cpu_seconds: int, cpu_at_most: int = 0) -> None:
    """Lowers this process's limits for good; `cpu_at_most` is how far `allow_more` may raise that of processor time.

    Raises OSError or ValueError when the system refuses.
    """
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: max(cpu_seconds, cpu_at_most),
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
    }
    for name, value in limits.items():
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (min(cpu_seconds, hard), hard))


def allow_more(*, cpu_seconds: int) -> None:
    """Raises this process's limit of processor time, as far as `restrict` has left room for it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft + cpu_seconds, hard), hard))


def cut_network() -> bool:
    """Refuses new sockets and programs for the rest of this process.

    Python code is stopped everywhere; native code by a seccomp filter, on Linux for the machines known here. Returns
    whether that filter is in place.
    """
    sys.addaudithook(_refuse)
    machine = _MACHINES.get(platform.machine())
    return sys.platform == "linux" and machine is not None and _install_filter(*machine)


def _refuse(event: str, args: tuple[object, ...]) -> None:
    if event.startswith(_FORBIDDEN_EVENTS) and event not in _ALLOWED_EVENTS:
        raise PermissionError


def _install_filter(machine: int, calls: tuple[int, ...]) -> bool:
    program = _program(machine, calls)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) == 0)


def _program(machine: int, calls: tuple[int, ...]) -> bytes:
    """BPF: another machine's calls kill, the listed calls fail with EPERM, all others pass."""
    refused = len(calls) + 1
    steps = [
        (_LOAD_WORD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _RETURN_KILL),
        (_LOAD_WORD, 0, 0, 0),
        (_JUMP_IF_AT_LEAST, refused, 0, _X32_CALLS),
    ]
    steps += [(_JUMP_IF_EQUAL, refused - 1 - index, 0, call) for index, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _RETURN_ALLOW), (_RETURN, 0, 0, _RETURN_EPERM)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
