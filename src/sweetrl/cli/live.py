"""One status line about a running rollout, kept up to date."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from sweetrl.cli import console
from sweetrl.experiments import progress

if TYPE_CHECKING:
    from sweetrl.experiments.stages.rollout import (
        Status,  # training shows durations, too, and needs none of it
    )

HEARTBEAT_SECONDS = 60.0
"""How often a run without a terminal says how it is getting on."""
WATCH_SECONDS = 1.0
"""How often it looks whether an endpoint has stopped answering."""


def status_line(status: "Status") -> str:
    """Dialogues, rates, cost and the time that is left."""
    progress, seconds = status.progress, max(status.seconds, 1e-9)
    parts = [
        f"{status.before + progress.finished}/{status.total} finished",
        f"{progress.open} open",
        f"{progress.failed} failed",
        f"{progress.turns / seconds:.1f} turns/s",
        f"{status.meter.tokens / seconds:.0f} tokens/s",
    ]
    if status.meter.cost:
        parts.append(f"cost {status.meter.cost:.2f}")
    ended = progress.finished + progress.failed
    if ended:
        parts.append(f"{duration((status.total - status.before - ended) * seconds / ended)} left")
    if status.trouble:
        parts.insert(0, status.trouble)
    return " · ".join(parts)


def duration(seconds: float) -> str:
    """`75` as `1:15`, `3675` as `1:01:15`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.asynccontextmanager
async def shown(status: "Status", *, quiet: bool) -> AsyncIterator[None]:
    """Show the status while the block runs: live on a terminal, now and then in a log file."""
    tell = progress.teller()
    if tell is not None:
        async with _running(_telling(status, tell)):
            yield
    elif quiet:
        yield
    elif sys.stderr.isatty():
        with Live(
            console=console.messages(), get_renderable=lambda: Text(status_line(status)), transient=True
        ):
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


async def _telling(status: "Status", tell: progress.Tell) -> None:
    while True:
        # In hundredths: with few dialogues, most of the time none ends.
        tell(round(100 * status.share * status.total), 100 * status.total, status.trouble)
        await asyncio.sleep(progress.SECONDS)


async def _beat(status: "Status") -> None:
    """A line now and then, and one at once when an endpoint stops answering."""
    told, spoken = "", time.monotonic()
    while True:
        await asyncio.sleep(min(WATCH_SECONDS, HEARTBEAT_SECONDS))
        due = time.monotonic() - spoken >= HEARTBEAT_SECONDS
        if due or (status.trouble and not told):
            console.note(status_line(status))
            spoken = time.monotonic()
        told = status.trouble
