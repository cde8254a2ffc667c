"""How every command talks: results on standard output, everything else on standard error.

Progress, tables and messages are for people and go to standard error; `--json` puts exactly one JSON object
on standard output. rich and msgspec are imported on first use, because `--help` needs neither.
"""

import functools
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.experiments import progress as progress_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from sweetrl.experiments.stages.reporting import Advance

GROUP_SETTINGS: dict[str, Any] = {"default_map": {"help": False}}
"""For every group of commands. A `--help` that was not given would otherwise be None, and typer would import
pydantic to find out whether that is a boolean: 0.1 s."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no notes.")]


@functools.cache
def messages() -> "Console":
    """The console on standard error: notes, tables, progress."""
    from rich.console import Console

    return Console(stderr=True)


@functools.cache
def results() -> "Console":
    """The console on standard output, for results that people read."""
    from rich.console import Console

    return Console()


def note(text: str) -> None:
    """One line for the user on standard error."""
    # Not `typer.echo`, which would write to the terminal itself and into the middle of bars that are shown on it.
    sys.stderr.write(f"{printable(text)}\n")


class LogLines(logging.Handler):
    """Warnings of the library as lines on standard error: names in them may be a stranger's."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        sys.stderr.write(printable(self.format(record), keep="\n") + "\n")


def paragraphs(texts: Iterable[str]) -> None:
    """Sentences on standard output, broken between words on a terminal and nowhere else."""
    shown = results()
    for text in texts:
        shown.print(printable(text), markup=False, highlight=False, soft_wrap=not shown.is_terminal)


def print_json(value: Any) -> None:
    """The one JSON object that `--json` promises; records are welcome inside it."""
    import msgspec

    typer.echo(msgspec.json.encode(value))


def printable(text: str, *, keep: str = "") -> str:
    """`text` without characters that could move the cursor or start a new line, except those in `keep`."""
    return "".join(each if each.isprintable() or each in keep else " " for each in text)


@contextmanager
def progress(label: str, total: int | None, *, done: int = 0, quiet: bool = False) -> Iterator["Advance"]:
    """A progress bar with rate, elapsed and remaining time; yields the function that advances it.

    `done` items of `total` were there before this run, so they count for the bar but not for the rate.
    Nothing is shown when `quiet`. Where standard error is not a terminal, only what the work waits for is. Whoever
    started the command and asked to be told is told instead.
    """
    tell = progress_file.teller()
    if tell is not None and total is not None:
        yield _counting(tell, total, done)
        return
    if quiet or not sys.stderr.isatty():
        yield _waiting(quiet=quiet)
        return
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """Items per second since this run began."""

        def render(self, task: Task) -> Text:
            fresh = task.completed - task.fields["before"]
            return Text(f"{fresh / task.elapsed:.1f}/s" if task.elapsed else "-/s", style="cyan")

    with bar(RateColumn()) as shown:
        task = shown.add_task(label, total=total, completed=done, before=done)
        yield lambda count, waits="": shown.update(task, advance=count, description=printable(waits) or label)


def _counting(tell: progress_file.Tell, total: int, done: int) -> "Advance":
    def advance(count: int, waits_for: str = "", /) -> None:
        nonlocal done
        done += count
        tell(done, total, waits_for)

    return advance


def _waiting(*, quiet: bool) -> "Advance":
    """Says once whom the work waits for, and again if it stops once more."""
    told = ""

    def advance(_: int, waits_for: str = "", /) -> None:
        nonlocal told
        if waits_for and not told and not quiet:
            note(waits_for)
        told = waits_for

    return advance


def bar(own: "ProgressColumn") -> "Progress":
    """A progress bar with an extra column between the count and the times."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        own,
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=messages(),
    )
