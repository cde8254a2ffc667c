"""Adapts the number of concurrent requests to a server: more while it keeps up, fewer as soon as it does not.

Additive increase, multiplicative decrease, as in TCP. The limit doubles with every round of replies until it
is first cut, then grows by one a round. It is cut when a good part of the recent requests were pushed back,
since a few are refused at any load, and once per round only, since the requests of one round are all refused
for the same reason.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

Answer = TypeVar("Answer")

DECREASE = 0.7
"""A cut multiplies the limit by this."""
TOLERANCE = 0.2
"""The fraction of requests that may be refused before the limit is cut."""
WINDOW = 20
"""The fewest requests over which that fraction is averaged."""


async def all_of(questions: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """The results of all coroutines, in order. The first error cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(each) for each in questions]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [each.result() for each in asked]


@dataclass(frozen=True, slots=True)
class Slot:
    """The right to have one request under way."""

    round: int
    """How often the limit had been cut when the request set out."""


class AdaptiveLimiter:
    """A semaphore whose size follows what the server can take."""

    def __init__(self, *, start: int, ceiling: int) -> None:
        if not 1 <= start <= ceiling:
            raise ValueError(f"a limiter cannot start at {start} with a ceiling of {ceiling}")
        self._limit = float(start)
        self._ceiling = float(ceiling)
        self._in_flight = 0
        self._round = 0
        self._pushed_back = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many requests may be under way now."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """How many requests are under way now."""
        return self._in_flight

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a place, first come first served, and hold it."""
        await self._acquire()
        try:
            yield Slot(self._round)
        finally:
            self._in_flight -= 1
            self._admit()

    def succeeded(self) -> None:
        """A reply came well in time: grow, if it is the limit that holds requests back."""
        self._remember(pushed_back=0.0)
        if self._in_flight < self.limit:
            return
        growth = 1.0 if self._round == 0 else 1.0 / self._limit
        self._limit = min(self._ceiling, self._limit + growth)

    def pushed_back(self, slot: Slot) -> None:
        """The server refused or timed out: shrink, if that is no exception nor old news."""
        self._remember(pushed_back=1.0)
        if slot.round == self._round and self._pushed_back > TOLERANCE:
            self._round += 1
            self._limit = max(1.0, self._limit * DECREASE)

    def _remember(self, *, pushed_back: float) -> None:
        self._pushed_back += (pushed_back - self._pushed_back) / max(WINDOW, self._limit)

    async def _acquire(self) -> None:
        if self._in_flight < self.limit and not self._waiting:
            self._in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The place was assigned at the same moment: pass it on.
                self._in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)
