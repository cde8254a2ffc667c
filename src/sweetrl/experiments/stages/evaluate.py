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
from sweetrl.records import read_card, read_records, write_json
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
    reporter: Reporter = SILENT,
) -> tuple[RunMetrics, Domain]:
    """Score the dialogues of a folder and write the metrics; those, and the domain of the tasks in `source`."""
    tasks = load_tasks(source, limit)
    dialogues = Answers(tasks, None, folder / EPISODES)
    total, domain = dialogues.validate()
    with domain.open_scoring(scorer, screenshots=folder / SCREENSHOTS) as backend:
        cost = scoring.turn_cost
        score_answers(dialogues, total, folder / VERDICTS, backend, turn_cost=cost, reporter=reporter)
    run = _metrics(tasks, folder, turn_limit)
    write_json(folder / METRICS, run)
    return run, domain


def _metrics(tasks: dict[str, Task], folder: Path, turn_limit: int) -> RunMetrics:
    """The metrics of a scored folder, with the settings that led to them."""
    episodes, verdicts = folder / EPISODES, folder / VERDICTS
    stored, scored = distinct_episodes(episodes, tasks), read_records(verdicts, Verdict)
    run = measure(tasks, stored, scored, tracker=fact_tracker(tasks), turn_limit=turn_limit)
    rollout, score = read_card(episodes), read_card(verdicts)
    return replace(
        run,
        fairness=fairness_of(tasks, episodes, verdicts).metrics,
        run={"rollout": rollout.config, "score": score.config, "versions": rollout.versions},
    )
