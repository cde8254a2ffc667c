"""The record file of a command, filled and reported."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages import filling
from sweetrl.experiments.stages.filling import Awaited, Record, opened_models
from sweetrl.records import RecordLog

__all__ = ["Tally", "fill", "open_output", "opened_models"]


class Tally(filling.Tally):
    """What a command did to its file."""

    def report(self, *, json: bool, quiet: bool) -> None:
        """Say what happened; failures end the command with exit code 1."""
        report_tally(self, json=json, quiet=quiet)


def open_output(
    path: Path, record_type: type[Record], *, command: str, config: dict[str, Any], quiet: bool
) -> RecordLog[Record]:
    """The record file of a command; records with a failure are made again."""
    return filling.open_output(path, record_type, command, config, TerminalReporter(quiet=quiet))


async def fill(
    log: RecordLog[Awaited], records: AsyncGenerator[Awaited], tally: Tally, *, total: int, quiet: bool
) -> None:
    """Append the records as they come; `total` counts those that are there already."""
    await filling.fill(log, records, tally, TerminalReporter(quiet=quiet), total=total)
