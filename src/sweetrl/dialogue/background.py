"""The event loop behind synchronous calls: one for the process, in a thread of its own.

It works in a notebook, where a loop is already running, and what was opened in one call (the connections of a model,
a browser) is of use in the next, because all calls share the loop.
"""

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, Protocol, TypeVar

from sweetrl.errors import UsageError

T = TypeVar("T")

_PATIENCE = 5.0
"""Seconds that the end of the process waits for what is still running."""


def run_in_background(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and give its result; Ctrl-C cancels it."""
    loop, thread = _background(os.getpid())
    if threading.current_thread() is thread:
        work.close()
        name = getattr(work, "__qualname__", "this")
        raise UsageError(
            f"{name} is called synchronously by code that sweetrl runs in its event loop; await it there"
        )
    running = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return running.result()
    except BaseException:
        running.cancel()  # does nothing where the error is the coroutine's own
        raise


async def await_in_background(work: Coroutine[Any, Any, T]) -> T:
    """`run_in_background` for code that awaits: its own event loop goes on in the meantime."""
    loop, _ = _background(os.getpid())
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class Closable(Protocol):
    """Something that must be closed in the end."""

    async def close(self) -> None:
        """Release it."""
        ...


def close_at_end(closable: Closable) -> None:
    """Release something when the process ends, in the loop that uses it."""
    _background(os.getpid())
    _closables.append(closable)


_closables: list[Closable] = []


@cache  # for each process: threads do not survive a fork
def _background(_process: int) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="sweetrl", daemon=True)
    thread.start()
    atexit.register(_end, loop, thread)
    return loop, thread


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    for closable in _closables:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(closable.close(), loop).result(_PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(_PATIENCE)
    if not thread.is_alive():
        loop.close()
