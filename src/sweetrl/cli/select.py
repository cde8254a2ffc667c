"""`sweetrl select`: the records of files that are on some tasks."""

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.outputs import write_lines
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.records import LineDecoder, read_lines, unwritable


def select(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Episodes, verdicts, pairs, candidates, ranked or not."),
    ],
    tasks: Annotated[
        str, typer.Option("--tasks", metavar="TASKS", help="The tasks whose records are wanted.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The folder for files of the same names.")
    ],
    *,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Copy the records that are on some tasks.

    Training on them shows what fewer dialogues would have taught. Files that are there already are replaced.

    Example:
        sweetrl select run/episodes.jsonl run/verdicts.jsonl --tasks mini-backend:train:10 -o fewer
    """
    known = load_tasks(tasks)
    _refuse_clashes(files, output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(output, error) from error
    kept = {str(output / path.name): _copy(path, output / path.name, known) for path in files}
    if json:
        console.print_json({"tasks": len(known), "files": kept})
    elif not quiet:
        for name, count in kept.items():
            console.note(f"{name}: {count} records on {len(known)} tasks")


def _refuse_clashes(files: list[Path], output: Path) -> None:
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name; select from them into different folders")
    for path in files:
        if path.resolve().parent == output.resolve():
            raise UsageError(f"{path}: is in {output} itself; choose another folder with -o")


def _copy(path: Path, target: Path, tasks: Container[str]) -> int:
    """The lines as they are, so that nothing of them is lost; how many were copied."""
    count = write_lines(target, _chosen(path, tasks), replace=True)
    if not count:
        raise DataError("has no record on these tasks", path=path)
    return count


def _chosen(path: Path, tasks: Container[str]) -> Iterator[bytes]:
    class OnTask(msgspec.Struct):
        task_id: str

    decode = LineDecoder(OnTask, path)
    for number, line in read_lines(path):
        if decode(number, line).task_id in tasks:
            yield line.rstrip(b"\n") + b"\n"
