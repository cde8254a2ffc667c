"""A study as a page of Markdown with plots: the tables and figures of a paper, made from `StudyResults` alone."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sweetrl.domains.registry import DEFAULT, find_domain
from sweetrl.evaluation.credit import MEASURES as CREDIT_MEASURES
from sweetrl.evaluation.studies import (
    Curve,
    MethodResult,
    Missing,
    Step,
    StudyResults,
    useful_curves,
)
from sweetrl.report import charts
from sweetrl.report.contents import MEASURES, Figure, Measure, Point, Series
from sweetrl.report.plots import bar_plot, line_plot
from sweetrl.report.scales import Estimate, amount, estimate_of, interval
from sweetrl.types import Metric

COLUMNS = ("success", "success_failures_as_zero", "reward", "turns", "coverage", "repeats", "premature")
"""Measures of the tables, where there are any."""
BARS = ("success", "coverage", "turns")
"""Measures that are drawn, where there are any."""
NOTHING = "–"


def study_page(results: StudyResults, plots: str) -> tuple[str, dict[str, str]]:
    """The page, and its plots by file name; the page looks for them in the folder `plots`."""
    page = _Page(results, plots)
    return "\n\n".join(page.parts()) + "\n", page.plots


def curves_figure(
    title: str, x: str, curves: Sequence[Curve], *, y: str = "success", log: bool = False
) -> Figure:
    """The curves of a study as a figure."""
    series = tuple(Series(curve.label, tuple(_points(curve))) for curve in curves)
    return Figure(title, x, y, series, percent=True, log_x=log)


def _points(curve: Curve) -> Iterator[Point]:
    for place, metric in curve.points:
        found = estimate_of(metric)
        if found is not None:
            yield Point(place, found.value, found.low, found.high)


def missing_text(missing: Sequence[Missing]) -> str:
    """What is not done yet, in one sentence; empty if nothing is."""
    parts: dict[str, dict[tuple[int, ...], list[str]]] = {}
    for each in missing:
        parts.setdefault(each.part, {}).setdefault(each.seeds, []).append(each.label)
    listed = "; ".join(f"{part}: {_by_seeds(groups)}" for part, groups in parts.items())
    return f"Not finished and in no figure: {listed}." if listed else ""


def _by_seeds(groups: Mapping[tuple[int, ...], Sequence[str]]) -> str:
    return ", ".join(f"{', '.join(labels)} ({_seeds(seeds)})" for seeds, labels in groups.items())


def _seeds(seeds: Sequence[int]) -> str:
    """The numbers, in short if they are many in a row."""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


@dataclass
class _Page:
    results: StudyResults
    folder: str
    plots: dict[str, str] = field(default_factory=dict)

    def parts(self) -> Iterator[str]:
        """One block of text after the other."""
        yield from self._head()
        yield from self._methods()
        yield from self._turns()
        yield from self._other_model()
        yield from self._best_of()
        yield from self._sizes()
        yield from self._credit()
        yield from self._seeds()
        yield from self._settings()

    # -------- beginning and end

    def _head(self) -> Iterator[str]:
        results = self.results
        yield f"# {_text(results.title)}"
        yield "This page is written by `sweetrl run`; what is changed here by hand is lost."
        if caution := results.caution:
            yield f"**{_text(caution)}**"
        seeds = f"{len(results.seeds)} seeds ({', '.join(map(str, results.seeds))})"
        over = "over tasks and seeds" if len(results.seeds) > 1 else "over tasks"
        yield (
            f"Evaluated on `{results.tasks}`, {seeds if len(results.seeds) > 1 else f'seed {results.seeds[0]}'}. "
            f"In brackets: 95 % intervals {over}. Per cent, but for turns and repeats."
        )
        broken = sum(each.failed + each.unscored for each in self._all())
        if broken:
            yield (
                f"**{broken} dialogues failed or could not be scored; they count as zero where it says so, "
                "and nowhere else.**"
            )
        if results.missing:
            yield f"**{_text(missing_text(results.missing))}**"

    def _all(self) -> list[MethodResult]:
        return [*self.results.methods.values(), *self.results.off_policy.values()]

    def _seeds(self) -> Iterator[str]:
        if len(self.results.seeds) == 1:
            return
        yield "## Success by seed"
        other = f" ({self.results.off_policy_model})"
        labelled = [
            *((method.label, method) for method in self.results.methods.values()),
            *((method.label + other, method) for method in self.results.off_policy.values()),
        ]
        rows = (
            [_text(label), *(_cell(success, MEASURES[0]) for success in self._by_seed(method))]
            for label, method in labelled
        )
        yield _table(["", *map(str, self.results.seeds)], rows)

    def _by_seed(self, method: MethodResult) -> list[Metric | None]:
        return [method.by_seed.get(str(seed), {}).get("success") for seed in self.results.seeds]

    def _settings(self) -> Iterator[str]:
        yield "## Settings"
        content = json.dumps(self.results.settings, indent=1, sort_keys=True)
        yield f"<details><summary>The whole study as it was run</summary>\n\n```json\n{content}\n```\n\n</details>"

    # -------- tables

    def _methods(self) -> Iterator[str]:
        results = self.results
        main = {name: each for name, each in results.methods.items() if each.table == "main"}
        ablations = {name: each for name, each in results.methods.items() if each.table != "main"}
        if main:
            yield "## Methods"
            yield self._method_table(main)
            yield self._bars("methods", main)
            yield from self._steps([step for step in results.steps if step.second in main])
        if ablations:
            yield "## Ablations and other variants"
            yield self._method_table(ablations)
            yield from self._steps([step for step in results.steps if step.second in ablations])
        yield from self._shares()

    def _other_model(self) -> Iterator[str]:
        results = self.results
        if results.off_policy:
            yield f"## Another model on the same dialogues: {_text(results.off_policy_model)}"
            yield from self._fewer_seeds("off_policy")
            yield self._method_table(results.off_policy)
            yield from self._steps(results.off_policy_steps)

    def _fewer_seeds(self, part: str) -> Iterator[str]:
        """What a part says that has not all seeds of the study."""
        count = (self.results.settings.get(part) or {}).get("seeds")
        if count is not None and count < len(self.results.seeds):
            unfinished = any(each.part == part for each in self.results.missing)
            extent = "alone, as far as finished" if unfinished else "alone"
            yield f"With {_seeds(self.results.seeds[:count])} {extent}."

    def _steps(self, steps: Sequence[Step]) -> Iterator[str]:
        if not steps:
            return
        yield "What each step brings in success, in percentage points, on the same tasks and seeds:"
        known = self.results.off_policy | self.results.methods
        labels = {name: method.label for name, method in known.items()}
        rows = (
            [
                f"{_text(labels[step.first])} → {_text(labels[step.second])}",
                *_difference(step),
                f"{step.seeds_above} of {step.seeds}",
            ]
            for step in steps
        )
        yield _table(["", "difference", "95 % interval", "seeds above 0"], rows)

    def _shares(self) -> Iterator[str]:
        if not self.results.shares:
            return
        yield "How much of a possible gain in success a method gets:"
        labels = {name: _text(method.label) for name, method in self.results.methods.items()}
        rows = (
            [
                f"{labels[share.second]}, of the gain from {labels[share.first]} to {labels[share.best]}",
                _cell(Metric("share", share.value, share.low, share.high, share.seeds), MEASURES[0]),
            ]
            for share in self.results.shares
        )
        yield _table(["", "share, % (95 % interval)"], rows)

    def _method_table(self, methods: Mapping[str, MethodResult]) -> str:
        measures = self._columns(methods)
        rows = (
            [_text(method.label), *(_cell(method.figures.get(measure.name), measure) for measure in measures)]
            for method in methods.values()
        )
        return _table(["", *(measure.label for measure in measures)], rows)

    def _columns(self, methods: Mapping[str, MethodResult]) -> list[Measure]:
        """The measures that any of the methods has; the reward by the name that the domain has for it."""
        labels = find_domain(str(self.results.settings.get("domain", DEFAULT))).labels
        known = {measure.name: measure for measure in MEASURES}
        known["reward"] = Measure("reward", labels.reward, labels.share)
        return [known[name] for name in COLUMNS if _has(methods.values(), known[name])]

    # -------- figures

    def _bars(self, name: str, methods: Mapping[str, MethodResult]) -> str:
        measures = [each for each in self._columns(methods) if each.name in BARS]
        rows = [
            charts.Row(method.label, number, tuple(_estimate(method, measure) for measure in measures))
            for number, method in enumerate(methods.values())
        ]
        return self._plot(name, bar_plot(rows, measures), "Bars of the table above with their intervals")

    def _best_of(self) -> Iterator[str]:
        if self.results.best_of:
            yield "## The best of N drafts, by critic"
            yield "Success of the untrained agent when a critic chooses each turn out of N drafts."
            yield from self._fewer_seeds("best_of")
            yield from self._curves("best_of", self.results.best_of, "drafts of each turn", log=True)

    def _sizes(self) -> Iterator[str]:
        if self.results.sizes:
            yield "## Number of dialogues"
            yield "Success against the number of dialogues to learn from."
            yield from self._fewer_seeds("sizes")
            yield from self._curves("sizes", self.results.sizes, "dialogues")

    def _turns(self) -> Iterator[str]:
        curves = useful_curves(self.results.methods)
        if curves:
            yield "## Turn by turn"
            yield "In how many dialogues a turn asks about a fact that matters and was not asked about before."
            yield from self._curves("turns", curves, "turn", y="useful questions")

    def _curves(
        self, name: str, curves: Sequence[Curve], x: str, *, y: str = "success", log: bool = False
    ) -> Iterator[str]:
        figure = curves_figure(name, x, curves, y=y, log=log)
        yield self._plot(name, line_plot(figure), f"{y.capitalize()} against {x}")
        places = sorted({place for curve in curves for place, _ in curve.points})
        rows = (
            [_text(curve.label), *(_cell(dict(curve.points).get(place), MEASURES[0]) for place in places)]
            for curve in curves
        )
        yield _table(["", *(f"{place:g}" for place in places)], rows)

    def _plot(self, name: str, picture: str, described: str) -> str:
        self.plots[f"{name}.svg"] = picture
        return f"![{described}]({self.folder}/{name}.svg)"

    # -------- credit

    def _credit(self) -> Iterator[str]:
        if not self.results.credit:
            return
        yield "## Credit quality"
        yield (
            "How well the advantages of each critic agree with the values that playing on from the candidates "
            "found: means over seeds, and the lowest and highest of them."
        )
        rows = (
            [_text(critic.label), *(_range(critic.by_seed.values(), name) for name in CREDIT_MEASURES)]
            for critic in self.results.credit.values()
        )
        yield _table(["", *CREDIT_MEASURES.values()], rows)


def _range(qualities: Iterable[object], name: str) -> str:
    metrics: list[Metric] = [getattr(quality, name) for quality in qualities]
    found = [metric.value for metric in metrics if metric.value is not None]
    if not found:
        return NOTHING
    return f"{fmean(found):.2f}" + (f" ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else "")


def _has(methods: Iterable[MethodResult], measure: Measure) -> bool:
    return any(_estimate(method, measure) is not None for method in methods)


def _estimate(method: MethodResult, measure: Measure) -> Estimate | None:
    return estimate_of(method.figures.get(measure.name))


def _cell(metric: Metric | None, measure: Measure) -> str:
    found = estimate_of(metric)
    if found is None:
        return NOTHING
    return f"{amount(found.value, percent=measure.percent)} ({interval(found, percent=measure.percent)})"


def _difference(step: Step) -> tuple[str, str]:
    found = estimate_of(Metric("success", step.value, step.low, step.high, step.tasks))
    if found is None:
        return NOTHING, NOTHING
    return amount(found.value, percent=True, signed=True), interval(found, percent=True, signed=True)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(label: str) -> str:
    """A label that means nothing to Markdown."""
    return "".join(f"\\{each}" if each in r"\`*_[]<>|#" else each for each in " ".join(label.split()))
