"""`sweetrl pairs`: which dialogues ended better than which others on the same task."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages.pairs import pair_dialogues
from sweetrl.settings import PairSettings


def pairs(
    episodes: EpisodesOption,
    verdicts: Annotated[Path, typer.Option("--verdicts", metavar="VERDICTS", help="Their rewards.")],
    output: OutputOption,
    settings: PairSettings,
    *,
    tasks: KnownTasksOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Pair dialogues on the same task, one of which ended better.

    Dialogues that failed or were not scored are in no pair.

    Example:
        sweetrl pairs --episodes run/episodes.jsonl --verdicts run/verdicts.jsonl -o pairs.jsonl
    """
    tally = pair_dialogues(settings, episodes, verdicts, tasks, output, TerminalReporter(quiet=quiet))
    report_tally(tally, json=json, quiet=quiet)
