"""The engine: many dialogues at once, each advancing at its own pace.

A bounded number is open; the next one opens as soon as one ends. What a dialogue says depends on its seed
alone, never on the others or on the order of events. A breakdown that the agent cannot cause ends the dialogue
it happens in as FAILED, with its reason, and no other; one that the agent's words cause is the agent's (`blame.py`).
This is the one place that turns unexpected exceptions into records.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sweetrl.dialogue.blame import NEUTRAL, ask_fairly, sample_or_blame
from sweetrl.dialogue.budget import Budget
from sweetrl.dialogue.dialogue import Dialogue
from sweetrl.dialogue.rules import Rules
from sweetrl.errors import ConfigError, EndpointDown, StageError, UsageError, WordsError
from sweetrl.protocols import Agent, Collaborator
from sweetrl.types import Ending, Episode, Message, Task, Turn, episode_id

logger = logging.getLogger(__name__)

Choose = Callable[[Task, Sequence[Message], Sequence[str]], Awaitable[int]]
"""(task, history, drafts) -> which draft is said."""


@dataclass(frozen=True)
class Drafts:
    """Several drafts of each turn, one of which is said. Who chooses may see the task; the agent does not."""

    count: int
    choose: Choose
    name: str
    """Name of the choice in records: dialogues with another choice are a different experiment."""


@dataclass(frozen=True, eq=False)
class Opening:
    """Where a dialogue begins: with the request, or in the middle of a stored dialogue."""

    task: Task
    attempt: int
    seed: int
    """Seed of all its random choices."""
    past: tuple[Turn, ...] = ()
    """Turns that have been taken, each with its reply."""
    output: str | None = None
    """The agent's first output; None asks the agent."""


@dataclass
class Progress:
    """Progress of a rollout; written by `roll_out`, for others to read."""

    open: int = 0
    finished: int = 0
    """Answered, at the turn limit, or broken off by the agent."""
    failed: int = 0
    dropped: int = 0
    """Ended without a record, by a spent budget or because the run was cancelled; resuming does them."""
    turns: int = 0
    turns_of_ended: int = 0
    """Turns of finished and failed dialogues, among `turns`."""
    stopped: str | None = None
    """Why dialogues are left over, if some are."""
    down: EndpointDown | None = None
    """The server that cannot be reached any more, if one cannot: no dialogue is opened then."""

    def turns_ahead(self) -> float:
        """How many more turns it takes to finish the open dialogues and another one, by the mean so far."""
        ended = self.finished + self.failed
        mean = self.turns_of_ended / ended if ended else 0.0
        return max(mean, mean * (self.open + 1) - (self.turns - self.turns_of_ended))

    def count(self, held: "asyncio.Task[Episode | None]") -> None:
        """One dialogue is over."""
        self.open -= 1
        episode = None if held.cancelled() or held.exception() else held.result()
        if episode is None:
            self.dropped += 1
            return
        self.turns_of_ended += len(episode.turns)
        if episode.ending is Ending.FAILED:
            self.failed += 1
        else:
            self.finished += 1


@dataclass(frozen=True)
class _Table:
    """The settings that all dialogues of a run share."""

    agent: Agent
    collaborator: Collaborator
    rules: Rules
    drafts: Drafts | None
    budget: Budget | None
    stop: asyncio.Event | None
    progress: Progress

    @property
    def agent_name(self) -> str:
        """The agent's name in records."""
        return self.agent.name if self.drafts is None else f"{self.agent.name} {self.drafts.name}"


async def roll_out(
    tasks: Sequence[Task],
    agent: Agent,
    collaborator: Collaborator,
    *,
    attempts: int = 1,
    concurrency: int = 64,
    seed: int = 0,
    rules: Rules | None = None,
    drafts: Drafts | None = None,
    skip: Callable[[str], bool] = lambda _: False,
    budget: Budget | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[Episode]:
    """Run `attempts` dialogues on each task and yield them as they end, in any order.

    `skip` is true for the ids of episodes that exist. Once `stop` is set, no dialogue is opened any more and
    the open ones finish; to drop those as well, close the generator or cancel the task that reads it. A
    `budget` stops opening when another dialogue would hardly fit, and drops what is still open when it is
    spent. In both cases `progress.stopped` says why. When a server is down, the open dialogues fail, those that
    are left are not opened, and `EndpointDown` is raised after the last of them.
    """
    if attempts < 1:
        raise ConfigError(f"attempts ({attempts}) must be at least 1")
    held = hold_dialogues(
        _pending(tasks, attempts, seed, skip),
        agent,
        collaborator,
        concurrency=concurrency,
        rules=rules,
        drafts=drafts,
        budget=budget,
        stop=stop,
        progress=progress,
    )
    async with aclosing(held):
        async for _, episode in held:
            yield episode


async def hold_dialogues(
    openings: Iterator[Opening],
    agent: Agent,
    collaborator: Collaborator,
    *,
    concurrency: int = 64,
    rules: Rules | None = None,
    drafts: Drafts | None = None,
    budget: Budget | None = None,
    stop: asyncio.Event | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[tuple[Opening, Episode]]:
    """Run one dialogue from each opening and yield them as they end, in any order.

    An opening is taken when there is room for its dialogue. The rest is as in `roll_out`.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency ({concurrency}) must be at least 1")
    progress = progress or Progress()
    table = _Table(agent, collaborator, rules or Rules(), drafts, budget, stop, progress)
    running: dict[asyncio.Task[Episode | None], Opening] = {}
    ended: asyncio.Queue[asyncio.Task[Episode | None]] = asyncio.Queue()

    def open_more() -> None:
        while progress.open < concurrency and _may_open(table) and (opening := next(openings, None)):
            held = asyncio.create_task(_Running(opening, table).hold())
            progress.open += 1
            running[held] = opening
            held.add_done_callback(progress.count)
            held.add_done_callback(ended.put_nowait)

    try:
        open_more()
        while running:
            held = await _next_of(ended, budget)
            if held is None:
                await _cancel(running)
                continue
            opening = running.pop(held)
            if not held.cancelled():
                open_more()
                if (episode := held.result()) is not None:
                    yield opening, episode
    finally:
        await _cancel(running)
    if progress.down is not None:
        raise progress.down
    if progress.dropped or next(openings, None):
        progress.stopped = _reason(table)


def _pending(
    tasks: Sequence[Task], attempts: int, seed: int, skip: Callable[[str], bool]
) -> Iterator[Opening]:
    """All tasks once, then all again: an interrupted run has covered as many tasks as it could."""
    for attempt in range(attempts):
        for task in tasks:
            if not skip(episode_id(task.id, attempt)):
                yield Opening(task, attempt, seed)


def _may_open(table: _Table) -> bool:
    if table.stop is not None and table.stop.is_set():
        return False
    progress, budget = table.progress, table.budget
    if progress.down is not None:
        return False
    if budget is None:
        return True
    return budget.exhausted() is None and budget.affords(progress.turns_ahead(), turns_done=progress.turns)


def _reason(table: _Table) -> str:
    if table.stop is not None and table.stop.is_set():
        return "it was asked to stop"
    spent = table.budget.exhausted() if table.budget is not None else None
    return spent or "the rest of the budget is too little for another dialogue"


async def _next_of(
    ended: "asyncio.Queue[asyncio.Task[Episode | None]]", budget: Budget | None
) -> asyncio.Task[Episode | None] | None:
    """The next dialogue that ends; None when the time is up first."""
    try:
        async with asyncio.timeout(None if budget is None else budget.seconds_left()):
            return await ended.get()
    except TimeoutError:
        return None if ended.empty() else ended.get_nowait()


async def _cancel(running: Iterable[asyncio.Task[Episode | None]]) -> None:
    tasks = [task for task in running if not task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Running:
    """One dialogue between the agent and the collaborator."""

    def __init__(self, opening: Opening, table: _Table) -> None:
        self._opening = opening
        self._table = table
        self._dialogue = Dialogue(
            opening.task,
            table.collaborator,
            rules=table.rules,
            seed=opening.seed,
            attempt=opening.attempt,
            agent=table.agent_name,
            past=opening.past,
        )
        self._speaker = "agent"
        self._trouble = ""

    async def hold(self) -> Episode | None:
        """The whole dialogue; None if a spent budget ended it half-way."""
        try:
            while self._table.budget is None or self._table.budget.exhausted() is None:
                await self._take_turn()
                if self._dialogue.conclusion is not None:
                    return self._dialogue.episode
            return None
        except EndpointDown as error:
            # This dialogue has failed, as others that are open will; those that have ended are kept.
            self._table.progress.down = error
            return self._dialogue.fail(self._speaker, error)
        except UsageError:
            raise
        except StageError as error:
            return self._dialogue.fail(self._speaker, error)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            # Not a cancellation of ours: something that the dialogue was waiting for had been cancelled.
            return self._dialogue.fail(self._speaker, error)
        except Exception as error:
            logger.exception("dialogue %s broke down", self._dialogue.episode.id)
            return self._dialogue.fail(self._speaker, error)

    async def _take_turn(self) -> None:
        """The agent speaks and, unless that was the end, the collaborator replies."""
        self._trouble = ""
        try:
            output = await self._speak()
        except WordsError as error:
            self._table.progress.turns += 1
            self._dialogue.break_off(error)
            return
        self._table.progress.turns += 1
        self._speaker = "collaborator"
        await self._dialogue.say(output, trouble=self._trouble)

    async def _speak(self) -> str:
        """The agent's output; if there are several drafts, the chosen one."""
        self._speaker = "agent"
        if self._opening.output is not None and len(self._dialogue.turns) == len(self._opening.past):
            return self._opening.output
        drafts, history = self._table.drafts, self._dialogue.history
        count = 1 if drafts is None else drafts.count
        seed = self._dialogue.seed_of("agent")
        outputs = await sample_or_blame(self._table.agent, history, n=count, seed=seed)
        return outputs[0 if drafts is None else await self._choose(drafts, outputs)]

    async def _choose(self, drafts: Drafts, outputs: Sequence[str]) -> int:
        """Choose the draft to say; the first one if the drafts themselves make the critic fail."""
        self._speaker = "critic"
        task, history = self._opening.task, self._dialogue.history
        neutral = [NEUTRAL] * len(outputs)
        try:
            return await ask_fairly(
                lambda: drafts.choose(task, history, outputs),
                lambda: drafts.choose(task, history[:1], neutral),
            )
        except WordsError as error:
            self._trouble = f"critic: {error.kind}"
            return 0


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
