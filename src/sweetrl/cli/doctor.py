"""`sweetrl doctor`: what this machine can do, and what to do about the rest."""

import typer
from rich.table import Table
from rich.text import Text

from sweetrl import sandbox
from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag
from sweetrl.experiments.machine import Finding, examine


def doctor(*, json: JsonFlag = False) -> None:
    """Show what this machine can do and what it lacks.

    Each line that is not ok says what to do about it. The exit code is 1 if untrusted code cannot be isolated here, and
    0 otherwise.

    Example:
        sweetrl doctor
    """
    offer = sandbox.available_isolation()
    findings = examine(offer)
    if json:
        console.print_json({"isolation": offer.best, "findings": findings})
    else:
        console.results().print(_table(findings))
    if offer.best is None:
        console.note("untrusted code cannot be isolated here, so backend answers cannot be scored")
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> Table:
    colours = {"ok": "green", "limited": "yellow", "missing": "red"}
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        told = Text(finding.found).append(f"  {finding.purpose}", style="dim")
        if finding.advice:
            told.append(f"\n-> {finding.advice}")
        table.add_row(Text(finding.status, style=colours[finding.status]), Text(finding.name), told)
    return table
