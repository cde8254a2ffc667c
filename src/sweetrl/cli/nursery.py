"""Stages that begin with the training stack loaded: forks of one process that has imported it.

To import PyTorch and Transformers takes a processor eight seconds, and a stage on a tiny model may have ten seconds of
work of its own. What a stage does, and how it ends, is the same as in a process that starts from nothing. Where there
is a GPU nothing is forked: what a driver was told before a fork is of no use after it.
"""

import atexit
import contextlib
import importlib.util
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import connection, forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

STACK = "sweetrl.learning.preloaded"
"""The module that imports it all."""
DRIVERS = ("/dev/nvidiactl", "/dev/kfd")
"""What is there when a GPU is."""


def is_possible() -> bool:
    """Whether stages can be forked here, and there is something to load for them."""
    return (
        sys.platform == "linux"
        and importlib.util.find_spec("torch") is not None
        and not any(map(os.path.exists, DRIVERS))
    )


class Fork:
    """A stage that was forked, to be asked as a `subprocess.Popen` is."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        return self._process.exitcode

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def wait(self) -> int | None:
        """Wait until it has ended."""
        self._process.join()
        return self._process.exitcode


def start(arguments: Sequence[str], *, log: Path, variables: Mapping[str, str]) -> Fork | None:
    """Run `sweetrl ARGUMENTS` in a fork that says all it has to say to `log`; None if that cannot be.

    The process that is forked gets `variables` too when it begins, with the first stage: libraries read how many
    threads they may have when they are loaded.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([STACK])
    process = context.Process(target=_run, args=(list(arguments), log, dict(variables)))
    try:
        with _environment(variables):
            forkserver.ensure_running()
        process.start()
    except (OSError, EOFError):
        return None  # it broke down; a process of the ordinary kind says why, if it does too
    return Fork(process)


def _run(arguments: list[str], log: Path, variables: dict[str, str]) -> None:
    """What the fork does."""
    from sweetrl.cli.main import run

    _die_with_the_run()
    os.environ.update(variables)
    with log.open("ab") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = ["sweetrl", *arguments]
    try:
        code = run(arguments)
    finally:
        atexit._run_exitfuncs()  # forks of this kind leave without them
    sys.exit(code)


def _die_with_the_run() -> None:
    """End when the run ends, be it by SIGKILL; the parent of this process is another one, which would live on."""
    run = multiprocessing.parent_process()
    assert run is not None
    Thread(target=_end_after, args=(run.sentinel,), name="sweetrl-run", daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
