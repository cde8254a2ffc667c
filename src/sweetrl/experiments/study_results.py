"""The results of a study, read from the evaluations in its folder."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import msgspec

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import DataError
from sweetrl.evaluation.credit import credit_quality
from sweetrl.evaluation.metrics import figures_by_task, useful_by_turn
from sweetrl.evaluation.studies import (
    CriticResult,
    Curve,
    Figures,
    MethodResult,
    Missing,
    Share,
    Step,
    StudyResults,
    over_seeds,
    share,
    step,
)
from sweetrl.evaluation.tracking import fact_tracker
from sweetrl.evaluation.two_way_intervals import Table, two_way_mean
from sweetrl.experiments.layout import EPISODES, METRICS, VERDICTS
from sweetrl.experiments.plan import PARTS, Evaluated, Plan
from sweetrl.prompts import TURN_LIMIT
from sweetrl.records import read_json, read_lines, read_records
from sweetrl.settings import Study
from sweetrl.types import CandidateSet, Metric, RunMetrics, Task, TurnValues, Verdict

TABLES = ("methods", "ablations")
"""Parts whose dialogues the report shows."""


def missing_points(study: Study, planned: Plan, finished: Plan) -> Iterator[Missing]:
    """What is not done yet, by part and then by method or critic."""
    there = {each.folder for each in finished.evaluated} | {each.path for each in finished.ranked}
    labels = {"credit": study.critics, "best_of": study.critics}
    seeds: dict[tuple[str, str], dict[int, None]] = {}
    for part, name, seed, path in points_of(planned):
        if path not in there:
            seeds.setdefault((part, name), {})[seed] = None
    for (part, name), found in sorted(seeds.items(), key=lambda each: PARTS.index(each[0][0])):
        label = labels.get(part, study.methods)[name].label or name
        yield Missing(part=part, name=name, label=label, seeds=tuple(found))


def points_of(planned: Plan) -> Iterator[tuple[str, str, int, Path]]:
    """Part, name, seed and place of all that a study measures."""
    yield from ((each.part, each.name, each.seed, each.folder) for each in planned.evaluated)
    yield from (("credit", each.critic, each.seed, each.path) for each in planned.ranked)


class StudyReader:
    """Reads the evaluations of a study that are there, each once."""

    def __init__(self, study: Study, planned: Plan) -> None:
        self._study = study
        self._planned = planned
        self._tasks: dict[str, dict[str, Task]] = {}
        self._figures: dict[Path, Figures] = {}

    def results(self, missing: tuple[Missing, ...] = ()) -> StudyResults:
        """All that the study found."""
        study = self._study
        ablations = [name for name, method in study.methods.items() if method.table == "ablations"]
        main = [name for name in study.methods if name not in ablations]
        other = [] if study.off_policy is None else list(study.off_policy.methods)
        return StudyResults(
            title=study.title,
            tasks=study.evaluation_tasks(),
            seeds=tuple(sorted({seed for _, _, seed, _ in points_of(self._planned)})),
            methods=self._methods("methods", main) | self._methods("ablations", ablations),
            steps=(*self._steps("methods", main), *self._ablated(main, ablations)),
            shares=tuple(self._shares()),
            best_of=tuple(self._best_of()),
            sizes=tuple(self._sizes()),
            off_policy=self._methods("off_policy", other),
            off_policy_model="" if study.off_policy is None else study.off_policy.model,
            off_policy_steps=tuple(self._steps("off_policy", other)),
            credit=dict(self._credit()),
            missing=missing,
            settings=msgspec.to_builtins(study),
        )

    # -------- runs

    def figures(self, run: Evaluated) -> Figures:
        """The metrics of an evaluation, task by task."""
        if run.folder not in self._figures:
            tasks = self.tasks(run.tasks)
            self._figures[run.folder] = figures_by_task(
                tasks,
                distinct_episodes(run.folder / EPISODES, tasks),
                read_records(run.folder / VERDICTS, Verdict),
                tracker=fact_tracker(tasks),
            )
        return self._figures[run.folder]

    def tasks(self, source: str) -> dict[str, Task]:
        """The tasks of a source by id."""
        if source not in self._tasks:
            self._tasks[source] = load_tasks(source)
        return self._tasks[source]

    def _runs(self, part: str, name: str) -> list[Evaluated]:
        return [each for each in self._planned.evaluated if (each.part, each.name) == (part, name)]

    def _success(self, runs: Sequence[Evaluated]) -> Table:
        return [self.figures(run)["success"] for run in runs]

    @property
    def _turn_limit(self) -> int:
        return self._study.rollout.turn_limit or TURN_LIMIT

    # -------- tables

    def _methods(self, part: str, names: Sequence[str]) -> dict[str, MethodResult]:
        found = {name: self._runs(part, name) for name in names}
        return {name: self._method(name, runs) for name, runs in found.items() if runs}

    def _method(self, name: str, runs: Sequence[Evaluated]) -> MethodResult:

        measured = {str(run.seed): _metrics(run.folder) for run in runs}
        # One run has its own intervals, which are better where a metric is a share.
        [alone, *others] = measured.values()
        figures = (
            over_seeds([self.figures(run) for run in runs], self._turn_limit) if others else alone.metrics
        )
        method = self._study.methods[name]
        return MethodResult(
            label=method.label or name,
            table=method.table,
            figures=figures,
            by_seed={seed: run.metrics for seed, run in measured.items()},
            useful=tuple(self._useful(runs)),
            failed=sum(run.failed for run in measured.values()),
            unscored=sum(run.unscored for run in measured.values()),
        )

    def _useful(self, runs: Sequence[Evaluated]) -> Iterator[Metric]:
        """Turn by turn, how often the agent asks what matters."""
        tables = []
        for run in runs:
            tasks = self.tasks(run.tasks)
            tracker = fact_tracker(tasks)
            if tracker is None:
                return
            episodes = distinct_episodes(run.folder / EPISODES, tasks)
            tables.append(useful_by_turn(tasks, episodes, tracker, self._turn_limit))
        for number in range(self._turn_limit - 1):  # the last one is the answer
            yield two_way_mean("useful", [table[number] for table in tables])

    def _steps(self, part: str, names: Sequence[str]) -> Iterator[Step]:
        """From each method to the next, and from each to the last."""
        pairs = [*pairwise(names), *((name, names[-1]) for name in names[:-2])]
        for first, second in pairs:
            yield from self._step((part, first), (part, second))

    def _ablated(self, main: Sequence[str], ablations: Sequence[str]) -> Iterator[Step]:
        """From the last method of the main table, or the one it names, to each ablation."""
        for name in ablations:
            against = self._study.methods[name].against or (main[-1] if main else name)
            if against != name:
                yield from self._step(self._placed(against), ("ablations", name))

    def _step(self, first: tuple[str, str], second: tuple[str, str]) -> Iterator[Step]:
        """The step from one method to another, over the seeds that both have."""
        if (tables := self._with_common_seeds(first, second)) is not None:
            yield step(*tables)

    def _shares(self) -> Iterator[Share]:

        for names in self._study.shares:
            if (tables := self._with_common_seeds(*map(self._placed, names))) is not None:
                yield share(*tables)

    def _placed(self, name: str) -> tuple[str, str]:
        """The part of the study that a method is in, and its name."""
        return ("methods" if self._study.methods[name].table == "main" else "ablations", name)

    def _with_common_seeds(self, *methods: tuple[str, str]) -> list[tuple[str, Table]] | None:
        """The success of each method with the seeds that all of them have; None if there are none."""
        by_seed = [{run.seed: run for run in self._runs(*each)} for each in methods]
        seeds = [seed for seed in by_seed[0] if all(seed in runs for runs in by_seed)]
        if not seeds:
            return None
        return [
            (name, self._success([runs[seed] for seed in seeds]))
            for (_, name), runs in zip(methods, by_seed, strict=True)
        ]

    # -------- figures

    def _best_of(self) -> Iterator[Curve]:
        settings = self._study.best_of
        for name in () if settings is None else settings.critics:
            label = self._study.critics[name].label or name
            groups: dict[int, list[Evaluated]] = {}
            for run in self._runs("best_of", name):
                groups.setdefault(run.drafts, []).append(run)
            yield from self._curve(name, label, sorted(groups.items()))

    def _sizes(self) -> Iterator[Curve]:
        settings = self._study.sizes
        for name in () if settings is None else settings.methods:
            label = self._study.methods[name].label or name
            groups: dict[Path, list[Evaluated]] = {}
            for run in self._runs("sizes", name):
                assert run.learned is not None
                groups.setdefault(self._of_any_seed(run.learned, run.seed), []).append(run)
            sized = [(_mean_size(runs), runs) for runs in groups.values()]
            if len(sized) > 1:  # the whole alone is in the table of methods
                yield from self._curve(name, label, sorted(sized, key=lambda point: point[0]))

    def _of_any_seed(self, path: Path, seed: int) -> Path:
        return path.relative_to(Path(self._study.output) / f"seed-{seed}")

    def _curve(
        self, name: str, label: str, groups: Sequence[tuple[float, list[Evaluated]]]
    ) -> Iterator[Curve]:

        if not groups:
            return
        points = ((place, two_way_mean("success", self._success(runs))) for place, runs in groups)
        yield Curve(name=name, label=label, points=tuple(points))

    # -------- credit

    def _credit(self) -> Iterator[tuple[str, CriticResult]]:

        for name in dict.fromkeys(each.critic for each in self._planned.ranked):
            ranked = [each for each in self._planned.ranked if each.critic == name]
            yield (
                name,
                CriticResult(
                    label=self._study.critics[name].label or name,
                    by_seed={
                        str(each.seed): credit_quality(valued_turns(self._truth, each.path))
                        for each in ranked
                    },
                ),
            )

    @cached_property
    def _truth(self) -> dict[str, TurnValues]:
        assert self._planned.values is not None
        values = read_records(self._planned.values, TurnValues)
        return {each.id: each for each in values if each.values is not None}


def _metrics(folder: Path) -> RunMetrics:
    return read_json(folder / METRICS, RunMetrics, "the metrics of a run")


def _mean_size(runs: Sequence[Evaluated]) -> float:
    """How many dialogues they learned from, on average."""
    counts = [sum(1 for _ in read_lines(run.learned)) for run in runs if run.learned is not None]
    return fmean(counts)


def valued_turns(truth: dict[str, TurnValues], path: Path) -> Iterator[tuple[TurnValues, CandidateSet]]:
    """The turns of a ranked file that have values; turns at which the critic failed are left out."""
    common = False
    for ranked in read_records(path, CandidateSet):
        if ranked.id in truth and ranked.failure is None:
            common = True
            yield truth[ranked.id], ranked
    if not common:
        raise DataError("none of its turns has a value; were others valued?", path=path)
