"""`sweetrl turn-pairs`: which candidate of a turn is to be preferred to which other."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.pairs import EpisodesOption, TasksOption
from sweetrl.errors import DataError

if TYPE_CHECKING:
    from sweetrl.types import Episode, TurnPair


class TurnRule(StrEnum):
    """How candidates are paired."""

    HALVES = "halves"
    EXTREMES = "extremes"


def turn_pairs(
    ranked: Annotated[
        Path, typer.Option("--ranked", metavar="RANKED", help="Candidates that `sweetrl rank` wrote.")
    ],
    episodes: EpisodesOption,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="TURN_PAIRS", help="The file to write.")],
    *,
    tasks: TasksOption = None,
    rule: Annotated[
        TurnRule, typer.Option("--rule", help="Top half against bottom half, or the best against the worst.")
    ] = TurnRule.HALVES,
    pairs: Annotated[int, typer.Option("--pairs", min=1, help="Pairs of each turn, at most.")] = 4,
    margin: Annotated[
        float, typer.Option("--margin", min=0, help="By how much the advantages must differ.")
    ] = 0.0,
    spreads: Annotated[
        float,
        typer.Option(
            "--spreads",
            min=0,
            help="The same in units of the critic: deviations of its advantages in a turn.",
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="The same seed draws the same pairs.")] = 0,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Pair the candidates of each turn, to train a policy on.

    A pair holds what the agent had seen and two things that it might have said, never the reference.
    """
    from sweetrl.cli.filling import Tally, fill_at_once, open_output
    from sweetrl.types import TurnPair

    config = {
        "ranked": inputs.fingerprint(ranked),
        "episodes": inputs.fingerprint(episodes),
        "rule": rule,
        "pairs": pairs,
        "margin": margin,
        **({"spreads": spreads} if spreads else {}),
        "seed": seed,
    }
    stored = inputs.load_episodes(episodes, inputs.tasks_or_none(tasks))
    tally = Tally(output, "turn pairs", extra={"turns": 0, "turns_without_pairs": 0})
    apart = max(margin, spreads * _spread(ranked)) if spreads else margin
    made = _made(ranked, stored, tally.extra, rule=rule, pairs=pairs, margin=apart, seed=seed)
    with open_output(output, TurnPair, command="turn-pairs", config=config, quiet=quiet) as log:
        fill_at_once(log, made, tally, quiet=quiet)
        if not len(log):
            raise DataError(
                "no turn has candidates that differ enough; lower --margin or --spreads", path=ranked
            )
    tally.report(json=json, quiet=quiet)


def _spread(ranked: Path) -> float:
    from sweetrl.preferences.turns import typical_spread
    from sweetrl.records import read_records
    from sweetrl.types import CandidateSet

    return typical_spread(read_records(ranked, CandidateSet))


def _made(
    ranked: Path,
    episodes: "dict[str, Episode]",
    counts: dict[str, int],
    *,
    rule: TurnRule,
    pairs: int,
    margin: float,
    seed: int,
) -> "Iterator[TurnPair]":
    """The pairs of all turns, and how many turns there were."""
    from sweetrl.preferences.turns import extremes, halves, pair_turns
    from sweetrl.records import read_records
    from sweetrl.types import CandidateSet

    chosen_rule = {TurnRule.HALVES: halves, TurnRule.EXTREMES: extremes}[rule]
    for candidates in read_records(ranked, CandidateSet):
        if candidates.failure is not None:
            continue
        episode = episodes.get(candidates.episode_id)
        if episode is None or candidates.turn >= len(episode.turns):
            raise DataError(f"{candidates.id} is no turn of the episodes; give those it is of", path=ranked)
        history = episode.history(candidates.turn)
        found = pair_turns(candidates, history, rule=chosen_rule, pairs=pairs, margin=margin, seed=seed)
        counts["turns"] += 1
        counts["turns_without_pairs"] += not found
        yield from found
