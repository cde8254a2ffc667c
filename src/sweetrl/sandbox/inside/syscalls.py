"""The seccomp filters: which system calls confined code may make.

Two filters in classic BPF, both of which a call must pass. The outer one is an allow-list; the zygote puts it on
itself once and its forks inherit it. The inner one takes away what only the zygote needs (to fork, to pass
descriptors, to limit) and is short, because each fork installs it anew. What is refused fails with EPERM, so that
Python raises an ordinary error. Code of another architecture (32-bit calls on a 64-bit kernel) is killed.
"""

import errno
import os
import struct

# Name: number on x86_64, number on aarch64 (-1: does not exist there).
ALLOWED = {
    # files: what may be opened is decided by OPENING below and by Landlock or the mount namespace
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "write": (1, 64),
    "writev": (20, 66),
    "lseek": (8, 62),
    "close": (3, 57),
    "close_range": (436, 436),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "stat": (4, -1),
    "lstat": (6, -1),
    "statx": (332, 291),
    "access": (21, -1),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "getdents64": (217, 61),
    "dup": (32, 23),
    "dup2": (33, -1),
    "dup3": (292, 24),
    "getcwd": (79, 17),
    # memory
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    # signals and threads of this process
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137),
    "sigaltstack": (131, 132),
    "alarm": (37, -1),
    "setitimer": (38, 103),
    "getitimer": (36, 102),
    "pause": (34, -1),
    "restart_syscall": (219, 128),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # who am I, what time is it
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrusage": (98, 165),
    "times": (100, 153),
    "getrlimit": (97, 163),
    "gettimeofday": (96, 169),
    "time": (201, -1),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "getrandom": (318, 278),
    # waiting, as asyncio and queues do within one process
    "poll": (7, -1),
    "ppoll": (271, 73),
    "select": (23, -1),
    "pselect6": (270, 72),
    "pipe": (22, -1),
    "pipe2": (293, 59),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, -1),
    "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    "recvfrom": (45, 207),
}
ZYGOTES = {
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "wait4": (61, 260),
    "pidfd_open": (434, 434),
}
"""What the zygote needs besides; refused by the inner filter."""
OPEN = (2, -1)
OPENAT = (257, 56)
FCNTL = (72, 25)
CLONE = (56, 220)
CLONE3 = (435, 435)
PRLIMIT = (302, 261)
PRCTL = (157, 167)
KILL = (62, 129)
TGKILL = (234, 131)
SOCKETPAIR = (53, 199)
SENDTO = (44, 206)
IOCTL = (16, 29)

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machine name: column in the tables above, and what the kernel calls the architecture."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_TMPFILE & ~os.O_DIRECTORY
_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_AF_UNIX = 1
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC; not F_SETOWN or F_SETSIG, which send signals
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)

# FIONCLEX, FIOCLEX, FIONBIO: flags of a descriptor, which sockets of asyncio set
_IOCTL_COMMANDS = (0x5450, 0x5451, 0x5421)

_KILL_PROCESS = 0x80000000
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000

_LOAD = 0x20  # A = 32-bit word of the call's data at k
_JUMP_EQUAL = 0x15
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


def supported() -> bool:
    """Whether this machine's system call numbers are known."""
    return os.uname().machine in ARCHITECTURES


def outer_filter() -> bytes:
    """The allow-list, as an array of `struct sock_filter`."""
    column, _ = ARCHITECTURES[os.uname().machine]
    program = _preamble()
    for call in (*ALLOWED.values(), *ZYGOTES.values(), CLONE, PRLIMIT, PRCTL, KILL, TGKILL):
        program += _when(call[column], [_op(_RETURN, _ALLOW)])
    program += _when(OPEN[column], _unless_bits(1, _WRITING))
    program += _when(OPENAT[column], _unless_bits(2, _WRITING))
    program += _when(FCNTL[column], _if_one_of(1, _FCNTL_COMMANDS))
    program += _when(CLONE3[column], _fail(errno.ENOSYS))  # libc then falls back to clone
    program += _when(SOCKETPAIR[column], _if_one_of(0, (_AF_UNIX,)))
    program += _when(SENDTO[column], _if_null(4))  # no address: only over a pair made here
    program += _when(IOCTL[column], _if_one_of(1, _IOCTL_COMMANDS, otherwise=errno.ENOTTY))
    return b"".join([*program, *_fail(errno.EPERM)])


def inner_filter(pid: int) -> bytes:
    """What the process `pid` may do less than the zygote that forked it."""
    column, _ = ARCHITECTURES[os.uname().machine]
    program = _preamble()
    for call in ZYGOTES.values():
        program += _when(call[column], _fail(errno.EPERM))
    program += _when(CLONE[column], _if_bits(0, _CLONE_THREAD))  # threads, not processes
    program += _when(PRLIMIT[column], _if_null(2))  # reading limits, not setting them
    program += _when(PRCTL[column], _if_one_of(0, (_PR_SET_NAME,)))
    program += _when(KILL[column], _if_one_of(0, (pid,)))
    program += _when(TGKILL[column], _if_one_of(0, (pid,)))
    return b"".join([*program, _op(_RETURN, _ALLOW)])


def _preamble() -> list[bytes]:
    """Kill code of another architecture, whose numbers mean other calls; load the call's number."""
    _, architecture = ARCHITECTURES[os.uname().machine]
    check = [_op(_LOAD, _ARCH), _op(_JUMP_EQUAL, architecture, 1, 0), _op(_RETURN, _KILL_PROCESS)]
    return [*check, _op(_LOAD, _NUMBER)]


def _op(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body`, which always returns, if the call is `number`."""
    return [] if number < 0 else [_op(_JUMP_EQUAL, number, 0, len(body)), *body]


def _fail(code: int) -> list[bytes]:
    return [_op(_RETURN, _ERRNO | code)]


def _low(argument: int) -> int:
    """Offset of the low half of a 64-bit argument; both architectures are little-endian."""
    return _ARGUMENTS + 8 * argument


def _unless_bits(argument: int, bits: int) -> list[bytes]:
    return [
        _op(_LOAD, _low(argument)),
        _op(_JUMP_ANY_BIT, bits, 0, 1),
        *_fail(errno.EPERM),
        _op(_RETURN, _ALLOW),
    ]


def _if_bits(argument: int, bits: int) -> list[bytes]:
    return [
        _op(_LOAD, _low(argument)),
        _op(_JUMP_ANY_BIT, bits, 1, 0),
        *_fail(errno.EPERM),
        _op(_RETURN, _ALLOW),
    ]


def _if_one_of(argument: int, values: tuple[int, ...], otherwise: int = errno.EPERM) -> list[bytes]:
    tests = [_op(_JUMP_EQUAL, value, len(values) - i, 0) for i, value in enumerate(values)]
    return [_op(_LOAD, _low(argument)), *tests, *_fail(otherwise), _op(_RETURN, _ALLOW)]


def _if_null(argument: int) -> list[bytes]:
    return [
        _op(_LOAD, _low(argument)),
        _op(_JUMP_EQUAL, 0, 0, 2),
        _op(_LOAD, _low(argument) + 4),
        _op(_JUMP_EQUAL, 0, 1, 0),
        *_fail(errno.EPERM),
        _op(_RETURN, _ALLOW),
    ]
