"""`sweetrl play`: a person takes a seat in a dialogue."""

import select
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sweetrl import interrupts
from sweetrl.browser.session import BrowserSession
from sweetrl.cli import console
from sweetrl.cli.domains import DomainOption
from sweetrl.dialogue import game
from sweetrl.dialogue.building import Models, ModelSettings, build_agent, build_collaborator
from sweetrl.dialogue.game import Game
from sweetrl.dialogue.people import PersonCollaborator, PersonLeft, Terminal, play_game, show_debrief
from sweetrl.dialogue.rollout import Opening, hold_dialogues
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.registry import domain_of
from sweetrl.domains.sources import load_tasks, read_tasks
from sweetrl.domains.transcripts import COLLABORATOR_SAMPLING
from sweetrl.errors import SandboxError, StageError, UsageError
from sweetrl.experiments.layout import SCREENSHOTS
from sweetrl.experiments.stages.rollout import open_episodes
from sweetrl.models import FREE
from sweetrl.prompts import TURN_LIMIT
from sweetrl.protocols import Agent, Collaborator
from sweetrl.records import read_text
from sweetrl.types import Episode, Sampling, Task, Verdict
from sweetrl.viewer import server
from sweetrl.viewer.games import PlaySettings

PASTE_SECONDS = 0.02
"""Lines that come within this time of each other were pasted, not typed."""


class Seat(StrEnum):
    """The two sides of a dialogue."""

    AGENT = "agent"
    COLLABORATOR = "collaborator"


PlayedTasks = Annotated[str, typer.Option("--tasks", metavar="TASKS", help="Where the tasks are.")]
PlayOutput = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write episodes.jsonl in.")
]
OtherAgent = Annotated[
    str | None, typer.Option("--agent", metavar="MODEL", help="Who the agent is, if you are not.")
]
OtherCollaborator = Annotated[
    str | None,
    typer.Option("--collaborator", metavar="MODEL", help="Who the collaborator is, if you are not."),
]
TaskOption = Annotated[
    str | None, typer.Option("--task", metavar="ID", help="Which task; else the first you have not played.")
]
_LIMITS = "8 on mini-backend, else 10"
TurnLimit = Annotated[
    int | None,
    typer.Option("--turn-limit", min=1, help="The most messages of the agent.", show_default=_LIMITS),
]
Players = Annotated[
    int, typer.Option("--players", min=1, max=1000, help="With --web: people, each with a link.")
]
Consent = Annotated[
    Path | None, typer.Option("--consent", metavar="FILE", help="With --web: a text to agree to first.")
]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="With --web: port; 0 for any that is free.")
]


def play(
    tasks: PlayedTasks = game.STARTER,
    seat: Annotated[Seat, typer.Option("--as", help="Which side you take.")] = Seat.AGENT,
    output: PlayOutput = Path("played"),
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    agent: OtherAgent = None,
    collaborator: OtherCollaborator = None,
    task: TaskOption = None,
    turn_limit: TurnLimit = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the model's sampling.")] = 0,
    web: Annotated[bool, typer.Option("--web", help="Play in the browser.")] = False,
    players: Players = 1,
    consent: Consent = None,
    ask_name: Annotated[bool, typer.Option("--ask-name", help="With --web: ask people for a name.")] = False,
    host: Annotated[str, typer.Option("--host", help="With --web: address to listen on.")] = "127.0.0.1",
    port: Port = 7778,
) -> None:
    """Take part in a dialogue, at the terminal or in the browser.

    Alone, the command starts a small programming task with you as the agent and a scripted colleague. Afterwards
    it shows the reference, what you did not find out and, on mini-backend, what each of your turns was worth.
    The dialogue is added to DIR/episodes.jsonl and, where this machine can do it, scored at once. Leave with
    /quit or Ctrl-C: then nothing is recorded. Pages are written in a file: /file page.html shows it, and
    /answer /file page.html hands it in; --collaborator designer looks at them without a model.
    With --web, several people play at once, each through a link; what they said survives a crash of the server.

    Example:
        sweetrl play
    """
    if not web and (players > 1 or consent is not None or ask_name):
        raise UsageError("--players, --consent and --ask-name are for the browser; add --web")
    next(read_tasks(tasks, 1), None)  # or the first complaint would be about who else plays
    other = _other(seat, agent, collaborator, starter=tasks.startswith(game.STARTER.partition(":")[0]))
    table = _Table(seat, other, tasks, output, turn_limit, seed)
    if not web:
        interrupts.run(_play, table, task)
        return
    text = "" if consent is None else _read_consent(consent)
    with server.listening(host, port) as listener:
        interrupts.run(_play_on_web, table, _Invitation(players, text, ask_name=ask_name), listener, host)


def _other(seat: Seat, agent: str | None, collaborator: str | None, *, starter: bool) -> str:
    """The model on the other side."""
    taken, free, name, usual = (
        (agent, collaborator, "collaborator", game.STARTER_COLLABORATOR)
        if seat is Seat.AGENT
        else (collaborator, agent, "agent", game.STARTER_AGENT)
    )
    if taken is not None:
        raise UsageError(f"you are the {seat} yourself; leave out --{seat}")
    if free is None and not starter:
        raise UsageError(
            f"who is the {name}? name a model with --{name}, for example scripted:{_EXAMPLE[seat]}"
        )
    return free or usual


_EXAMPLE = {Seat.AGENT: "unsure", Seat.COLLABORATOR: "curious"}


@dataclass(frozen=True)
class _Table:
    """The settings of a game, as given on the command line."""

    seat: Seat
    other: str
    source: str
    output: Path
    turn_limit: int | None
    seed: int

    def limit(self, task: Task) -> int:
        return self.turn_limit or game.turn_limit_of(task)

    def config(self, task: Task) -> dict[str, object]:
        """The part of the settings that the run card keeps."""
        limit = self.limit(task)
        given = {"as": self.seat, "other": self.other, "seed": self.seed}
        return given if limit == TURN_LIMIT else {**given, "turn_limit": limit}

    def agent(self, task: Task, models: Models) -> Agent:
        player, rules = ModelSettings(self.other, Sampling(), FREE), Rules(turn_limit=self.limit(task))
        return build_agent(player, domain_of(task), rules, models, [task])[0]

    def collaborator(self, task: Task, models: Models, session: BrowserSession | None) -> Collaborator:
        player = ModelSettings(self.other, COLLABORATOR_SAMPLING, FREE)
        return build_collaborator(player, domain_of(task), [task], models, session)[0]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Models, BrowserSession | None]]:
        """Models and browsers for the other side. Only models that see get pictures."""
        session = None if self.other.startswith("scripted:") else BrowserSession(self.output / SCREENSHOTS)
        try:
            async with Models() as models:
                yield models, session
        finally:
            if session is not None:
                await session.close()


async def _play(table: _Table, task_id: str | None) -> None:
    tasks = load_tasks(table.source)
    try:
        async with table.opened() as (models, session):
            config = table.config(next(iter(tasks.values())))
            with open_episodes(table.output, "play", config, table.source) as log:
                task, attempt = game.choose_task(tasks, task_id, log.has, table.source)
                hold = _as_agent if table.seat is Seat.AGENT else _as_collaborator
                episode, played = await hold(table, task, attempt, models, session)
                log.append(episode.id, episode)
                log.finish()
            await _conclude(task, episode, played, log.path, table.source, session)
    except PersonLeft:
        console.note("you left; nothing was recorded")


@dataclass(frozen=True)
class _Invitation:
    """How many people play in the browser, and what they are asked first."""

    players: int
    consent: str
    ask_name: bool


async def _play_on_web(table: _Table, invited: _Invitation, listener: socket.socket, host: str) -> None:
    tasks = load_tasks(table.source)
    first, is_agent = next(iter(tasks.values())), table.seat is Seat.AGENT
    async with table.opened() as (models, session):
        seats: dict[str, Any] = (
            {"collaborator": partial(table.collaborator, models=models, session=session)}
            if is_agent
            else {"agent": partial(table.agent, models=models)}
        )
        for other in seats.values():
            other(first)  # a wrong name is told before anybody is invited
        settings = PlaySettings(
            tasks=tasks,
            source=table.source,
            output=table.output,
            config=table.config(first),
            players=invited.players,
            consent=invited.consent,
            ask_name=invited.ask_name,
            turn_limit=table.turn_limit,
            seed=table.seed,
            session=session,
            **seats,
        )
        await server.serve_games(settings, listener, host, _show_links)


def _show_links(addresses: list[str]) -> None:
    for number, address in enumerate(addresses, 1):
        console.note(f"player {number}: {address}")
    console.note("Ctrl-C ends the server; rerun the same command to resume with the same links")


async def _as_agent(
    table: _Table, task: Task, attempt: int, models: Models, session: BrowserSession | None
) -> tuple[Episode, Game | None]:
    collaborator = table.collaborator(task, models, session)
    played = Game(task, collaborator, seed=table.seed, attempt=attempt, turn_limit=table.limit(task))
    with suppress(StageError):  # the record says what failed
        await play_game(played, _terminal(), _read_file)
    return played.episode, played


async def _as_collaborator(
    table: _Table, task: Task, attempt: int, models: Models, _: BrowserSession | None
) -> tuple[Episode, Game | None]:
    held = hold_dialogues(
        iter([Opening(task, attempt, table.seed)]),
        table.agent(task, models),
        PersonCollaborator(_terminal()),
        rules=Rules(turn_limit=table.limit(task)),
    )
    async with aclosing(held):
        _opening, episode = await anext(held)
    return episode, None


# ---------------------------------------------------------------- the terminal


def _read_consent(path: Path) -> str:
    text = read_text(path).strip()
    if not text:  # people would play without having been asked
        raise UsageError(f"{path}: is empty; write what people agree to, or leave out --consent")
    return text


def _read_file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: cannot be read: {error}; nothing was sent") from error


def _terminal() -> Terminal:
    return Terminal(console.messages(), _read_line, more_is_waiting=_more_is_waiting)


def _read_line() -> str:
    # The event loop waits for the line too and could not be told to cancel it.
    with interrupts.raised():
        if sys.stdin.isatty():
            interrupts.wait_for(sys.stdin)
        return sys.stdin.readline()


def _more_is_waiting() -> bool:
    """Whether another line is there. A terminal hands out one line at a time, so none can hide in a buffer."""
    return sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], PASTE_SECONDS)[0])


# ---------------------------------------------------------------- the end


async def _conclude(
    task: Task,
    episode: Episode,
    played: Game | None,
    path: Path,
    source: str,
    session: BrowserSession | None,
) -> None:
    """Say how it ended and what there is to learn; a breakdown of the other side is the exit code."""
    if episode.failure is not None:
        console.note(f"{episode.id} broke down: {episode.failure.kind}: {episode.failure.message}")
        raise typer.Exit(1)
    console.note(f"{episode.id}: {episode.ending.replace('_', ' ')}; recorded in {path}")
    verdict = None
    try:
        verdict = await game.score_game(task, episode, path.parent / SCREENSHOTS, session)
    except SandboxError as error:
        console.note(f"not scored: {error}")
    else:
        console.note(_result(task, verdict, path, source))
    if played is not None:
        show_debrief(played.debrief(verdict), _terminal())


def _result(task: Task, verdict: Verdict | None, path: Path, source: str) -> str:
    if verdict is None:
        return f"not scored here; try: sweetrl score --tasks {source} --episodes {path} -o VERDICTS.jsonl"
    labels = domain_of(task).labels
    if not verdict.checks:
        return f"reward {verdict.reward:.2f} ({labels.reward}), {'a' if verdict.success else 'no'} success"
    passed = sum(check.outcome == "passed" for check in verdict.checks)
    return f"reward {verdict.reward:.2f}: {passed} of {len(verdict.checks)} {labels.checks}"
