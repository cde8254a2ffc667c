"""`evaluate`: the dialogues of a folder scored, and the metrics of the run."""

from pathlib import Path

from msgspec.structs import replace

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.metrics import measure
from sweetrl.evaluation.tracking import fact_tracker
from sweetrl.experiments.layout import EPISODES, METRICS, SCREENSHOTS, VERDICTS
from sweetrl.experiments.stages.fairness import fairness_of
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.experiments.stages.score import Answers, score_answers
from sweetrl.records import Part, Shard, read_card, read_records, shard_path, write_json
from sweetrl.settings import ScorerSettings, ScoringSettings
from sweetrl.types import RunMetrics, Task, Verdict


def measure_dialogues(
    source: str,
    folder: Path,
    scorer: ScorerSettings,
    scoring: ScoringSettings,
    *,
    turn_limit: int,
    limit: int | None = None,
    shard: str | None = None,
    reporter: Reporter = SILENT,
) -> tuple[RunMetrics, Domain]:
    """Score the dialogues of a folder and write the metrics; those, and the domain of the tasks in `source`.

    Of a `shard`, the dialogues in its file are scored, into a file of the same shard.
    """
    tasks, episodes = load_tasks(source, limit), shard_path(folder / EPISODES, shard)
    dialogues = Answers(tasks, None, episodes)
    total, domain = dialogues.validate()
    if isinstance(part := read_card(episodes).shard, Shard):
        dialogues.part = Part(len(part.places), part, [episode.id for _, episode in dialogues])
    with domain.open_scoring(scorer, screenshots=folder / SCREENSHOTS) as backend:
        cost = scoring.turn_cost
        score_answers(dialogues, total, folder / VERDICTS, backend, turn_cost=cost, reporter=reporter)
    run = _metrics(tasks, episodes, shard_path(folder / VERDICTS, shard), turn_limit)
    write_json(shard_path(folder / METRICS, shard), run)
    return run, domain


def _metrics(tasks: dict[str, Task], episodes: Path, verdicts: Path, turn_limit: int) -> RunMetrics:
    """The metrics of scored dialogues, with the settings that led to them."""
    stored, scored = distinct_episodes(episodes, tasks), read_records(verdicts, Verdict)
    run = measure(tasks, stored, scored, tracker=fact_tracker(tasks), turn_limit=turn_limit)
    rollout, score = read_card(episodes), read_card(verdicts)
    return replace(
        run,
        fairness=fairness_of(tasks, episodes, verdicts).metrics,
        run={"rollout": rollout.config, "score": score.config, "versions": rollout.versions},
    )
