"""`rank`: what a critic thinks of the candidates of each turn."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl import interrupts
from sweetrl.candidates.rank import rank_candidates
from sweetrl.critics.opening import Judging, open_with_models
from sweetrl.domains.dialogues import load_episodes
from sweetrl.domains.sources import fingerprint_of_tasks, load_tasks
from sweetrl.errors import UsageError
from sweetrl.evaluation.credit import ranked_by_values
from sweetrl.experiments.pipeline import VALUES
from sweetrl.experiments.stages.filling import Tally, fill, fill_at_once, open_output, opened_models
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.records import fingerprint, part_of, read_records
from sweetrl.settings import RankSettings
from sweetrl.types import CandidateSet, TurnValues


def rank_file(
    settings: RankSettings,
    source: str,
    episodes: Path,
    candidates: Path,
    output: Path,
    reporter: Reporter = SILENT,
) -> Tally:
    """Add the ranked candidates that the file `output` lacks."""
    if settings.critic.startswith(VALUES):
        if settings.precision is not None:
            raise UsageError("values have no precision to choose; leave out --precision")
        values = Path(settings.critic.removeprefix(VALUES))
        return _rank_by_values(values, output, reporter, settings.shard)
    return interrupts.run(_rank, settings, source, episodes, candidates, output, reporter)


def _rank_by_values(values: Path, output: Path, reporter: Reporter, shard: str | None) -> Tally:
    """Rank candidates as an oracle would: by the values that replays found."""

    def known() -> Iterator[TurnValues]:
        return (turn for turn in read_records(values, TurnValues) if turn.values is not None)

    tally, config = Tally(output, "turns"), {"values": fingerprint(values)}
    part = part_of((turn.id for turn in known()), shard)
    with open_output(output, CandidateSet, "rank", config, reporter, part) as log:
        fill_at_once(log, map(ranked_by_values, known()), tally, reporter)
    return tally


async def _rank(
    settings: RankSettings, source: str, episodes: Path, candidates: Path, output: Path, reporter: Reporter
) -> Tally:
    tasks = load_tasks(source)
    stored = load_episodes(episodes, tasks)
    # Their order depends on timing, and the groups that are ranked together must not.
    drawn = sorted(read_records(candidates, CandidateSet), key=lambda each: each.id)
    part = part_of((each.id for each in drawn if each.failure is None), settings.shard)
    judging = Judging(
        comparing=settings.judge_prompt,
        rounds=settings.judge_rounds,
        telling=settings.critic_prompt,
        precision=settings.precision,
    )
    tally = Tally(output, "turns")
    async with opened_models(tally) as models:
        critic = open_with_models(settings.critic, models, judging)
        config = {
            "episodes": fingerprint(episodes),
            "candidates": fingerprint(candidates),
            "tasks": fingerprint_of_tasks(tasks.values()),
            "critic": critic.name,
        }
        if settings.precision is not None:
            config["precision"] = settings.precision
        with open_output(output, CandidateSet, "rank", config, reporter, part) as log:
            ranked = rank_candidates(
                drawn, stored, tasks, critic, concurrency=settings.concurrency, skip=log.skips
            )
            await fill(log, ranked, tally, reporter)
    return tally
