"""`sweetrl rank`: what a critic thinks of the candidates of each turn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl.cli import inputs, interrupts
from sweetrl.cli.candidates import ConcurrencyOption
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.critics import ComparingPrompt, CriticOption, CriticPrompt, Judging, RoundsOption
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.pairs import EpisodesOption

if TYPE_CHECKING:
    from sweetrl.cli.filling import Tally


VALUES = "values:"
"""In place of a critic: a file of true values, which every turn of it is ranked by."""


def rank(
    critic: CriticOption,
    tasks: Annotated[str, typer.Option("--tasks", metavar="TASKS", help="The tasks of the dialogues.")],
    episodes: EpisodesOption,
    candidates: Annotated[
        Path, typer.Option("--candidates", metavar="CANDIDATES", help="What `sweetrl candidates` wrote.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RANKED", help="The file to write.")],
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    critic_prompt: CriticPrompt = None,
    judge_prompt: ComparingPrompt = None,
    judge_rounds: RoundsOption = None,
    concurrency: ConcurrencyOption = 8,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Let a critic, who sees the reference, judge the candidates of each turn.

    The same command again does what is missing or failed.
    """
    if critic.startswith(VALUES):
        _rank_by_values(Path(critic.removeprefix(VALUES)), output, quiet=quiet).report(json=json, quiet=quiet)
        return
    judging = Judging(comparing=judge_prompt, rounds=judge_rounds, telling=critic_prompt)
    tally = interrupts.run(
        _rank, critic, judging, tasks, episodes, candidates, output, concurrency=concurrency, quiet=quiet
    )
    tally.report(json=json, quiet=quiet)


def _rank_by_values(values: Path, output: Path, *, quiet: bool) -> "Tally":
    """What an oracle would think of the candidates: the values that replays found."""
    from sweetrl.cli.filling import Tally, fill_at_once, open_output
    from sweetrl.evaluation.credit import ranked_by_values
    from sweetrl.records import read_records
    from sweetrl.types import CandidateSet, TurnValues

    known = (turn for turn in read_records(values, TurnValues) if turn.values is not None)
    tally, config = Tally(output, "turns"), {"values": inputs.fingerprint(values)}
    with open_output(output, CandidateSet, command="rank", config=config, quiet=quiet) as log:
        fill_at_once(log, map(ranked_by_values, known), tally, quiet=quiet)
    return tally


async def _rank(
    spec: str,
    judging: Judging,
    source: str,
    episodes: Path,
    candidates: Path,
    output: Path,
    *,
    concurrency: int,
    quiet: bool,
) -> "Tally":
    from sweetrl.candidates.rank import rank_candidates
    from sweetrl.cli.critics import open_critic
    from sweetrl.cli.filling import Tally, fill, open_output, opened_models
    from sweetrl.domains.sources import load_tasks
    from sweetrl.records import read_records
    from sweetrl.types import CandidateSet

    tasks = load_tasks(source)
    stored = inputs.load_episodes(episodes, tasks)
    total = sum(each.failure is None for each in read_records(candidates, CandidateSet))
    tally = Tally(output, "turns")
    async with opened_models(tally) as models:
        critic, settings = open_critic(spec, models, judging)
        config = {
            "episodes": inputs.fingerprint(episodes),
            "candidates": inputs.fingerprint(candidates),
            "tasks": inputs.fingerprint_of_tasks(tasks.values()),
            **settings,
        }
        with open_output(output, CandidateSet, command="rank", config=config, quiet=quiet) as log:
            # They were written as they came about. What is judged together shall not depend on that.
            drawn = sorted(read_records(candidates, CandidateSet), key=lambda each: each.id)
            ranked = rank_candidates(drawn, stored, tasks, critic, concurrency=concurrency, skip=log.has)
            await fill(log, ranked, tally, total=total, quiet=quiet)
    return tally
