"""`sweetrl credit`: which turns of stored dialogues earned the outcome, in a critic's eyes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sweetrl import interrupts
from sweetrl.candidates.credit import credit_turns
from sweetrl.candidates.sample import stored_turns
from sweetrl.cli import console, inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.filling import Tally, fill, open_output, opened_models
from sweetrl.cli.options import OutputOption
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.domains.dialogues import IMPORTED, read_dialogues, read_episodes
from sweetrl.errors import UsageError
from sweetrl.records import read_records
from sweetrl.settings import CriticChoice
from sweetrl.types import Episode, Task, TokenCredit, TurnCredit

GradingPrompt = Annotated[
    Path | None,
    typer.Option("--judge-prompt", metavar="FILE", help="How a judge is asked to grade {output}."),
]
SAID_CHARACTERS = 100
"""How much of a turn a table shows."""


def credit(
    dialogues: Annotated[
        Path, typer.Option("--dialogues", metavar="DIALOGUES", help="Published dialogues, or our episodes.")
    ],
    output: OutputOption,
    settings: CriticChoice,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    tasks: Annotated[
        str | None,
        typer.Option("--tasks", metavar="TASKS", help="The tasks; published dialogues carry their own."),
    ] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many dialogues to show.")] = 3,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Show which words earned it, where the critic can tell.")
    ] = False,
    judge_prompt: GradingPrompt = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Tell which turns of dialogues earned or lost the outcome.

    Each turn gets an advantage, and each token where the critic can tell. An advantage above zero brought the dialogue
    closer to the reference, one below led it astray. Rerun the same command to do what is missing or failed.

    Example:
        sweetrl credit --dialogues run/episodes.jsonl --tasks mini-backend:train:20 --critic zero:mini -o credit.jsonl
    """
    source = _Dialogues(dialogues, tasks)
    judging = Judging(grading=judge_prompt, telling=inputs.path_of(settings.critic_prompt))
    tally = interrupts.run(_credit, source, settings, judging, output, quiet=quiet)
    if not json:
        for table in _tables(source, output, show, tokens=tokens):
            console.results().print(table)
    tally.report(json=json, quiet=quiet)


class _Dialogues:
    """The dialogues of a file, each with its task; read anew each time, so that none is held in memory."""

    def __init__(self, path: Path, source: str | None) -> None:
        self.path = path
        self._tasks = inputs.tasks_or_none(source)

    def __iter__(self) -> Iterator[tuple[Task, Episode]]:
        if self._tasks is None:
            self._refuse_ours()
            yield from read_dialogues(self.path)
        else:
            for episode in inputs.each_episode(self.path, self._tasks):
                yield self._tasks[episode.task_id], episode

    def _refuse_ours(self) -> None:
        first = next(read_episodes(self.path))
        if not first.extra.keys() & IMPORTED:
            raise UsageError(f"{self.path}: its episodes do not carry their tasks; give those with --tasks")

    def fingerprint(self) -> dict[str, str]:
        """What of them shapes an advantage."""
        given = {} if self._tasks is None else {"tasks": inputs.fingerprint_of_tasks(self._tasks.values())}
        return {"dialogues": inputs.fingerprint(self.path), **given}


async def _credit(
    dialogues: _Dialogues, settings: CriticChoice, judging: Judging, output: Path, *, quiet: bool
) -> Tally:
    total = sum(1 for _ in stored_turns(episode for _, episode in dialogues))
    tally = Tally(output, "turns")
    async with opened_models(tally) as models:
        critic = open_with_models(settings.critic, models, judging)
        config = {**dialogues.fingerprint(), "critic": critic.name}
        with open_output(output, TurnCredit, command="credit", config=config, quiet=quiet) as log:
            credited = credit_turns(dialogues, critic, concurrency=settings.concurrency, skip=log.has)
            await fill(log, credited, tally, total=total, quiet=quiet)
    return tally


# ---------------------------------------------------------------- showing


def _tables(dialogues: _Dialogues, output: Path, count: int, *, tokens: bool) -> Iterator[Table]:
    """One table for each of the first dialogues, and one over all of them."""
    shown = {episode.id: episode for _, episode in islice(dialogues, count)}
    by_episode: dict[str, list[TurnCredit]] = {name: [] for name in shown}
    means = _Means()
    for credited in read_records(output, TurnCredit):
        means.add(credited)
        if credited.episode_id in by_episode:
            by_episode[credited.episode_id].append(credited)
    for name, turns in by_episode.items():
        if turns:
            yield _dialogue_table(shown[name], sorted(turns, key=lambda each: each.turn), tokens=tokens)
    yield means.table()


def _dialogue_table(episode: Episode, turns: Sequence[TurnCredit], *, tokens: bool) -> Table:
    table = Table("turn", "advantage", "", "what the agent said", title=Text(console.printable(episode.id)))
    scale = max((abs(each.advantage) for each in turns if each.advantage is not None), default=0.0)
    for each in turns:
        said = episode.turns[each.turn].said
        excerpt = Text(console.printable(said)[:SAID_CHARACTERS])
        words = _coloured(each.tokens) if tokens and each.tokens is not None else excerpt
        number = "failed" if each.advantage is None else f"{each.advantage:+.4f}"
        table.add_row(str(each.turn + 1), number, _bar(each.advantage, scale), words)
    return table


def _bar(advantage: float | None, scale: float) -> Text:
    """Its size as a bar, green above zero and red below."""
    if advantage is None or not scale:
        return Text("")
    return Text("█" * max(1, round(8 * abs(advantage) / scale)), style="green" if advantage > 0 else "red")


def _coloured(tokens: Sequence[TokenCredit]) -> Text:
    """The turn with the tokens that matter most in colour."""
    strongest = max((abs(token.advantage) for token in tokens), default=0.0)
    text = Text()
    for token in tokens:
        matters = strongest and abs(token.advantage) >= strongest / 3
        style = "" if not matters else "bold green" if token.advantage > 0 else "bold red"
        text.append(console.printable(token.text), style=style)
    return text


class _Means:
    """The mean advantage of each turn number."""

    def __init__(self) -> None:
        self._sums: dict[int, tuple[float, int]] = {}

    def add(self, credited: TurnCredit) -> None:
        if credited.advantage is not None:
            total, count = self._sums.get(credited.turn, (0.0, 0))
            self._sums[credited.turn] = (total + credited.advantage, count + 1)

    def table(self) -> Table:
        table = Table("turn", "mean advantage", "dialogues", title="All dialogues")
        for turn, (total, count) in sorted(self._sums.items()):
            table.add_row(str(turn + 1), f"{total / count:+.4f}", str(count))
        return table
