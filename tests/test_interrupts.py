"""Ctrl-C in real processes: first, second, and at moments when nobody expects it."""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from cli.stored_run import COMMANDS, command, write_run, written_by
from models.hostile_server import HostileServer, in_thread
from sweetrl import interrupts
from sweetrl.records import read_records
from sweetrl.types import Ending, Episode

LINE = "interrupted; rerun the same command to resume\n"
TEST_COMMAND = """
import asyncio, sys, time
from sweetrl import interrupts
from sweetrl.cli import commands, console, main

{definitions}

commands.app.command("work")(work)
sys.argv[1:] = ["work"]
main.main()
"""


def started(definitions: str, *, ready: str = "ready\n") -> "subprocess.Popen[str]":
    """A process whose command `work` is defined so and has said that it is ready."""
    script = TEST_COMMAND.format(definitions=textwrap.dedent(definitions))
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == ready
    return process


def interrupted(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit code and words of a process after one more Ctrl-C."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_plain_code_ends_with_130_and_one_line():
    process = started("""
        def work() -> None:
            console.note("ready")
            time.sleep(600)
    """)
    assert interrupted(process) == (130, LINE)


def test_work_in_an_event_loop_is_cancelled_and_says_what_is_left():
    process = started("""
        async def sleep() -> None:
            console.note("ready")
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                raise asyncio.CancelledError("3 are left") from None

        def work() -> None:
            interrupts.run(sleep)
    """)
    assert interrupted(process) == (130, "interrupted: 3 are left; rerun the same command to resume\n")


def test_an_interrupt_just_before_a_wait_for_input_is_not_lost():
    """The event loop that it cancels has no turn while a line is waited for."""
    process = started("""
        import os, signal

        async def ask() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            console.note("ready")
            with interrupts.raised():
                time.sleep(600)

        def work() -> None:
            interrupts.run(ask)
    """)
    with process:
        assert process.stderr is not None
        assert process.stderr.read() == LINE
    assert process.returncode == 130


def test_any_signal_wakes_the_event_loop():
    async def work() -> int:
        woken = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(woken)
        return woken

    assert interrupts.run(work) != -1
    assert signal.set_wakeup_fd(-1) == -1


def test_a_future_that_is_about_to_get_its_result_gets_it():
    """Cancelled between two bytecodes it would refuse it: `InvalidStateError` in a callback of the loop."""

    async def work() -> str:
        loop = asyncio.get_running_loop()
        result = loop.create_future()
        complaints: list[object] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context))

        def settle() -> None:
            if not result.done():
                signal.raise_signal(signal.SIGINT)
                result.set_result("settled")

        loop.call_soon(settle)
        try:
            await result
        finally:
            seen.append((result.cancelled(), complaints))
        return "never"

    seen: list[tuple[bool, list[object]]] = []
    with interrupts.handled(), pytest.raises(KeyboardInterrupt):
        interrupts.run(work)
    assert seen == [(False, [])]


def test_an_interrupt_while_the_loop_closes_is_not_lost():
    async def work() -> None:
        async def last() -> None:
            try:
                await asyncio.sleep(600)
            finally:
                signal.raise_signal(signal.SIGINT)

        task = asyncio.create_task(last())
        await asyncio.sleep(0)
        assert not task.done()

    with interrupts.handled(), pytest.raises(KeyboardInterrupt):
        interrupts.run(work)


def test_an_interrupt_before_the_loop_runs_leaves_no_work_behind(monkeypatch):
    def interrupted_runner() -> "asyncio.Runner":
        signal.raise_signal(signal.SIGINT)
        return runner()

    async def work() -> None:
        raise AssertionError("it was begun")

    runner = asyncio.Runner
    monkeypatch.setattr(asyncio, "Runner", interrupted_runner)
    with interrupts.handled(), pytest.raises(KeyboardInterrupt):
        interrupts.run(work)


def test_what_is_deferred_is_raised_at_the_next_check():
    done = []

    def work() -> None:
        with interrupts.deferred():
            for item in range(5):
                interrupts.check()
                if item == 2:
                    signal.raise_signal(signal.SIGINT)
                done.append(item)

    with interrupts.handled(), pytest.raises(KeyboardInterrupt):
        work()
    assert done == [0, 1, 2]


STUBBORN = {
    "in plain code": """
        def work() -> None:
            try:
                console.note("ready")
                time.sleep(600)
            except KeyboardInterrupt:
                console.note("once")
                time.sleep(600)
    """,
    "in an event loop": """
        async def stay() -> None:
            console.note("ready")
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                console.note("once")
                await asyncio.sleep(600)

        def work() -> None:
            interrupts.run(stay)
    """,
    "in a loop that is blocked": """
        async def stay() -> None:
            console.note("ready")
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                console.note("once")
                time.sleep(600)

        def work() -> None:
            interrupts.run(stay)
    """,
    "in a thread that is waited for": """
        import threading

        def work() -> None:
            threading.Thread(target=time.sleep, args=(600,)).start()
            try:
                console.note("ready")
                time.sleep(600)
            except KeyboardInterrupt:
                console.note("once")
    """,
}


@pytest.mark.parametrize("definitions", STUBBORN.values(), ids=STUBBORN)
def test_the_second_ends_the_process_at_once(definitions: str):
    process = started(definitions)
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == "once\n"
    assert interrupted(process) == (130, LINE)


DISGUISED = {
    "as an error of a library": """
        def work() -> None:
            try:
                console.note("ready")
                time.sleep(600)
            except KeyboardInterrupt:
                raise ImportError("a module could not be initialised") from None
    """,
    "in a destructor": """
        class Last:
            def __del__(self) -> None:
                console.note("ready")
                time.sleep(600)

        def work() -> None:
            Last()
            time.sleep(600)
    """,
}


@pytest.mark.parametrize("definitions", DISGUISED.values(), ids=DISGUISED)
def test_an_interrupt_in_disguise_is_one_all_the_same(definitions: str):
    assert interrupted(started(definitions)) == (130, LINE)


def test_who_ignores_interrupts_goes_on_ignoring_them():
    """As a program in the background of a script does."""
    script = "from sweetrl import interrupts\ninterrupts.listen()\n"
    script += (
        "with interrupts.handled():\n    import signal; signal.raise_signal(signal.SIGINT); print('alive')"
    )
    words = ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, script]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "alive\n"


LOADING = """
import signal, sys
from sweetrl.__main__ import main

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "sweetrl.cli.main":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
main()
"""


def test_an_interrupt_while_the_command_is_loaded_leaves_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", LOADING, "--help"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


# ---------------------------------------------------------------- whole commands

LISTENING = """
from sweetrl import interrupts
from sweetrl.cli import main
interrupts.listen()
print("listening", flush=True)
main.main()
"""
"""What Python itself does with Ctrl-C before a line of ours has run is its own affair."""
MOMENTS = 4


class Run:
    """A command in a process of its own that has begun to listen."""

    def __init__(self, words: list[str]) -> None:
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-c", LISTENING, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "listening\n"

    def ended(self) -> tuple[int, str]:
        _, said = self._process.communicate(timeout=120)
        self.seconds = time.monotonic() - self._begun
        return self._process.returncode, said

    def interrupted_after(self, seconds: float) -> tuple[int, str]:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGINT)
        return self.ended()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("records"))


@pytest.mark.parametrize("name", COMMANDS)
def test_interrupted_at_random_moments_and_resumed_it_equals_an_uninterrupted_run(
    name: str, folder: Path, tmp_path: Path
) -> None:
    calm = Run(command(name, folder, tmp_path / "calm"))
    assert calm.ended() == (0, "")
    whole = written_by(name, tmp_path / "calm").read_bytes()
    draw, longest = random.Random(name), calm.seconds
    moments, output = MOMENTS, tmp_path / "0"
    while moments:
        code, said = Run(command(name, folder, output)).interrupted_after(draw.uniform(0, longest))
        if code == 130:
            moments -= 1
            assert_one_line(said)
        else:  # it was faster than the calm one and has ended before
            assert (code, said) == (0, "")
            assert written_by(name, output).read_bytes() == whole
            longest, output = longest / 2, tmp_path / f"{longest}"
    assert Run(command(name, folder, output)).ended() == (0, "")
    assert written_by(name, output).read_bytes() == whole


def assert_one_line(said: str) -> None:
    """About the interrupt; a rollout says before it that it finishes what is open."""
    *before, last = said.splitlines()
    assert last.startswith("interrupted"), said
    assert last.endswith("; rerun the same command to resume"), said
    assert all(line.startswith("finishing the open dialogues") for line in before), said


def test_a_terminal_interrupts_the_browser_too_and_open_dialogues_are_finished_all_the_same(
    tmp_path: Path,
) -> None:
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    page = "Like this?\n<html><body><h1>Shop</h1></body></html>"
    with in_thread(HostileServer(reply=lambda _body, _draw: page)) as server:
        players = ("--agent", f"openai:a@{server.url}", "--collaborator", "designer", "--concurrency", "2")
        words = ("rollout", "--tasks", "mini-frontend:test:40", *players, "-o", str(tmp_path / "run"))
        process = subprocess.Popen(
            [sys.executable, "-m", "sweetrl", *words],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        written = tmp_path / "run" / "episodes.jsonl"
        while not (written.exists() and written.stat().st_size):
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    endings = {episode.ending for episode in read_records(written, Episode)}
    assert Ending.FAILED not in endings, said
    assert said.endswith("dialogues are left; rerun the same command to resume\n")


def test_a_wait_for_input_outlasts_signals_that_end_nothing():
    ours, theirs = os.pipe()
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with os.fdopen(ours) as file:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            threading.Timer(0.4, os.write, (theirs, b"a line\n")).start()
            interrupts.wait_for(file)
            assert select.select([file], [], [], 0)[0]
            assert file.readline() == "a line\n"
    finally:
        signal.signal(signal.SIGUSR1, before)
        os.close(theirs)
