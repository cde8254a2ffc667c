"""Every system call, really made by a confined process: those in the table get through, all others are refused."""

import errno
import json
import os
import platform
from typing import Any

import pytest

from sweetrl.sandbox import Isolation, Program, Returned, Sandbox, available_isolation, decode
from sweetrl.sandbox.inside import syscalls

COLUMN = syscalls.ARCHITECTURES.get(platform.machine(), (0, 0))[0]
LAST_NUMBER = 470
PROBES = {335, 336} if platform.machine() == "x86_64" else set()
"""The kernel's own return from a probe: no filter sees it, and code that makes it up is killed."""
ENDS_OR_BLOCKS = {"exit", "exit_group", "pause", "rt_sigreturn"}
CONDITIONAL = {
    name: getattr(syscalls, name.upper())[COLUMN]
    for name in (
        *("open", "openat", "fcntl", "clone", "clone3", "prlimit", "prctl", "kill", "tgkill"),
        *("socketpair", "sendto", "ioctl"),
    )
}
ALLOWED = {name: row[COLUMN] for name, row in syscalls.ALLOWED.items() if row[COLUMN] >= 0}

CALLER = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def error_of(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments))
    return 0 if result >= 0 else ctypes.get_errno()
def errors(numbers):
    return {number: error_of(number, *[-1] * 6) for number in numbers}
def own(name):
    return {"pid": os.getpid(), "parent": os.getppid(), "text": ctypes.addressof(buffer)}.get(name, name)
buffer = ctypes.create_string_buffer(b"/dev/null", 256)
def conditional(cases):
    return [error_of(number, *[own(each) for each in arguments]) for number, arguments in cases]
"""

pytestmark = pytest.mark.skipif(
    platform.machine() not in syscalls.ARCHITECTURES or not available_isolation().landlock,
    reason="needs a processor whose system calls are in the table, and Landlock",
)


def ask(call: str, isolation: Isolation = Isolation.LANDLOCK) -> Any:
    with Sandbox(isolation=isolation) as sandbox:
        (result,) = sandbox.run(Program(sources=(CALLER,), calls=(call,)))
    assert isinstance(result, Returned), result
    return decode(result.encoded)


OTHERS = sorted(set(range(LAST_NUMBER)) - {*ALLOWED.values(), *CONDITIONAL.values()} - PROBES)


def test_every_call_that_is_not_in_the_table_is_refused() -> None:
    assert set(ask(f"errors({OTHERS})").values()) == {errno.EPERM}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86_64 has a second numbering")
def test_every_call_by_its_x32_number_is_refused() -> None:
    numbers = [0x40000000 | number for number in range(LAST_NUMBER)]
    assert set(ask(f"errors({numbers})").values()) == {errno.EPERM}


def test_every_call_in_the_table_reaches_the_kernel() -> None:
    harmless = {name: number for name, number in ALLOWED.items() if name not in ENDS_OR_BLOCKS}
    errors = ask(f"errors({list(harmless.values())})")
    assert {name for name, number in harmless.items() if errors[number] == errno.EPERM} == set()


ALL_OPEN_FLAGS_THAT_WRITE = [
    *(os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_TMPFILE | os.O_RDWR),
    os.O_TMPFILE & ~os.O_DIRECTORY,
]
AT_CWD = -100
THREAD = 0x3D0F00
CASES = {
    "openat to read": ("openat", (AT_CWD, "text", os.O_RDONLY), 0),
    **{
        f"openat with {flags:#o}": ("openat", (AT_CWD, "text", flags), errno.EPERM)
        for flags in ALL_OPEN_FLAGS_THAT_WRITE
    },
    **{f"fcntl {command}": ("fcntl", (-1, command, 0), errno.EBADF) for command in (0, 1, 2, 3, 4, 1030)},
    **{
        f"fcntl {command}": ("fcntl", (0, command, 0), errno.EPERM)
        for command in (5, 6, 8, 9, 10, 11, 15, 16, 36, 37, 1024, 1025, 1026, 1031, 1032, 1033, 1034)
    },
    "fork by clone": ("clone", (17, 0, 0, 0, 0), errno.EPERM),
    "clone with shared memory": ("clone", (0x4111, 0, 0, 0, 0), errno.EPERM),
    "a thread without its memory": ("clone", (0x10000, 0, 0, 0, 0), errno.EINVAL),
    "clone3": ("clone3", ("text", 88), errno.ENOSYS),
    "reading a limit": ("prlimit", (0, 7, 0, "text"), 0),
    "setting a limit": ("prlimit", (0, 7, "text", 0), errno.EPERM),
    "setting a limit at a high address": ("prlimit", (0, 7, 1 << 40, 0), errno.EPERM),
    "naming a thread": ("prctl", (15, "text"), 0),
    **{f"prctl {what}": ("prctl", (what, 0, 0, 0, 0), errno.EPERM) for what in (1, 4, 8, 22, 24, 36, 38, 53)},
    "signalling itself": ("kill", ("pid", 0), 0),
    "signalling the zygote": ("kill", ("parent", 0), errno.EPERM),
    "signalling init": ("kill", (1, 0), errno.EPERM),
    "signalling the group": ("kill", (0, 0), errno.EPERM),
    "signalling everyone": ("kill", (-1, 0), errno.EPERM),
    "signalling a thread of the zygote": ("tgkill", ("parent", "parent", 0), errno.EPERM),
    "a pair of local sockets": ("socketpair", (1, 1, 0, "text"), 0),
    "a pair of other sockets": ("socketpair", (2, 1, 0, "text"), errno.EPERM),
    "sending to an address": ("sendto", (-1, "text", 1, 0, "text", 16), errno.EPERM),
    "sending to a low address": ("sendto", (-1, "text", 1, 0, 1 << 40, 16), errno.EPERM),
    "sending over a pair": ("sendto", (-1, "text", 1, 0, 0, 0), errno.EBADF),
    "asking for a terminal": ("ioctl", (0, 0x5401, "text"), errno.ENOTTY),
    "typing into a terminal": ("ioctl", (0, 0x5412, "text"), errno.ENOTTY),
    "making a descriptor non-blocking": ("ioctl", (-1, 0x5421, "text"), errno.EBADF),
}


def test_calls_that_depend_on_their_arguments_are_told_apart() -> None:
    cases = [(CONDITIONAL[name], arguments) for name, arguments, _ in CASES.values()]
    got = dict(zip(CASES, ask(f"conditional({json.loads(json.dumps(cases))})"), strict=True))
    assert got == {name: expected for name, (_, _, expected) in CASES.items()}


def test_the_filters_hold_inside_bubblewrap_too() -> None:
    if available_isolation().bubblewrap is None:
        pytest.skip("bubblewrap does not work here")
    assert set(ask(f"errors({OTHERS})", Isolation.BUBBLEWRAP).values()) == {errno.EPERM}
