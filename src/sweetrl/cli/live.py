"""One line about a run of dialogues, kept up to date while it goes on."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sweetrl.cli import console
from sweetrl.experiments import progress
from sweetrl.prompts import TURN_LIMIT

if TYPE_CHECKING:
    from sweetrl.dialogue.rollout import Progress
    from sweetrl.models import Meter

HEARTBEAT_SECONDS = 60.0
"""How often a run without a terminal says how it is getting on."""
WATCH_SECONDS = 1.0
"""How often it looks whether an endpoint has stopped answering."""
SILENT_SECONDS = 4.0
"""Without a first reply for so long, the line says so."""


@dataclass
class Status:
    """What there is to say about a run."""

    progress: "Progress"
    meter: "Meter"
    total: int
    before: int
    """Dialogues of `total` that were there when the run began."""
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.clock() - self.started

    @property
    def share(self) -> float:
        """How much is done; a dialogue that is open counts by its turns, as far as those of others can tell."""
        progress = self.progress
        ended = progress.finished + progress.failed
        usual = progress.turns_of_ended / ended if ended else TURN_LIMIT
        begun = min((progress.turns - progress.turns_of_ended) / max(usual, 1.0), 0.9 * progress.open)
        return min(1.0, (self.before + ended + begun) / max(self.total, 1))

    @property
    def trouble(self) -> str:
        """Why nothing goes on, as far as an endpoint is the reason."""
        meter = self.meter
        if not meter.trouble and meter.asked and not meter.requests and self.seconds >= SILENT_SECONDS:
            return f"no reply from {meter.asked} yet"
        return meter.trouble

    def line(self) -> str:
        """Dialogues, rates, cost and the time that is left."""
        progress, seconds = self.progress, max(self.seconds, 1e-9)
        parts = [
            f"{self.before + progress.finished}/{self.total} finished",
            f"{progress.open} open",
            f"{progress.failed} failed",
            f"{progress.turns / seconds:.1f} turns/s",
            f"{self.meter.tokens / seconds:.0f} tokens/s",
        ]
        if self.meter.cost:
            parts.append(f"cost {self.meter.cost:.2f}")
        ended = progress.finished + progress.failed
        if ended:
            parts.append(f"{duration((self.total - self.before - ended) * seconds / ended)} left")
        if self.trouble:
            parts.insert(0, self.trouble)
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """`75` as `1:15`, `3675` as `1:01:15`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.asynccontextmanager
async def shown(status: Status, *, quiet: bool) -> AsyncIterator[None]:
    """Show the status while the block runs: live on a terminal, now and then in a log file."""
    tell = progress.teller()
    if tell is not None:
        async with _running(_telling(status, tell)):
            yield
    elif quiet:
        yield
    elif sys.stderr.isatty():
        from rich.live import Live
        from rich.text import Text

        with Live(console=console.messages(), get_renderable=lambda: Text(status.line()), transient=True):
            yield
    else:
        async with _running(_beat(status)):
            yield


@contextlib.asynccontextmanager
async def _running(beating: Coroutine[None, None, None]) -> AsyncIterator[None]:
    heartbeat = asyncio.create_task(beating)
    try:
        yield
    finally:
        heartbeat.cancel()


async def _telling(status: Status, tell: progress.Tell) -> None:
    while True:
        # In hundredths: of few dialogues, most of the time none ends.
        tell(round(100 * status.share * status.total), 100 * status.total, status.trouble)
        await asyncio.sleep(progress.SECONDS)


async def _beat(status: Status) -> None:
    """A line now and then, and one at once when an endpoint stops answering."""
    told, spoken = "", time.monotonic()
    while True:
        await asyncio.sleep(min(WATCH_SECONDS, HEARTBEAT_SECONDS))
        due = time.monotonic() - spoken >= HEARTBEAT_SECONDS
        if due or (status.trouble and not told):
            console.note(status.line())
            spoken = time.monotonic()
        told = status.trouble
