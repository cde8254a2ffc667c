"""Run many independent pieces of work concurrently, and record those that fail."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

from sweetrl.errors import ModelError, StageError, one_line
from sweetrl.types import Failure

Item = TypeVar("Item")
Result = TypeVar("Result")

MESSAGE_CHARACTERS = 500
"""How much of an error's text a record keeps."""


async def as_finished(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], *, concurrency: int
) -> AsyncGenerator[Result]:
    """Yield the results of `work` as they finish, with at most `concurrency` items in progress.

    An item is taken from `items` when there is room for it, so an iterator that ends early stops the work.
    """
    todo = iter(items)
    running: set[asyncio.Future[Result]] = set()
    try:
        while True:
            while len(running) < concurrency and (taken := next(((each,) for each in todo), None)):
                running.add(asyncio.ensure_future(work(*taken)))
            if not running:
                return
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                running.remove(each)
                yield each.result()
    finally:
        # Some may have failed together with the first one, and asyncio would print each.
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def failure(stage: str, error: StageError) -> Failure:
    """The `Failure` that a record keeps of an item that could not be processed."""
    kind = error.kind if isinstance(error, ModelError) else type(error).__name__
    return Failure(stage, kind, one_line(error)[:MESSAGE_CHARACTERS])
