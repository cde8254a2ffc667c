"""`sweetrl episodes`: published dialogues and chat logs in and out, and a dialogue to look at."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct, to_builtins
from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag
from sweetrl.domains.dialogues import read_episodes
from sweetrl.domains.exchange import ForeignDialogues, published_lines
from sweetrl.domains.sources import load_tasks, tasks_or_none
from sweetrl.errors import UsageError
from sweetrl.records import find_by_id, make_folder, record_lines, write_lines
from sweetrl.types import Episode

app = typer.Typer(
    rich_markup_mode=None, help="Import, export and show dialogues.", context_settings=console.GROUP_SETTINGS
)

ForceFlag = Annotated[bool, typer.Option("--force", help="Replace existing outputs.")]
EpisodesArgument = Annotated[
    Path, typer.Argument(metavar="EPISODES", help="An episodes.jsonl of ours, or published dialogues.")
]


# ---------------------------------------------------------------- import


@app.command("import")
def import_(
    dialogues: Annotated[
        Path, typer.Argument(metavar="DIALOGUES", help="Published dialogues or a chat log.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write in.")],
    *,
    tasks: Annotated[
        str | None,
        typer.Option("--tasks", metavar="TASKS", help="Find the tasks here instead of in the dialogues."),
    ] = None,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Read published dialogues or chat logs and write them as records.

    A chat log has lines of {"messages": [...]} as OpenAI writes them, perhaps with a "reference" and an "outcome".
    Writes DIR/episodes.jsonl, DIR/tasks.jsonl with the tasks that the dialogues carry (unless --tasks is
    given), and DIR/verdicts.jsonl if they carry rewards or outcomes.

    Example:
        sweetrl episodes import dialogues.jsonl -o imported
    """
    foreign = ForeignDialogues(dialogues, tasks_or_none(tasks))
    records: dict[str, Iterator[Struct]] = {"episodes": foreign.episodes()}
    if tasks is None:
        records["tasks"] = foreign.tasks()
    if any(foreign.verdicts()):
        records["verdicts"] = foreign.verdicts()
    _prepare(output, replace=force)
    count = {
        name: write_lines(output / f"{name}.jsonl", record_lines(found), replace=force)
        for name, found in records.items()
    }
    if json:
        console.print_json({**count, "output": str(output)})
    else:
        console.note(f"{output}: " + ", ".join(f"{number} {name}" for name, number in count.items()))


def _prepare(folder: Path, *, replace: bool) -> None:
    """Make the folder; refuse one with earlier outputs before any is written."""
    make_folder(folder)
    for name in ("episodes.jsonl", "tasks.jsonl", "verdicts.jsonl"):
        if (folder / name).exists() and not replace:
            raise UsageError(
                f"{folder / name}: exists already; choose another -o, or replace it with --force"
            )


# ---------------------------------------------------------------- export


@app.command()
def export(
    episodes: EpisodesArgument,
    tasks: Annotated[str, typer.Option("--tasks", metavar="TASKS", help="The tasks of the dialogues.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    *,
    verdicts: Annotated[
        Path | None, typer.Option("--verdicts", metavar="VERDICTS", help="Where the rewards are.")
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Keep the order of the file instead of blocks of all tasks.")
    ] = False,
    force: ForceFlag = False,
    json: JsonFlag = False,
) -> None:
    """Write dialogues in the published format.

    They are laid out in blocks: all tasks once, then all again. Failed dialogues are left out. Imported ones
    are written as they were, byte for byte.

    Example:
        sweetrl episodes export run/episodes.jsonl --tasks mini-backend:train:20 -o published.jsonl
    """
    lines = published_lines(episodes, load_tasks(tasks), verdicts, as_is=as_is)
    count = write_lines(output, lines, replace=force)
    if json:
        console.print_json({"episodes": count, "output": str(output)})
    else:
        console.note(f"wrote {count} {'dialogue' if count == 1 else 'dialogues'} to {output}")


# ---------------------------------------------------------------- show


@app.command()
def show(
    episodes: EpisodesArgument,
    episode_id: Annotated[str | None, typer.Argument(metavar="ID", help="One dialogue, by its id.")] = None,
    *,
    n: Annotated[int, typer.Option("--n", min=1, help="How many dialogues, from the first one on.")] = 1,
    thoughts: Annotated[
        bool, typer.Option("--thoughts", help="Also what the agent thought before it spoke.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Show dialogues, turn by turn.

    Example:
        sweetrl episodes show run/episodes.jsonl --n 2 --thoughts
    """
    found = read_episodes(episodes)
    chosen = islice(found, n) if episode_id is None else [find_by_id(found, episode_id, "dialogue", episodes)]
    if json:
        console.print_json({"episodes": [{"id": each.id, **to_builtins(each)} for each in chosen]})
        return
    for episode in chosen:
        for panel in dialogue_panels(episode, thoughts=thoughts):
            console.results().print(panel)


def dialogue_panels(episode: Episode, *, thoughts: bool) -> Iterator[RenderableType]:
    """A dialogue as boxes, the agent's on the left and the collaborator's further in."""
    title = f"{episode.id} · {episode.agent} with {episode.collaborator}"
    yield _panel(title, episode.request, "cyan")
    for number, turn in enumerate(episode.turns, start=1):
        yield _panel(f"agent, turn {number}", turn.output if thoughts else turn.said, "magenta")
        if turn.reply is not None:
            excuse = f" (no reply: {turn.reply.excuse})" if turn.reply.excuse else ""
            yield Padding(_panel(f"collaborator{excuse}", turn.reply.text, "green"), (0, 0, 0, 4))
    ending = episode.ending.replace("_", " ")
    reason = f": {episode.failure.kind}: {episode.failure.message}" if episode.failure else ""
    body = episode.answer if episode.answer is not None else "no answer"
    yield _panel(ending + reason, body, "red" if episode.failure else "yellow")


def _panel(title: str, text: str, style: str) -> RenderableType:
    shown = Text(console.printable(text, keep="\n\t"))
    return Panel(shown, title=Text(console.printable(title)), title_align="left", border_style=style)
