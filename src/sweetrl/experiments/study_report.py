"""The report of a study: its results as one HTML page, with training curves and dialogues of its first seed."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from sweetrl import interrupts
from sweetrl.candidates.credit import credit_turns
from sweetrl.critics.opening import open_with_models
from sweetrl.dialogue.building import Models
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.studies import Step, StudyResults, useful_curves
from sweetrl.experiments.journal import JOURNAL
from sweetrl.experiments.plan import Evaluated, Plan
from sweetrl.experiments.run_folder import RunFolder, commands_of, indented, turns_used
from sweetrl.experiments.study_results import TABLES
from sweetrl.models import EndpointOptions, Meter
from sweetrl.records import write_atomically
from sweetrl.report import (
    Comparison,
    Figure,
    Method,
    Provenance,
    ReportContents,
    Training,
    compose,
    render,
)
from sweetrl.report.compose import method_of
from sweetrl.report.examples import choose_tasks
from sweetrl.report.headline import duel_methods, duel_task, gaps, headline, reward_measure
from sweetrl.report.runs import Run
from sweetrl.report.study_page import curves_figure, missing_text
from sweetrl.settings import Study
from sweetrl.settings.studies import SEED
from sweetrl.types import Episode, Metric, Task, TurnCredit

REPORT = "report.html"
EXAMPLES = 6
"""Tasks whose dialogues are shown."""


def write_report(study: Study, planned: Plan, results: StudyResults) -> Path:
    """Write the page; where it is."""
    path = Path(study.output) / REPORT
    contents = _Report(study, planned, results).contents()
    write_atomically(path, render(contents).encode("utf-8", "replace"))
    return path


class _Report:
    def __init__(self, study: Study, planned: Plan, results: StudyResults) -> None:
        self._study = study
        self._results = results
        self._tasks = load_tasks(study.evaluation_tasks())
        self._planned = planned
        methods = [each for each in planned.evaluated if each.part in TABLES]
        self._seed = min(each.seed for each in methods)
        """The first that any method was evaluated with: of it are the dialogues and curves."""
        first = {each.name: each for each in methods if each.seed == self._seed}
        self._evaluated = [first[name] for name in results.methods if name in first]
        """In the order of the tables."""

    def contents(self) -> ReportContents:
        """The contents of the page."""
        contents = compose(
            self._study.title,
            self._credited([self._run(each) for each in self._evaluated]),
            summary=self._summary(),
            figures=tuple(self._figures()),
            trainings=tuple(self._trainings()),
            provenance=tuple(self._provenance()),
            examples=EXAMPLES,
            seed=self._study.seed,
        )
        if len(self._results.seeds) > 1:
            contents = replace(
                contents,
                methods=tuple(self._over_seeds(method) for method in contents.methods),
                comparisons=tuple(_comparison(step) for step in self._steps()),
            )
        return replace(contents, headline=self._study.caution or self._headline(contents))

    def _headline(self, contents: ReportContents) -> str:
        """The result of the main table."""
        main = [each for each in contents.methods if self._results.methods[each.name].table == "main"]
        return headline(main or contents.methods, contents.comparisons, unseen=self._unseen())

    def _unseen(self) -> bool:
        """Whether no method has trained on the tasks that it is evaluated on."""
        sources = {self._study.tasks.train.replace(SEED, str(seed)) for seed in self._study.run_seeds}
        return are_unseen(self._tasks, sources)

    def _steps(self) -> Iterator[Step]:
        """The steps between methods that are in the report."""
        names = {each.name for each in self._evaluated}
        return (step for step in self._results.steps if {step.first, step.second} <= names)

    def _summary(self) -> str:
        results = self._results
        seeds = f"{len(results.seeds)} seeds" if len(results.seeds) > 1 else f"seed {results.seeds[0]}"
        shown = "Dialogues and curves are those of the first seed." if len(results.seeds) > 1 else ""
        said = (f"{len(results.methods)} methods, {seeds}, evaluated on {results.tasks}.", shown)
        return " ".join(filter(None, (*said, missing_text(results.missing))))

    @property
    def _folder(self) -> Path:
        """The folder of the seed that is shown."""
        return Path(self._study.output) / f"seed-{self._seed}"

    # -------- runs

    def _run(self, evaluated: Evaluated) -> Run:
        run = RunFolder(evaluated.folder, evaluated.name).run(self._tasks)
        assert run is not None
        return replace(run, label=self._results.methods[evaluated.name].label)

    def _over_seeds(self, method: Method) -> Method:
        """The metrics and counts of all seeds; who won which task is that of the first."""
        names = {"reward": reward_measure(method.scorer).name}
        result = self._results.methods[method.name]
        found = (
            msgspec.structs.replace(each, name=names.get(name, name)) for name, each in result.figures.items()
        )
        broken = result.failed + result.unscored
        scored = result.figures["success"].count
        return replace(method, metrics=tuple(found), dialogues=scored + broken, unscored=broken)

    # -------- credit

    def _credited(self, runs: list[Run]) -> list[Run]:
        """The runs with advantages for the turns of the dialogues that will be shown, if a critic was trained."""
        critic = self._critic()
        return runs if critic is None else credited(runs, critic, self._tasks, self._study.seed)

    def _critic(self) -> Path | None:
        """The trained critic of the last method that has one, those of the main table first."""
        methods = self._study.methods.values()
        for table in ("main", "ablations"):
            names = [method.critic for method in methods if method.table == table and method.critic]
            for name in reversed(names):
                path = self._folder / "critics" / name
                if self._planned.has(path):
                    return path
        return None

    # -------- figures and how it was made

    def _figures(self) -> Iterator[Figure]:
        useful = useful_curves(self._results.methods)
        if useful:
            title = "Questions about what matters and is new, turn by turn"
            yield curves_figure(title, "turn", useful, y="share of dialogues")
        if self._results.best_of:
            title = "The best of N drafts, by critic"
            yield curves_figure(title, "drafts of each turn", self._results.best_of, log=True)
        if self._results.sizes:
            yield curves_figure("Number of dialogues", "dialogues", self._results.sizes)

    def _trainings(self) -> Iterator[Training]:
        for part in ("critics", "policies"):
            for path in filter(self._planned.has, sorted(self._folder.glob(f"{part}/*/"))):
                result = self._results.methods.get(path.name) if part == "policies" else None
                turns = () if result is None else turns_used(result.figures.values())
                for training in RunFolder(path, f"{part}/{path.name}").trainings():
                    yield replace(training, facts=(*training.facts, *turns))

    def _provenance(self) -> Iterator[Provenance]:
        yield from commands_of(Path(self._study.output) / JOURNAL, "Commands")
        seeds = ("seeds", ", ".join(map(str, self._results.seeds)))
        yield Provenance("Study", (seeds,), indented(self._results.settings))
        for each in self._evaluated[:1]:
            yield from RunFolder(each.folder, each.name).provenance()


def are_unseen(tasks: dict[str, Task], trained_on: Iterable[str]) -> bool:
    """Whether none of the tasks is in the sources that models were trained on."""
    return all(tasks.keys().isdisjoint(load_tasks(source)) for source in trained_on)


def credited(runs: list[Run], critic: Path, tasks: dict[str, Task], seed: int) -> list[Run]:
    """The runs with the advantages that a trained critic gives to the turns of the dialogues that are shown."""
    methods = [method_of(run) for run in runs]
    chosen = set(choose_tasks([each.tasks for each in methods], (), EXAMPLES, seed))
    if (two := duel_methods(methods)) is not None:
        chosen.add(duel_task(gaps(*two), (), seed) or "")
    shown = {run.name: [episode for episode in run.episodes if episode.task_id in chosen] for run in runs}
    credit = interrupts.run(_credit, critic, tasks, shown)
    return [replace(run, credit=credit[run.name]) for run in runs]


async def _credit(
    folder: Path, tasks: dict[str, Task], dialogues: dict[str, list[Episode]]
) -> dict[str, list[TurnCredit]]:
    """The advantages of the turns of each method's dialogues, by the trained critic in a folder."""
    critic = open_with_models(str(folder), Models(EndpointOptions(), Meter()))
    return {
        name: [
            turn
            async for turn in credit_turns(((tasks[each.task_id], each) for each in episodes), critic)
            if turn.advantage is not None
        ]
        for name, episodes in dialogues.items()
    }


def _comparison(step: Step) -> Comparison:
    return Comparison(
        first=step.second,
        second=step.first,
        measure="success",
        difference=Metric("success", step.value, step.low, step.high, step.tasks),
        wins=step.wins,
        ties=step.tasks - step.wins - step.losses,
        losses=step.losses,
    )
