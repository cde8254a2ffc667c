"""`sweetrl turn-pairs`: which candidate of a turn is to be preferred to which other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.filling import Tally, fill_at_once, open_output
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.errors import DataError
from sweetrl.preferences.turns import extremes, halves, pair_turns, typical_spread
from sweetrl.records import read_records
from sweetrl.settings import SeededTurnPairSettings, recorded
from sweetrl.types import CandidateSet, Episode, TurnPair

RULES = {"halves": halves, "extremes": extremes}


def turn_pairs(
    ranked: Annotated[
        Path, typer.Option("--ranked", metavar="RANKED", help="Candidates that `sweetrl rank` wrote.")
    ],
    episodes: EpisodesOption,
    output: OutputOption,
    settings: SeededTurnPairSettings,
    *,
    tasks: KnownTasksOption = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Pair the candidates of each turn, to train a policy on.

    A pair holds what the agent had seen and two things that it might have said, never the reference.

    Example:
        sweetrl turn-pairs --ranked ranked.jsonl --episodes run/episodes.jsonl -o turn_pairs.jsonl
    """
    config = {
        "ranked": inputs.fingerprint(ranked),
        "episodes": inputs.fingerprint(episodes),
        **recorded(settings),
    }
    stored = inputs.load_episodes(episodes, inputs.tasks_or_none(tasks))
    tally = Tally(output, "turn pairs", extra={"turns": 0, "turns_without_pairs": 0})
    made = _made(ranked, stored, tally.extra, settings)
    with open_output(output, TurnPair, command="turn-pairs", config=config, quiet=quiet) as log:
        fill_at_once(log, made, tally, quiet=quiet)
        if not len(log):
            raise DataError(
                "no turn has candidates that differ enough; lower --margin or --min-gap-std", path=ranked
            )
    tally.report(json=json, quiet=quiet)


def _gap(ranked: Path, settings: SeededTurnPairSettings) -> float:
    """By how much the advantages of a pair must differ."""
    if not settings.min_gap_std:
        return settings.margin
    return max(settings.margin, settings.min_gap_std * typical_spread(read_records(ranked, CandidateSet)))


def _made(
    ranked: Path, episodes: dict[str, Episode], counts: dict[str, int], settings: SeededTurnPairSettings
) -> Iterator[TurnPair]:
    """The pairs of all turns, and how many turns there were."""
    rule, gap = RULES[settings.rule], _gap(ranked, settings)
    for candidates in read_records(ranked, CandidateSet):
        if candidates.failure is not None:
            continue
        episode = episodes.get(candidates.episode_id)
        if episode is None or candidates.turn >= len(episode.turns):
            raise DataError(f"{candidates.id} is no turn of the episodes; give those it is of", path=ranked)
        history = episode.history(candidates.turn)
        found = pair_turns(
            candidates, history, rule=rule, pairs=settings.pairs, margin=gap, seed=settings.seed
        )
        counts["turns"] += 1
        counts["turns_without_pairs"] += not found
        yield from found
