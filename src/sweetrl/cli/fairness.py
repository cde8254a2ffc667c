"""`sweetrl fairness`: what the collaborator gave away in a run, beside what the agent made of it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.figures import add_row
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.fairness import FairnessReport, FairnessTally, WorstLeaks
from sweetrl.experiments.stages.fairness import assess_dialogues
from sweetrl.records import record_lines, write_lines

LABELS = {
    "success": "success",
    "success_without_leaks": "success, dialogues without leaks",
    "success_with_leaks": "success, dialogues with leaks",
    "leaking_dialogues": "dialogues with code of the reference",
    "leaking_replies": "replies with code of the reference",
    "code_carried": "share of the reference's code that came out",
    "facts_disclosed": "share of its facts that came out",
    "ignorant_replies": "replies that say they don't know",
    "cut_replies": "replies cut at the limit",
    "repeated_replies": "repeated replies",
    "excused_replies": "messages that could not be replied to",
}


def fairness(
    tasks: Annotated[str, typer.Option("--tasks", metavar="TASKS", help="The tasks of the dialogues.")],
    episodes: Annotated[
        Path, typer.Option("--episodes", metavar="EPISODES", help="Ours, or published dialogues.")
    ],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    verdicts: Annotated[
        Path | None,
        typer.Option("--verdicts", metavar="VERDICTS", help="Show success too, with and without leaks."),
    ] = None,
    details: Annotated[
        Path | None, typer.Option("--details", metavar="FILE", help="Write one JSON line per dialogue.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file of details.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Check whether the collaborator of a run was fair.

    An agent can succeed because the collaborator handed it the code. Details quote the reference: keep them
    away from agents.

    Example:
        sweetrl fairness --tasks mini-backend:train:20 --episodes run/episodes.jsonl
    """
    tally, worst = FairnessTally(), WorstLeaks()
    assessed = map(worst.add, assess_dialogues(load_tasks(tasks), episodes, verdicts, tally))
    if details is None:
        for _ in assessed:
            pass
    else:
        write_lines(details, record_lines(assessed), replace=force)
    report = tally.report()
    if json:
        console.print_json(report)
        return
    console.results().print(fairness_table(report))
    if not quiet:
        for line in worst.lines():
            console.note(line)


def fairness_table(report: FairnessReport) -> Table:
    """The metrics, one row each."""
    title = f"Fairness of the collaborator: {report.dialogues} dialogues, {report.replies} replies"
    table = Table(title=title, title_justify="left")
    for heading, justify in (("", "left"), ("%", "right"), ("95 % interval", "right"), ("of", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    found = {metric.name: metric for metric in report.metrics if metric.count}
    for name, label in LABELS.items():
        if name in found:
            add_row(table, label, found[name], "%")
    return table
