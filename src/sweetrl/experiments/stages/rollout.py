"""`rollout`: builds both sides, runs the dialogues that a folder lacks, and keeps each when it ends.

Everything that shapes an episode goes into the run card, so that a resumed run cannot mix two settings.
"""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from sweetrl import interrupts
from sweetrl.browser.session import BrowserSession
from sweetrl.candidates.rank import best_candidate
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.dialogue.budget import Budget
from sweetrl.dialogue.building import Models, build_agent, build_collaborator, model_settings, parse_price
from sweetrl.dialogue.guard import GuardedCollaborator
from sweetrl.dialogue.rollout import Drafts, Progress, roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.domain import Domain
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.domains.registry import only_domain
from sweetrl.domains.sources import fingerprint_of_tasks, load_tasks
from sweetrl.errors import UsageError
from sweetrl.experiments.layout import EPISODES, SCREENSHOTS
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.models import EndpointOptions, Meter
from sweetrl.prompts import TURN_LIMIT
from sweetrl.protocols import Agent, Collaborator
from sweetrl.records import ALL, Part, RecordLog, make_folder, open_log, part_of
from sweetrl.settings import BudgetSettings, DialogueSettings
from sweetrl.types import Ending, Episode, Task, episode_id

NO_BUDGET = BudgetSettings()


def check_dialogues(settings: DialogueSettings, budget: BudgetSettings = NO_BUDGET) -> None:
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


def load_one_domain(source: str, limit: int | None = None) -> tuple[list[Task], Domain]:
    """The tasks of a source and their domain, which the prompts depend on."""
    tasks = list(load_tasks(source, limit).values())
    return tasks, only_domain(tasks, source)


def open_episodes(
    output: Path, command: str, settings: dict[str, Any], source: str, part: Part = ALL
) -> RecordLog[Episode]:
    """The episodes.jsonl in the folder `output`, or the file of a shard; the folder is made if need be."""
    make_folder(output)
    return open_log(
        output / EPISODES,
        Episode,
        command=command,
        config=settings,
        source=source,
        identity=lambda episode: episode.id,
        settled=lambda episode: episode.ending is not Ending.FAILED,
        part=part,
    )


# ---------------------------------------------------------------- running


async def run_rollout(
    settings: DialogueSettings,
    source: str,
    output: Path,
    budget: BudgetSettings = NO_BUDGET,
    reporter: Reporter = SILENT,
) -> "Summary":
    """Run the dialogues that `output` lacks on the tasks of `source`."""
    tasks, domain = load_one_domain(source, settings.limit)
    meter, part = Meter(), part_of(_wanted(settings, tasks), settings.shard)
    async with Models(_endpoint_options(settings), meter) as models:
        sides, config = _build(settings, budget, domain, tasks, models, output / SCREENSHOTS)
        config = {"tasks": fingerprint_of_tasks(tasks), "seed": settings.seed, **config}
        with open_episodes(output, "rollout", config, source, part) as log:
            if log.repaired:
                reporter.note(f"{log.path}: {log.repaired}")
            return await _fill(log, settings, _budget(budget, meter), tasks, sides, meter, reporter)


def _wanted(settings: DialogueSettings, tasks: list[Task]) -> Iterator[str]:
    """The ids of all dialogues, in the order in which they are opened."""
    attempts = range(settings.rollout.attempts)
    return (episode_id(task.id, attempt) for attempt in attempts for task in tasks)


@dataclass(frozen=True)
class _Sides:
    """The agent, the collaborator and, if there is one, the choice among drafts."""

    agent: Agent
    collaborator: Collaborator
    drafts: Drafts | None
    """How the agent's turns are chosen among several, if they are."""


def _build(
    settings: DialogueSettings,
    budget: BudgetSettings,
    domain: Domain,
    tasks: list[Task],
    models: Models,
    screenshots: Path,
) -> tuple[_Sides, dict[str, Any]]:
    """Both sides, and the part of their settings that shapes an episode."""
    session = BrowserSession(screenshots, pictures=settings.show == "pictures")
    models.close_too(session)
    player = model_settings(settings.agent, budget.price_agent)
    agent, of_agent = build_agent(player, domain, _rules(settings), models, tasks)
    other = None
    if settings.collaborator is not None:
        other = model_settings(settings.collaborator, budget.price_collaborator)
    collaborator, of_collaborator = build_collaborator(other, domain, tasks, models, session)
    if settings.rollout.guard:
        collaborator = GuardedCollaborator(collaborator, leaks_code)
    drafts, of_drafts = _drafts(settings, models)
    config = {"rules": _rules(settings), **of_agent, **of_collaborator, "collaborator": collaborator.name}
    return _Sides(agent, collaborator, drafts), config | of_drafts


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


def _drafts(settings: DialogueSettings, models: Models) -> tuple[Drafts | None, dict[str, Any]]:
    """The choice among drafts, and its settings that shape an episode."""
    if settings.critic is None:
        return None, {}
    critic = open_with_models(settings.critic, models, Judging(telling=settings.critic_prompt))
    name = f"best of {settings.best_of} by {critic.name}"
    drafts = Drafts(settings.best_of, partial(best_candidate, critic), name)
    return drafts, {"critic": critic.name, "best_of": settings.best_of}


async def _fill(
    log: RecordLog[Episode],
    settings: DialogueSettings,
    budget: Budget,
    tasks: list[Task],
    sides: _Sides,
    meter: Meter,
    reporter: Reporter,
) -> "Summary":
    """Run the dialogues that the log lacks."""
    part = log.part
    before = sum(part.has(each) and log.has(each) for each in _wanted(settings, tasks))
    status = Status(Progress(), meter, total=part.total, before=before)
    patience = _Patience(reporter)
    summary = Summary(log.path, status)
    episodes = roll_out(
        tasks,
        sides.agent,
        sides.collaborator,
        attempts=settings.rollout.attempts,
        concurrency=settings.rollout.concurrency,
        seed=settings.seed,
        rules=_rules(settings),
        drafts=sides.drafts,
        skip=log.skips,
        budget=budget,
        stop=patience.stop,
        progress=status.progress,
    )
    with patience.tried():
        async with reporter.dialogues(status), contextlib.aclosing(episodes):
            async for episode in episodes:
                log.append(episode.id, episode)
                summary.add(episode)
    summary.interrupted = patience.stop.is_set()
    if summary.complete:
        log.finish()
    elif not summary.left:
        log.arrange()
    return summary


class _Patience:
    """Ctrl-C: once to open no more dialogues, twice to drop those that are open."""

    def __init__(self, reporter: Reporter) -> None:
        self.stop = asyncio.Event()
        self._reporter = reporter
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
        self._reporter.warn("finishing the open dialogues; press Ctrl-C again to drop them")

    def _drop(self, task: "asyncio.Task[Any]") -> None:
        self._dropped = True
        task.cancel()


# ---------------------------------------------------------------- what is known of a run


@dataclass
class Status:
    """How far a run of dialogues is."""

    progress: Progress
    meter: Meter
    total: int
    before: int
    """Dialogues of `total` that were there when the run began."""
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return self.clock() - self.started

    @property
    def share(self) -> float:
        """The share that is done; an open dialogue counts by its turns, compared with those of finished ones."""
        progress = self.progress
        ended = progress.finished + progress.failed
        usual = progress.turns_of_ended / ended if ended else TURN_LIMIT
        begun = min((progress.turns - progress.turns_of_ended) / max(usual, 1.0), 0.9 * progress.open)
        return min(1.0, (self.before + ended + begun) / max(self.total, 1))

    @property
    def trouble(self) -> str:
        """Which endpoint the run waits for and why; empty if it waits for none."""
        return self.meter.waits_for(self.seconds)


@dataclass
class Summary:
    """The results of a rollout."""

    path: Path
    status: Status
    interrupted: bool = False
    """Whether Ctrl-C ended it."""
    endings: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    """Failures caused by the agents' words, by side and cause."""

    def add(self, episode: Episode) -> None:
        """Count an episode of this run."""
        self.endings[episode.ending] += 1
        if episode.failure is not None:
            self.failures[str(episode.failure)] += 1
        else:
            self.troubles.update(chain.from_iterable(turn.troubles for turn in episode.turns))

    @property
    def left(self) -> int:
        """How many dialogues are not in the file, failed ones apart."""
        return self.status.total - self.status.before - self.endings.total()

    @property
    def complete(self) -> bool:
        """Whether every dialogue is there and none has failed."""
        return self.left == 0 and not self.endings[Ending.FAILED]

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        status, meter = self.status, self.status.meter
        return {
            "output": str(self.path),
            "dialogues": status.total,
            "before": status.before,
            **{ending: self.endings[ending] for ending in Ending},
            "left": self.left,
            "stopped": status.progress.stopped,
            "failures": dict(self.failures.most_common(20)),
            "troubles": dict(self.troubles.most_common(20)),
            "turns": status.progress.turns,
            "prompt_tokens": meter.prompt_tokens,
            "completion_tokens": meter.completion_tokens,
            "cost": meter.cost,
            "seconds": round(status.seconds, 3),
        }
