"""Scoring many episodes at once, with the verdicts in the order of the episodes."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable

from sweetrl.protocols import Scorer
from sweetrl.types import Episode, Task, Verdict

_WINDOW_PER_WORKER = 32
"""How many episodes per worker may run ahead of a slow one; bounds memory and the loss at an interrupt."""


async def score_in_order(
    episodes: Iterable[tuple[Task, Episode]], scorer: Scorer, *, concurrency: int
) -> AsyncGenerator[Verdict, None]:
    """One verdict per episode. The order makes the files of two runs comparable byte for byte."""
    window: deque[asyncio.Task[Verdict]] = deque()
    try:
        for task, episode in episodes:
            window.append(asyncio.create_task(_score(scorer, task, episode)))
            if len(window) >= _WINDOW_PER_WORKER * concurrency:
                yield await window.popleft()
        while window:
            yield await window.popleft()
    finally:
        for running in window:
            running.cancel()
        await asyncio.gather(*window, return_exceptions=True)


async def _score(scorer: Scorer, task: Task, episode: Episode) -> Verdict:
    return await scorer.score(task, episode)
