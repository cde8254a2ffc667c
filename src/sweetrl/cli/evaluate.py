"""`sweetrl evaluate`: `rollout`, `score` and the figures of the run, into one folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.cli import console, inputs, interrupts
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.critics import CriticPrompt
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.fairness import fairness_of
from sweetrl.cli.figures import metrics_table
from sweetrl.cli.judging import Source, judge, opened_bench
from sweetrl.cli.rollout import (
    AgentMaxTokens,
    AgentOption,
    AgentPrompt,
    AgentTemperature,
    AttemptsOption,
    BestOf,
    CollaboratorMaxTokens,
    CollaboratorOption,
    CollaboratorPrompt,
    CollaboratorTemperature,
    ConcurrencyOption,
    Critic,
    GuardFlag,
    RequestAttempts,
    RequestTimeout,
    SeedOption,
    ShowOption,
    SingleTurnFlag,
    TasksOption,
    TurnLimitOption,
    player_of,
)
from sweetrl.cli.studio import SCREENSHOTS, SimilarityOption
from sweetrl.cli.workers import IsolationOption, ModeOption, TurnCostOption, WorkersOption

if TYPE_CHECKING:
    from sweetrl.domains.domain import Domain, FactTracker
    from sweetrl.types import RunMetrics, Task

METRICS = "metrics.json"

OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder of the run; made if need be.")
]


def evaluate(
    tasks: TasksOption,
    agent: AgentOption,
    output: OutputOption,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
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
    best_of: BestOf = 1,
    critic: Critic = None,
    critic_prompt: CriticPrompt = None,
    show: ShowOption = "pictures",
    request_timeout: RequestTimeout = 300.0,
    request_attempts: RequestAttempts = 12,
    workers: WorkersOption = 0,
    mode: ModeOption = "module",
    isolation: IsolationOption = None,
    similarity: SimilarityOption = "layout",
    turn_cost: TurnCostOption = 0.0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Hold dialogues, score them, and say what they come to.

    Writes DIR/episodes.jsonl and DIR/verdicts.jsonl as `rollout` and `score` do, and DIR/metrics.json. The same
    command again does what is missing or failed.
    """
    from sweetrl.cli.dialogues import Plan, hold

    replies = (collaborator_temperature, collaborator_max_tokens, collaborator_prompt)
    plan = Plan(
        agent=player_of(agent, agent_temperature, agent_max_tokens, agent_prompt),
        collaborator=None if collaborator is None else player_of(collaborator, *replies),
        guard=guard,
        best_of=best_of,
        critic=critic,
        critic_prompt=critic_prompt,
        pictures=show == "pictures",
        turn_limit=turn_limit,
        single_turn=single_turn,
        attempts=attempts,
        concurrency=concurrency,
        seed=seed,
        request_timeout=request_timeout,
        request_attempts=request_attempts,
    )
    plan.check()
    silent = quiet or json
    interrupts.run(hold, plan, tasks, output, quiet=silent).tell(quiet=silent)
    bench = {"workers": workers, "mode": mode, "isolation": isolation, "similarity": similarity}
    run, about = _measured(tasks, output, bench, turn_limit=turn_limit, turn_cost=turn_cost, silent=silent)
    _report(run, about, output, json=json, quiet=quiet)


def _measured(
    source: str,
    folder: Path,
    bench_options: dict[str, Any],
    *,
    turn_limit: int,
    turn_cost: float,
    silent: bool,
) -> "tuple[RunMetrics, Domain]":
    """Score the dialogues of a folder and keep the figures; those, and the domain of the tasks."""
    import msgspec

    from sweetrl.domains.sources import load_tasks
    from sweetrl.records import write_atomically

    known, episodes, verdicts = load_tasks(source), folder / "episodes.jsonl", folder / "verdicts.jsonl"
    dialogues = Source(known, None, episodes)
    total, domain = dialogues.validate()
    with opened_bench(domain, **bench_options, screenshots=folder / SCREENSHOTS) as bench:
        judge(dialogues, total, verdicts, bench, turn_cost=turn_cost, silent=silent)
    run = _figures(known, episodes, verdicts, turn_limit)
    write_atomically(folder / METRICS, msgspec.json.format(msgspec.json.encode(run)) + b"\n")
    return run, domain


def _figures(tasks: "dict[str, Task]", episodes: Path, verdicts: Path, turn_limit: int) -> "RunMetrics":
    from msgspec.structs import replace

    from sweetrl.evaluation.metrics import measure
    from sweetrl.records import read_card, read_records
    from sweetrl.types import Verdict

    stored = inputs.each_episode(episodes, tasks)
    judged = read_records(verdicts, Verdict)
    run = measure(tasks, stored, judged, tracker=fact_tracker(tasks), turn_limit=turn_limit)
    held, scored = read_card(episodes), read_card(verdicts)
    return replace(
        run,
        fairness=fairness_of(tasks, episodes, verdicts).metrics,
        run={"rollout": held.config, "score": scored.config, "versions": held.versions},
    )


def fact_tracker(tasks: "dict[str, Task]") -> "FactTracker | None":
    """What there is to ask in these tasks, where their domain knows it."""
    from sweetrl.domains.registry import find_domain

    domains = {task.domain for task in tasks.values()}
    return find_domain(domains.pop()).tracker(tasks) if len(domains) == 1 else None


def _report(run: "RunMetrics", domain: "Domain", folder: Path, *, json: bool, quiet: bool) -> None:
    """Show the figures; dialogues that failed or are unscored end the command with exit code 1."""
    if json:
        console.print_json({"output": str(folder / METRICS), "metrics": run})
    elif not quiet:
        console.results().print(metrics_table(run, domain))
    if run.failed or run.unscored:
        console.note(
            f"{run.failed} dialogues failed, {run.unscored} are unscored; the same command does them again"
        )
        raise typer.Exit(1)
