"""Programs that a command starts and that must not outlive it, however it ends."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Protocol

_PR_SET_PDEATHSIG = 1


class Child(Protocol):
    """The part of `subprocess.Popen` that runs need."""

    def poll(self) -> int | None:
        """Its exit code, if it has ended; that of a signal is negative."""

    def terminate(self) -> None:
        """Ask it to end."""

    def wait(self) -> int | None:
        """Wait until it has ended."""


def start(
    words: Sequence[str] | str,
    *,
    output: IO[Any],
    errors: IO[Any] | None = None,
    own_session: bool = False,
    variables: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a program that gets SIGTERM when this process ends, be it by SIGKILL. A text goes to a shell.

    `variables` are added to the environment.
    """
    return subprocess.Popen(  # noqa: S603  words of our own, or the recipe's
        words,
        shell=isinstance(words, str),
        stdout=output,
        stderr=errors,
        start_new_session=own_session,
        env={**os.environ, **(variables or {})},
        preexec_fn=_dying_with(os.getpid()),
    )


def die_with_parent() -> None:
    """End this process when the one that started it ends; programs that it runs in turn die with it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _dying_with(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)  # before the fork, after which little is allowed

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)  # it ended before it could be watched

    return prepare
