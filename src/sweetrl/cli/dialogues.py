"""What `sweetrl rollout` does: seats the players, holds the dialogues, keeps them, tells what happened.

Everything that shapes an episode goes into the run card, so that a resumed run cannot mix two settings.
"""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from sweetrl import interrupts
from sweetrl.browser.session import BrowserSession
from sweetrl.candidates.rank import best_candidate
from sweetrl.cli import console, inputs, live
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.dialogue.budget import Budget
from sweetrl.dialogue.building import Models, build_agent, build_collaborator, model_settings, parse_price
from sweetrl.dialogue.guard import GuardedCollaborator
from sweetrl.dialogue.rollout import Drafts, Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.domain import Domain
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.domains.registry import only_domain
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.experiments.layout import SCREENSHOTS
from sweetrl.models import EndpointOptions, Meter
from sweetrl.protocols import Agent, Collaborator
from sweetrl.records import RecordLog, open_log, unwritable
from sweetrl.settings import BudgetSettings, DialogueSettings
from sweetrl.types import Ending, Episode, Task, episode_id

NO_BUDGET = BudgetSettings()


def check(settings: DialogueSettings, budget: BudgetSettings = NO_BUDGET) -> None:
    """Refuse settings that contradict each other."""
    alone = settings.single_turn
    if settings.collaborator is None and not alone:
        raise UsageError("nobody to talk to; give a --collaborator, or --single-turn")
    if settings.collaborator is not None and alone:
        raise UsageError("a single turn is never replied to; leave out --collaborator or --single-turn")
    if settings.rollout.guard and alone:
        raise UsageError("a single turn has no collaborator to guard; leave out --guard or --single-turn")
    if (settings.best_of > 1) != (settings.critic is not None):
        raise UsageError("--best-of needs a critic and a critic needs drafts; give --best-of and --critic")
    prices = map(parse_price, (budget.price_agent, budget.price_collaborator))
    if budget.max_cost is not None and not any(price.prompt or price.completion for price in prices):
        raise UsageError("--max-cost needs prices; give --price-agent or --price-collaborator")
    if budget.time_limit is not None:
        parse_time(budget.time_limit)


def parse_time(text: str) -> float:
    """`90`, `90s`, `45m` or `2h` in seconds."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if matched is None:
        raise UsageError(f"{text!r} is not a time; write seconds, or 45m, or 2h")
    return float(matched[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[matched[2]]


def _rules(settings: DialogueSettings) -> Rules:
    return Rules(turn_limit=settings.rollout.turn_limit, single_turn=settings.single_turn)


def _budget(budget: BudgetSettings, meter: Meter) -> Budget:
    """The limits of this run; its clock starts now."""
    seconds = None if budget.time_limit is None else parse_time(budget.time_limit)
    return Budget(meter, max_tokens=budget.max_tokens_total, max_cost=budget.max_cost, time_limit=seconds)


def _endpoint_options(settings: DialogueSettings) -> EndpointOptions:
    """How endpoints are treated: no more requests at a time than dialogues."""
    concurrency = settings.rollout.concurrency
    return EndpointOptions(
        timeout=settings.request_timeout,
        attempts=settings.request_attempts,
        patience=settings.patience,
        start_concurrency=min(concurrency, EndpointOptions().start_concurrency),
        max_concurrency=concurrency,
    )


def load_one_domain(source: str) -> tuple[list[Task], Domain]:
    """The tasks of a source and their domain, which the prompts depend on."""
    tasks = list(load_tasks(source).values())
    return tasks, only_domain(tasks, source)


# ---------------------------------------------------------------- running


async def hold(
    settings: DialogueSettings,
    source: str,
    output: Path,
    budget: BudgetSettings = NO_BUDGET,
    *,
    quiet: bool,
) -> "Summary":
    """Hold the dialogues that `output` lacks on the tasks of `source`."""
    tasks, domain = load_one_domain(source)
    meter = Meter()
    models = Models(_endpoint_options(settings), meter)
    session = BrowserSession(output / SCREENSHOTS, pictures=settings.show == "pictures")
    try:
        agent, of_agent = build_agent(
            model_settings(settings.agent, budget.price_agent), domain, _rules(settings), models, tasks
        )
        other = None
        if settings.collaborator is not None:
            other = model_settings(settings.collaborator, budget.price_collaborator)
        collaborator, of_collaborator = build_collaborator(other, domain, tasks, models, session)
        if settings.rollout.guard:
            collaborator = GuardedCollaborator(collaborator, leaks_code)
        drafts, of_drafts = _drafts(settings, models)
        config = {
            "tasks": inputs.fingerprint_of_tasks(tasks),
            "seed": settings.seed,
            "rules": _rules(settings),
            **of_agent,
            **of_collaborator,
            "collaborator": collaborator.name,
            **of_drafts,
        }
        with open_episodes(output, "rollout", config) as log:
            if log.repaired and not quiet:
                console.note(f"{log.path}: {log.repaired}")
            limits = _budget(budget, meter)
            return await _fill(log, settings, limits, tasks, agent, collaborator, drafts, meter, quiet=quiet)
    finally:
        await session.close()
        await models.close()


def _drafts(settings: DialogueSettings, models: Models) -> tuple[Drafts | None, dict[str, Any]]:
    """Who chooses among the drafts of a turn, and what of that shapes an episode."""
    if settings.critic is None:
        return None, {}
    judging = Judging(telling=inputs.path_of(settings.critic_prompt))
    critic = open_with_models(settings.critic, models, judging)
    name = f"best of {settings.best_of} by {critic.name}"
    drafts = Drafts(settings.best_of, partial(best_candidate, critic), name)
    return drafts, {"critic": critic.name, "best_of": settings.best_of}


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
    settings: DialogueSettings,
    budget: Budget,
    tasks: list[Task],
    agent: Agent,
    collaborator: Collaborator,
    drafts: Drafts | None,
    meter: Meter,
    *,
    quiet: bool,
) -> "Summary":
    """Hold the dialogues that the log lacks."""
    wanted = [episode_id(task.id, attempt) for attempt in range(settings.rollout.attempts) for task in tasks]
    before = sum(log.has(each) for each in wanted)
    status = live.Status(Progress(), meter, total=len(wanted), before=before)
    patience = _Patience()
    summary = Summary(log.path, status, patience)
    episodes = roll_out(
        tasks,
        agent,
        collaborator,
        attempts=settings.rollout.attempts,
        concurrency=settings.rollout.concurrency,
        seed=settings.seed,
        rules=_rules(settings),
        drafts=drafts,
        skip=log.has,
        budget=budget,
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
            yield "rerun the same command to retry the failed ones"

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
