"""`sweetrl credit-quality`: how well critics agree with what candidates turned out to be worth."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.figures import NOTHING
from sweetrl.evaluation import credit
from sweetrl.evaluation.credit import CreditQuality
from sweetrl.experiments.study_results import valued_turns
from sweetrl.records import read_records
from sweetrl.types import Metric, TurnValues

COLUMNS = {
    "spearman": "Spearman",
    "pooled_spearman": "Spearman, all turns",
    "auc": "AUC, clear pairs",
    "gain": "gain",
    "top1": "top 1",
}


def credit_quality(
    ranked: Annotated[
        list[Path], typer.Argument(metavar="RANKED...", help="What `sweetrl rank` wrote, one file a critic.")
    ],
    values: Annotated[
        Path, typer.Option("--values", metavar="VALUES", help="What `sweetrl values` wrote for them.")
    ],
    *,
    outcome: Annotated[
        Literal["reward", "success"],
        typer.Option("--outcome", help="What candidates are worth something for."),
    ] = "reward",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure critics against the values that replays found.

    Only turns that are in both files count. The last line is the split-half reliability of the replays:
    noise keeps even a perfect critic from 1.

    Example:
        sweetrl credit-quality ranked.jsonl --values values.jsonl
    """
    truth = {each.id: each for each in read_records(values, TurnValues) if each.values is not None}
    qualities = [credit.credit_quality(valued_turns(truth, path), outcome=outcome) for path in ranked]
    halves = (credit.halves(turn, outcome) for turn in truth.values())
    qualities.append(credit.credit_quality(halves, outcome=outcome))
    if json:
        console.print_json({"values": str(values), "outcome": outcome, "critics": qualities})
        return
    console.results().print(_table(qualities))
    if not quiet:
        for each in qualities:
            console.note(f"{each.critic}: {each.turns} turns, {each.undecided} more without a difference")


def _table(qualities: list[CreditQuality]) -> Table:
    table = Table(title="agreement with replays, with 95 % intervals", title_justify="left")
    table.add_column("critic")
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    for each in qualities:
        table.add_row(console.printable(each.critic), *(_cell(getattr(each, name)) for name in COLUMNS))
    return table


def _cell(metric: Metric) -> str:
    if metric.value is None:
        return NOTHING
    return f"{metric.value:.2f} ({metric.low:.2f} to {metric.high:.2f})"
