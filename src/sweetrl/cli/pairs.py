"""`sweetrl pairs`: which dialogues ended better than which others on the same task."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.errors import DataError, UsageError

if TYPE_CHECKING:
    from sweetrl.preferences import episodes as pairing

EpisodesOption = Annotated[
    Path, typer.Option("--episodes", metavar="EPISODES", help="Ours, or published dialogues.")
]
TasksOption = Annotated[
    str | None,
    typer.Option(
        "--tasks", metavar="TASKS", help="The tasks, if published dialogues were scored by their ids."
    ),
]


class PairRule(StrEnum):
    """How dialogues are paired."""

    BACKEND = "backend"
    SUCCESSES = "successes"
    FRONTEND = "frontend"
    ALL = "all"


def pairs(
    episodes: EpisodesOption,
    verdicts: Annotated[Path, typer.Option("--verdicts", metavar="VERDICTS", help="What they earned.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PAIRS", help="The file to write.")],
    *,
    tasks: TasksOption = None,
    rule: Annotated[
        PairRule,
        typer.Option(
            "--rule",
            help="backend: the first success against all that earned less; successes: each of them; "
            "frontend, all: any two.",
        ),
    ] = PairRule.BACKEND,
    margin: Annotated[
        float | None,
        typer.Option("--margin", min=0, help="By how much rewards must differ; 0.1 for frontend, 0 for all."),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Pair dialogues on the same task, one of which ended better.

    Dialogues that failed or were not scored are in no pair.
    """
    from sweetrl.cli.filling import Tally, fill_at_once, open_output
    from sweetrl.preferences.episodes import pair_episodes, reason_for_no_pairs
    from sweetrl.records import read_records
    from sweetrl.types import EpisodePair, Verdict

    chosen_rule, used_margin = _rule(rule, margin)
    config = {
        "episodes": inputs.fingerprint(episodes),
        "verdicts": inputs.fingerprint(verdicts),
        "rule": rule,
        "margin": used_margin,
    }
    stored = inputs.each_episode(episodes, inputs.tasks_or_none(tasks))
    made = list(pair_episodes(stored, read_records(verdicts, Verdict), chosen_rule))
    if not made:
        reason = reason_for_no_pairs(read_records(verdicts, Verdict), chosen_rule)
        raise DataError(f"no two dialogues make a pair by the rule '{rule}': {reason}", path=verdicts)
    with open_output(output, EpisodePair, command="pairs", config=config, quiet=quiet) as log:
        tally = Tally(output, "pairs", extra={"tasks_with_pairs": len({pair.task_id for pair in made})})
        fill_at_once(log, made, tally, quiet=quiet)
    tally.report(json=json, quiet=quiet)


def _rule(rule: PairRule, margin: float | None) -> "tuple[pairing.Rule, float]":
    """The rule as a function, and the margin that it has in the end."""
    from sweetrl.preferences.episodes import (
        PAPER_MARGIN,
        all_pairs,
        best_against_lower,
        successes_against_lower,
    )

    of_success = {PairRule.BACKEND: best_against_lower, PairRule.SUCCESSES: successes_against_lower}
    if rule in of_success:
        if margin is not None:
            raise UsageError(f"the rule '{rule}' has no margin; leave out --margin, or use --rule all")
        return of_success[rule], 0.0
    default = PAPER_MARGIN if rule is PairRule.FRONTEND else 0.0
    used = default if margin is None else margin
    return all_pairs(used), used
