"""`sweetrl evaluate`: `rollout`, `score` and the metrics of the run, into one folder."""

from pathlib import Path

import msgspec
import typer
from msgspec.structs import replace

from sweetrl import interrupts
from sweetrl.cli import console, inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.dialogues import check, hold
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.fairness import fairness_of
from sweetrl.cli.figures import metrics_table
from sweetrl.cli.judging import Source, judge
from sweetrl.cli.options import FolderOption, TasksOption
from sweetrl.domains.domain import Domain
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.metrics import measure
from sweetrl.evaluation.tracking import fact_tracker
from sweetrl.experiments.layout import METRICS, SCREENSHOTS
from sweetrl.records import read_card, read_records, write_atomically
from sweetrl.settings import DialogueSettings, ScorerSettings, ScoringSettings
from sweetrl.types import RunMetrics, Task, Verdict


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
    check(settings)
    silent = quiet or json
    interrupts.run(hold, settings, tasks, output, quiet=silent).tell(quiet=silent)
    known = load_tasks(tasks, settings.limit)
    about = _scored(known, output, scorer, scoring.turn_cost, silent=silent)
    run = _metrics(known, output, settings.rollout.turn_limit)
    write_atomically(output / METRICS, msgspec.json.format(msgspec.json.encode(run)) + b"\n")
    _report(run, about, output, json=json, quiet=quiet)


def _scored(
    tasks: dict[str, Task], folder: Path, scorer: ScorerSettings, turn_cost: float, *, silent: bool
) -> Domain:
    """Score the dialogues of a folder; the domain of the tasks."""
    dialogues = Source(tasks, None, folder / "episodes.jsonl")
    total, domain = dialogues.validate()
    with domain.open_scoring(scorer, screenshots=folder / SCREENSHOTS) as bench:
        judge(dialogues, total, folder / "verdicts.jsonl", bench, turn_cost=turn_cost, silent=silent)
    return domain


def _metrics(tasks: dict[str, Task], folder: Path, turn_limit: int) -> RunMetrics:
    """The metrics of a scored folder, with the settings that led to them."""
    episodes, verdicts = folder / "episodes.jsonl", folder / "verdicts.jsonl"
    stored = inputs.each_episode(episodes, tasks)
    judged = read_records(verdicts, Verdict)
    run = measure(tasks, stored, judged, tracker=fact_tracker(tasks), turn_limit=turn_limit)
    held, scored = read_card(episodes), read_card(verdicts)
    return replace(
        run,
        fairness=fairness_of(tasks, episodes, verdicts).metrics,
        run={"rollout": held.config, "score": scored.config, "versions": held.versions},
    )


def _report(run: RunMetrics, domain: Domain, folder: Path, *, json: bool, quiet: bool) -> None:
    """Show the metrics; dialogues that failed or are unscored end the command with exit code 1."""
    if json:
        console.print_json({"output": str(folder / METRICS), "metrics": run})
    elif not quiet:
        console.results().print(metrics_table(run, domain))
    if run.failed or run.unscored:
        console.note(
            f"{run.failed} dialogues failed, {run.unscored} are unscored; rerun the same command to do them again"
        )
        raise typer.Exit(1)
