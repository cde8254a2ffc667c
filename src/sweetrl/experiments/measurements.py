"""What a study measured, run by run: read from its folder, and kept beside its page.

A study takes hours, and the machine that ran it may be gone. So the figures of each evaluation, task by task, are kept
in a small file beside the page, with the commands that led to them. A later run of the study uses these files for
everything it has not measured itself, if the commands are the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError
from sweetrl.evaluation.credit import CreditQuality, credit_quality
from sweetrl.evaluation.metrics import figures_by_task, useful_by_turn
from sweetrl.evaluation.tracking import fact_tracker
from sweetrl.experiments.layout import EPISODES, METRICS, VERDICTS
from sweetrl.experiments.plan import Evaluated, Plan, Ranked, with_needs
from sweetrl.prompts import TURN_LIMIT
from sweetrl.records import read_json, read_lines, read_records, write_atomically
from sweetrl.settings import Study
from sweetrl.settings.words import same_command
from sweetrl.types import CandidateSet, RunMetrics, Task, TurnValues, Verdict

Commands = dict[str, list[str]]
"""By the name of the stage, the words of its command."""
Values = list[float | None]
"""A value for each task, in the order of the source; None for tasks without one."""


class Measurement(Struct, frozen=True, kw_only=True):
    """What one evaluation measured."""

    schema: Literal["measurement/1"] = "measurement/1"
    commands: Commands
    """All that led to it."""
    tasks: str
    """Where its tasks come from."""
    learned: int | None = None
    """How many dialogues the agent learned from."""
    metrics: RunMetrics
    figures: dict[str, Values]
    """The metrics by name, task by task."""
    useful: list[Values] = []
    """For each turn, task by task: the share of dialogues in which it asks what matters and is new."""


class MeasuredCritic(Struct, frozen=True, kw_only=True):
    """How well one critic agrees with the truth."""

    schema: Literal["measured-critic/1"] = "measured-critic/1"
    commands: Commands
    quality: CreditQuality


Kept = TypeVar("Kept", Measurement, MeasuredCritic)


class Measurements:
    """What the runs of a study measured, each read once: those in its folder, and those that were kept."""

    def __init__(self, study: Study, planned: Plan, finished: Plan) -> None:
        self._study = study
        self._planned = planned
        self._finished = {each.folder for each in finished.evaluated} | {
            each.path for each in finished.ranked
        }
        self._tasks: dict[str, dict[str, Task]] = {}
        self._evaluations: dict[Path, Measurement | None] = {}
        self._critics: dict[Path, MeasuredCritic | None] = {}

    def evaluation(self, run: Evaluated) -> Measurement | None:
        """What an evaluation measured; None if it was neither run nor kept."""
        if run.folder not in self._evaluations:
            done = run.folder in self._finished
            self._evaluations[run.folder] = (
                self._measure(run) if done else self._kept(run.folder, Measurement)
            )
        return self._evaluations[run.folder]

    def critic(self, ranked: Ranked) -> MeasuredCritic | None:
        """How good a critic is; None if that was neither measured nor kept."""
        if ranked.path not in self._critics:
            done = ranked.path in self._finished
            self._critics[ranked.path] = (
                self._judge(ranked) if done else self._kept(ranked.path, MeasuredCritic)
            )
        return self._critics[ranked.path]

    def keep(self) -> None:
        """Write all that was read in this run's folder to the files beside the page."""
        for path, found in (*self._evaluations.items(), *self._critics.items()):
            if path in self._finished and found is not None:
                place = self._place(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(place, msgspec.json.encode(found) + b"\n")

    def by_task(self, source: str, values: Values) -> dict[str, float]:
        """Values by the id of their task."""
        ids = self._tasks_of(source)
        if len(ids) != len(values):
            raise DataError(f"{source}: has {len(ids)} tasks, and {len(values)} values were kept for them")
        return {task: value for task, value in zip(ids, values, strict=True) if value is not None}

    # -------- in the folder of the study

    def _measure(self, run: Evaluated) -> Measurement:
        tasks = self._tasks_of(run.tasks)
        tracker = fact_tracker(tasks)
        figures = figures_by_task(
            tasks,
            distinct_episodes(run.folder / EPISODES, tasks),
            read_records(run.folder / VERDICTS, Verdict),
            tracker=tracker,
        )
        turns: Sequence[Mapping[str, float]] = ()
        if tracker is not None:
            limit = self._study.rollout.turn_limit or TURN_LIMIT
            turns = useful_by_turn(tasks, distinct_episodes(run.folder / EPISODES, tasks), tracker, limit)
        return Measurement(
            commands=self._commands(run.folder),
            tasks=run.tasks,
            learned=None if run.learned is None else sum(1 for _ in read_lines(run.learned)),
            metrics=read_json(run.folder / METRICS, RunMetrics, "the metrics of a run"),
            figures={name: _in_order(tasks, values) for name, values in figures.items()},
            useful=[_in_order(tasks, values) for values in turns],
        )

    def _judge(self, ranked: Ranked) -> MeasuredCritic:
        quality = credit_quality(valued_turns(self._truth, ranked.path))
        return MeasuredCritic(commands=self._commands(ranked.path), quality=quality)

    @cached_property
    def _truth(self) -> dict[str, TurnValues]:
        assert self._planned.values is not None
        values = read_records(self._planned.values, TurnValues)
        return {each.id: each for each in values if each.values is not None}

    def _tasks_of(self, source: str) -> dict[str, Task]:
        if source not in self._tasks:
            self._tasks[source] = load_tasks(source)
        return self._tasks[source]

    # -------- beside the page

    def _kept(self, path: Path, kind: type[Kept]) -> Kept | None:
        """What was kept of a run with the same commands."""
        if self._study.page is None or not self._place(path).is_file():
            return None
        found = read_json(self._place(path), kind, "a measurement of a study; move it away")
        return found if _same(found.commands, self._commands(path)) else None

    def _place(self, path: Path) -> Path:
        """Where a run is kept: in the folder of the page's plots, under the name that it has in the study's folder."""
        assert self._study.page is not None
        inside = path.relative_to(self._study.output)
        return Path(self._study.page).with_suffix("") / inside.with_name(f"{inside.name}.json")

    def _commands(self, path: Path) -> Commands:
        """The commands that lead to what a run wrote, with paths inside the study's folder."""
        wanted = {path}
        if self._planned.values is not None and path in {each.path for each in self._planned.ranked}:
            wanted.add(self._planned.values)
        stages = (self._planned.stages[number] for number in with_needs(self._planned.stages, wanted))
        prefix = f"{Path(self._study.output)}/"
        return {stage.name: [word.replace(prefix, "") for word in stage.arguments] for stage in stages}


def valued_turns(truth: dict[str, TurnValues], path: Path) -> Iterator[tuple[TurnValues, CandidateSet]]:
    """The turns of a ranked file that have values; turns at which the critic failed are left out."""
    common = False
    for ranked in read_records(path, CandidateSet):
        if ranked.id in truth and ranked.failure is None:
            common = True
            yield truth[ranked.id], ranked
    if not common:
        raise DataError("none of its turns has a value; were others valued?", path=path)


def _in_order(tasks: Mapping[str, Task], values: Mapping[str, float]) -> Values:
    return [values.get(task) for task in tasks]


def _same(first: Commands, second: Commands) -> bool:
    return first.keys() == second.keys() and all(
        same_command(words, second[name]) for name, words in first.items()
    )
