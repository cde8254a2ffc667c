"""`sweetrl report`: the results of runs as one HTML page."""

from pathlib import Path
from typing import Annotated, Any

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.domains.sources import tasks_or_none
from sweetrl.experiments.run_folder import open_runs
from sweetrl.records import refuse_existing, write_lines
from sweetrl.report import ReportContents, compose, render
from sweetrl.report.markup import counted

RunsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Folders of scored runs, of recipes or of trained models; LABEL=FOLDER gives one a label.",
    ),
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", metavar="HTML", help="The page to write.")]
TitleOption = Annotated[str, typer.Option("--title", help="Title of the page.")]
TasksOption = Annotated[
    str | None, typer.Option("--tasks", metavar="TASKS", help="Also show what was wanted in each example.")
]
ExamplesOption = Annotated[
    int, typer.Option("--examples", min=0, max=100, help="Tasks whose dialogues are shown.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Draws those tasks.")]


def report(
    runs: RunsArgument,
    output: OutputOption,
    *,
    title: TitleOption = "Report",
    tasks: TasksOption = None,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    examples: ExamplesOption = 6,
    seed: SeedOption = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing page.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Write one HTML page about one or more runs.

    It shows results, differences, training curves, dialogues, and how they were made. The page needs no network and no
    other file. What models wrote is shown as text and pictures, never run.

    Example:
        sweetrl report base=run-base trained=run-trained -o report.html
    """
    refuse_existing(output, replace=force)
    folders = open_runs(runs)
    known = tasks_or_none(tasks) or {}
    contents = compose(
        title,
        [run for folder in folders if (run := folder.run(known)) is not None],
        trainings=[training for folder in folders for training in folder.trainings()],
        provenance=[entry for folder in folders for entry in folder.provenance()],
        examples=examples,
        seed=seed,
    )
    page = render(contents).encode("utf-8", "replace")
    write_lines(output, [page], replace=force)
    if json:
        console.print_json({"output": str(output), "bytes": len(page)} | _summary(contents))
    elif not quiet:
        told = _summary(contents)
        counts = (
            (len(told["runs"]), "run"),
            (len(told["trainings"]), "training"),
            (told["examples"], "dialogue"),
        )
        shown = ", ".join(counted(*each) for each in counts)
        console.note(f"{output}: {shown}, {len(page) / 1e6:.1f} MB")


def _summary(contents: ReportContents) -> dict[str, Any]:
    return {
        "runs": [method.name for method in contents.methods],
        "trainings": [training.label for training in contents.trainings],
        "examples": len(contents.examples) + (0 if contents.duel is None else 2),
        "left_out": contents.left_out,
    }
