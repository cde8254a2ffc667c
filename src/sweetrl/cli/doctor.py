"""`sweetrl doctor`: what this machine can do, and what to do about the rest."""

import asyncio
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sweetrl import sandbox
from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag
from sweetrl.experiments.machine import Finding, examine, examine_model
from sweetrl.models.probe import probe


def doctor(
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="Also test whether this model's server honours temperature, seed and n."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show what this machine can do and what it lacks.

    Each line that is not ok says what to do about it. The exit code is 1 if untrusted code cannot be isolated here or
    the model does not sample, and 0 otherwise.

    Example:
        sweetrl doctor --model openai:MODEL@http://localhost:8000/v1
    """
    offer = sandbox.available_isolation()
    findings = examine(offer)
    asked = [] if model is None else examine_model(model, asyncio.run(probe(model)))
    findings += asked
    if json:
        console.print_json({"isolation": offer.best, "findings": findings})
    else:
        console.results().print(_table(findings))
    if offer.best is None:
        console.note("untrusted code cannot be isolated here, so backend answers cannot be scored")
        raise typer.Exit(1)
    if any(finding.status == "missing" for finding in asked):
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
