"""`sweetrl pairs`: which dialogues ended better than which others on the same task."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.filling import Tally, fill_at_once, open_output
from sweetrl.cli.options import EpisodesOption, KnownTasksOption, OutputOption
from sweetrl.errors import DataError, UsageError
from sweetrl.preferences.episodes import (
    PAPER_MARGIN,
    Rule,
    all_pairs,
    best_against_lower,
    pair_episodes,
    reason_for_no_pairs,
    successes_against_lower,
)
from sweetrl.records import read_records
from sweetrl.settings import PairSettings, recorded
from sweetrl.types import EpisodePair, Verdict


def pairs(
    episodes: EpisodesOption,
    verdicts: Annotated[Path, typer.Option("--verdicts", metavar="VERDICTS", help="What they earned.")],
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
    chosen_rule, margin = _rule(settings)
    config = {
        "episodes": inputs.fingerprint(episodes),
        "verdicts": inputs.fingerprint(verdicts),
        **recorded(settings),
        "margin": margin,
    }
    stored = inputs.each_episode(episodes, inputs.tasks_or_none(tasks))
    made = list(pair_episodes(stored, read_records(verdicts, Verdict), chosen_rule))
    if not made:
        reason = reason_for_no_pairs(read_records(verdicts, Verdict), chosen_rule)
        raise DataError(
            f"no two dialogues make a pair by the rule '{settings.rule}': {reason}", path=verdicts
        )
    with open_output(output, EpisodePair, command="pairs", config=config, quiet=quiet) as log:
        tally = Tally(output, "pairs", extra={"tasks_with_pairs": len({pair.task_id for pair in made})})
        fill_at_once(log, made, tally, quiet=quiet)
    tally.report(json=json, quiet=quiet)


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
