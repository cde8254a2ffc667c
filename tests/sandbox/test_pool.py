"""The sandbox as a library: one result per call, whatever the code does to its process."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sweetrl.errors import SandboxError, UsageError
from sweetrl.sandbox import (
    Isolation,
    Limits,
    Program,
    Raised,
    Result,
    Returned,
    Sandbox,
    TimedOut,
    Unusable,
    decode,
)
from sweetrl.sandbox.zygotes import Watch

LIMITS = Limits(call_seconds=0.5, total_seconds=3.0)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, source: str, *calls: str, **options: object) -> list[Result]:
    return sandbox.run(Program(sources=(source,), calls=calls, **options))  # type: ignore[arg-type]


def value(result: Result) -> object:
    assert isinstance(result, Returned), result
    return decode(result.encoded)


def test_each_call_has_its_own_result(sandbox: Sandbox) -> None:
    source = "def solve(x):\n    return 10 // x\n"
    assert run(sandbox, source, "solve(2)", "solve(0)", "solve(5)", "lambda: 1", "missing()") == [
        Returned(b"5"),
        Raised("ZeroDivisionError: integer division or modulo by zero"),
        Returned(b"2"),
        Unusable("result of type function has no plain form"),
        Raised("NameError: name 'missing' is not defined"),
    ]


def test_a_call_that_kills_or_overruns_its_process_costs_the_others_nothing(sandbox: Sandbox) -> None:
    source = (
        "import os\ndef solve(x):\n    if x == 1: os._exit(3)\n    if x == 2: os.kill(os.getpid(), 11)\n"
        "    while x == 3: pass\n    return x\n"
    )
    assert run(sandbox, source, *(f"solve({number})" for number in (0, 1, 4, 2, 5, 3, 6))) == [
        Returned(b"0"),
        Raised("the process ended without a result"),
        Returned(b"4"),
        Raised("the process was killed by signal 11"),
        Returned(b"5"),
        TimedOut("more than 0.5 s"),
        Returned(b"6"),
    ]


@contextlib.contextmanager
def crowded_cpu(others: int = 1) -> Iterator[None]:
    """The calling thread, and what it starts, share one CPU with processes that never rest."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)
        for each in busy:
            each.kill()
            each.wait()


def busy_for(seconds: float) -> str:
    """Code that needs so much of a CPU in each call."""
    return (
        f"import time\ndef solve(x):\n    ends = time.process_time() + {seconds}\n"
        "    while time.process_time() < ends:\n        pass\n    return x\n"
    )


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for as long as it takes until a call has had its CPU time, however crowded the machine is."""
    monkeypatch.setattr("sweetrl.sandbox.zygotes._STARVED", 100.0)


TRICKLING = """
import os, struct, time
def send(content):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, content)
        except OSError:
            pass
send(struct.pack("<cHI", b"C", 0, 0) + struct.pack("<cHI", b"V", 0, 4000))
for _ in range(4000):
    time.sleep(0.01)
    send(b"1")
"""


def test_a_result_that_trickles_in_buys_no_time() -> None:
    with Sandbox(limits=Limits(call_seconds=0.2, total_seconds=0.5)) as sandbox:
        started = time.monotonic()
        results = run(sandbox, TRICKLING, "1", "2")
        assert time.monotonic() - started < 20  # of the 40 that all of it takes
    assert not any(isinstance(each, Returned) for each in results)


def test_a_result_that_arrives_while_its_process_is_looked_at_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """By then it has ended, which looks as if it did not want to run."""

    def look(watch: Watch) -> tuple[str, float]:
        time.sleep(1.5)
        return "Z", 0.0

    monkeypatch.setattr(Watch, "_look", look)
    with Sandbox(limits=Limits(call_seconds=0.5)) as sandbox:
        assert run(sandbox, "import time\ndef solve(x):\n    time.sleep(0.8)\n    return x", "solve(3)") == [
            Returned(b"3")
        ]


@pytest.mark.usefixtures("patience")
def test_time_that_a_crowded_machine_takes_is_not_charged_to_any_call() -> None:
    """Each call needs two thirds of its limit and waits for as long; two of them need more than one limit."""
    calls = [f"solve({n})" for n in range(4)]
    with crowded_cpu(), Sandbox(limits=Limits(call_seconds=0.6, total_seconds=4.0)) as sandbox:
        results = run(sandbox, busy_for(0.4), *calls)
    assert results == [Returned(str(n).encode()) for n in range(4)]


@pytest.mark.usefixtures("patience")
def test_calls_that_keep_to_their_limits_share_one_for_all() -> None:
    with Sandbox(limits=Limits(call_seconds=0.5, total_seconds=1.0)) as sandbox:
        results = run(sandbox, busy_for(0.3), *(f"solve({n})" for n in range(20)))
    assert isinstance(results[0], Returned)
    assert isinstance(results[-1], TimedOut)


def test_calls_share_neither_globals_nor_chance(sandbox: Sandbox) -> None:
    source = "import random\nseen = []\ndef solve(x):\n    seen.append(x)\n    return seen, random.random()\n"
    results = [value(each) for each in run(sandbox, source, "solve(1)", "solve(1)")]
    assert results[0] == results[1]
    assert results[0][0] == [1]  # type: ignore[index]
    assert value(run(sandbox, source, "solve(1)", seed=5)[0]) != results[0]


def test_the_first_reading_that_compiles_and_defines_the_function_is_run(sandbox: Sandbox) -> None:
    sources = ("def broken(", "other = 1", "def solve(): return 'third'", "def solve(): return 'fourth'")
    program = Program(sources=sources, defines="solve", calls=("solve()",))
    assert sandbox.run(program) == [Returned(b'"third"')]


def test_code_that_never_loads_is_given_up_at_once(sandbox: Sandbox) -> None:
    results = run(sandbox, "while True: pass\n", *["solve()"] * 50)
    assert results == [TimedOut("more than 0.5 s")] * 50


def test_results_beyond_the_budget_are_unusable(sandbox: Sandbox) -> None:
    results = run(sandbox, "", "'x' * 1000", "'x' * 10", budgets=(100, 100))
    assert results == [Unusable("result is larger than 100 bytes"), Returned(b'"xxxxxxxxxx"')]


def test_a_long_error_needs_no_budget(sandbox: Sandbox) -> None:
    (result,) = run(sandbox, "raise ValueError('\\U0001f600' * 1000)", "1", budgets=(1,))
    assert isinstance(result, Raised)
    assert result.error.startswith("ValueError: \U0001f600")


def test_what_a_process_says_about_a_failure_is_cut(sandbox: Sandbox) -> None:
    source = (
        "import os, struct\nfor fd in range(3, 64):\n    try:\n"
        "        os.write(fd, struct.pack('<cHI', b'C', 0, 0) + struct.pack('<cHI', b'R', 0, 4000) + b'x' * 4000)\n"
        "    except OSError: pass\nos._exit(0)\n"
    )
    (result,) = run(sandbox, source, "1")
    assert isinstance(result, Raised)
    assert len(result.error) <= 400


def test_code_cannot_claim_that_it_was_never_confined(sandbox: Sandbox) -> None:
    source = (
        "import os, struct\nfor fd in range(3, 64):\n    try:\n"
        "        os.write(fd, struct.pack('<cHI', b'B', 0, 2) + b'hm')\n    except OSError: pass\n"
    )
    assert run(sandbox, source, "1", "2") == [Raised("the process ended without a result")] * 2


def test_a_process_that_goes_on_after_its_results_is_ended_at_once() -> None:
    """As one that is kept alive by threads, or that has forged them."""
    source = (
        "import os, struct\nfor fd in range(3, 64):\n    try:\n"
        "        pid = b'%d' % os.getpid()\n"
        "        os.write(fd, struct.pack('<cHI', b'C', 0, 0) + struct.pack('<cHI', b'V', 0, len(pid)) + pid)\n"
        "    except OSError: pass\nwhile True: pass\n"
    )
    with Sandbox(limits=LIMITS) as sandbox:
        process = Path(f"/proc/{value(run(sandbox, source, '1')[0])}")
        give_up = time.monotonic() + 30
        while process.exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        assert not process.exists()


def test_numpy_may_be_imported_and_other_packages_may_not(sandbox: Sandbox) -> None:
    pytest.importorskip("numpy")
    assert value(run(sandbox, "import numpy", "numpy.arange(4).sum()")[0]) == 6
    assert run(sandbox, "import msgspec", "1") == [Raised("ModuleNotFoundError: No module named 'msgspec'")]


def test_nothing_is_loaded_for_code_that_imports_nothing(sandbox: Sandbox) -> None:
    common = {"datetime", "json", "math", "random", "re", "typing"}
    call = "sorted(__import__('sys').modules)"
    assert not common & set(value(run(sandbox, "", call)[0]))  # type: ignore[call-overload]
    assert common <= set(value(run(sandbox, "import os", call)[0]))  # type: ignore[call-overload]


def test_sets_of_text_come_out_in_the_order_of_the_hash_seed() -> None:
    source = "def solve():\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n"
    orders = []
    for seed in (0, 0, 1):
        with Sandbox(hash_seed=seed) as sandbox:
            orders.append(value(run(sandbox, source, "solve()")[0]))
    assert orders[0] == orders[1] != orders[2]


def test_a_killed_zygote_is_replaced_without_anyone_noticing() -> None:
    with Sandbox(limits=LIMITS) as sandbox:
        assert run(sandbox, "", "1") == [Returned(b"1")]
        for zygote in sandbox._workers[0].zygotes.values():
            os.kill(zygote._process.pid, signal.SIGKILL)
            zygote._process.wait()
        assert run(sandbox, "", "2") == [Returned(b"2")]


def test_a_process_that_dies_while_it_waits_for_its_job_is_replaced_without_anyone_noticing() -> None:
    with Sandbox(limits=LIMITS) as sandbox:
        assert run(sandbox, "", "1") == [Returned(b"1")]
        (zygote,) = sandbox._workers[0].zygotes.values()
        pid = zygote._process.pid
        below = Path(f"/proc/{pid}/task/{pid}/children")
        while not below.read_text():
            time.sleep(0.01)
        os.kill(int(below.read_text()), signal.SIGKILL)
        assert run(sandbox, "", "2") == [Returned(b"2")]


def test_a_sandbox_that_cannot_start_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweetrl.sandbox.launch.HOME", "/nowhere")
    monkeypatch.setattr("sweetrl.sandbox.launch.ENVIRONMENT", {"PYTHONPATH": "/nowhere"})
    with Sandbox() as sandbox, pytest.raises(SandboxError, match=r"^the sandbox did not start: .*inside"):
        run(sandbox, "", "1")


def test_many_threads_share_few_workers() -> None:
    with Sandbox(workers=2, limits=LIMITS) as sandbox, ThreadPoolExecutor(8) as pool:
        sources = [f"number = {number}" for number in range(40)]
        results = pool.map(lambda source: value(run(sandbox, source, "number")[0]), sources)
        assert list(results) == list(range(40))


def test_closing_ends_a_running_program() -> None:
    sandbox = Sandbox(limits=Limits(call_seconds=60, total_seconds=60))
    started = threading.Event()
    errors: list[BaseException] = []

    def overrun() -> None:
        started.set()
        try:
            run(sandbox, "while True: pass\n", "1")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=overrun)
    thread.start()
    started.wait()
    while not sandbox._workers[0].zygotes:
        pass
    sandbox.close()
    thread.join(30)
    assert not thread.is_alive()
    assert len(errors) == 1


def test_unsafe_isolation_still_limits_time_and_memory() -> None:
    with Sandbox(isolation=Isolation.UNSAFE, limits=LIMITS) as sandbox:
        source = "def solve(x):\n    return x\n"
        assert run(sandbox, source, "solve(1)", "open('/etc/passwd').readline()[:4]")[0] == Returned(b"1")
        assert value(run(sandbox, "", "open('/etc/passwd').read(4)")[0]) == "root"
        hostile = run(sandbox, "", "bytes(1500 << 20)", "sum(range(10**12))")
        assert hostile == [Raised("MemoryError: "), TimedOut("more than 0.5 s")]


def test_closing_ends_running_and_waiting_programs_in_an_error_of_ours() -> None:
    sandbox = Sandbox(workers=1)
    endless = Program(sources=("def f():\n    import time\n    time.sleep(60)",), calls=("f()",) * 3)
    ends: list[str] = []

    def run() -> None:
        try:
            sandbox.run(endless)
        except SandboxError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not sandbox._workers[0].zygotes:
        time.sleep(0.01)
    sandbox.close()
    for thread in threads:
        thread.join(timeout=30)
    assert ends == ["the sandbox is closed"] * 3


@pytest.mark.parametrize(
    "wrong", [{"sources": "def f(): pass"}, {"calls": "f()"}, {"calls": (["f(1)", "f(2)"],)}]
)
def test_one_text_in_place_of_several_is_refused_with_how_it_is_written(wrong):
    with pytest.raises(UsageError, match=r"sources=\(code,\), calls=\('f\(1\)',\)"):
        Program(**{"sources": ("def f(): pass",), "calls": ("f()",), **wrong})
