"""`sweetrl compare`: whether scored runs differ, paired by task."""

from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import asdict
from rich.table import Table

from sweetrl.cli import console, figures
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.domains.domain import Labels
from sweetrl.domains.registry import domain_of_scorer
from sweetrl.errors import UsageError
from sweetrl.evaluation.compare import Comparison, Difference, compare_runs
from sweetrl.experiments.scored_runs import ScoredRun, distinct_names, read_scored_run
from sweetrl.types import Metric

OUTCOMES = ("success", "success_failures_as_zero", "reward")
NAMES_SHOWN = 5
"""How many tasks of only one run are named; `--json` has all of them."""


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_A RUN_B...", help="Folders with verdicts.jsonl and episodes.jsonl."),
    ],
    *,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Compare runs on the same tasks with the first one.

    Differences are taken task by task. Their mean has a 95 % interval over tasks; p is the probability that chance
    alone makes it as large.

    Example:
        sweetrl compare run-base run-trained
    """
    if len(runs) < 2:
        raise UsageError("one run alone cannot be compared; name two or more")
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise UsageError("a run cannot be compared with itself; name each folder once")
    first, *others = [read_scored_run(folder) for folder in runs]
    for each in others:
        first.refuse_other_tasks(each)
    compared = [(each, compare_runs(first.tally, each.tally)) for each in others]
    if json:
        console.print_json(_as_json(first, compared))
        return
    for outcome in OUTCOMES:
        console.results().print(_table(outcome, first, compared))
    if not quiet:
        for each, comparison in compared:
            _note_tasks(first, each, comparison)


# ---------------------------------------------------------------- showing


def _table(outcome: str, first: ScoredRun, compared: list[tuple[ScoredRun, Comparison]]) -> Table:
    label = figures.LABELS.get(outcome) or _reward_label([first, *(run for run, _ in compared)])
    table = Table(title=f"{label}, with 95 % intervals", title_justify="left")
    wins = ["win rate, %"] if outcome == "reward" else []
    names = distinct_names([first.folder, *(run.folder for run, _ in compared)])
    table.add_column("run", overflow="fold")
    for heading in ("mean", f"difference to {names[first.folder]}", "p", *wins, "tasks"):
        table.add_column(heading, justify="right", overflow="fold")
    blank = [""] * (2 + len(wins))
    mean = figures.with_interval(_metrics(first)[outcome], label)
    table.add_row(names[first.folder], mean, *blank, str(_tasks(outcome, first)))
    for run, comparison in compared:
        difference: Difference = getattr(comparison, outcome)
        won = [figures.percent_with_interval(comparison.win_rate)] if wins else []
        mean = figures.with_interval(_metrics(run)[outcome], label)
        cells = [mean, figures.with_interval(difference, label, "+"), _shown_p(difference.p), *won]
        table.add_row(names[run.folder], *cells, str(difference.count))
    return table


def _reward_label(runs: list[ScoredRun]) -> str:
    """The domain's name for its reward; if it is not installed, rewards outside of 0 to 1 are not shown in per cent."""
    domains = filter(None, map(domain_of_scorer, sorted(runs[0].tally.scorers)))
    rewards = [run.tally.reward(task) for run in runs for task in run.tally.answers]
    unknown = Labels(share=all(0 <= reward <= 1 for reward in rewards))
    return figures.reward_label(next((domain.labels for domain in domains), unknown))


def _metrics(run: ScoredRun) -> dict[str, Metric]:
    """The metrics over all tasks of the run, whether the other runs have them or not."""
    tally = run.tally
    metrics = (tally.success_metric(), tally.failures_as_zero_metric(), tally.reward_metric())
    return dict(zip(OUTCOMES, metrics, strict=True))


def _tasks(outcome: str, run: ScoredRun) -> int:
    return len(run.tally.attempted if outcome == "success_failures_as_zero" else run.tally.answers)


def _shown_p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def _note_tasks(first: ScoredRun, other: ScoredRun, comparison: Comparison) -> None:
    for run, ids in ((first, comparison.only_first), (other, comparison.only_second)):
        if ids:
            names = ", ".join(ids[:NAMES_SHOWN]) + (", ..." if len(ids) > NAMES_SHOWN else "")
            console.note(f"{len(ids)} tasks are ignored, scored in {run.folder} only: {names}")
    for run in (first, other):
        if run.tally.unscored:
            console.note(f"{run.folder}: {run.tally.unscored} unscored")


def _as_json(first: ScoredRun, compared: list[tuple[ScoredRun, Comparison]]) -> dict[str, Any]:
    runs = [
        {
            "run": str(run.folder),
            "tasks": len(run.tally.answers),
            "unscored": run.tally.unscored,
            **_metrics(run),
        }
        for run in (first, *(run for run, _ in compared))
    ]
    comparisons = [
        {"first": str(first.folder), "second": str(run.folder), **asdict(comparison)}
        for run, comparison in compared
    ]
    return {"runs": runs, "comparisons": comparisons}
