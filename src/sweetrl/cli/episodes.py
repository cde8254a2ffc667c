"""`sweetrl episodes`: published dialogues and chat logs in and out, and a dialogue to look at."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins
from msgspec.json import Encoder
from rich.console import RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from sweetrl.cli import console, outputs
from sweetrl.cli.console import JsonFlag
from sweetrl.domains.dialogues import (
    block_order,
    published_line,
    published_verdict,
    read_dialogues,
    read_episodes,
)
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.records import IdSet, read_records, unwritable
from sweetrl.types import Ending, Episode, Task, Verdict

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
    pairs = _Pairs(dialogues, tasks)
    _prepare(output, replace=force)
    count = {"episodes": outputs.write_lines(output / "episodes.jsonl", pairs.episodes(), replace=force)}
    if tasks is None:
        count["tasks"] = outputs.write_lines(output / "tasks.jsonl", pairs.tasks(), replace=force)
    if any(pairs.verdicts()):
        count["verdicts"] = outputs.write_lines(output / "verdicts.jsonl", pairs.verdicts(), replace=force)
    if json:
        console.print_json({**count, "output": str(output)})
    else:
        console.note(f"{output}: " + ", ".join(f"{number} {name}" for name, number in count.items()))


def _prepare(folder: Path, *, replace: bool) -> None:
    """Make the folder; refuse one with earlier outputs before any is written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    for name in ("episodes.jsonl", "tasks.jsonl", "verdicts.jsonl"):
        if (folder / name).exists() and not replace:
            raise UsageError(
                f"{folder / name}: exists already; choose another -o, or replace it with --force"
            )


class _Pairs:
    """The lines of each output, every one read from the input anew: nothing is held in memory."""

    def __init__(self, dialogues: Path, tasks: str | None) -> None:
        self._path = dialogues
        self._tasks = None if tasks is None else load_tasks(tasks)
        self._encode = Encoder().encode

    def episodes(self) -> Iterator[bytes]:
        for episode in self._read():
            yield self._encode(episode) + b"\n"

    def tasks(self) -> Iterator[bytes]:
        written = IdSet()
        for task, _ in read_dialogues(self._path):
            if written.add(task.id):
                yield self._encode(task) + b"\n"

    def verdicts(self) -> Iterator[bytes]:
        for episode in self._read():
            if (verdict := published_verdict(episode)) is not None:
                yield self._encode(verdict) + b"\n"

    def _read(self) -> Iterator[Episode]:
        if self._tasks is not None:
            return read_episodes(self._path, self._tasks.values())
        return (episode for _, episode in read_dialogues(self._path))


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
    known = load_tasks(tasks)
    rewards = {} if verdicts is None else _rewards(verdicts)
    chosen = _in_file_order(episodes, known) if as_is else _in_blocks(episodes, known)
    lines = (
        published_line(known[episode.task_id], episode, reward=rewards.get(episode.id)) for episode in chosen
    )
    count = outputs.write_lines(output, lines, replace=force)
    if json:
        console.print_json({"episodes": count, "output": str(output)})
    else:
        console.note(f"wrote {count} {'dialogue' if count == 1 else 'dialogues'} to {output}")


def _rewards(path: Path) -> dict[str, float]:
    verdicts: Iterable[Verdict] = read_records(path, Verdict)
    return {verdict.episode_id: verdict.reward for verdict in verdicts if verdict.reward is not None}


def _in_file_order(path: Path, tasks: dict[str, Task]) -> Iterator[Episode]:
    return (episode for episode in read_episodes(path, tasks.values()) if episode.ending is not Ending.FAILED)


def _in_blocks(path: Path, tasks: dict[str, Task]) -> Iterator[Episode]:
    """The episodes in the published layout. Only those that must wait for their place are in memory."""
    order = block_order((episode.task_id, episode.attempt) for episode in _in_file_order(path, tasks))
    waiting: dict[int, Episode] = {}
    source = enumerate(_in_file_order(path, tasks))
    for wanted in order:
        while wanted not in waiting:
            position, episode = next(source)
            waiting[position] = episode
        yield waiting.pop(wanted)


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
    chosen = islice(found, n) if episode_id is None else [_find(found, episode_id, episodes)]
    if json:
        console.print_json({"episodes": [_described(episode) for episode in chosen]})
        return
    for episode in chosen:
        for panel in dialogue_panels(episode, thoughts=thoughts):
            console.results().print(panel)


def _find(episodes: Iterable[Episode], wanted: str, path: Path) -> Episode:
    seen: list[str] = []
    for episode in episodes:
        if episode.id == wanted:
            return episode
        seen.append(episode.id)
    close = get_close_matches(wanted, seen, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the first one is {seen[0]!r}"
    raise DataError(f"no dialogue has the id {wanted!r}; {hint}", path=path)


def _described(episode: Episode) -> dict[str, Any]:
    return {"id": episode.id, **to_builtins(episode)}


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
