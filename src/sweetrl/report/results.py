"""The sections with numbers: results, paired differences, extra figures, training curves."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from sweetrl.evaluation.scores import FAILURES_AS_ZERO
from sweetrl.report import charts
from sweetrl.report.contents import (
    Comparison,
    Figure,
    Measure,
    Method,
    Point,
    ReportContents,
    Series,
    Training,
    unknown_measure,
)
from sweetrl.report.markup import Markup, counted, element, join
from sweetrl.report.scales import Estimate, amount, estimate_of, interval
from sweetrl.report.tables import grid, scrolling

_CURVES = {
    "loss": "loss",
    "accuracy": "pairs told apart",
    "margin": "margin",
    "nll": "negative log-likelihood",
    "learning_rate": "learning rate",
}
"""The curves that are shown, in this order, and what they are called; others follow under their own name."""
_CURVES_SHOWN = 4
_MONITORED = {
    "KL to the base model, nats per token": {"kl": ""},
    "tokens per turn": {
        "turn_tokens": "written by the model",
        "chosen_turn_tokens": "chosen in the data",
        "rejected_turn_tokens": "rejected in the data",
    },
    "held-out loss": {"held_out_loss": ""},
}
"""Metrics measured repeatedly during a run: the lines of each plot, by metric, and their names."""
BINS = 120
"""The most points of a curve; a longer one is averaged over this many stretches."""


# ---------------------------------------------------------------- results


def groups(contents: ReportContents) -> list[tuple[str, list[tuple[int, Method]]]]:
    """The methods that may be put side by side, each with its colour: those of one scorer."""
    numbered = sorted(enumerate(contents.methods), key=lambda each: _first_with(contents, each[1].scorer))
    return [(scorer, list(members)) for scorer, members in groupby(numbered, key=lambda each: each[1].scorer)]


def _first_with(contents: ReportContents, scorer: str) -> int:
    return next(number for number, method in enumerate(contents.methods) if method.scorer == scorer)


def results(contents: ReportContents) -> Markup:
    """Tables and bars, scorer by scorer."""
    found = groups(contents)
    return join(element("div", *_group(contents, *each), class_="group") for each in found)


def _group(contents: ReportContents, scorer: str, members: Sequence[tuple[int, Method]]) -> Iterator[Markup]:
    measures = measures_of(contents, [method for _, method in members])
    sound = nothing_failed(method for _, method in members)
    if sound:
        measures = [measure for measure in measures if measure.name != FAILURES_AS_ZERO]
    yield _table(members, measures, scorer)
    if sound:
        yield element("p", "No dialogue failed or is unscored, so none counts as zero.", class_="note")
    if not _same_tasks(method for _, method in members):
        yield element(
            "p",
            "These runs are on different tasks. Only paired differences compare like with like.",
            class_="warning",
        )
    drawn = [measure for measure in measures if _varies(members, measure)]
    for some in _panels(drawn):
        rows = [
            charts.Row(method.title, colour, tuple(figure(method, measure) for measure in some))
            for colour, method in members
        ]
        yield scrolling(charts.bars(rows, some))
    yield _explained(measures, drawn)


def _varies(members: Sequence[tuple[int, Method]], measure: Measure) -> bool:
    """Whether a chart adds anything: bars of equal length tell less than the table."""
    values = {
        None if found is None else found.value for _, each in members if (found := figure(each, measure))
    }
    return len(members) == 1 or len(values) > 1


def _panels(measures: Sequence[Measure]) -> Iterator[Sequence[Measure]]:
    """Rows of about as many measures each."""
    rows = -(-len(measures) // charts.PANELS)
    size = -(-len(measures) // max(rows, 1))
    return (measures[start : start + size] for start in range(0, len(measures), max(size, 1)))


def _explained(measures: Sequence[Measure], drawn: Sequence[Measure]) -> Markup:
    meanings = [
        part
        for measure in measures
        if measure.meaning
        for part in (element("dt", measure.label), element("dd", measure.meaning))
    ]
    same = [measure.label for measure in measures if measure not in drawn]
    note = element("p", f"The same for all runs, and not drawn: {'; '.join(same)}.", class_="note")
    return join([element("dl", *meanings, class_="meanings") if meanings else None, note if same else None])


def nothing_failed(methods: Iterable[Method]) -> bool:
    """Whether all methods have success with failures counted as zero, and there are none."""
    every = list(methods)
    pairs = [[_value(method, name) for name in ("success", FAILURES_AS_ZERO)] for method in every]
    # Without any success both are zero, whatever failed.
    return not any(method.unscored for method in every) and all(
        strict is not None and strict == success for success, strict in pairs
    )


def _value(method: Method, name: str) -> float | None:
    return next((metric.value for metric in method.metrics if metric.name == name), None)


def measures_of(contents: ReportContents, methods: Sequence[Method]) -> list[Measure]:
    """The columns that any of the methods has values for."""
    found = dict.fromkeys(metric.name for method in methods for metric in method.metrics if metric.count)
    known = [measure for measure in contents.measures if measure.name in found]
    names = {measure.name for measure in known}
    return known + [unknown_measure(name) for name in found if name not in names]


def figure(method: Method, measure: Measure) -> Estimate | None:
    """The result of a method in a measure."""
    return estimate_of(next((each for each in method.metrics if each.name == measure.name), None))


def _same_tasks(methods: Iterable[Method]) -> bool:
    return len({frozenset(method.tasks) for method in methods if method.tasks}) <= 1


def _table(members: Sequence[tuple[int, Method]], measures: Sequence[Measure], scorer: str) -> Markup:
    units = [measure.label + (", %" if measure.percent else "") for measure in measures]
    heads = ["run", *units, "dialogues", "unscored"]
    rows = (_row(colour, method, measures) for colour, method in members)
    by = ["; scored by ", element("code", scorer)] if scorer else []
    return grid(heads, rows, caption=join(["Means with 95 % intervals", *by, "."]), kind="results")


def _row(colour: int, method: Method, measures: Sequence[Measure]) -> Markup:
    unscored = element("strong", str(method.unscored)) if method.unscored else "0"
    return element(
        "tr",
        element("th", charts.swatch(colour), method.title, scope="row"),
        *(_cell(method, measure) for measure in measures),
        _count_cell(method),
        element("td", unscored),
    )


def _count_cell(method: Method) -> Markup:
    """Dialogues, and on how many tasks: two columns would not fit beside those of a benchmark with hidden facts."""
    tasks = counted(len(method.tasks), "task")
    return element("td", f"{method.dialogues:,}", element("span", tasks, class_="basis"))


def _cell(method: Method, measure: Measure) -> Markup:
    found = figure(method, measure)
    if found is None:
        return element("td", "–")
    return element(
        "td",
        element("span", amount(found.value, percent=measure.percent), class_="value"),
        element("span", interval(found, percent=measure.percent), class_="interval"),
    )


# ---------------------------------------------------------------- differences


def differences(contents: ReportContents) -> Markup:
    """A chart and a table for each measure that was compared."""
    known = {measure.name: measure for measure in contents.measures}
    names = {method.name: method.title for method in contents.methods}
    parts = []
    for name in dict.fromkeys(comparison.measure for comparison in contents.comparisons):
        measure = known.get(name) or unknown_measure(name)
        rows = [
            (f"{names.get(each.first, each.first)} − {names.get(each.second, each.second)}", found, each)
            for each in contents.comparisons
            if each.measure == name and (found := estimate_of(each.difference)) is not None
        ]
        chart = charts.differences([(title, found) for title, found, _ in rows], measure)
        parts.append(element("h3", measure.label[:1].upper() + measure.label[1:]))
        parts.append(scrolling(chart))
        table = _difference_table(rows, measure)
        parts.append(element("details", element("summary", "Numbers"), table, class_="numbers"))
    return join(parts)


def _difference_table(rows: Sequence[tuple[str, Estimate, Comparison]], measure: Measure) -> Markup:
    unit = ", points" if measure.percent else ""
    heads = ["first − second", f"{measure.label}{unit}", "95 % interval"]
    heads += ["better on", "equal on", "worse on", "tasks"]
    tested = any(each.p_value is not None for _, _, each in rows)
    heads += ["p"] if tested else []
    body = (
        element(
            "tr",
            element("th", title, scope="row"),
            element("td", amount(found.value, percent=measure.percent, signed=True), class_="value"),
            element("td", interval(found, percent=measure.percent, signed=True)),
            *(element("td", str(count)) for count in (each.wins, each.ties, each.losses, found.items)),
            element("td", "" if each.p_value is None else _p_text(each.p_value)) if tested else None,
        )
        for title, found, each in rows
    )
    return grid(heads, body, kind="results")


def _p_text(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# ---------------------------------------------------------------- figures


def figures(contents: ReportContents) -> Markup:
    """Each extra figure with its legend, caption and numbers."""
    methods = {method.name: number for number, method in enumerate(contents.methods)}
    return element("div", *(_figure(each, methods) for each in contents.figures), class_="figures")


def _figure(figure: Figure, methods: Mapping[str, int]) -> Markup:
    colours = [methods.get(series.method, number) for number, series in enumerate(figure.series)]
    named = [
        (colour, series.label) for colour, series in zip(colours, figure.series, strict=True) if series.label
    ]
    return element(
        "figure",
        element("h3", figure.title),
        element("p", figure.y_label + (", %" if figure.percent else ""), class_="axis-title"),
        charts.line_plot(figure, colours),
        charts.legend(named) if named else None,
        element("figcaption", figure.caption) if figure.caption else None,
        charts.points_table(figure),
    )


# ---------------------------------------------------------------- training


def trainings(contents: ReportContents) -> Markup:
    """A row of small plots for each training run."""
    return join(_training(each, number) for number, each in enumerate(contents.trainings))


def _training(training: Training, number: int) -> Markup:
    facts = " · ".join(f"{name} {value}" for name, value in training.facts)
    return element(
        "section",
        element("h3", training.label),
        element("p", facts, class_="note") if facts else None,
        element("div", *(_curve(figure, number) for figure in curves(training)), class_="curves"),
        class_="training",
    )


def curves(training: Training) -> list[Figure]:
    """The plots of a training run, the important ones first, then those that show collapse."""
    known = [name for name in _CURVES if name in training.curves]
    apart = {*_CURVES, *(name for lines in _MONITORED.values() for name in lines)}
    every = known + [name for name in training.curves if name not in apart]
    names = [name for name in every if _changes(training.curves[name])][:_CURVES_SHOWN]
    logged = [
        Figure(
            title=_CURVES.get(name, name.replace("_", " ")),
            x_label="step",
            y_label=_CURVES.get(name, name),
            series=(Series("", thinned(training.curves[name])),),
            percent=name == "accuracy",
        )
        for name in names
    ]
    return logged + list(_monitored(training))


def _monitored(training: Training) -> Iterator[Figure]:
    for title, lines in _MONITORED.items():
        series = tuple(
            Series(label, thinned(training.curves[name]))
            for name, label in lines.items()
            if name in training.curves
        )
        if any(_changes(training.curves[name]) for name in lines if name in training.curves):
            yield Figure(title=title, x_label="step", y_label=title, series=series)


def _changes(points: Sequence[tuple[float, float]]) -> bool:
    """Whether there is anything to draw: a constant is uninformative; a single point is a result."""
    return len(points) == 1 or len({value for _, value in points}) > 1


def _curve(figure: Figure, number: int) -> Markup:
    title = figure.title + (", %" if figure.percent else "")
    colours = [number + place for place in range(len(figure.series))]
    plot = charts.line_plot(figure, colours, width=250, height=165)
    named = [(colour, each.label) for colour, each in zip(colours, figure.series, strict=True) if each.label]
    legend = charts.legend(named) if named else None
    return element("figure", element("figcaption", title, class_="panel-title"), plot, legend)


def thinned(points: Sequence[tuple[float, float]]) -> tuple[Point, ...]:
    """The points; of many, means over stretches of equal length, with the middle 80 % as their interval."""
    if len(points) <= BINS:
        return tuple(Point(x, y) for x, y in points)
    ends = [number * len(points) // BINS for number in range(BINS + 1)]
    return tuple(_stretch(points[start:end]) for start, end in pairwise(ends))


def _stretch(points: Sequence[tuple[float, float]]) -> Point:
    values = sorted(y for _, y in points)
    tail = len(values) // 10
    return Point(points[-1][0], sum(values) / len(values), values[tail], values[-1 - tail])
