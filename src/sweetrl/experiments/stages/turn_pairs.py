"""`turn-pairs`: which candidate of a turn is to be preferred to which other."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl.domains.dialogues import load_episodes
from sweetrl.domains.sources import tasks_or_none
from sweetrl.errors import DataError
from sweetrl.experiments.stages.filling import Tally, fill_at_once, open_output
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.preferences.turns import extremes, halves, pair_turns, typical_spread
from sweetrl.records import fingerprint, read_records
from sweetrl.settings import SeededTurnPairSettings, recorded
from sweetrl.types import CandidateSet, Episode, TurnPair

RULES = {"halves": halves, "extremes": extremes}


def pair_candidates(
    settings: SeededTurnPairSettings,
    ranked: Path,
    episodes: Path,
    source: str | None,
    output: Path,
    reporter: Reporter = SILENT,
) -> Tally:
    """Write the pairs of ranked candidates; `source` has the tasks of published dialogues."""
    config = {
        "ranked": fingerprint(ranked),
        "episodes": fingerprint(episodes),
        **recorded(settings),
    }
    stored = load_episodes(episodes, tasks_or_none(source))
    tally = Tally(output, "turn pairs", extra={"turns": 0, "turns_without_pairs": 0})
    next(read_records(ranked, CandidateSet))  # a wrong file is refused before one is written
    made = _made(ranked, stored, tally.extra, settings)
    with open_output(output, TurnPair, "turn-pairs", config, reporter) as log:
        fill_at_once(log, made, tally, reporter)
        if not len(log):
            raise DataError(
                "no turn has candidates that differ enough; lower --margin or --min-gap-std", path=ranked
            )
    return tally


def _gap(ranked: Path, settings: SeededTurnPairSettings) -> float:
    """The smallest difference between the advantages of a pair."""
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
