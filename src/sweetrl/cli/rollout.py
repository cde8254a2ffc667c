"""`sweetrl rollout`: hold dialogues on tasks and keep them as episodes.

Everything that shapes an episode goes into the run card, so that a resumed run cannot mix two settings.
"""

import asyncio
import contextlib
import hashlib
import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.cli import console, live
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.players import Models, Player, parse_price, seat_agent, seat_collaborator
from sweetrl.errors import UsageError

if TYPE_CHECKING:
    from sweetrl.dialogue.budget import Budget
    from sweetrl.dialogue.rules import Rules
    from sweetrl.models import EndpointOptions, Meter
    from sweetrl.protocols import Agent, Collaborator
    from sweetrl.records import RecordLog
    from sweetrl.types import Episode, Kind, Task

TasksOption = Annotated[
    str, typer.Option("--tasks", metavar="TASKS", help="A tasks.jsonl of ours or a published ColBench file.")
]
AgentOption = Annotated[
    str, typer.Option("--agent", metavar="MODEL", help="openai:MODEL@URL, hf:PATH_OR_ID or scripted:NAME.")
]
CollaboratorOption = Annotated[
    str | None,
    typer.Option("--collaborator", metavar="MODEL", help="A model, as --agent, or replay:EPISODES.jsonl."),
]
OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write episodes.jsonl in.")
]
AttemptsOption = Annotated[int, typer.Option("--attempts", min=1, help="Dialogues on each task.")]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, help="Dialogues open at a time, at most.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="The same seed gives the same dialogues.")]
SingleTurnFlag = Annotated[
    bool, typer.Option("--single-turn", help="The agent has one message, which is the answer.")
]
TurnLimitOption = Annotated[
    int, typer.Option("--turn-limit", min=1, help="How often the agent speaks at most.")
]
AgentTemperature = Annotated[float, typer.Option("--agent-temperature", min=0)]
AgentMaxTokens = Annotated[int, typer.Option("--agent-max-tokens", min=1, help="New tokens in one turn.")]
AgentPrompt = Annotated[
    Path | None, typer.Option("--agent-prompt", metavar="FILE", help="In place of the prompt that ships.")
]
CollaboratorTemperature = Annotated[float, typer.Option("--collaborator-temperature", min=0)]
CollaboratorMaxTokens = Annotated[
    int, typer.Option("--collaborator-max-tokens", min=1, help="New tokens in one reply.")
]
CollaboratorPrompt = Annotated[
    Path | None,
    typer.Option("--collaborator-prompt", metavar="FILE", help="In place of the prompt that ships."),
]
GuardFlag = Annotated[
    bool, typer.Option("--guard", help="Ask the collaborator again when a reply gives code away.")
]
PriceAgent = Annotated[
    str | None,
    typer.Option("--price-agent", metavar="IN/OUT", help="Per million tokens read and written: 0.5/1.5."),
]
PriceCollaborator = Annotated[
    str | None, typer.Option("--price-collaborator", metavar="IN/OUT", help="As --price-agent.")
]
MaxTokensTotal = Annotated[
    int | None, typer.Option("--max-tokens-total", min=1, help="Stop after so many tokens, of both sides.")
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", min=0, help="Stop after this cost, in the prices' currency.")
]
TimeLimit = Annotated[
    str | None, typer.Option("--time-limit", metavar="TIME", help="Stop after this time: 90, 45m or 2h.")
]
RequestTimeout = Annotated[
    float, typer.Option("--request-timeout", min=0.1, help="Seconds that an endpoint has for one reply.")
]
RequestAttempts = Annotated[
    int, typer.Option("--request-attempts", min=1, help="How often a failing request is sent.")
]


def rollout(
    tasks: TasksOption,
    agent: AgentOption,
    output: OutputOption,
    *,
    collaborator: CollaboratorOption = None,
    attempts: AttemptsOption = 1,
    concurrency: ConcurrencyOption = 64,
    seed: SeedOption = 0,
    single_turn: SingleTurnFlag = False,
    turn_limit: TurnLimitOption = 10,
    agent_temperature: AgentTemperature = 1.0,
    agent_max_tokens: AgentMaxTokens = 1024,
    agent_prompt: AgentPrompt = None,
    collaborator_temperature: CollaboratorTemperature = 0.0,
    collaborator_max_tokens: CollaboratorMaxTokens = 512,
    collaborator_prompt: CollaboratorPrompt = None,
    guard: GuardFlag = False,
    price_agent: PriceAgent = None,
    price_collaborator: PriceCollaborator = None,
    max_tokens_total: MaxTokensTotal = None,
    max_cost: MaxCost = None,
    time_limit: TimeLimit = None,
    request_timeout: RequestTimeout = 300.0,
    request_attempts: RequestAttempts = 12,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Hold dialogues between an agent and a collaborator.

    Each dialogue is added to DIR/episodes.jsonl when it ends. The same command again does what is missing or
    failed, and nothing else. Ctrl-C lets the open dialogues finish; a second one drops them.
    """
    from sweetrl.dialogue.rules import Rules
    from sweetrl.types import Sampling

    says = Sampling(temperature=agent_temperature, max_tokens=agent_max_tokens)
    replies = Sampling(temperature=collaborator_temperature, max_tokens=collaborator_max_tokens)
    plan = _Plan(
        agent=Player(agent, says, parse_price(price_agent), agent_prompt),
        collaborator=None
        if collaborator is None
        else Player(collaborator, replies, parse_price(price_collaborator), collaborator_prompt),
        guard=guard,
        rules=Rules(turn_limit=turn_limit, single_turn=single_turn),
        attempts=attempts,
        concurrency=concurrency,
        seed=seed,
        max_tokens=max_tokens_total,
        max_cost=max_cost,
        seconds=None if time_limit is None else parse_time(time_limit),
        request_timeout=request_timeout,
        request_attempts=request_attempts,
    )
    plan.check()
    summary = asyncio.run(_hold(plan, *_load(tasks), output, quiet=quiet))
    summary.report(json=json, quiet=quiet)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """All options of the command but where things come from and go to."""

    agent: Player
    collaborator: Player | None
    guard: bool
    rules: "Rules"
    attempts: int
    concurrency: int
    seed: int
    max_tokens: int | None
    max_cost: float | None
    seconds: float | None
    request_timeout: float
    request_attempts: int

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.collaborator is None and not self.rules.single_turn:
            raise UsageError("nobody to talk to; give a --collaborator, or --single-turn")
        if self.collaborator is not None and self.rules.single_turn:
            raise UsageError("a single turn is never replied to; leave out --collaborator or --single-turn")
        if self.guard and self.rules.single_turn:
            raise UsageError("a single turn has no collaborator to guard; leave out --guard or --single-turn")
        prices = [player.price for player in (self.agent, self.collaborator) if player is not None]
        if self.max_cost is not None and not any(price.prompt or price.completion for price in prices):
            raise UsageError("--max-cost needs prices; give --price-agent or --price-collaborator")

    def budget(self, meter: "Meter") -> "Budget":
        """The limits of this run; its clock starts now."""
        from sweetrl.dialogue.budget import Budget

        return Budget(meter, max_tokens=self.max_tokens, max_cost=self.max_cost, time_limit=self.seconds)

    def endpoint_options(self) -> "EndpointOptions":
        """How endpoints are treated: no more requests at a time than dialogues."""
        from sweetrl.models import EndpointOptions

        return EndpointOptions(
            timeout=self.request_timeout,
            attempts=self.request_attempts,
            start_concurrency=min(self.concurrency, EndpointOptions().start_concurrency),
            max_concurrency=self.concurrency,
        )


def parse_time(text: str) -> float:
    """`90`, `90s`, `45m` or `2h` in seconds."""
    matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if matched is None:
        raise UsageError(f"{text!r} is not a time; write seconds, or 45m, or 2h")
    return float(matched[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[matched[2]]


def _load(source: str) -> "tuple[list[Task], Kind]":
    """The tasks of a source and their kind, which the prompts depend on."""
    from sweetrl.tasks.sources import load_tasks

    tasks = list(load_tasks(source).values())
    kinds = {task.kind for task in tasks}
    if len(kinds) > 1:
        raise UsageError(f"{source}: has backend and frontend tasks; roll them out one after the other")
    return tasks, kinds.pop()


def _fingerprint(tasks: "list[Task]") -> str:
    """Of the tasks' content, in whatever file and order."""
    import msgspec

    lines = sorted(msgspec.json.encode((task.id, task.kind, task.request, task.secret)) for task in tasks)
    content = hashlib.sha256(b"\n".join(lines)).hexdigest()
    return f"{len(tasks)} tasks {content[:16]}"


# ---------------------------------------------------------------- running


async def _hold(plan: _Plan, tasks: "list[Task]", kind: "Kind", output: Path, *, quiet: bool) -> "_Summary":
    from sweetrl.models import Meter

    meter = Meter()
    models = Models(plan.endpoint_options(), meter)
    try:
        agent, agent_settings = seat_agent(plan.agent, kind, plan.rules, models)
        collaborator, collaborator_settings = seat_collaborator(plan.collaborator, kind, tasks, models)
        if plan.guard:
            collaborator = _guarded(collaborator)
        settings = {
            "tasks": _fingerprint(tasks),
            "seed": plan.seed,
            "rules": plan.rules,
            **agent_settings,
            **collaborator_settings,
            "collaborator": collaborator.name,
        }
        with _open(output, settings) as log:
            if log.repaired and not quiet:
                console.note(f"{log.path}: {log.repaired}")
            return await _fill(log, plan, tasks, agent, collaborator, meter, quiet=quiet)
    finally:
        await models.close()


def _guarded(collaborator: "Collaborator") -> "Collaborator":
    from sweetrl.dialogue.guard import GuardedCollaborator
    from sweetrl.evaluation.leaks import leaks_code

    return GuardedCollaborator(collaborator, leaks_code)


def _open(output: Path, settings: dict[str, Any]) -> "RecordLog[Episode]":
    from sweetrl.records import open_log, unwritable
    from sweetrl.types import Ending, Episode

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(output, error) from error
    return open_log(
        output / "episodes.jsonl",
        Episode,
        command="rollout",
        config=settings,
        identity=lambda episode: episode.id,
        settled=lambda episode: episode.ending is not Ending.FAILED,
    )


async def _fill(
    log: "RecordLog[Episode]",
    plan: _Plan,
    tasks: "list[Task]",
    agent: "Agent",
    collaborator: "Collaborator",
    meter: "Meter",
    *,
    quiet: bool,
) -> "_Summary":
    """Hold the dialogues that the log lacks."""
    from sweetrl.dialogue.rollout import Progress, roll_out
    from sweetrl.types import episode_id

    wanted = [episode_id(task.id, attempt) for attempt in range(plan.attempts) for task in tasks]
    before = sum(log.has(each) for each in wanted)
    status = live.Status(Progress(), meter, total=len(wanted), before=before)
    interrupts = _Interrupts()
    summary = _Summary(log.path, status, interrupts)
    episodes = roll_out(
        tasks,
        agent,
        collaborator,
        attempts=plan.attempts,
        concurrency=plan.concurrency,
        seed=plan.seed,
        rules=plan.rules,
        skip=log.has,
        budget=plan.budget(meter),
        stop=interrupts.stop,
        progress=status.progress,
    )
    with interrupts.caught():
        async with live.shown(status, quiet=quiet), contextlib.aclosing(episodes):
            async for episode in episodes:
                log.append(episode.id, episode)
                summary.add(episode)
    if summary.complete:
        log.finish()
    return summary


class _Interrupts:
    """Ctrl-C: once to open no more dialogues, twice to drop those that are open."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self._dropped = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Listen while the block runs; a second Ctrl-C ends the block."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt, task)
        try:
            yield
        except asyncio.CancelledError:
            if not self._dropped:
                raise
            task.uncancel()
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _on_interrupt(self, task: "asyncio.Task[Any]") -> None:
        if not self.stop.is_set():
            self.stop.set()
            console.note("finishing the open dialogues; press Ctrl-C again to drop them")
        elif not self._dropped:
            self._dropped = True
            task.cancel()


# ---------------------------------------------------------------- reporting


class _Summary:
    """What a run did."""

    def __init__(self, path: Path, status: live.Status, interrupts: _Interrupts) -> None:
        self._path = path
        self._status = status
        self._interrupts = interrupts
        self._endings: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()

    def add(self, episode: "Episode") -> None:
        """Count an episode of this run."""
        self._endings[episode.ending] += 1
        if episode.failure is not None:
            failure = episode.failure
            self._failures[f"{failure.stage}: {failure.kind}: {failure.message}"] += 1

    @property
    def complete(self) -> bool:
        """Whether every dialogue is there and none has failed."""
        return self._status.left == 0 and not self._status.progress.failed

    def report(self, *, json: bool, quiet: bool) -> None:
        """Say what happened; anything but a complete run ends with its exit code."""
        if json:
            console.print_json(self._as_json())
        if not quiet:
            for line in self._lines():
                console.note(line)
        if self._interrupts.stop.is_set() and self._status.left:
            raise KeyboardInterrupt(
                f"{self._status.left} dialogues are left; the same command goes on with them"
            )
        if not self.complete:
            raise typer.Exit(1)

    def _lines(self) -> Iterator[str]:
        status, endings = self._status, self._endings
        held = f"{endings['answered']} answered, {endings['turn_limit']} at the turn limit"
        old = f", {status.before} were there" if status.before else ""
        yield f"{self._path}: {held}, {endings['failed']} failed{old} ({live.duration(status.seconds)})"
        for reason, count in self._failures.most_common(3):
            yield f"  {count} x {reason}"
        if not self._interrupts.stop.is_set() and status.progress.stopped:
            yield f"stopped with {status.left} dialogues left: {status.progress.stopped}"
        if endings["failed"]:
            yield "the same command again does the failed ones"

    def _as_json(self) -> dict[str, Any]:
        status, meter = self._status, self._status.meter
        return {
            "output": str(self._path),
            "dialogues": status.total,
            "before": status.before,
            **{ending: self._endings[ending] for ending in ("answered", "turn_limit", "failed")},
            "left": status.left,
            "stopped": status.progress.stopped,
            "failures": dict(self._failures.most_common(20)),
            "turns": status.progress.turns,
            "prompt_tokens": meter.prompt_tokens,
            "completion_tokens": meter.completion_tokens,
            "cost": meter.cost,
            "seconds": round(status.seconds, 3),
        }
