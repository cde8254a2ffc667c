"""`sweetrl rank`: what a critic thinks of the candidates of each turn."""

from pathlib import Path

from sweetrl import interrupts
from sweetrl.candidates.rank import rank_candidates
from sweetrl.cli import inputs
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.filling import Tally, fill, fill_at_once, open_output, opened_models
from sweetrl.cli.options import CandidatesOption, EpisodesOption, OutputOption, TasksOption
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.credit import ranked_by_values
from sweetrl.experiments.pipeline import VALUES
from sweetrl.records import read_records
from sweetrl.settings import RankSettings
from sweetrl.types import CandidateSet, TurnValues


def rank(
    tasks: TasksOption,
    episodes: EpisodesOption,
    candidates: CandidatesOption,
    output: OutputOption,
    settings: RankSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Let a critic that sees the reference rank the candidates.

    Each candidate of a turn gets an advantage. Rerun the same command to do what is missing or failed.

    Example:
        sweetrl rank --critic zero:mini --tasks mini-backend:train:20 --episodes run/episodes.jsonl
        --candidates candidates.jsonl -o ranked.jsonl
    """
    if settings.critic.startswith(VALUES):
        tally = _rank_by_values(Path(settings.critic.removeprefix(VALUES)), output, quiet=quiet)
    else:
        tally = interrupts.run(_rank, settings, tasks, episodes, candidates, output, quiet=quiet)
    tally.report(json=json, quiet=quiet)


def _rank_by_values(values: Path, output: Path, *, quiet: bool) -> Tally:
    """Rank candidates as an oracle would: by the values that replays found."""
    known = (turn for turn in read_records(values, TurnValues) if turn.values is not None)
    tally, config = Tally(output, "turns"), {"values": inputs.fingerprint(values)}
    with open_output(output, CandidateSet, command="rank", config=config, quiet=quiet) as log:
        fill_at_once(log, map(ranked_by_values, known), tally, quiet=quiet)
    return tally


async def _rank(
    settings: RankSettings, source: str, episodes: Path, candidates: Path, output: Path, *, quiet: bool
) -> Tally:
    tasks = load_tasks(source)
    stored = inputs.load_episodes(episodes, tasks)
    total = sum(each.failure is None for each in read_records(candidates, CandidateSet))
    judging = Judging(
        comparing=inputs.path_of(settings.judge_prompt),
        rounds=settings.judge_rounds,
        telling=inputs.path_of(settings.critic_prompt),
    )
    tally = Tally(output, "turns")
    async with opened_models(tally) as models:
        critic = open_with_models(settings.critic, models, judging)
        config = {
            "episodes": inputs.fingerprint(episodes),
            "candidates": inputs.fingerprint(candidates),
            "tasks": inputs.fingerprint_of_tasks(tasks.values()),
            "critic": critic.name,
        }
        with open_output(output, CandidateSet, command="rank", config=config, quiet=quiet) as log:
            # They were written as they came about. What is ranked together shall not depend on that.
            drawn = sorted(read_records(candidates, CandidateSet), key=lambda each: each.id)
            ranked = rank_candidates(
                drawn, stored, tasks, critic, concurrency=settings.concurrency, skip=log.has
            )
            await fill(log, ranked, tally, total=total, quiet=quiet)
    return tally
