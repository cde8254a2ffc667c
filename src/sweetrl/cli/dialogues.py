"""What `sweetrl rollout` does: seats the players, holds the dialogues, keeps them, tells what happened.

Everything that shapes an episode goes into the run card, so that a resumed run cannot mix two settings.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from sweetrl.browser.session import BrowserSession
from sweetrl.candidates.rank import best_candidate
from sweetrl.cli import console, inputs, interrupts, live
from sweetrl.cli.critics import Judging, open_critic
from sweetrl.cli.players import Models, Player, seat_agent, seat_collaborator
from sweetrl.cli.studio import SCREENSHOTS
from sweetrl.dialogue.budget import Budget
from sweetrl.dialogue.guard import GuardedCollaborator
from sweetrl.dialogue.rollout import Drafts, Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.domain import Domain
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.domains.registry import only_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.models import EndpointOptions, Meter
from sweetrl.protocols import Agent, Collaborator
from sweetrl.records import RecordLog, open_log, unwritable
from sweetrl.types import Ending, Episode, Task, episode_id


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All options of the command but where things come from and go to."""

    agent: Player
    collaborator: Player | None
    guard: bool
    best_of: int
    critic: str | None
    critic_prompt: Path | None
    pictures: bool
    turn_limit: int
    single_turn: bool
    attempts: int
    concurrency: int
    seed: int
    max_tokens: int | None = None
    max_cost: float | None = None
    seconds: float | None = None
    request_timeout: float
    request_attempts: int

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.collaborator is None and not self.single_turn:
            raise UsageError("nobody to talk to; give a --collaborator, or --single-turn")
        if self.collaborator is not None and self.single_turn:
            raise UsageError("a single turn is never replied to; leave out --collaborator or --single-turn")
        if self.guard and self.single_turn:
            raise UsageError("a single turn has no collaborator to guard; leave out --guard or --single-turn")
        if (self.best_of > 1) != (self.critic is not None):
            raise UsageError(
                "several drafts need a judge and a judge needs several; give --best-of and --critic"
            )
        prices = [player.price for player in (self.agent, self.collaborator) if player is not None]
        if self.max_cost is not None and not any(price.prompt or price.completion for price in prices):
            raise UsageError("--max-cost needs prices; give --price-agent or --price-collaborator")

    def rules(self) -> Rules:
        """The rules of the dialogues."""
        return Rules(turn_limit=self.turn_limit, single_turn=self.single_turn)

    def budget(self, meter: Meter) -> Budget:
        """The limits of this run; its clock starts now."""
        return Budget(meter, max_tokens=self.max_tokens, max_cost=self.max_cost, time_limit=self.seconds)

    def endpoint_options(self) -> EndpointOptions:
        """How endpoints are treated: no more requests at a time than dialogues."""
        return EndpointOptions(
            timeout=self.request_timeout,
            attempts=self.request_attempts,
            start_concurrency=min(self.concurrency, EndpointOptions().start_concurrency),
            max_concurrency=self.concurrency,
        )


def load_one_domain(source: str) -> tuple[list[Task], Domain]:
    """The tasks of a source and their domain, which the prompts depend on."""
    tasks = list(load_tasks(source).values())
    return tasks, only_domain(tasks, source)


# ---------------------------------------------------------------- running


async def hold(plan: Plan, source: str, output: Path, *, quiet: bool) -> "Summary":
    """Hold the dialogues that `output` lacks on the tasks of `source`."""
    tasks, domain = load_one_domain(source)
    meter = Meter()
    models = Models(plan.endpoint_options(), meter)
    session = BrowserSession(output / SCREENSHOTS, pictures=plan.pictures)
    try:
        agent, agent_settings = seat_agent(plan.agent, domain, plan.rules(), models, tasks)
        collaborator, collaborator_settings = seat_collaborator(
            plan.collaborator, domain, tasks, models, session
        )
        if plan.guard:
            collaborator = GuardedCollaborator(collaborator, leaks_code)
        drafts, draft_settings = _drafts(plan, models)
        settings = {
            "tasks": inputs.fingerprint_of_tasks(tasks),
            "seed": plan.seed,
            "rules": plan.rules(),
            **agent_settings,
            **collaborator_settings,
            "collaborator": collaborator.name,
            **draft_settings,
        }
        with open_episodes(output, "rollout", settings) as log:
            if log.repaired and not quiet:
                console.note(f"{log.path}: {log.repaired}")
            return await _fill(log, plan, tasks, agent, collaborator, drafts, meter, quiet=quiet)
    finally:
        await session.close()
        await models.close()


def _drafts(plan: Plan, models: Models) -> tuple[Drafts | None, dict[str, Any]]:
    """Who chooses among the drafts of a turn, and what of that shapes an episode."""
    if plan.critic is None:
        return None, {}
    critic, settings = open_critic(plan.critic, models, Judging(telling=plan.critic_prompt))
    name = f"best of {plan.best_of} by {critic.name}"
    return Drafts(plan.best_of, partial(best_candidate, critic), name), {**settings, "best_of": plan.best_of}


def open_episodes(output: Path, command: str, settings: dict[str, Any]) -> RecordLog[Episode]:
    """The episodes.jsonl in the folder `output`, which is made if need be."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(output, error) from error
    return open_log(
        output / "episodes.jsonl",
        Episode,
        command=command,
        config=settings,
        identity=lambda episode: episode.id,
        settled=lambda episode: episode.ending is not Ending.FAILED,
    )


async def _fill(
    log: RecordLog[Episode],
    plan: Plan,
    tasks: list[Task],
    agent: Agent,
    collaborator: Collaborator,
    drafts: Drafts | None,
    meter: Meter,
    *,
    quiet: bool,
) -> "Summary":
    """Hold the dialogues that the log lacks."""
    wanted = [episode_id(task.id, attempt) for attempt in range(plan.attempts) for task in tasks]
    before = sum(log.has(each) for each in wanted)
    status = live.Status(Progress(), meter, total=len(wanted), before=before)
    patience = _Patience()
    summary = Summary(log.path, status, patience)
    episodes = roll_out(
        tasks,
        agent,
        collaborator,
        attempts=plan.attempts,
        concurrency=plan.concurrency,
        seed=plan.seed,
        rules=plan.rules(),
        drafts=drafts,
        skip=log.has,
        budget=plan.budget(meter),
        stop=patience.stop,
        progress=status.progress,
    )
    with patience.tried():
        async with live.shown(status, quiet=quiet), contextlib.aclosing(episodes):
            async for episode in episodes:
                log.append(episode.id, episode)
                summary.add(episode)
    if summary.complete:
        log.finish()
    return summary


class _Patience:
    """Ctrl-C: once to open no more dialogues, twice to drop those that are open."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self._dropped = False

    @contextlib.contextmanager
    def tried(self) -> Iterator[None]:
        """React while the block runs; the second Ctrl-C ends the block."""
        soon, task = asyncio.get_running_loop().call_soon_threadsafe, asyncio.current_task()
        assert task is not None
        try:
            with interrupts.reacting(lambda: soon(self._finish), lambda: soon(self._drop, task)):
                yield
        except asyncio.CancelledError:
            if not self._dropped:
                raise
            task.uncancel()

    def _finish(self) -> None:
        self.stop.set()
        console.note("finishing the open dialogues; press Ctrl-C again to drop them")

    def _drop(self, task: "asyncio.Task[Any]") -> None:
        self._dropped = True
        task.cancel()


# ---------------------------------------------------------------- reporting


class Summary:
    """What a run did."""

    def __init__(self, path: Path, status: live.Status, patience: _Patience) -> None:
        self._path = path
        self._status = status
        self._patience = patience
        self._endings: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._troubles: Counter[str] = Counter()
        """What the agents' words broke, by side and cause."""

    def add(self, episode: Episode) -> None:
        """Count an episode of this run."""
        self._endings[episode.ending] += 1
        if episode.failure is not None:
            failure = episode.failure
            self._failures[f"{failure.stage}: {failure.kind}: {failure.message}"] += 1
        else:
            self._troubles.update(chain.from_iterable(turn.troubles for turn in episode.turns))

    @property
    def left(self) -> int:
        """How many dialogues are not in the file, failed ones apart."""
        return self._status.total - self._status.before - self._endings.total()

    @property
    def complete(self) -> bool:
        """Whether every dialogue is there and none has failed."""
        return self.left == 0 and not self._endings[Ending.FAILED]

    def report(self, *, json: bool, quiet: bool) -> None:
        """Say what happened; anything but a complete run ends with its exit code."""
        if json:
            console.print_json(self._as_json())
        self.tell(quiet=quiet)
        if not self.complete:
            raise typer.Exit(1)

    def tell(self, *, quiet: bool) -> None:
        """Say what happened in notes; an interrupted run ends here."""
        if not quiet:
            for line in self._lines():
                console.note(line)
        if self._patience.stop.is_set() and self.left:
            raise KeyboardInterrupt(f"{self.left} dialogues are left")

    def _lines(self) -> Iterator[str]:
        status, endings = self._status, self._endings
        held = f"{endings['answered']} answered, {endings['turn_limit']} at the turn limit"
        held += f", {endings['broke_off']} broken off by the agent" if endings["broke_off"] else ""
        old = f", {status.before} were there" if status.before else ""
        yield f"{self._path}: {held}, {endings['failed']} failed{old} ({live.duration(status.seconds)})"
        for reason, count in self._failures.most_common(3):
            yield f"  {count} x {reason}"
        for reason, count in self._troubles.most_common(3):
            yield f"  {count} x by the agent's own words: {reason}"
        if not self._patience.stop.is_set() and status.progress.stopped:
            yield f"stopped with {self.left} dialogues left: {status.progress.stopped}"
        if endings["failed"]:
            yield "the same command again does the failed ones"

    def _as_json(self) -> dict[str, Any]:
        status, meter = self._status, self._status.meter
        return {
            "output": str(self._path),
            "dialogues": status.total,
            "before": status.before,
            **{ending: self._endings[ending] for ending in Ending},
            "left": self.left,
            "stopped": status.progress.stopped,
            "failures": dict(self._failures.most_common(20)),
            "troubles": dict(self._troubles.most_common(20)),
            "turns": status.progress.turns,
            "prompt_tokens": meter.prompt_tokens,
            "completion_tokens": meter.completion_tokens,
            "cost": meter.cost,
            "seconds": round(status.seconds, 3),
        }
