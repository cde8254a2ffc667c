"""How commands show the progress and the results of a stage."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager

import typer

from sweetrl.cli import console, live
from sweetrl.experiments.stages.filling import Tally
from sweetrl.experiments.stages.reporting import Advance, Reporter
from sweetrl.experiments.stages.rollout import Status, Summary

RETRY = "rerun the same command to retry the failed ones"


class TerminalReporter(Reporter):
    """Prints to standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, text: str) -> None:
        """Print one line, unless notes are not wanted."""
        if not self._quiet:
            console.note(text)

    def warn(self, text: str) -> None:
        """Print one line."""
        console.note(text)

    def progress(self, label: str, total: int | None, *, done: int = 0) -> AbstractContextManager[Advance]:
        """Show a progress bar."""
        return console.progress(label, total, done=done, quiet=self._quiet)

    def dialogues(self, status: Status) -> AbstractAsyncContextManager[None]:
        """Show a line about the dialogues."""
        return live.shown(status, quiet=self._quiet)


# ---------------------------------------------------------------- what a stage did


def report_tally(tally: Tally, *, json: bool, quiet: bool) -> None:
    """Say what a stage did to its file; failures end the command with exit code 1."""
    if json:
        console.print_json(tally.as_json())
    if not quiet:
        for line in _tally_lines(tally):
            console.note(line)
    if tally.failed:
        raise typer.Exit(1)


def _tally_lines(tally: Tally) -> Iterator[str]:
    old = f", {tally.before} were there" if tally.before else ""
    failed = f", {tally.failed} failed" if tally.failed else ""
    yield f"{tally.path}: {tally.made} {tally.noun}{failed}{old} ({live.duration(tally.seconds)})"
    for name, value in tally.extra.items():
        shown = f"{value:.4g}" if isinstance(value, float) else value
        yield f"  {name.replace('_', ' ')}: {shown}"
    for reason, count in tally.failures.most_common(3):
        yield f"  {count} x {reason}"
    if tally.failed:
        yield RETRY


def report_dialogues(summary: Summary, *, json: bool, quiet: bool) -> None:
    """Say what a rollout did; anything but a complete one ends the command with its exit code."""
    if json:
        console.print_json(summary.as_json())
    tell_dialogues(summary, quiet=quiet)
    if not summary.complete:
        raise typer.Exit(1)


def tell_dialogues(summary: Summary, *, quiet: bool) -> None:
    """Say what a rollout did in notes; an interrupted one ends the command here."""
    if not quiet:
        for line in _summary_lines(summary):
            console.note(line)
    if summary.interrupted and summary.left:
        raise KeyboardInterrupt(f"{summary.left} dialogues are left")


def _summary_lines(summary: Summary) -> Iterator[str]:
    status, endings = summary.status, summary.endings
    held = f"{endings['answered']} answered, {endings['turn_limit']} at the turn limit"
    held += f", {endings['broke_off']} broken off by the agent" if endings["broke_off"] else ""
    old = f", {status.before} were there" if status.before else ""
    yield f"{summary.path}: {held}, {endings['failed']} failed{old} ({live.duration(status.seconds)})"
    for reason, count in summary.failures.most_common(3):
        yield f"  {count} x {reason}"
    for reason, count in summary.troubles.most_common(3):
        yield f"  {count} x by the agent's own words: {reason}"
    if not summary.interrupted and status.progress.stopped:
        yield f"stopped with {summary.left} dialogues left: {status.progress.stopped}"
    if endings["failed"]:
        yield RETRY
