"""`sweetrl tasks`: bring tasks in, take them out, look at them, find the defective ones."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from rich.console import RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import LimitOption
from sweetrl.cli.write_tasks import write
from sweetrl.domains.frontend.websight import DATASET, read_websight
from sweetrl.domains.registry import all_domains, domain_of
from sweetrl.domains.scoring import Defect
from sweetrl.domains.sources import load_tasks, read_tasks
from sweetrl.errors import UsageError
from sweetrl.experiments.stages.checking import find_defects
from sweetrl.records import find_by_id, record_lines, refuse_existing, write_lines
from sweetrl.settings import SandboxSettings
from sweetrl.types import Task

app = typer.Typer(
    rich_markup_mode=None,
    help="Write, make, import, export, show and check tasks.",
    context_settings=console.GROUP_SETTINGS,
)
app.command()(write)

SourceArgument = Annotated[
    str, typer.Argument(metavar="TASKS", help="A tasks.jsonl of ours or a published ColBench file.")
]
ForceFlag = Annotated[bool, typer.Option("--force", help="Replace an existing output.")]


@app.command("import")
def import_(
    source: SourceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The tasks.jsonl to write.")],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    n: Annotated[int | None, typer.Option("--n", min=1, help="With websight: how many rows.")] = None,
    split: Annotated[str, typer.Option("--split", help="With websight: the split.")] = "train",
    dataset: Annotated[
        str | None, typer.Option("--from", help="With websight: a dataset or folder with the same columns.")
    ] = None,
    limit: LimitOption = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Read tasks of any accepted format and write them as a tasks.jsonl.

    `websight` in place of TASKS reads the rows of that dataset from the Hugging Face hub.

    Example:
        sweetrl tasks import colbench/test.jsonl -o tasks.jsonl
    """
    if source == "websight":
        refuse_existing(output, replace=force)
        tasks = read_websight(split=split, count=n or limit, source=dataset or DATASET)
    elif n is not None or dataset is not None:
        raise UsageError("--n and --from are for websight; --limit N reads the first N tasks of a file")
    else:
        tasks = read_tasks(source, limit)
    _write(record_lines(tasks), output, force=force, json=json)


@app.command()
def make(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="mini-backend, mini-frontend, mini-frontend-plain, or one of your domain."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The tasks.jsonl to write.")],
    *,
    n: Annotated[int, typer.Option("--n", min=1, help="How many tasks.")] = 100,
    split: Annotated[str, typer.Option("--split", help="train, validation or test.")] = "train",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed makes the same tasks.")] = 0,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Make tasks with a generator and write them as a tasks.jsonl.

    The name NAME:SPLIT:N:SEED stands for the same tasks wherever a command takes TASKS.

    Example:
        sweetrl tasks make mini-backend --n 50 --split test -o tasks.jsonl
    """
    generators = sorted(each for domain in all_domains() for each in domain.generators)
    if name not in generators:
        step = "give --split, --n and --seed apart" if ":" in name else f"there is {', '.join(generators)}"
        raise UsageError(f"there is no generator {name!r}; {step}")
    _write(record_lines(read_tasks(f"{name}:{split}:{n}:{seed}")), output, force=force, json=json)


@app.command()
def export(
    source: SourceArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    limit: LimitOption = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Write tasks in the published format of their domain, which is ColBench's for backend and frontend tasks.

    Tasks that came from a published file are written as they were there, byte for byte.

    Example:
        sweetrl tasks export tasks.jsonl -o published.jsonl
    """
    _write(map(_published_line, read_tasks(source, limit)), output, force=force, json=json)


def _published_line(task: Task) -> bytes:
    write = domain_of(task).published_line
    if write is None:
        raise UsageError(f"task {task.id}: {task.domain} tasks have no published format")
    return write(task)


@app.command()
def check(
    source: SourceArgument,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the tasks without defects to this tasks.jsonl."),
    ] = None,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    limit: LimitOption = None,
    settings: SandboxSettings,
    force: ForceFlag = False,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Run or render every reference and name the tasks that cannot measure what they should.

    The exit code is 1 if there are any.

    Example:
        sweetrl tasks check mini-backend:test:50 -o sound.jsonl
    """
    known = load_tasks(source, limit)
    if output is not None:
        refuse_existing(output, replace=force)
    with console.progress("checking", len(known), quiet=quiet or json) as advance:
        defects = {task_id: found for task_id, found in find_defects(known, settings, advance) if found}
    if output is not None:
        sound = (task for task in known.values() if task.id not in defects)
        write_lines(output, record_lines(sound), replace=force)
    if json:
        listed = [defect for found in defects.values() for defect in found]
        console.print_json({"tasks": len(known), "defective": len(defects), "defects": listed})
    else:
        _print_defects(known, defects, output)
    if defects:
        raise typer.Exit(1)


def _print_defects(known: dict[str, Task], defects: dict[str, list[Defect]], output: Path | None) -> None:
    if defects:
        table = Table("task", "reason", "test", "detail")
        for found in defects.values():
            for defect in found:
                row = (defect.task_id, defect.reason.replace("_", " "), defect.test, defect.detail)
                table.add_row(*(Text(console.printable(cell)) for cell in row))
        console.results().print(table)
    console.note(f"{len(defects)} of {len(known)} tasks are defective")
    if output is not None:
        console.note(f"wrote {len(known) - len(defects)} tasks to {output}")


def _write(lines: Iterable[bytes], output: Path, *, force: bool, json: bool) -> None:
    count = write_lines(output, lines, replace=force)
    if json:
        console.print_json({"tasks": count, "output": str(output)})
    else:
        console.note(f"wrote {count} {'task' if count == 1 else 'tasks'} to {output}")


@app.command()
def show(
    source: SourceArgument,
    task_id: Annotated[str | None, typer.Argument(metavar="ID", help="One task, by its id.")] = None,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    n: Annotated[int, typer.Option("--n", min=1, help="How many tasks, from the first one on.")] = 1,
    secret: Annotated[
        bool, typer.Option("--secret", help="Also what the agent may not see: reference and tests, or page.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Show what a task asks for.

    Example:
        sweetrl tasks show mini-backend:test:10 --n 3 --secret
    """
    tasks = read_tasks(source)
    chosen = islice(tasks, n) if task_id is None else [find_by_id(tasks, task_id, "task", Path(source))]
    if json:
        console.print_json({"tasks": [_described(task, secret=secret) for task in chosen]})
        return
    for task in chosen:
        for panel in _panels(task, secret=secret):
            console.results().print(panel)


def _described(task: Task, *, secret: bool) -> dict[str, Any]:
    """The task as JSON; of a published line even the unused fields repeat the reference, so they go too."""
    fields: dict[str, Any] = to_builtins(task)
    return fields if secret else {key: fields[key] for key in ("id", "domain", "split", "request")}


def _panels(task: Task, *, secret: bool) -> Iterator[RenderableType]:
    title = " · ".join(filter(None, (task.id, task.domain, task.split)))
    yield Panel(
        Text(_shown(task.request)), title=Text(_shown(title)), title_align="left", border_style="cyan"
    )
    if not secret:
        return
    for part in domain_of(task).parts_of(task):
        yield _secret_panel(*part)


def _secret_panel(title: str, code: str, language: str) -> RenderableType:
    body = Syntax(_shown(code), language, word_wrap=True, background_color="default")
    return Panel(body, title=title, title_align="left", border_style="red")


def _shown(text: str) -> str:
    return console.printable(text, keep="\n\t")
