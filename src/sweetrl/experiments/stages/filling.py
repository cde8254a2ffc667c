"""How a stage fills a record file: what is missing is made, kept at once, and counted.

Ctrl-C drops what is under way; what was finished is in the file, and the same call resumes.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sweetrl import interrupts
from sweetrl.dialogue.building import Models
from sweetrl.experiments.stages.reporting import Advance, Reporter
from sweetrl.models import Meter
from sweetrl.records import ALL, Part, RecordLog, open_log
from sweetrl.types import CandidateSet, EpisodePair, Failure, TurnCredit, TurnPair, TurnValues

Record = TypeVar("Record", CandidateSet, EpisodePair, TurnCredit, TurnPair, TurnValues)
Awaited = TypeVar("Awaited", CandidateSet, TurnCredit, TurnValues)
"""Records that take a model to make, which can break down."""
Pair = TypeVar("Pair", CandidateSet, EpisodePair, TurnCredit, TurnPair)
WATCH_SECONDS = 1.0
"""How often a stage looks whether an endpoint has stopped answering."""


@dataclass
class Tally:
    """What a stage has written to its file."""

    path: Path
    noun: str
    """What the records are called, in the plural."""
    before: int = 0
    """Records that were there when the run began."""
    made: int = 0
    failed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    extra: dict[str, Any] = field(default_factory=dict)
    """Other results, for `--json` and for people."""
    meter: Meter = field(default_factory=Meter)
    _started: float = field(default_factory=time.monotonic)

    def add(self, failure: Failure | None) -> None:
        """Count a new record."""
        if failure is None:
            self.made += 1
        else:
            self.failed += 1
            self.failures[str(failure)] += 1

    @property
    def seconds(self) -> float:
        """Since the stage began."""
        return time.monotonic() - self._started

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "output": str(self.path),
            "made": self.made,
            "before": self.before,
            "failed": self.failed,
            "failures": dict(self.failures.most_common(20)),
            **self.extra,
            "seconds": round(self.seconds, 3),
        }


@contextlib.asynccontextmanager
async def opened_models(tally: Tally) -> AsyncIterator[Models]:
    """The chat models of a stage, closed in the end; what they used is added to the tally."""
    meter = tally.meter
    async with Models(meter=meter) as models:
        yield models
    if meter.requests:
        tally.extra |= {
            "requests": meter.requests,
            "prompt_tokens": meter.prompt_tokens,
            "completion_tokens": meter.completion_tokens,
        }


def open_output(
    path: Path,
    record_type: type[Record],
    command: str,
    config: dict[str, Any],
    reporter: Reporter,
    part: Part = ALL,
) -> RecordLog[Record]:
    """The record file of a stage, or of its shard; records with a failure are made again."""
    log = open_log(
        path,
        record_type,
        command=command,
        config=config,
        identity=lambda record: record.id,
        settled=lambda record: getattr(record, "failure", None) is None,
        part=part,
    )
    if log.repaired:
        reporter.note(f"{log.path}: {log.repaired}")
    return log


async def fill(
    log: RecordLog[Awaited],
    records: AsyncGenerator[Awaited],
    tally: Tally,
    reporter: Reporter,
) -> None:
    """Append the records as they come."""
    tally.path, tally.before, total = log.path, len(log), log.part.total
    try:
        with reporter.progress(tally.noun, total, done=len(log)) as advance:
            async with contextlib.aclosing(records), _watched(tally, advance):
                async for record in records:
                    log.append(record.id, record)
                    tally.add(record.failure)
                    advance(1)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(f"{total - len(log)} {tally.noun} are left") from None
    if tally.failed:
        log.arrange()
    else:
        log.finish()


@contextlib.asynccontextmanager
async def _watched(tally: Tally, advance: Advance) -> AsyncIterator[None]:
    """While the block runs, tell whom it waits for."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            advance(0, tally.meter.waits_for(tally.seconds))

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def fill_at_once(log: RecordLog[Pair], records: Iterable[Pair], tally: Tally, reporter: Reporter) -> None:
    """`fill` for records that take no time to make and cannot fail."""
    tally.path, tally.before = log.path, len(log)
    with reporter.progress(tally.noun, None) as advance, interrupts.deferred():
        for record in records:
            interrupts.check()
            if not log.skips(record.id):
                log.append(record.id, record)
                tally.add(None)
                advance(1)
    log.finish()
