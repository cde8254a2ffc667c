"""How a command fills a record file: what is missing is made, kept at once, counted, and reported.

Ctrl-C drops what is under way; what was finished is in the file, and the same command resumes.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import typer

from sweetrl import interrupts
from sweetrl.cli import console, live
from sweetrl.dialogue.building import Models
from sweetrl.models import EndpointOptions, Meter
from sweetrl.records import RecordLog, open_log
from sweetrl.types import CandidateSet, EpisodePair, Failure, TurnCredit, TurnPair, TurnValues

Record = TypeVar("Record", CandidateSet, EpisodePair, TurnCredit, TurnPair, TurnValues)
Awaited = TypeVar("Awaited", CandidateSet, TurnCredit, TurnValues)
"""Records that take a model to make, which can break down."""
Pair = TypeVar("Pair", CandidateSet, EpisodePair, TurnCredit, TurnPair)


@dataclass
class Tally:
    """What a command did to its file."""

    path: Path
    noun: str
    """What the records are called, in the plural."""
    before: int = 0
    """Records that were there when the run began."""
    made: int = 0
    failed: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    extra: dict[str, Any] = field(default_factory=dict)
    """What else there is to say, for `--json` and for people."""
    _started: float = field(default_factory=time.monotonic)

    def add(self, failure: Failure | None) -> None:
        """Count a new record."""
        if failure is None:
            self.made += 1
        else:
            self.failed += 1
            self.failures[f"{failure.stage}: {failure.kind}: {failure.message}"] += 1

    def report(self, *, json: bool, quiet: bool) -> None:
        """Say what happened; failures end the command with exit code 1."""
        seconds = time.monotonic() - self._started
        if json:
            console.print_json(self._as_json(seconds))
        if not quiet:
            for line in self._lines(seconds):
                console.note(line)
        if self.failed:
            raise typer.Exit(1)

    def _lines(self, seconds: float) -> Iterator[str]:
        old = f", {self.before} were there" if self.before else ""
        failed = f", {self.failed} failed" if self.failed else ""
        yield f"{self.path}: {self.made} {self.noun}{failed}{old} ({live.duration(seconds)})"
        for name, value in self.extra.items():
            shown = f"{value:.4g}" if isinstance(value, float) else value
            yield f"  {name.replace('_', ' ')}: {shown}"
        for reason, count in self.failures.most_common(3):
            yield f"  {count} x {reason}"
        if self.failed:
            yield "rerun the same command to retry the failed ones"

    def _as_json(self, seconds: float) -> dict[str, Any]:
        return {
            "output": str(self.path),
            "made": self.made,
            "before": self.before,
            "failed": self.failed,
            "failures": dict(self.failures.most_common(20)),
            **self.extra,
            "seconds": round(seconds, 3),
        }


@contextlib.asynccontextmanager
async def opened_models(tally: Tally) -> AsyncIterator[Models]:
    """The chat models of a command, closed in the end; what they used is added to the tally."""
    meter = Meter()
    models = Models(EndpointOptions(), meter)
    try:
        yield models
    finally:
        await models.close()
    if meter.requests:
        tally.extra |= {
            "requests": meter.requests,
            "prompt_tokens": meter.prompt_tokens,
            "completion_tokens": meter.completion_tokens,
        }


def open_output(
    path: Path, record_type: type[Record], *, command: str, config: dict[str, Any], quiet: bool
) -> RecordLog[Record]:
    """The record file of a command; records with a failure are made again."""
    log = open_log(
        path,
        record_type,
        command=command,
        config=config,
        identity=lambda record: record.id,
        settled=lambda record: getattr(record, "failure", None) is None,
    )
    if log.repaired and not quiet:
        console.note(f"{path}: {log.repaired}")
    return log


async def fill(
    log: RecordLog[Awaited],
    records: AsyncGenerator[Awaited],
    tally: Tally,
    *,
    total: int,
    quiet: bool,
    on_record: Callable[[Awaited], None] = lambda _: None,
) -> None:
    """Append the records as they come; `total` counts those that are there already."""
    tally.before = len(log)
    try:
        with console.progress(tally.noun, total, done=len(log), quiet=quiet) as advance:
            async with contextlib.aclosing(records):
                async for record in records:
                    log.append(record.id, record)
                    tally.add(record.failure)
                    on_record(record)
                    advance(1)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(f"{total - len(log)} {tally.noun} are left") from None
    if not tally.failed:
        log.finish()


def fill_at_once(log: RecordLog[Pair], records: Iterable[Pair], tally: Tally, *, quiet: bool) -> None:
    """The same for records that take no time to make and cannot fail."""
    tally.before = len(log)
    with console.progress(tally.noun, None, quiet=quiet) as advance, interrupts.deferred():
        for record in records:
            interrupts.check()
            if not log.has(record.id):
                log.append(record.id, record)
                tally.add(None)
                advance(1)
    log.finish()
