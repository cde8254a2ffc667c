"""Giving up rights: user, capabilities, files, network, memory, system calls.

Nearly all is done once, by the zygote, and inherited by the processes it forks; they give up what only the
zygote needs.
"""

import ctypes
import os
import stat
import struct

from . import syscalls

libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9
NOBODY = 65534
_MOST_THREADS = 1 << 14
"""Half of the processes and threads that a kernel allows by default."""

_RLIMIT_CPU, _RLIMIT_FSIZE, _RLIMIT_CORE, _RLIMIT_NPROC = 0, 1, 4, 6
_RLIMIT_NOFILE, _RLIMIT_MEMLOCK, _RLIMIT_AS, _RLIMIT_MSGQUEUE = 7, 8, 9, 12

# System call numbers shared by all architectures.
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION = 1
_PATH_BENEATH = 1
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FS_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many file rights (the lowest bits) each version of Landlock can take away."""
_NET_BIND_AND_CONNECT = 0b11
_SCOPE_SOCKETS_AND_SIGNALS = 0b11


def landlock_version() -> int:
    """The Landlock version that the kernel offers; 0 for none."""
    version: int = libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    return max(version, 0)


def seccomp_available() -> bool:
    """Whether the kernel takes filters and this machine's system calls are known."""
    # A filter at address 0 is refused with EFAULT by a kernel that knows filters, with EINVAL by others.
    refused = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None, 0, 0)
    return refused == -1 and ctypes.get_errno() == 14 and syscalls.supported()


def confine_files(readable: list[str]) -> None:
    """Let this process and its children read the given files and folders, and nothing else; no TCP."""
    version = landlock_version()
    rights = (1 << _FS_RIGHTS_BY_ABI[min(version, 5)]) - 1
    network = _NET_BIND_AND_CONNECT if version >= 4 else 0
    scope = _SCOPE_SOCKETS_AND_SIGNALS if version >= 6 else 0
    fields = struct.pack("=QQQ", rights, network, scope)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = libc.syscall(_LANDLOCK_CREATE, fields, ctypes.c_size_t(size), 0)
    _check(ruleset, "landlock_create_ruleset")
    for path in readable:
        _let_read(ruleset, path)
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _check(libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _let_read(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this system, so there is nothing to read
    folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    rule = struct.pack("=Qi", _READ_FILE | _READ_DIR if folder else _READ_FILE, descriptor)
    _check(libc.syscall(_LANDLOCK_ADD, ruleset, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    os.close(descriptor)


def drop_privileges(must_stay_readable: str) -> None:
    """Become nobody if that user can still read the standard library; lose every capability in any case."""
    if os.geteuid() == 0:
        for capability in range(64):
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        if world_readable(must_stay_readable):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(libc.syscall(_CAPSET[os.uname().machine], header, bytes(24)), "capset")
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def world_readable(path: str) -> bool:
    """Whether any user can enter `path`."""
    # Not pathlib: what the zygote imports, every fork pays for.
    steps = [path[: at or 1] for at, character in enumerate(path) if character == "/"] + [path]
    return all(os.stat(step).st_mode & stat.S_IXOTH for step in steps)  # noqa: PTH116


def limit_resources(memory_bytes: int) -> None:
    """Bounds that every forked process inherits; without privileges they cannot be raised again."""
    for what, bound in (
        (_RLIMIT_AS, memory_bytes),
        (_RLIMIT_FSIZE, 0),
        (_RLIMIT_CORE, 0),
        (_RLIMIT_NOFILE, 64),
        (_RLIMIT_MEMLOCK, 0),
        (_RLIMIT_MSGQUEUE, 0),
    ):
        _limit(what, bound)


def _limit(what: int, bound: int) -> None:
    # Not the module `resource`: what the zygote imports, every fork pays for.
    _check(libc.setrlimit(what, _bounds(bound)), "setrlimit")


def _bounds(bound: int) -> bytes:
    return struct.pack("@QQ", bound, bound)


def volunteer_for_the_oom_killer() -> None:
    """Where the machine runs out of memory, untrusted code goes first, not the process that judges it."""
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return  # no /proc here
    os.write(descriptor, b"1000")
    os.close(descriptor)


def refuse_inspection() -> None:
    """No core dumps, no tracing, no /proc/self/mem for others of the same user."""
    _check(libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")


def filter_system_calls() -> None:
    """Put the outer filter on this process and all it will fork."""
    _install(_Filter(syscalls.outer_filter()))


class _Filter:
    """A filter program in memory, and the header that points to it."""

    def __init__(self, program: bytes) -> None:
        self.program = (ctypes.c_char * len(program)).from_buffer_copy(program)
        self.header = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(self.program))

    def places(self, number: int) -> list[ctypes.c_uint32]:
        """Where the number stands in the program, to be replaced."""
        content = self.program.raw
        found = [at for at in range(0, len(content), 4) if content[at : at + 4] == struct.pack("=I", number)]
        return [ctypes.c_uint32.from_buffer(self.program, at) for at in found]


def _install(program: _Filter) -> None:
    _check(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program.header, 0, 0), "seccomp")


class ForkRules:
    """What a forked process gives up; made once, by the zygote, so that each fork does little."""

    def __init__(self, cpu_seconds: int, *, filtered: bool) -> None:
        self._parent = os.getpid()
        self._calls = [
            # Be killed when the zygote ends.
            (libc.prctl, (_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)),
            # A last resort, should the parent fail to end this process in time.
            (libc.setrlimit, (_RLIMIT_CPU, _bounds(cpu_seconds))),
            # Counts all threads of the user, so it must be generous; the kernel does not hold root to it. Not for the
            # zygote, which must be able to fork while the threads of another process use this up.
            (libc.setrlimit, (_RLIMIT_NPROC, _bounds(_MOST_THREADS))),
        ]
        self._own_pid: list[ctypes.c_uint32] = []
        if filtered:
            inner = _Filter(syscalls.inner_filter(_ANY_PID))
            self._own_pid = inner.places(_ANY_PID)
            self._calls.append((libc.prctl, (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, inner.header, 0, 0)))

    def apply(self) -> None:
        """Give up the rest: from here on nothing but computing and reading is left."""
        for place in self._own_pid:
            place.value = os.getpid()
        for function, arguments in self._calls:
            _check(function(*arguments), function.__name__)
        if os.getppid() != self._parent:
            os._exit(1)  # the zygote had ended before it could take this process with it


_ANY_PID = 0x7FFF1234


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
