"""Ctrl-C, in one place for all commands.

The first one stops the work and keeps what is done; one more than a command reacts to ends the process at once. How
the work is stopped depends on where the command is:

- in an event loop (`run`), the work is cancelled between two callbacks. asyncio's own handler cancels it between any
  two bytecodes, where a future may be about to get its result;
- between two records (`deferred` and `check`);
- elsewhere by a `KeyboardInterrupt`, as in any Python program.

The exit code is always 130, and one line says how to resume.
"""

import atexit
import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

EXIT_CODE = 130
RESUME = "rerun the same command to resume"
_SHOW_CURSOR = "\x1b[?25h"

Reaction = Callable[[], object]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class _Interrupts:
    """The interrupts so far, and how the command reacts to the next one."""

    def __init__(self) -> None:
        self.reactions: tuple[Reaction, ...] = ()
        """To the first Ctrl-C, the second...; beyond them the process ends."""
        self.count = 0
        self.pending = False
        self.told = False

    def on_interrupt(self, _number: int, _frame: object) -> None:
        self.count += 1
        if self.count > len(self.reactions):
            end_at_once()
        self.reactions[self.count - 1]()

    def on_terminate(self, number: int, frame: object) -> None:
        """SIGTERM counts as the last Ctrl-C that there is a reaction to."""
        self.count = max(self.count, len(self.reactions) - 1)
        self.on_interrupt(number, frame)

    def defer(self) -> None:
        self.pending = True


_now = _Interrupts()


# ---------------------------------------------------------------- the process


def listen() -> None:
    """Take over Ctrl-C for the life of this process: from now on it never ends in a traceback."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in background jobs
        signal.signal(signal.SIGINT, _now.on_interrupt)
        # The interpreter is exiting: everything is printed and no handler runs any more.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.unraisablehook = _on_unraisable


def _on_unraisable(error: "sys.UnraisableHookArgs") -> None:
    """A `KeyboardInterrupt` in a destructor or a callback of C code goes nowhere and would leave its traceback."""
    if issubclass(error.exc_type, KeyboardInterrupt):
        end_at_once()
    sys.__unraisablehook__(error)


def end_at_once() -> NoReturn:
    """End the process where it is. Records are safe, and child processes end with their parent."""
    with contextlib.suppress(OSError):
        cursor = _SHOW_CURSOR if os.isatty(2) else ""
        os.write(2, (cursor + _line("")).encode())
    os._exit(EXIT_CODE)


def tell(detail: str) -> None:
    """The line about an interrupt; said once."""
    sys.stderr.write(_line(detail))
    sys.stderr.flush()


def _line(detail: str) -> str:
    told, _now.told = _now.told, True
    return "" if told else f"interrupted{f': {detail}' if detail else ''}; {RESUME}\n"


# ---------------------------------------------------------------- reactions


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """The length of a command: the first Ctrl-C raises `KeyboardInterrupt` where nothing else is said."""
    _now.told = False
    try:
        with _installed(signal.SIGINT, _now.on_interrupt, instead_of=signal.default_int_handler), raised():
            yield
    finally:
        _now.count, _now.pending = 0, False


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """In this block SIGTERM is reacted to as well."""
    with _installed(signal.SIGTERM, _now.on_terminate, instead_of=signal.SIG_DFL):
        yield


@contextlib.contextmanager
def _installed(number: signal.Signals, handler: Any, *, instead_of: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(number) != instead_of:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, instead_of)


@contextlib.contextmanager
def reacting(*reactions: Reaction) -> Iterator[None]:
    """In this block the first Ctrl-C gets the first reaction, the second the second, and so on."""
    before, _now.reactions = _now.reactions, reactions
    try:
        yield
    finally:
        _now.reactions = before


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Let the first Ctrl-C raise `KeyboardInterrupt` in this block, which may wait for long and cleans up after itself.

    So does one that came just before: the code that would react to it does not run while the block waits.
    """
    with reacting(_raise):
        if came():
            _raise()
        yield


def _raise() -> NoReturn:
    raise KeyboardInterrupt


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """In this block the first Ctrl-C waits for `check`, at the latest for the end of the block."""
    with reacting(_now.defer):
        yield
    check()


def check() -> None:
    """Raise the `KeyboardInterrupt` that was deferred, if any."""
    if _now.pending:
        raise KeyboardInterrupt


def came() -> bool:
    """Whether the command was interrupted."""
    return _now.count > 0


# ---------------------------------------------------------------- event loops


def run(
    work: Callable[Arguments, Coroutine[Any, Any, Result]],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Result:
    """`asyncio.run(work(...))` that Ctrl-C cancels in the event loop.

    The text of the `CancelledError` that comes out of the work becomes that of the interrupt.
    """
    with deferred():
        import asyncio

        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            task = loop.create_task(work(*arguments, **options))
            with _woken(loop), reacting(lambda: loop.call_soon_threadsafe(task.cancel)):
                check()  # it may have come before there was anything to cancel
                try:
                    return loop.run_until_complete(task)
                except asyncio.CancelledError as error:
                    if not came():
                        raise
                    raise KeyboardInterrupt(*error.args) from None


@contextlib.contextmanager
def _woken(loop: "AbstractEventLoop") -> Iterator[None]:
    """In this block any signal wakes the loop: one that comes as the loop goes to sleep would be seen hours later."""
    with _signals() as signals:
        if signals is None:
            yield
            return
        loop.add_reader(signals, signals.recv, 4096)
        try:
            yield
        finally:
            loop.remove_reader(signals)


def wait_for(file: TextIO) -> None:
    """Wait until there is something to read; a Ctrl-C that comes as the wait begins ends it, too."""
    with _signals() as signals:
        if signals is None:
            return
        while file.fileno() not in select.select([file.fileno(), signals.fileno()], [], [])[0]:
            signals.recv(4096)


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket | None]:
    """A socket that gets a byte for each signal; None outside the main thread, which alone may ask for it."""
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        theirs.settimeout(0)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(before)
