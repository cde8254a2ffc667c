"""`pairs`: which dialogues ended better than which others on the same task."""

from pathlib import Path

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.sources import tasks_or_none
from sweetrl.errors import DataError, UsageError
from sweetrl.experiments.stages.filling import Tally, fill_at_once, open_output
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.preferences.episodes import (
    PAPER_MARGIN,
    Rule,
    all_pairs,
    best_against_lower,
    pair_episodes,
    reason_for_no_pairs,
    successes_against_lower,
)
from sweetrl.records import fingerprint, read_records
from sweetrl.settings import PairSettings, recorded
from sweetrl.types import EpisodePair, Verdict


def pair_dialogues(
    settings: PairSettings,
    episodes: Path,
    verdicts: Path,
    source: str | None,
    output: Path,
    reporter: Reporter = SILENT,
) -> Tally:
    """Write the pairs of stored dialogues; `source` has the tasks of published ones."""
    rule, margin = _rule(settings)
    config = {
        "episodes": fingerprint(episodes),
        "verdicts": fingerprint(verdicts),
        **recorded(settings),
        "margin": margin,
    }
    stored = distinct_episodes(episodes, tasks_or_none(source))
    made = list(pair_episodes(stored, read_records(verdicts, Verdict), rule))
    if not made:
        reason = reason_for_no_pairs(read_records(verdicts, Verdict), rule)
        raise DataError(
            f"no two dialogues make a pair by the rule '{settings.rule}': {reason}", path=verdicts
        )
    with open_output(output, EpisodePair, "pairs", config, reporter) as log:
        tally = Tally(output, "pairs", extra={"tasks_with_pairs": len({pair.task_id for pair in made})})
        fill_at_once(log, made, tally, reporter)
    return tally


def _rule(settings: PairSettings) -> tuple[Rule, float]:
    """The rule as a function, and the margin that it has in the end."""
    of_success = {"backend": best_against_lower, "successes": successes_against_lower}
    if settings.rule in of_success:
        if settings.margin is not None:
            raise UsageError(
                f"the rule '{settings.rule}' has no margin; leave out --margin, or use --rule all"
            )
        return of_success[settings.rule], 0.0
    default = PAPER_MARGIN if settings.rule == "frontend" else 0.0
    used = default if settings.margin is None else settings.margin
    return all_pairs(used), used
