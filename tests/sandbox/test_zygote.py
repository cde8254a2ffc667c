"""The zygote inside: patience when the machine is full, and nothing of one job in the memory of the next."""

import pytest

from sweetrl.sandbox import Program, Returned, Sandbox, decode
from sweetrl.sandbox.inside import zygote

SCAN = """
import ctypes, os
libc = ctypes.CDLL(None)
def pages(reach=1 << 26, page=1 << 12):
    # Through a pipe, because writing from an address that is not there fails, where reading it would kill.
    reading, writing = os.pipe()
    middle = id(object()) & ~(page - 1)
    for address in range(middle - reach, middle + reach, page):
        if libc.write(writing, ctypes.c_void_p(address), page) == page:
            yield os.read(reading, page)
def found(first, second):
    # In two parts, or the scan would find what it is looking for in its own memory.
    first, second = first.encode(), second.encode()
    return any(part.startswith(second) for page in pages() for part in page.split(first)[1:])
"""


def test_a_later_process_finds_nothing_of_an_earlier_job_in_its_memory() -> None:
    earlier = "def solve(x):\n    return len('MARKER-OF-THE-EARLIER-JOB')\n"
    with Sandbox() as sandbox:
        program = Program(sources=(earlier,), defines="solve", calls=("solve('EARLIER-CALL')",))
        assert sandbox.run(program) == [Returned(b"25")]
        calls = ("found('MARKER-OF-THE-', 'EARLIER-JOB')", "found('EARLIER', '-CALL')", "found('ctyp', 'es')")
        results = sandbox.run(Program(sources=(SCAN,), calls=calls))
    values = [decode(each.encoded) if isinstance(each, Returned) else each for each in results]
    assert values == [False, False, True]  # what is there is found: the scan works


def test_a_fork_is_tried_again_when_the_machine_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter([-1, -1, 4711])
    monkeypatch.setattr(zygote, "_fork", lambda: next(outcomes))
    monkeypatch.setattr(zygote, "_FORK_PAUSE", 0)
    assert zygote._fork_patiently() == 4711


def test_a_machine_that_stays_full_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zygote, "_fork", lambda: -1)
    monkeypatch.setattr(zygote, "_FORK_PAUSE", 0)
    with pytest.raises(OSError, match="cannot fork"):
        zygote._fork_patiently()
