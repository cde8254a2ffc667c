"""`score`: gives each answer or dialogue a verdict, once, and keeps it at once."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from sweetrl import interrupts
from sweetrl.domains.answers import read_answers
from sweetrl.domains.dialogues import read_episodes
from sweetrl.domains.domain import Domain
from sweetrl.domains.registry import find_domain
from sweetrl.domains.scoring import ScoringBackend
from sweetrl.errors import DataError, UsageError
from sweetrl.evaluation.batches import score_in_order
from sweetrl.evaluation.turn_cost import PricedScorer
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.records import ALL, IdSet, Part, RecordLog, open_log, part_of
from sweetrl.types import Episode, Task, Verdict, digest


class Answers:
    """The episodes to score, read twice: once to see that all of them are sound, once to score them."""

    def __init__(
        self,
        tasks: dict[str, Task],
        answers: Path | None,
        episodes: Path | None,
        limit: int | None = None,
        shard: str | None = None,
    ) -> None:
        """`limit`: score answers to the first tasks only. `shard`: score its part only."""
        if (answers is None) == (episodes is None):
            raise UsageError("give either --answers or --episodes")
        self.tasks = tasks
        self._wanted = set(islice(tasks, limit))
        self._answers = answers
        self._episodes = episodes
        self._shard = shard
        self.part = ALL
        """The part that is scored; known after `validate`."""

    def __iter__(self) -> Iterator[tuple[Task, Episode]]:
        if self._answers is not None:
            episodes = read_answers(self._answers, self.tasks)
        else:
            assert self._episodes is not None
            episodes = read_episodes(self._episodes, self.tasks.values())
        for episode in episodes:
            if episode.task_id in self._wanted:
                yield self.tasks[episode.task_id], episode

    def validate(self) -> tuple[int, Domain]:
        """Read everything once; how many there are, and of which domain. Nothing is written before this."""
        domains: set[str] = set()
        self.part = part_of(self._distinct(domains), self._shard)
        if len(domains) > 1:
            both = " and ".join(sorted(domains))
            raise UsageError(f"{both} answers are scored one after the other; split the file")
        if not domains:
            raise UsageError(f"no answer is on the first {len(self._wanted)} tasks; raise --limit")
        return self.part.total, find_domain(domains.pop())

    def _distinct(self, domains: set[str]) -> Iterator[str]:
        """The ids of all, none of them twice; their domains are added to `domains`."""
        seen = IdSet()
        for task, episode in self:
            domains.add(task.domain)
            if not seen.add(episode.id):
                raise DataError(
                    f"{episode.id} is there twice; remove one of them", path=self._answers or self._episodes
                )
            yield episode.id


def _open_verdicts(path: Path, config: dict[str, Any], part: Part) -> RecordLog[Verdict]:
    return open_log(
        path,
        Verdict,
        command="score",
        config=config,
        identity=lambda verdict: verdict.episode_id,
        settled=lambda verdict: verdict.failure is None,
        mark=lambda verdict: verdict.answer_digest,
        part=part,
    )


def score_answers(
    source: Answers,
    total: int,
    output: Path,
    backend: ScoringBackend,
    *,
    turn_cost: float = 0.0,
    reporter: Reporter = SILENT,
) -> dict[str, float]:
    """Score what is not yet in the output; how much that was, and how fast."""
    config = {**backend.settings, "tasks": _digest(source.tasks)}
    if turn_cost:
        config["turn_cost"] = turn_cost
    with _open_verdicts(output, config, source.part) as log:
        if log.repaired:
            reporter.note(f"{log.path}: {log.repaired}")
        before, started = len(log), time.monotonic()
        try:
            with reporter.progress("scoring", total, done=before) as advance:
                interrupts.run(_append_verdicts, source, backend, turn_cost, log, advance)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{len(log)} of {total} scored") from None
        log.finish()
        seconds = time.monotonic() - started
        fresh = len(log) - before
    return {
        "scored_now": fresh,
        "seconds": round(seconds, 3),
        "answers_per_second": round(fresh / seconds, 1),
    }


async def _append_verdicts(
    source: Answers,
    backend: ScoringBackend,
    turn_cost: float,
    log: RecordLog[Verdict],
    advance: Callable[[int], None],
) -> None:
    missing = (item for item in source if not log.skips(item[1].id, digest(item[1].answer)))
    async with backend.opened() as scorer:
        priced = PricedScorer(scorer, turn_cost) if turn_cost else scorer
        verdicts = score_in_order(missing, priced, concurrency=backend.workers)
        async with aclosing(verdicts) as stream:
            async for verdict in stream:
                log.append(verdict.episode_id, verdict)
                advance(1)


def find_defective(tasks: dict[str, Task], backend: ScoringBackend, reporter: Reporter = SILENT) -> list[str]:
    """The ids of the tasks that have a defect."""
    with reporter.progress("checking tasks", len(tasks)) as advance:
        found = interrupts.run(backend.find_defects, tasks.values(), advance)
        return [task_id for task_id, defects in found.items() if defects]


def _digest(tasks: dict[str, Task]) -> str:
    """A hash of the requests and tests of the tasks, whatever file they came in."""
    whole = hashlib.sha256()
    for task_id in sorted(tasks):
        whole.update(msgspec.json.encode((task_id, tasks[task_id].request, tasks[task_id].secret)))
    return whole.hexdigest()[:32]
