"""`sweetrl credit-quality`: how well critics agree with what candidates turned out to be worth, or with people."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.figures import NOTHING
from sweetrl.errors import DataError, UsageError
from sweetrl.evaluation import credit
from sweetrl.evaluation.credit import CreditQuality
from sweetrl.evaluation.people import PeopleAgreement, agreement_with_people
from sweetrl.experiments.measurements import valued_turns
from sweetrl.records import read_records
from sweetrl.types import Metric, TurnCredit, TurnValues
from sweetrl.viewer.annotations import read_annotations

Outcome = Literal["reward", "success"]
PEOPLE_COLUMNS = {"sign": "same sign", "auc": "AUC, within a dialogue", "spearman": "Spearman"}


def credit_quality(
    ranked: Annotated[
        list[Path],
        typer.Argument(
            metavar="RANKED...",
            help="Output of `sweetrl rank`, one file per critic; with --against, of `sweetrl credit`.",
        ),
    ],
    *,
    values: Annotated[
        Path | None,
        typer.Option("--values", metavar="VALUES", help="The output of `sweetrl values` for them."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="ANNOTATIONS",
            help="Turns that people marked in `sweetrl view`, instead of values.",
        ),
    ] = None,
    outcome: Annotated[
        Outcome,
        typer.Option("--outcome", help="What the values measure: the reward, or the chance of success."),
    ] = "reward",
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Measure critics against replays, or against what people marked.

    Only turns that are in both files count. With --values the last line is the split-half reliability of the replays:
    noise keeps even a perfect critic from 1.

    Example:
        sweetrl credit-quality ranked.jsonl --values values.jsonl
    """
    if (values is None) == (against is None):
        raise UsageError("give --values FILE or --against FILE: what to measure the critics against")
    if against is not None:
        _against_people(ranked, against, json=json, quiet=quiet)
    elif values is not None:
        _against_replays(ranked, values, outcome, json=json, quiet=quiet)


def _against_replays(ranked: list[Path], values: Path, outcome: Outcome, *, json: bool, quiet: bool) -> None:
    truth = {each.id: each for each in read_records(values, TurnValues) if each.values is not None}
    qualities = [credit.credit_quality(valued_turns(truth, path), outcome=outcome) for path in ranked]
    halves = (credit.halves(turn, outcome) for turn in truth.values())
    qualities.append(credit.credit_quality(halves, outcome=outcome))
    if json:
        console.print_json({"values": str(values), "outcome": outcome, "critics": qualities})
        return
    console.results().print(_table("agreement with replays", credit.MEASURES, qualities))
    if not quiet:
        for each in qualities:
            console.note(f"{each.critic}: {each.turns} turns, {each.undecided} more without a difference")


def _table(title: str, columns: dict[str, str], critics: Sequence[CreditQuality | PeopleAgreement]) -> Table:
    table = Table(title=f"{title}, with 95 % intervals", title_justify="left")
    table.add_column("critic")
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for each in critics:
        table.add_row(console.printable(each.critic), *(_cell(getattr(each, name)) for name in columns))
    return table


def _cell(metric: Metric) -> str:
    if metric.value is None:
        return NOTHING
    return f"{metric.value:.2f} ({metric.low:.2f} to {metric.high:.2f})"


# ---------------------------------------------------------------- against people


def _against_people(credit_files: list[Path], path: Path, *, json: bool, quiet: bool) -> None:
    annotations = read_annotations(path)
    if not annotations:
        raise DataError("has no annotations; mark turns in `sweetrl view`", path=path)
    found = [agreement_with_people(annotations, read_records(each, TurnCredit)) for each in credit_files]
    if json:
        console.print_json({"annotations": str(path), "critics": found})
        return
    console.results().print(_table("agreement with people", PEOPLE_COLUMNS, found))
    if not quiet:
        for each in found:
            counted = (
                f"{each.turns} turns, {each.helped} of them helpful; {each.missing} more without an advantage"
            )
            console.note(f"{each.critic}: {counted}")
