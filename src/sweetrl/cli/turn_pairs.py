"""`sweetrl turn-pairs`: which candidate of a turn is to be preferred to which other."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.experiments.stages.turn_pairs import pair_candidates
from sweetrl.settings import SeededTurnPairSettings


def turn_pairs(
    ranked: Annotated[
        Path, typer.Option("--ranked", metavar="RANKED", help="Candidates that `sweetrl rank` wrote.")
    ],
    episodes: EpisodesOption,
    output: OutputOption,
    settings: SeededTurnPairSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    tasks: KnownTasksOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Pair the candidates of each turn, to train a policy on.

    A pair holds what the agent had seen and two things that it might have said, never the reference.

    Example:
        sweetrl turn-pairs --ranked ranked.jsonl --episodes run/episodes.jsonl -o turn_pairs.jsonl
    """
    tally = pair_candidates(settings, ranked, episodes, tasks, output, TerminalReporter(quiet=quiet))
    report_tally(tally, json=json, quiet=quiet)
