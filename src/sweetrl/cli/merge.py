"""`sweetrl merge`: the shards of a stage as one file."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.options import OutputOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages.merge import merge_shards


def merge(
    shards: Annotated[
        list[Path], typer.Argument(metavar="SHARD...", help="The files written with --shard 1/N to N/N.")
    ],
    output: OutputOption,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Join the shards of a stage into one file.

    They must be all the shards of one run, in any order. The file has their records in the order of the input, and the
    card that the run would have without shards: rerun the stage without --shard to redo records that failed.

    Example:
        sweetrl merge run/episodes.1-of-2.jsonl run/episodes.2-of-2.jsonl -o run/episodes.jsonl
    """
    tally = merge_shards(shards, output, replace=force, reporter=TerminalReporter(quiet=quiet))
    report_tally(tally, json=json, quiet=quiet)
