"""`sweetrl play`: a person takes a seat in a dialogue."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl import interrupts
from sweetrl.browser.session import BrowserSession
from sweetrl.cli import console
from sweetrl.cli.domains import DomainOption
from sweetrl.dialogue.building import Models, ModelSettings, build_agent, build_collaborator
from sweetrl.errors import SandboxError, UsageError
from sweetrl.experiments.layout import SCREENSHOTS

if TYPE_CHECKING:
    from sweetrl.browser.session import BrowserSession
    from sweetrl.dialogue.people import Terminal
    from sweetrl.domains.domain import Domain
    from sweetrl.protocols import Agent, Collaborator
    from sweetrl.records import RecordLog
    from sweetrl.types import Episode, Sampling, Task, Verdict


class Seat(StrEnum):
    """The two sides of a dialogue."""

    AGENT = "agent"
    COLLABORATOR = "collaborator"


def play(
    tasks: Annotated[str, typer.Option("--tasks", metavar="TASKS", help="Where the tasks are.")],
    seat: Annotated[Seat, typer.Option("--as", help="Which side you take.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write episodes.jsonl in.")
    ],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="MODEL", help="Who the agent is, if you are not.")
    ] = None,
    collaborator: Annotated[
        str | None,
        typer.Option("--collaborator", metavar="MODEL", help="Who the collaborator is, if you are not."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="Which task; else the first you have not played."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of what the model says.")] = 0,
) -> None:
    """Take part in a dialogue at the terminal.

    The dialogue is added to DIR/episodes.jsonl and, where this machine can do it, scored at once. Leave with
    /quit or Ctrl-C: then nothing is recorded. Pages are written in a file: /file page.html shows it, and
    /answer /file page.html hands it in; --collaborator designer looks at them without a model.

    Example:
        sweetrl play --tasks mini-backend:test:10 --as agent --collaborator colleague -o played
    """
    other = _other(seat, agent, collaborator)
    interrupts.run(_play, seat, other, tasks, task, output, seed)


def _other(seat: Seat, agent: str | None, collaborator: str | None) -> str:
    """The model on the other side."""
    taken, free, name = (
        (agent, collaborator, "collaborator") if seat is Seat.AGENT else (collaborator, agent, "agent")
    )
    if taken is not None:
        raise UsageError(f"you are the {seat} yourself; leave out --{seat}")
    if free is None:
        raise UsageError(
            f"who is the {name}? name a model with --{name}, for example scripted:{_EXAMPLE[seat]}"
        )
    return free


_EXAMPLE = {Seat.AGENT: "unsure", Seat.COLLABORATOR: "curious"}


async def _play(seat: Seat, other: str, source: str, task_id: str | None, output: Path, seed: int) -> None:
    from sweetrl.browser.session import BrowserSession
    from sweetrl.cli.dialogues import open_episodes
    from sweetrl.dialogue.people import PersonLeft
    from sweetrl.domains.sources import load_tasks
    from sweetrl.models import EndpointOptions, Meter

    tasks = load_tasks(source)
    models = Models(EndpointOptions(), Meter())
    # Nobody is shown pictures but those who can see.
    session = None if other.startswith("scripted:") else BrowserSession(output / SCREENSHOTS)
    try:
        with open_episodes(output, "play", {"as": seat, "other": other, "seed": seed}) as log:
            task, attempt = _choose(tasks, task_id, log, source)
            agent, collaborator = _seated(seat, other, task, models, session)
            episode = await _hold(task, attempt, agent, collaborator, seed)
            log.append(episode.id, episode)
            log.finish()
        await _conclude(task, episode, log.path, source, session)
    except PersonLeft:
        console.note("you left; nothing was recorded")
    finally:
        await models.close()
        if session is not None:
            await session.close()


def _choose(
    tasks: "dict[str, Task]", task_id: str | None, log: "RecordLog[Episode]", source: str
) -> "tuple[Task, int]":
    """The task to play, and which attempt at it this is."""
    from sweetrl.types import episode_id

    if task_id is not None and task_id not in tasks:
        from difflib import get_close_matches

        close = get_close_matches(task_id, tasks, n=1) or list(tasks)[:1]
        raise UsageError(f"{source}: no task has the id {task_id!r}; there is {close[0]!r}, for example")
    fresh = (each for each in tasks if not log.has(episode_id(each, 0)))
    task = tasks[task_id or next(fresh, next(iter(tasks)))]
    attempt = 0
    while log.has(episode_id(task.id, attempt)):
        attempt += 1
    return task, attempt


def _seated(
    seat: Seat, other: str, task: "Task", models: Models, session: "BrowserSession | None"
) -> "tuple[Agent, Collaborator]":
    from sweetrl.dialogue.people import PersonAgent, PersonCollaborator
    from sweetrl.dialogue.rules import Rules
    from sweetrl.domains.registry import domain_of
    from sweetrl.domains.transcripts import COLLABORATOR_SAMPLING
    from sweetrl.types import Sampling

    if seat is Seat.AGENT:
        player = _player(other, COLLABORATOR_SAMPLING)
        person = PersonAgent(_terminal(), _read_file)
        return person, build_collaborator(player, domain_of(task), [task], models, session)[0]
    agent, _ = build_agent(_player(other, Sampling()), domain_of(task), Rules(), models)
    return agent, PersonCollaborator(_terminal())


def _player(spec: str, sampling: "Sampling") -> ModelSettings:
    from sweetrl.models import FREE

    return ModelSettings(spec, sampling, FREE)


def _read_file(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: cannot be read: {error}; nothing was sent") from error


def _terminal() -> "Terminal":
    from sweetrl.dialogue.people import Terminal

    return Terminal(console.messages(), _read_line)


def _read_line() -> str:
    # The event loop waits for the line too and could not be told to cancel it.
    with interrupts.raised():
        return sys.stdin.readline()


async def _hold(
    task: "Task", attempt: int, agent: "Agent", collaborator: "Collaborator", seed: int
) -> "Episode":
    from contextlib import aclosing

    from sweetrl.dialogue.rollout import Opening, hold_dialogues

    held = hold_dialogues(iter([Opening(task, attempt, seed)]), agent, collaborator)
    async with aclosing(held):
        _, episode = await anext(held)
    return episode


async def _conclude(
    task: "Task", episode: "Episode", path: Path, source: str, session: "BrowserSession | None"
) -> None:
    """Say how it ended; a breakdown of the other side is the exit code."""
    from sweetrl.domains.registry import domain_of

    if episode.failure is not None:
        console.note(f"{episode.id} broke down: {episode.failure.kind}: {episode.failure.message}")
        raise typer.Exit(1)
    console.note(f"{episode.id}: {episode.ending.replace('_', ' ')}; recorded in {path}")
    domain = domain_of(task)
    try:
        verdict = await _score(domain, task, episode, path.parent / SCREENSHOTS, session)
    except SandboxError as error:
        console.note(f"not scored: {error}")
        return
    if verdict is None or verdict.reward is None:
        console.note(
            f"not scored here; try: sweetrl score --tasks {source} --episodes {path} -o VERDICTS.jsonl"
        )
        return
    passed = sum(check.outcome == "passed" for check in verdict.checks)
    console.note(f"reward {verdict.reward:.2f}: {passed} of {len(verdict.checks)} {domain.labels.checks}")


async def _score(
    domain: "Domain", task: "Task", episode: "Episode", pictures: Path, session: "BrowserSession | None"
) -> "Verdict | None":
    """A verdict, where it takes no more than was there for the dialogue."""
    from sweetrl.settings import ScorerSettings

    if domain.scoring is None or (domain.pictures is not None and session is None):
        return None
    with domain.scoring(ScorerSettings(workers=1), pictures) as backend:
        async with backend.opened() as scorer:
            return await scorer.score(task, episode)
