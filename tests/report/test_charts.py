import pytest

from report.reading import read
from sweetrl.report import charts
from sweetrl.report.contents import Figure, Measure, Point, Series
from sweetrl.report.scales import Estimate

SUCCESS, TURNS = Measure("success", "success"), Measure("turns", "turns", percent=False)


def number(node, name):
    return float(node.attributes[name])


def test_bars_are_as_long_as_their_values_and_whiskers_as_their_intervals():
    rows = [
        charts.Row("base", 0, (Estimate(0.2, 0.1, 0.3, 50), Estimate(4.0, 3.0, 5.0, 50))),
        charts.Row("sweet", 1, (Estimate(0.4, 0.3, 0.5, 50), None)),
    ]
    drawn = read(charts.bars(rows, [SUCCESS, TURNS]))
    first, second, turns = drawn.all("g", "bar")
    lengths = [number(bar.all("rect")[0], "width") for bar in (first, second)]
    assert lengths[1] == pytest.approx(2 * lengths[0], abs=0.05)
    whisker = second.all("line", "whisker")[0]
    assert number(whisker, "x2") - number(whisker, "x1") == pytest.approx(lengths[0], abs=0.05)
    assert first.attributes["data-tip"] == "base: success 20.0 (10.0 to 30.0), n = 50"
    assert turns.attributes["data-tip"] == "base: turns 4.00 (3.00 to 5.00), n = 50"
    assert [bar.classes[1] for bar in (first, second, turns)] == ["series-0", "series-1", "series-0"]
    assert [node.text for node in drawn.all("text", "panel-title")] == ["success, %", "turns"]


def test_the_rows_of_all_panels_are_aligned():
    rows = [charts.Row(name, 0, (Estimate(0.2, 0.1, 0.3, 5),) * 2) for name in "ab"]
    drawn = read(charts.bars(rows, [SUCCESS, TURNS]))
    heights = [number(bar.all("rect")[0], "y") for bar in drawn.all("g", "bar")]
    assert heights[:2] == heights[2:]
    assert heights[0] < heights[1]


def test_a_difference_is_coloured_only_if_its_interval_excludes_zero():
    rows = [
        ("up", Estimate(0.1, 0.05, 0.15, 9)),
        ("down", Estimate(-0.1, -0.15, -0.05, 9)),
        ("who knows", Estimate(0.1, -0.01, 0.2, 9)),
    ]
    drawn = read(charts.differences(rows, SUCCESS))
    assert [group.classes[1] for group in drawn.all("g", "difference")] == ["plus", "minus", "unclear"]
    places = [number(dot, "cx") for dot in drawn.all("circle")]
    zero = number(drawn.one("line", "zero"), "x1")
    assert places[1] < zero < places[0]


FIGURE = Figure(
    "Best of N",
    "candidates",
    "success",
    (
        Series("critic", (Point(1, 0.1, 0.08, 0.12), Point(4, 0.2, 0.17, 0.23))),
        Series("chance", (Point(1, 0.1), Point(4, 0.1))),
    ),
    percent=True,
    log_x=True,
)


def test_the_column_of_labels_is_as_wide_as_they_are():
    estimate = Estimate(0.2, 0.1, 0.3, 40)
    short, long = (
        read(charts.differences([(name, estimate)], Measure("success", "success", True)))
        for name in ("a − b", "a run with a long name − another one")
    )
    left = [number(each.one("rect", "hit"), "x") for each in (short, long)]
    assert left[0] < 100 < 200 < left[1] <= 330


def test_lines_have_marks_bands_and_words():
    drawn = read(charts.line_plot(FIGURE, [0, 5]))
    lines = [group for group in drawn.all("g") if group.all("path", "line")]
    assert [line.classes[0] for line in lines] == ["series-0", "series-5"]
    assert [len(line.all("path", "band")) for line in lines] == [1, 0]
    assert [mark.attributes["data-tip"] for mark in lines[0].all("g")] == [
        "critic, candidates 1: 10.0 % (8.0 % to 12.0 %)",
        "critic, candidates 4: 20.0 % (17.0 % to 23.0 %)",
    ]
    assert drawn.one("svg").attributes["aria-label"] == "Best of N: success against candidates"


def test_higher_values_are_drawn_higher():
    path = read(charts.line_plot(FIGURE, [0, 1])).all("path", "line")[0].attributes["d"]
    (_, first), (_, last) = [place.split() for place in path.removeprefix("M").split("L")]
    assert float(last) < float(first)


def test_the_numbers_behind_a_figure_are_a_table():
    table = read(charts.points_table(FIGURE)).one("table")
    rows = [[cell.text for cell in row.children] for row in table.one("tbody").all("tr")]
    assert rows[1] == ["critic", "4", "20.0 %", "17.0 %", "23.0 %"]
    assert rows[3] == ["chance", "4", "10.0 %", "", ""]


def test_empty_series_and_single_points_are_no_trouble():
    lone = Figure("t", "x", "y", (Series("a", (Point(3, 1.0, 0.5, 1.5),)), Series("b", ())))
    drawn = read(charts.line_plot(lone, [0, 1]))
    assert len(drawn.all("line", "whisker")) == 1
    read(charts.line_plot(Figure("t", "x", "y", ()), []))


def test_advantages_go_right_or_left_of_the_middle_by_their_size():
    def bar(value):
        drawn = read(charts.advantage_bar(value, 0.5))
        return drawn.one("svg").classes[1], [
            (number(rect, "x"), number(rect, "width")) for rect in drawn.all("rect")
        ]

    assert bar(0.5) == ("plus", [(50, 46)])
    assert bar(-0.25) == ("minus", [(27, 23)])
    assert bar(0.0) == ("plus", [])
    assert bar(99.0) == ("plus", [(50, 46)])
