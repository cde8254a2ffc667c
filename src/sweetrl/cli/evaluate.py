"""`sweetrl evaluate`: `rollout`, `score` and the metrics of the run, into one folder."""

from pathlib import Path

import typer

from sweetrl import interrupts
from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.figures import metrics_table
from sweetrl.cli.options import FolderOption, TasksOption
from sweetrl.cli.reporting import TerminalReporter, tell_dialogues
from sweetrl.domains.domain import Domain
from sweetrl.experiments.layout import METRICS
from sweetrl.experiments.stages.evaluate import measure_dialogues
from sweetrl.experiments.stages.rollout import check_dialogues, run_rollout
from sweetrl.records import shard_path
from sweetrl.settings import DialogueSettings, ScorerSettings, ScoringSettings
from sweetrl.types import RunMetrics


def evaluate(
    tasks: TasksOption,
    output: FolderOption,
    settings: DialogueSettings,
    scorer: ScorerSettings,
    scoring: ScoringSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run dialogues, score them and report the metrics.

    Writes DIR/episodes.jsonl and DIR/verdicts.jsonl as `rollout` and `score` do, and DIR/metrics.json. Rerun the same
    command to do what is missing or failed.

    Example:
        sweetrl evaluate --tasks mini-backend:test:50 --agent mini --collaborator colleague -o run
    """
    check_dialogues(settings)
    reporter = TerminalReporter(quiet=quiet or json)
    summary = interrupts.run(run_rollout, settings, tasks, output, reporter=reporter)
    tell_dialogues(summary, quiet=quiet or json)
    run, about = measure_dialogues(
        tasks,
        output,
        scorer,
        scoring,
        turn_limit=settings.rollout.turn_limit,
        limit=settings.limit,
        shard=settings.shard,
        reporter=reporter,
    )
    _report(run, about, shard_path(output / METRICS, settings.shard), json=json, quiet=quiet)


def _report(run: RunMetrics, domain: Domain, path: Path, *, json: bool, quiet: bool) -> None:
    """Show the metrics; dialogues that failed or are unscored end the command with exit code 1."""
    if json:
        console.print_json({"output": str(path), "metrics": run})
    elif not quiet:
        console.results().print(metrics_table(run, domain))
    if run.failed or run.unscored:
        console.note(
            f"{run.failed} dialogues failed, {run.unscored} are unscored; rerun the same command to do them again"
        )
        raise typer.Exit(1)
