"""Charts as SVG files that stand alone, with a style, a ground and a legend of their own."""

from collections.abc import Sequence

from sweetrl.report import charts
from sweetrl.report.contents import Figure, Measure
from sweetrl.report.markup import Markup, element, join

LINE_WIDTH, LINE_HEIGHT = 560, 320
LEGEND_ROW = 22
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0578d", "#8a6d00", "#3d9fd6", "#5c6670", "#6a51a3")
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1b1f23; }
.tick, .axis-title { font-size: 11.5px; fill: #5c6670; }
.panel-title { fill: #5c6670; }
.grid { stroke: #e9ecee; }
.zero { stroke: #5c6670; stroke-opacity: .6; }
.whisker { stroke: #1b1f23; stroke-width: 1.4; stroke-opacity: .75; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.band { fill-opacity: .14; }
.hit { fill: none; }
.difference circle { fill: #5c6670; }
.difference.plus circle { fill: #2166ac; }
.difference.minus circle { fill: #b35806; }
"""


def bar_plot(rows: Sequence[charts.Row], measures: Sequence[Measure]) -> str:
    """Bars with their intervals."""
    drawing = charts.bars(rows, measures)
    return _file(drawing, charts.WIDTH, 28 + charts.ROW * len(rows) + 24)


def line_plot(figure: Figure) -> str:
    """Lines with their intervals, and what they are called."""
    entries = [(number, series.label) for number, series in enumerate(figure.series)]
    colours = [number for number, _ in entries]
    drawing = charts.line_plot(figure, colours, width=LINE_WIDTH, height=LINE_HEIGHT)
    return _file(drawing, LINE_WIDTH, LINE_HEIGHT, entries)


def _file(drawing: Markup, width: int, height: int, legend: Sequence[tuple[int, str]] = ()) -> str:
    whole = height + LEGEND_ROW * len(legend) + (8 if legend else 0)
    placed = drawing.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
    content = join(
        [
            element("style", Markup(_STYLE + _series_style())),
            element("rect", width="100%", height="100%", fill="#ffffff"),
            Markup(placed),
            *(
                _entry(number, label, height + 12 + LEGEND_ROW * row)
                for row, (number, label) in enumerate(legend)
            ),
        ]
    )
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}">'
    return f"{opening}{content}</svg>\n"


def _series_style() -> str:
    return "".join(
        f".series-{number} .line {{ stroke: {colour}; }} "
        f".series-{number} .band, .series-{number} .mark, .series-{number} rect:not(.hit) {{ fill: {colour}; }}\n"
        for number, colour in enumerate(_COLOURS)
    )


def _entry(number: int, label: str, y: float) -> Markup:
    return element(
        "g",
        charts.mark(number, 60, y),
        element("text", label, x=72, y=y + 4.5),
        class_=charts.colour_class(number),
    )
