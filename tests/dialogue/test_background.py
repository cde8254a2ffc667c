import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from sweetrl.dialogue.background import run_in_background
from sweetrl.errors import UsageError


async def loop_and_thread() -> tuple[int, int]:
    return id(asyncio.get_running_loop()), threading.get_ident()


def test_all_calls_share_one_loop_in_a_thread_of_its_own() -> None:
    first, second = run_in_background(loop_and_thread()), run_in_background(loop_and_thread())
    assert first == second
    assert first[1] != threading.get_ident()


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> tuple[int, int]:
        return run_in_background(loop_and_thread())

    assert asyncio.run(notebook()) == run_in_background(loop_and_thread())


def test_an_error_is_the_callers() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_in_background(fail())


def test_a_call_from_within_is_refused_instead_of_waiting_for_itself() -> None:
    async def outer() -> None:
        run_in_background(loop_and_thread())

    with pytest.raises(UsageError, match=r"loop_and_thread is called synchronously .* await it there"):
        run_in_background(outer())


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    run_in_background(loop_and_thread())
    child = os.fork()
    if child == 0:
        run_in_background(loop_and_thread())
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


INTERRUPTED = """
import asyncio, os, signal, sys, threading
from sweetrl.dialogue.background import run_in_background

ended = threading.Event()

async def work():
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "wait":
        await asyncio.sleep(0)
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(600)
    finally:
        ended.set()

try:
    run_in_background(work())
except KeyboardInterrupt:
    print("interrupted", ended.wait(60))
"""


def test_ctrl_c_cancels_what_is_running_and_the_process_ends() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (ran.stdout, ran.stderr) == ("interrupted True\n", "")
