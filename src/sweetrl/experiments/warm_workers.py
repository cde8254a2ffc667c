"""Warm worker processes: stages start with the training stack loaded, as forks of one process that has imported it.

To import PyTorch and Transformers takes a processor eight seconds, and a stage on a tiny model may have ten seconds of
work of its own. Each stage still has a process of its own, which behaves as one that starts afresh: see
`docs/decisions/warm-workers.md`. Nothing is forked on machines with a GPU: the state of its driver does not survive a
fork.
"""

import contextlib
import importlib.util
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

FORK_SERVER = "sweetrl.experiments.fork_server"
"""The module that lets the process that is forked end at once while it loads."""
STACK = "sweetrl.learning.preloaded"
"""The module that imports it all."""
Command = Callable[[Sequence[str]], int]
"""Runs a stage, given its arguments, and returns its exit code; a function at the top of a module."""
DRIVERS = ("/dev/nvidiactl", "/dev/kfd")
"""Files that exist where there is a GPU."""


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


def start(
    command: Command, arguments: Sequence[str], *, log: Path, variables: Mapping[str, str]
) -> Fork | None:
    """Call `command(arguments)` in a fork that writes its output to `log`; None if that is not possible.

    The process that is forked starts with the first stage and gets its `variables` too: libraries read how many
    threads they may use when they are loaded.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([FORK_SERVER, STACK])
    process = context.Process(target=_run, args=(command, list(arguments), log, dict(variables)))
    try:
        with environment(variables):
            process.start()
    except (OSError, EOFError):
        return None  # it broke down; a process of the ordinary kind says why, if it does too
    return Fork(process)


def _run(command: Command, arguments: list[str], log: Path, variables: dict[str, str]) -> None:
    """Run the stage in the fork."""
    _die_with_the_run()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as in any process of Python's
    os.environ.update(variables)
    with log.open("ab") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.exit(command(arguments))


def _die_with_the_run() -> None:
    """End when the run ends, even by SIGKILL: the parent of this process is the fork server, which would live on."""
    run = multiprocessing.parent_process()
    assert run is not None
    Thread(target=_end_after, args=(run.sentinel,), name="sweetrl-run", daemon=True).start()


def _end_after(sentinel: int) -> None:
    connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """In this block these variables are set."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
