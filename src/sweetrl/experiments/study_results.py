"""The results of a study, from what its runs measured."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import msgspec

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
from sweetrl.evaluation.two_way_intervals import Table, two_way_mean
from sweetrl.experiments.measurements import Measurements
from sweetrl.experiments.plan import PARTS, Evaluated, Plan
from sweetrl.prompts import TURN_LIMIT
from sweetrl.settings import Study
from sweetrl.types import Metric

TABLES = ("methods", "ablations")
"""Parts whose dialogues the report shows."""


class StudyReader:
    """Makes the results of a study from what its runs measured."""

    def __init__(self, study: Study, planned: Plan, measurements: Measurements) -> None:
        self._study = study
        self._planned = planned
        self._measurements = measurements
        evaluations = {run: measurements.evaluation(run) for run in planned.evaluated}
        critics = {ranked: measurements.critic(ranked) for ranked in planned.ranked}
        self._runs = {run: found for run, found in evaluations.items() if found is not None}
        self._critics = {ranked: found for ranked, found in critics.items() if found is not None}

    def results(self) -> StudyResults:
        """All that the study found."""
        study = self._study
        ablations = [name for name, method in study.methods.items() if method.table == "ablations"]
        main = [name for name in study.methods if name not in ablations]
        other = [] if study.off_policy is None else list(study.off_policy.methods)
        return StudyResults(
            title=study.title,
            tasks=study.evaluation_tasks(),
            seeds=tuple(sorted({run.seed for run in self._runs} | {each.seed for each in self._critics})),
            methods=self._methods("methods", main) | self._methods("ablations", ablations),
            steps=(*self._steps("methods", main), *self._ablated(main, ablations)),
            shares=tuple(self._shares()),
            best_of=tuple(self._best_of()),
            sizes=tuple(self._sizes()),
            off_policy=self._methods("off_policy", other),
            off_policy_model="" if study.off_policy is None else study.off_policy.model,
            off_policy_steps=tuple(self._steps("off_policy", other)),
            credit=dict(self._credit()),
            missing=tuple(self._missing()),
            settings=msgspec.to_builtins(study),
        )

    def _missing(self) -> Iterator[Missing]:
        """What is not measured yet, by part and then by method or critic."""
        labels = {"credit": self._study.critics, "best_of": self._study.critics}
        seeds: dict[tuple[str, str], dict[int, None]] = {}
        for run in self._planned.evaluated:
            if run not in self._runs:
                seeds.setdefault((run.part, run.name), {})[run.seed] = None
        for ranked in self._planned.ranked:
            if ranked not in self._critics:
                seeds.setdefault(("credit", ranked.critic), {})[ranked.seed] = None
        for (part, name), found in sorted(seeds.items(), key=lambda each: PARTS.index(each[0][0])):
            label = labels.get(part, self._study.methods)[name].label or name
            yield Missing(part=part, name=name, label=label, seeds=tuple(found))

    # -------- runs

    def _figures(self, run: Evaluated) -> Figures:
        """The metrics of an evaluation, task by task."""
        found = self._runs[run]
        return {
            name: self._measurements.by_task(found.tasks, values) for name, values in found.figures.items()
        }

    def _of(self, part: str, name: str) -> list[Evaluated]:
        return [each for each in self._runs if (each.part, each.name) == (part, name)]

    def _success(self, runs: Sequence[Evaluated]) -> Table:
        return [self._figures(run)["success"] for run in runs]

    @property
    def _turn_limit(self) -> int:
        return self._study.rollout.turn_limit or TURN_LIMIT

    # -------- tables

    def _methods(self, part: str, names: Sequence[str]) -> dict[str, MethodResult]:
        found = {name: self._of(part, name) for name in names}
        return {name: self._method(name, runs) for name, runs in found.items() if runs}

    def _method(self, name: str, runs: Sequence[Evaluated]) -> MethodResult:
        measured = {str(run.seed): self._runs[run].metrics for run in runs}
        # One run has its own intervals, which are better where a metric is a share.
        [alone, *others] = measured.values()
        figures = (
            over_seeds([self._figures(run) for run in runs], self._turn_limit) if others else alone.metrics
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
        turns = [self._runs[run].useful for run in runs]
        if not all(turns):
            return
        for number in range(self._turn_limit - 1):  # the last one is the answer
            table = [
                self._measurements.by_task(run.tasks, useful[number])
                for run, useful in zip(runs, turns, strict=True)
            ]
            yield two_way_mean("useful", table)

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
        by_seed = [{run.seed: run for run in self._of(*each)} for each in methods]
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
            for run in self._of("best_of", name):
                groups.setdefault(run.drafts, []).append(run)
            yield from self._curve(name, label, sorted(groups.items()))

    def _sizes(self) -> Iterator[Curve]:
        settings = self._study.sizes
        for name in () if settings is None else settings.methods:
            label = self._study.methods[name].label or name
            groups: dict[Path, list[Evaluated]] = {}
            for run in self._of("sizes", name):
                assert run.learned is not None
                groups.setdefault(self._of_any_seed(run.learned, run.seed), []).append(run)
            sized = [(self._mean_size(runs), runs) for runs in groups.values()]
            if len(sized) > 1:  # the whole alone is in the table of methods
                yield from self._curve(name, label, sorted(sized, key=lambda point: point[0]))

    def _of_any_seed(self, path: Path, seed: int) -> Path:
        return path.relative_to(Path(self._study.output) / f"seed-{seed}")

    def _mean_size(self, runs: Sequence[Evaluated]) -> float:
        """How many dialogues they learned from, on average."""
        return fmean(self._runs[run].learned or 0 for run in runs)

    def _curve(
        self, name: str, label: str, groups: Sequence[tuple[float, list[Evaluated]]]
    ) -> Iterator[Curve]:
        if not groups:
            return
        points = ((place, two_way_mean("success", self._success(runs))) for place, runs in groups)
        yield Curve(name=name, label=label, points=tuple(points))

    # -------- credit

    def _credit(self) -> Iterator[tuple[str, CriticResult]]:
        for name in dict.fromkeys(each.critic for each in self._critics):
            found = {
                str(each.seed): measured.quality
                for each, measured in self._critics.items()
                if each.critic == name
            }
            yield name, CriticResult(label=self._study.critics[name].label or name, by_seed=found)
