"""The stages as functions on records, for scripts and notebooks: what `import sweetrl` offers.

A model, collaborator or critic is an object of yours or a name, as on the command line: `openai:MODEL@URL`,
`hf:PATH_OR_ID`, `scripted:NAME`, `mini`. Tasks and episodes are records, or the file or source that has them. What a
call opens, it closes again; what `load_agent`, `load_collaborator` and `load_critic` open lives as long as the process.

Every function that waits has an async twin (`rollout_async` ...). The plain one works inside a running event loop too:
it runs in a loop of its own. Use an object that holds connections either with plain calls or with their twins.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec import NODEFAULT

from sweetrl.browser import BrowserPool
from sweetrl.browser.session import BrowserSession
from sweetrl.candidates.credit import credit_turns
from sweetrl.critics import type_of
from sweetrl.critics.opening import open_with_models
from sweetrl.dialogue.background import close_at_end, run_in_background
from sweetrl.dialogue.building import Models, ModelSettings, build_agent, build_collaborator
from sweetrl.dialogue.guard import GuardedCollaborator
from sweetrl.dialogue.rollout import roll_out
from sweetrl.dialogue.rules import Rules
from sweetrl.domains.dialogues import read_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.domains.logged import read_logged, refuse_without_outcomes, refuse_without_references
from sweetrl.domains.registry import find_domain
from sweetrl.domains.sources import read_tasks
from sweetrl.domains.transcripts import COLLABORATOR_SAMPLING
from sweetrl.errors import UsageError, needs_extra
from sweetrl.evaluation.batches import score_in_order
from sweetrl.evaluation.tracking import fact_tracker
from sweetrl.evaluation.turning_points import CreditReport
from sweetrl.learning.algorithms import algorithm_named, default_options
from sweetrl.protocols import Agent, Collaborator, Scorer, TurnCritic
from sweetrl.records import record_lines
from sweetrl.sandbox import Program, Result, Sandbox
from sweetrl.settings import ScorerSettings, TrainRunSettings, settings_fields
from sweetrl.types import Episode, RunMetrics, Sampling, Shot, Task, TurnCredit, Verdict

Tasks = str | Path | Iterable[Task]
Episodes = str | Path | Iterable[Episode]


Arguments = ParamSpec("Arguments")
T = TypeVar("T")


def _plain(work: Callable[Arguments, Coroutine[Any, Any, T]]) -> Callable[Arguments, T]:
    """The twin of an async function for code that does not await."""

    @wraps(work)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> T:
        return run_in_background(work(*arguments, **options))

    call.__name__ = call.__qualname__ = work.__name__.removesuffix("_async")
    return call


# ---------------------------------------------------------------- loading


def load_tasks(source: Tasks) -> list[Task]:
    """The tasks of a file, ours or published, or of a generator: `mini-backend:test:500`."""
    return list(read_tasks(source) if isinstance(source, str | Path) else source)


def load_episodes(path: Episodes, tasks: Tasks | None = None) -> list[Episode]:
    """The dialogues of a file. Published ones name no task: give `tasks` to find theirs."""
    if not isinstance(path, str | Path):
        return list(path)
    return list(read_episodes(Path(path), None if tasks is None else load_tasks(tasks)))


def load_agent(
    spec: str, tasks: Tasks, *, rules: Rules | None = None, sampling: Sampling | None = None
) -> Agent:
    """The agent of a name, with the prompt for these tasks; it samples at temperature 1 unless `sampling` is given."""
    return _agent(spec, load_tasks(tasks), rules or Rules(), sampling, _kept())


def load_collaborator(spec: str, tasks: Tasks, *, guard: bool = False) -> Collaborator:
    """The collaborator of a name for these tasks; with `guard` it is asked again when a reply gives code away."""
    return _collaborator(spec, load_tasks(tasks), _kept(), guard=guard)


def load_critic(spec: str) -> TurnCritic:
    """The critic in a folder, or of a name: `zero:hf:PATH`, `judge:MODEL`, `scripted:NAME`, `length`."""
    return _critic(spec, _kept())


# ---------------------------------------------------------------- the stages


async def rollout_async(
    tasks: Tasks,
    agent: str | Agent,
    collaborator: str | Collaborator | None = None,
    *,
    attempts: int = 1,
    concurrency: int = 64,
    seed: int = 0,
    turn_limit: int = 10,
    sampling: Sampling | None = None,
    guard: bool = False,
) -> list[Episode]:
    """Run `attempts` dialogues on each task; without a collaborator the agent has one message, its answer.

    The episodes come in the order of tasks and attempts. One that failed is among them, with its `failure`.
    """
    known = load_tasks(tasks)
    rules = Rules(turn_limit=turn_limit, single_turn=collaborator is None)
    async with Models() as models:
        speaker = _agent(agent, known, rules, sampling, models)
        other = _collaborator(collaborator, known, models, guard=guard)
        rolled = roll_out(
            known, speaker, other, attempts=attempts, concurrency=concurrency, seed=seed, rules=rules
        )
        async with aclosing(rolled):
            episodes = [episode async for episode in rolled]
    order = {task.id: number for number, task in enumerate(known)}
    return sorted(episodes, key=lambda each: (order[each.task_id], each.attempt))


rollout = _plain(rollout_async)


async def score_async(
    tasks: Tasks, episodes: Episodes, *, scorer: Scorer | None = None, workers: int = 0
) -> list[Verdict]:
    """A verdict on each episode, in their order; an episode that failed, or that cannot be scored, has no reward.

    Without a `scorer`, the one of the tasks. `workers`: how many answers at a time, one per core if 0.
    """
    known = {task.id: task for task in load_tasks(tasks)}
    pairs = [(_task_of(each, known), each) for each in load_episodes(episodes, known.values())]
    async with AsyncExitStack() as stack:
        if scorer is None:
            scorer = await stack.enter_async_context(open_scorer(known.values(), workers=workers))
        verdicts = score_in_order(pairs, scorer, concurrency=workers or len(os.sched_getaffinity(0)))
        return [verdict async for verdict in verdicts]


score = _plain(score_async)


def metrics(
    tasks: Tasks, episodes: Episodes, verdicts: Iterable[Verdict], *, turn_limit: int = 10
) -> RunMetrics:
    """Success, reward, turns and more of a run, each with its 95 % interval."""
    from sweetrl.evaluation.metrics import measure  # needs numpy, and the rest of this module does not

    known = {task.id: task for task in load_tasks(tasks)}
    stored = load_episodes(episodes, known.values())
    return measure(known, stored, verdicts, tracker=fact_tracker(known), turn_limit=turn_limit)


async def credit_async(
    tasks: Tasks, episodes: Episodes, critic: str | TurnCritic, *, concurrency: int = 8
) -> list[TurnCredit]:
    """A critic's advantage for each turn of the dialogues, in order: how much closer to the reference it led."""
    known = {task.id: task for task in load_tasks(tasks)}
    pairs = [(_task_of(each, known), each) for each in load_episodes(episodes, known.values())]
    order = {episode.id: number for number, (_, episode) in enumerate(pairs)}
    async with Models() as models:
        ranked = credit_turns(pairs, _critic(critic, models), concurrency=concurrency)
        async with aclosing(ranked):
            credited = [each async for each in ranked]
    return sorted(credited, key=lambda each: (order[each.episode_id], each.turn))


credit = _plain(credit_async)


async def credit_logs_async(
    path: str | Path,
    critic: str | TurnCritic | None = None,
    *,
    model: str = "mini",
    tasks: Tasks | None = None,
    verdicts: Iterable[Verdict] = (),
    outcome_field: str | None = None,
    success_at: float = 1.0,
    seed: int = 0,
    concurrency: int = 8,
) -> CreditReport:
    """Which turns of a log earned or lost the outcome; a log has chats in any format, published dialogues or episodes.

    Without a `critic` one is learned from the outcomes, reading turns with `model` (`mini`, `hf:PATH_OR_ID`, or `words`
    alone); no dialogue is credited by a fit that saw its outcome. `tasks` and `verdicts` belong to episodes of ours.
    """
    from sweetrl.candidates.learned import learn_credit

    known = None if tasks is None else {task.id: task for task in load_tasks(tasks)}
    given = {each.episode_id: each for each in verdicts}
    found, left_out = read_logged(
        Path(path), tasks=known, verdicts=given, outcome_field=outcome_field, success_at=success_at
    )
    if critic is None:
        refuse_without_outcomes(found, Path(path), outcome_field)
        learned = await asyncio.to_thread(learn_credit, found, model, seed=seed)
        return CreditReport(found, learned.credit, learned.critic, learned.auc, learned.reads, left_out)
    if isinstance(critic, str) and type_of(critic).needs_reference:
        refuse_without_references(found, Path(path), critic)
    labels = {each.episode.id: each.label for each in found}
    async with Models() as models:
        opened = _critic(critic, models)
        pairs = ((each.task, each.episode) for each in found)
        ranked = credit_turns(pairs, opened, concurrency=concurrency, labels=labels)
        async with aclosing(ranked):
            credited = [each async for each in ranked]
    order = {each.episode.id: number for number, each in enumerate(found)}
    credited.sort(key=lambda each: (order[each.episode_id], each.turn))
    return CreditReport(found, credited, opened.name, left_out=left_out)


credit_logs = _plain(credit_logs_async)


def credit_page(report: CreditReport, *, title: str = "Which turn broke the conversation") -> str:
    """The findings of `credit_logs` as one HTML page: the turns that hurt most, habits of successes, all dialogues."""
    from sweetrl.report.credit_page import credit_page as page_of

    return page_of(report, title=title)


def train(algorithm: str, *, model: str, output: str | Path, **settings: Any) -> Path:
    """Train a model with an algorithm of `sweetrl train`, such as `dpo`, and give the folder that it is in.

    `settings` are the options of `sweetrl train ALGORITHM`, with underscores: `learning_rate=1e-4`. Data (`episodes`,
    `verdicts`, `pairs`, `tasks`) are files or lists of records. The same call again resumes what was interrupted.
    """
    with tempfile.TemporaryDirectory(prefix="sweetrl-") as folder:
        given = {name: _as_file(Path(folder), name, value) for name, value in settings.items()}
        _train(algorithm, model, Path(output), given)
    return Path(output)


# ---------------------------------------------------------------- untrusted pages and code


async def render_async(html: str) -> Shot:
    """Render an untrusted page offline: a PNG and the boxes of its elements."""
    async with BrowserPool(workers=1) as browsers:
        return await browsers.render(html)


render = _plain(render_async)


async def run_code_async(source: str, *calls: str) -> list[Result]:
    """Run untrusted Python in the sandbox: for each call a `Returned` with its `value`, or what went wrong."""
    with Sandbox() as sandbox:
        return await asyncio.to_thread(sandbox.run, Program(sources=(source,), calls=calls))


run_code = _plain(run_code_async)


# ---------------------------------------------------------------- names to objects


@cache
def _kept() -> Models:
    """Models that stay open as long as the process."""
    models = Models()
    close_at_end(models)
    return models


def _agent(
    agent: str | Agent, tasks: list[Task], rules: Rules, sampling: Sampling | None, models: Models
) -> Agent:
    if not isinstance(agent, str):
        return agent
    return build_agent(
        ModelSettings(agent, sampling or Sampling()), _only_domain(tasks), rules, models, tasks
    )[0]


def _collaborator(
    collaborator: str | Collaborator | None, tasks: list[Task], models: Models, *, guard: bool
) -> Collaborator:
    if isinstance(collaborator, str) or collaborator is None:
        browsers = BrowserSession()
        models.close_too(browsers)
        chosen = None if collaborator is None else ModelSettings(collaborator, COLLABORATOR_SAMPLING)
        collaborator, _ = build_collaborator(chosen, _only_domain(tasks), tasks, models, browsers)
    return GuardedCollaborator(collaborator, leaks_code) if guard else collaborator


def _only_domain(tasks: Iterable[Task]) -> Domain:
    domains = {task.domain for task in tasks}
    if len(domains) != 1:
        raise UsageError(
            "there are no tasks" if not domains else "the tasks are of several domains; take one at a time"
        )
    return find_domain(domains.pop())


@asynccontextmanager
async def open_scorer(tasks: Iterable[Task], *, workers: int = 0) -> AsyncIterator[Scorer]:
    """The scorer of these tasks, for as long as the block lasts."""
    with _only_domain(tasks).open_scoring(ScorerSettings(workers=workers)) as backend:
        async with backend.opened() as scorer:
            yield scorer


def _task_of(episode: Episode, tasks: dict[str, Task]) -> Task:
    if episode.task_id not in tasks:
        raise UsageError(f"{episode.id} is on a task that is not among those given; are these its tasks?")
    return tasks[episode.task_id]


def _as_file(folder: Path, name: str, value: Any) -> Any:
    """Records as a file for the training; anything else as it is."""
    if not isinstance(value, Iterable) or isinstance(value, str | Path):
        return Path(value) if isinstance(value, str) and name in _FILES else value
    path = folder / f"{name}.jsonl"
    path.write_bytes(b"".join(record_lines(value)))
    return str(path) if name == "tasks" else path


_FILES = {"episodes", "verdicts", "pairs"}


def _critic(critic: str | TurnCritic, models: Models) -> TurnCritic:
    return open_with_models(critic, models) if isinstance(critic, str) else critic


def _train(name: str, model: str, output: Path, given: dict[str, Any]) -> None:
    algorithm = algorithm_named(name)
    own, shared = default_options(algorithm), {field.name for field in settings_fields(TrainRunSettings)}
    if "turn_pairs" in own and "pairs" in given:
        given["turn_pairs"] = given.pop("pairs")
    if unknown := sorted(given.keys() - own.keys() - shared):
        raise UsageError(f"train {name} has no setting {unknown[0]!r}; see `sweetrl train {name} --help`")
    run = TrainRunSettings(model=model, **{key: value for key, value in given.items() if key in shared})
    values = own | {key: value for key, value in given.items() if key in own}
    if missing := [key for key, value in values.items() if value is NODEFAULT]:
        raise UsageError(f"train {name} needs {missing[0].replace('turn_', '')}")
    with needs_extra("training", "train"):
        from sweetrl.learning.training import train
    train(algorithm, run, output, values)
