"""Charts as SVG: bars and differences with their intervals, and lines.

They are drawn in CSS pixels at the size they are meant for and coloured by classes, so that the page's style
decides about light and dark. Whatever has a `data-tip` shows it under the pointer.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sweetrl.report.contents import Figure, Measure, Point, Series
from sweetrl.report.markup import Markup, element, excerpt
from sweetrl.report.scales import Estimate, Scale, amount, collide, extent, interval, plain, roomy_ticks
from sweetrl.report.tables import grid

COLOURS = 8
"""Series have colours and marks of their own up to this number; then they start again."""

WIDTH = 1000
LABEL = 210
CHARACTER = 7.5
"""Of a label, about; a narrow screen should not begin with an empty column."""
ROW = 30
PANELS = 4
"""Measures side by side; more go below, or their names and numbers would run into each other."""
_LABEL_CHARACTERS = 26
_PAIR_CHARACTERS = 42
"""Of the names of two runs."""


def colour_class(index: int) -> str:
    """The class that gives the `index`-th method or series its colour."""
    return f"series-{index % COLOURS}"


def swatch(index: int) -> Markup:
    """A spot of that colour beside a name."""
    return element("span", class_=f"swatch {colour_class(index)}", aria_hidden="true")


def _drawing(width: float, height: float, description: str, *children: str | None, kind: str) -> Markup:
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        class_=kind,
        role="img",
        aria_label=description,
        preserveAspectRatio="xMinYMin meet",
    )


def _label(content: str, x: float, y: float, *, anchor: str = "start", kind: str = "") -> Markup:
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=kind or None)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


# ---------------------------------------------------------------- bars


@dataclass(frozen=True)
class Row:
    """A label with a value for each panel; None where a value is missing."""

    label: str
    colour: int
    figures: tuple[Estimate | None, ...]


def bars(rows: Sequence[Row], measures: Sequence[Measure]) -> Markup:
    """A panel for each measure with a bar for each row, aligned."""
    height = 28 + ROW * len(rows) + 24
    gap, titles = 44.0, [excerpt(row.label, _LABEL_CHARACTERS) for row in rows]
    column = min(LABEL, _widest(titles) + 6)
    width = (WIDTH - column - gap * len(measures)) / max(len(measures), 1)
    names = [
        _label(title, column - 6, _middle(number) + 4, anchor="end") for number, title in enumerate(titles)
    ]
    panels = [
        _bar_panel(rows, number, measure, column + gap / 2 + number * (width + gap), width)
        for number, measure in enumerate(measures)
    ]
    described = "Bars with 95 % intervals: " + ", ".join(each.label for each in measures)
    return _drawing(WIDTH, height, described, *names, *panels, kind="chart bars")


def _widest(labels: Sequence[str]) -> float:
    return CHARACTER * max(map(len, labels), default=0)


def _middle(row: int) -> float:
    return 28 + ROW * (row + 0.5)


def _bar_panel(rows: Sequence[Row], panel: int, measure: Measure, left: float, width: float) -> Markup:
    found = [(number, row, row.figures[panel]) for number, row in enumerate(rows)]
    ends = [
        end for *_, figure in found if figure is not None for end in (figure.value, figure.low, figure.high)
    ]
    scale = Scale(*extent(ends, zero=True, share=measure.percent), left, left + width)
    bottom = 28.0 + ROW * len(rows)
    unit = ", %" if measure.percent else ""
    return element(
        "g",
        _label(measure.label + unit, left, 16, kind="panel-title"),
        *_vertical_grid(scale, 28, bottom, percent=measure.percent),
        *(_bar(figure, measure, row, scale, number) for number, row, figure in found if figure is not None),
    )


def _vertical_grid(scale: Scale, top: float, bottom: float, *, percent: bool) -> Iterator[Markup]:
    def label(tick: float) -> str:
        return plain(100 * tick if percent else tick)

    for tick in roomy_ticks(scale, 4, label):
        x = scale(tick)
        yield _line(x, top, x, bottom, "zero" if abs(tick) < 1e-12 else "grid")
        yield _label(label(tick), x, bottom + 16, anchor="middle", kind="tick")


def _bar(figure: Estimate, measure: Measure, row: Row, scale: Scale, number: int) -> Markup:
    y, zero, end = _middle(number), scale(0.0), scale(figure.value)
    value = amount(figure.value, percent=measure.percent)
    spread = interval(figure, percent=measure.percent)
    tip = f"{row.label}: {measure.label} {value} ({spread}), n = {figure.items}"
    return element(
        "g",
        element("rect", x=min(zero, end), y=y - 8, width=max(abs(end - zero), 1.0), height=16, rx=2),
        *_whisker(figure, scale, y),
        # Wide and invisible, so that thin bars can be pointed at.
        element(
            "rect", x=scale.start, y=y - ROW / 2, width=scale.stop - scale.start, height=ROW, class_="hit"
        ),
        class_=f"bar {colour_class(row.colour)}",
        data_tip=tip,
    )


def _whisker(figure: Estimate, scale: Scale, y: float) -> tuple[Markup, ...]:
    low, high = scale(figure.low), scale(figure.high)
    return (
        _line(low, y, high, y, "whisker"),
        _line(low, y - 4, low, y + 4, "whisker"),
        _line(high, y - 4, high, y + 4, "whisker"),
    )


# ---------------------------------------------------------------- differences


def differences(rows: Sequence[tuple[str, Estimate]], measure: Measure) -> Markup:
    """A dot with its interval for each named difference, on both sides of zero."""
    names = [excerpt(name, _PAIR_CHARACTERS) for name, _ in rows]
    left, bottom = min(330.0, _widest(names) + 14), 28.0 + ROW * len(rows)
    ends = [end for _, figure in rows for end in (figure.low, figure.high)]
    scale = Scale(*extent(ends, zero=True), left, WIDTH - 30)
    title = f"difference in {measure.label}{', percentage points' if measure.percent else ''}"
    return _drawing(
        WIDTH,
        bottom + 44,
        f"Paired differences in {measure.label} with 95 % intervals",
        *_vertical_grid(scale, 12, bottom, percent=measure.percent),
        *(_difference(name, figure, measure, scale, row) for row, (name, figure) in enumerate(rows)),
        _label(title, (left + WIDTH - 30) / 2, bottom + 36, anchor="middle", kind="tick"),
        kind="chart differences",
    )


def _difference(name: str, figure: Estimate, measure: Measure, scale: Scale, row: int) -> Markup:
    y = _middle(row) - 12
    sign = "plus" if figure.low > 0 else "minus" if figure.high < 0 else "unclear"
    value = amount(figure.value, percent=measure.percent, signed=True)
    tip = f"{name}: {value} ({interval(figure, percent=measure.percent, signed=True)}), {figure.items} tasks"
    return element(
        "g",
        _label(excerpt(name, _PAIR_CHARACTERS), scale.start - 14, y + 4, anchor="end"),
        *_whisker(figure, scale, y),
        element("circle", cx=scale(figure.value), cy=y, r=5),
        element(
            "rect", x=scale.start, y=y - ROW / 2, width=scale.stop - scale.start, height=ROW, class_="hit"
        ),
        class_=f"difference {sign}",
        data_tip=tip,
    )


# ---------------------------------------------------------------- lines


@dataclass(frozen=True)
class _Frame:
    """Maps the values of a line plot to places."""

    x: Scale
    y: Scale
    percent: bool

    def place(self, point: Point) -> tuple[float, float]:
        return self.x(point.x), self.y(point.y)


def line_plot(figure: Figure, colours: Sequence[int], *, width: float = 500, height: float = 290) -> Markup:
    """The lines of a figure with their intervals, in these colours."""
    frame = _frame(figure, width, height)
    lines = [
        _line_of(series, frame, figure, colour)
        for colour, series in zip(colours, figure.series, strict=True)
        if series.points
    ]
    described = f"{figure.title}: {figure.y_label} against {figure.x_label}"
    return _drawing(
        width,
        height,
        described,
        *_axes(frame, figure, width, height),
        *lines,
        kind="chart lines",
    )


def _frame(figure: Figure, width: float, height: float) -> _Frame:
    points = [point for series in figure.series for point in series.points]
    values = [value for point in points for value in (point.y, point.low, point.high) if value is not None]
    places = [point.x for point in points] or [0.0, 1.0]
    low, high = min(places), max(places)
    logarithmic = figure.log_x and low > 0 and high > low
    return _Frame(
        Scale(low, high, 52, width - 16, logarithmic=logarithmic),
        Scale(*extent(values, zero=figure.percent, share=figure.percent), height - 44, 12),
        figure.percent,
    )


def _axes(frame: _Frame, figure: Figure, width: float, height: float) -> Iterator[Markup]:
    for tick in frame.y.ticks(5):
        y = frame.y(tick)
        yield _line(52, y, width - 16, y, "zero" if abs(tick) < 1e-12 else "grid")
        yield _label(plain(100 * tick if frame.percent else tick), 46, y + 4, anchor="end", kind="tick")
    for tick in _x_ticks(frame.x, figure):
        yield _label(plain(tick), frame.x(tick), height - 26, anchor="middle", kind="tick")
    yield _label(figure.x_label, (52 + width - 16) / 2, height - 6, anchor="middle", kind="axis-title")


def _x_ticks(scale: Scale, figure: Figure) -> list[float]:
    """The places that were measured, if they are few; else round numbers."""
    places = sorted({point.x for series in figure.series for point in series.points})
    if len(places) <= 12 and not collide(scale, places, plain):
        return places
    return roomy_ticks(scale, 6, plain)


def _line_of(series: Series, frame: _Frame, figure: Figure, number: int) -> Markup:
    points = [point for point in series.points if math.isfinite(point.y)]
    return element(
        "g",
        _band(points, frame),
        element("path", d=_path([frame.place(point) for point in points]), class_="line"),
        *(_mark(point, series, frame, figure, number) for point in points if len(points) <= 40),
        *(_hit(point, series, frame, figure) for point in points if len(points) > 40),
        class_=colour_class(number),
    )


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""


def _band(points: Sequence[Point], frame: _Frame) -> Markup | None:
    """The intervals as an area; of a lone point, as a line."""
    spread = [(point.x, point.low, point.high) for point in points if point.low is not None]
    ends = [(frame.x(x), frame.y(low), frame.y(high)) for x, low, high in spread if high is not None]
    if not ends:
        return None
    if len(ends) == 1:
        [(x, low, high)] = ends
        return _line(x, low, x, high, "whisker")
    around = [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]
    return element("path", d=_path(around) + "Z", class_="band")


_MARKS = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
    "M-3.6 -3.6H3.6V3.6H-3.6Z",
    "M0 -4.6L4.6 3.6H-4.6Z",
    "M0 -5L5 0L0 5L-5 0Z",
)
"""Disc, square, triangle, diamond: series differ in more than colour."""


def _mark(point: Point, series: Series, frame: _Frame, figure: Figure, number: int) -> Markup:
    x, y = frame.place(point)
    shape = element("path", d=_MARKS[number % len(_MARKS)], class_="mark")
    around = element("circle", r=12, class_="hit")
    place = f"translate({x:.1f} {y:.1f})"
    return element("g", shape, around, transform=place, data_tip=tip_of(point, series, figure))


def _hit(point: Point, series: Series, frame: _Frame, figure: Figure) -> Markup:
    x, y = frame.place(point)
    return element("circle", cx=x, cy=y, r=5, class_="hit dot", data_tip=tip_of(point, series, figure))


def tip_of(point: Point, series: Series, figure: Figure) -> str:
    """One point in words."""
    spread = ""
    if point.low is not None and point.high is not None:
        ends = (_y_text(end, figure) for end in (point.low, point.high))
        spread = f" ({' to '.join(ends)})"
    name = f"{series.label}, " if series.label else ""
    return f"{name}{figure.x_label} {plain(point.x)}: {_y_text(point.y, figure)}{spread}"


def _y_text(value: float, figure: Figure) -> str:
    return amount(value, percent=True) + " %" if figure.percent else plain(value)


def mark(number: int, x: float, y: float) -> Markup:
    """The mark of a series, somewhere on a drawing."""
    return element("path", d=_MARKS[number % len(_MARKS)], class_="mark", transform=f"translate({x:g} {y:g})")


def legend(entries: Sequence[tuple[int, str]]) -> Markup:
    """Colours, marks and names."""
    return element(
        "ul",
        *(
            element(
                "li",
                element(
                    "svg",
                    mark(number, 7, 7),
                    viewBox="0 0 14 14",
                    aria_hidden="true",
                ),
                name,
                class_=colour_class(number),
            )
            for number, name in entries
        ),
        class_="legend",
    )


# ---------------------------------------------------------------- advantages


def advantage_bar(value: float, scale: float) -> Markup:
    """A bar to the right of the middle for what helped, to the left for what did harm."""
    share = 0.0 if scale <= 0 else max(-1.0, min(1.0, value / scale))
    length = max(abs(share) * 46, 1.0)
    return element(
        "svg",
        element("rect", x=50 if share >= 0 else 50 - length, y=2, width=length, height=10, rx=1.5)
        if share
        else None,
        _line(50, 0, 50, 14, "axis"),
        viewBox="0 0 100 14",
        class_=f"advantage {'plus' if share >= 0 else 'minus'}",
        aria_hidden="true",
    )


def points_table(figure: Figure) -> Markup:
    """The numbers behind a figure, for those who cannot or would rather not look at it."""
    rows = [
        element(
            "tr",
            element("th", series.label or figure.y_label, scope="row"),
            element("td", plain(point.x)),
            element("td", _y_text(point.y, figure)),
            element("td", "" if point.low is None else _y_text(point.low, figure)),
            element("td", "" if point.high is None else _y_text(point.high, figure)),
        )
        for series in figure.series
        for point in series.points
    ]
    table = grid(("", figure.x_label, figure.y_label, "from", "to"), rows)
    return element("details", element("summary", "Numbers"), table, class_="numbers")
