"""`sweetrl select`: the records of files that are on some tasks."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import FolderOption, TasksOption
from sweetrl.domains.sources import load_tasks
from sweetrl.experiments.stages.select import select_records


def select(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Episodes, verdicts, pairs, candidates, ranked or not."),
    ],
    tasks: TasksOption,
    output: FolderOption,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Copy the records that are on some tasks.

    Use it to train on fewer dialogues. Files that are there already are replaced.

    Example:
        sweetrl select run/episodes.jsonl run/verdicts.jsonl --tasks mini-backend:train:10 -o fewer
    """
    known = load_tasks(tasks)
    kept = select_records(files, known, output)
    if json:
        console.print_json({"tasks": len(known), "files": kept})
    elif not quiet:
        for name, count in kept.items():
            console.note(f"{name}: {count} records on {len(known)} tasks")
