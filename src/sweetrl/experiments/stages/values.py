"""`values`: what the candidates of each turn are worth, by playing on from them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from sweetrl import interrupts
from sweetrl.browser.session import BrowserSession
from sweetrl.dialogue.building import build_agent, build_collaborator, model_settings
from sweetrl.dialogue.rules import Rules
from sweetrl.dialogue.values import BranchPoint, value_turns
from sweetrl.domains.dialogues import load_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.scoring import ScoringBackend
from sweetrl.domains.sources import fingerprint_of_tasks
from sweetrl.errors import DataError
from sweetrl.experiments.stages.filling import Tally, fill, open_output, opened_models
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.experiments.stages.rollout import load_one_domain
from sweetrl.records import fingerprint, part_of, read_records
from sweetrl.seeds import derive_seed
from sweetrl.settings import ScorerSettings, ValueSettings, recorded
from sweetrl.types import CandidateSet, Episode, Task, TurnValues


def measure_values(
    settings: ValueSettings,
    scorer: ScorerSettings,
    tasks: str,
    episodes: Path,
    candidates: Path,
    output: Path,
    reporter: Reporter = SILENT,
) -> Tally:
    """Add the values that the file `output` lacks."""
    source = _Source.read(tasks, episodes, candidates).drawn(settings.turns, settings.seed)
    with source.domain.open_scoring(scorer) as backend:
        return interrupts.run(_replay, settings, output, source, backend, reporter)


@dataclass(frozen=True)
class _Source:
    """The turns to value."""

    tasks: dict[str, Task]
    domain: Domain
    episodes: dict[str, Episode]
    candidates: list[CandidateSet]
    fingerprints: dict[str, str]

    @classmethod
    def read(cls, source: str, episodes: Path, candidates: Path) -> "_Source":
        listed, domain = load_one_domain(source)
        tasks = {task.id: task for task in listed}
        drawn = [each for each in read_records(candidates, CandidateSet) if each.outputs]
        fingerprints = {
            "tasks": fingerprint_of_tasks(listed),
            "episodes": fingerprint(episodes),
            "candidates": fingerprint(candidates),
        }
        return cls(tasks, domain, load_episodes(episodes, tasks), drawn, fingerprints)

    def drawn(self, turns: int | None, seed: int) -> "_Source":
        """Some of the turns. More of them include fewer, so that a file can be extended."""
        chosen = sorted(self.candidates, key=lambda each: derive_seed(seed, each.id, "drawn"))[:turns]
        return replace(self, candidates=chosen)

    def __iter__(self) -> Iterator[BranchPoint]:
        for drawn in self.candidates:
            task, episode = self.tasks.get(drawn.task_id), self.episodes.get(drawn.episode_id)
            if task is None or episode is None:
                what = f"task {drawn.task_id}" if task is None else f"episode {drawn.episode_id}"
                raise DataError(f"the candidates of {drawn.id} are on the {what}, which is not there")
            # Candidates that a critic failed to rank are candidates all the same.
            unranked = msgspec.structs.replace(drawn, advantages=None, critic="", failure=None)
            yield BranchPoint(task, episode, unranked)


async def _replay(
    settings: ValueSettings, output: Path, source: _Source, backend: ScoringBackend, reporter: Reporter
) -> Tally:
    """Add the values that the file `output` lacks."""
    rules = Rules(turn_limit=settings.play.turn_limit)
    tally, tasks = Tally(output, "turns"), list(source.tasks.values())
    part = part_of((drawn.id for drawn in source.candidates), settings.shard)
    async with opened_models(tally) as models, backend.opened() as scorer:
        session = BrowserSession(pictures=settings.show == "pictures")
        models.close_too(session)
        agent, of_agent = build_agent(model_settings(settings.agent), source.domain, rules, models, tasks)
        other = model_settings(settings.collaborator)
        collaborator, of_other = build_collaborator(other, source.domain, tasks, models, session)
        config = recorded(settings) | source.fingerprints | of_agent | of_other | backend.settings
        with open_output(output, TurnValues, "values", config, reporter, part) as log:
            valued = value_turns(
                source,
                agent,
                collaborator,
                scorer,
                replays=settings.replays,
                seed=settings.seed,
                concurrency=settings.play.concurrency,
                rules=rules,
                skip=log.skips,
            )
            await fill(log, valued, tally, reporter)
    return tally
