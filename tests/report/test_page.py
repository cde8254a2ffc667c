import base64
import hashlib
import re
from dataclasses import replace

import msgspec
import pytest

from report.reading import cells, read
from report.samples import credit, episode, records, verdict
from sweetrl.report import (
    Comparison,
    Figure,
    Method,
    Point,
    Provenance,
    ReportContents,
    Run,
    Series,
    TaskScore,
    Training,
    compose,
    render,
)
from sweetrl.report import tasks as tasks_section
from sweetrl.report.results import BINS, curves, thinned
from sweetrl.types import Ending, Metric, Reply, TokenCredit, Turn


def section(contents, name):
    page = read(render(contents))
    return next(node for node in page.all("section") if node.attributes.get("id") == name)


def run(name, rewards, **more):
    return Run(name, *records(rewards), **more)


TWO = compose(
    "Two runs",
    [run("base", {"a": 0.0, "b": 1.0, "c": 0.5}), run("sweet", {"a": 1.0, "b": 1.0, "c": None})],
    summary="First.\n\nSecond.",
)


def test_only_our_style_and_our_script_are_allowed():
    page = read(render(TWO))
    [policy] = [
        node.attributes["content"]
        for node in page.all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    assert parts["img-src"] == "data:"
    for name in ("style", "script"):
        content = page.one(name).text
        hashed = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert parts[f"{name}-src"] == f"'sha256-{hashed}'"


def test_no_element_has_a_style_or_a_handler_of_its_own():
    names = {name for node in read(render(TWO)).all() for name in node.attributes}
    assert not any(name == "style" or name.startswith("on") for name in names)


def test_the_page_has_a_title_a_summary_and_links_to_its_sections():
    page = read(render(TWO))
    assert page.one("title").text == page.one(class_="kicker").text == "Two runs"
    assert page.one("h1").text.replace("\N{NO-BREAK SPACE}", " ") == TWO.headline
    assert page.one("header").one(class_="task").text == TWO.task
    assert [node.text for node in page.one(class_="summary").all("p")] == ["First.", "Second."]
    links = [node.attributes["href"] for node in page.one("nav").all("a")]
    assert links == ["#opening", "#results", "#differences", "#tasks", "#dialogues"]
    assert {node.attributes.get("id") for node in page.all("section")} >= {link[1:] for link in links}


def test_sections_without_contents_are_left_out():
    page = read(render(ReportContents("Nothing")))
    assert page.all("section") == []
    assert page.all("nav") == []


def test_results_are_a_table_with_intervals_counts_and_unscored_apart():
    table = section(TWO, "results").one("table", "results")
    head, base, sweet = cells(table)
    measures = ["success, %", "success, failures = 0, %", "tests passed, %", "turns"]
    assert head == ["run", *measures, "dialogues", "unscored"]
    assert (base[0], base[5:]) == ("base", ["33 tasks", "0"])
    assert (sweet[0], sweet[5:]) == ("sweet", ["32 tasks", "1"])
    assert sweet[2].startswith("66.7")
    assert sweet[1].startswith("100.0")
    assert re.fullmatch(r"33\.3\d+\.\d to \d+\.\d", base[1])


def test_failures_have_a_column_only_where_there_are_any():
    whole = compose("t", [run("base", {"a": 0.0, "b": 1.0}), run("sweet", {"a": 1.0, "b": 1.0})])
    head, *_ = cells(section(whole, "results").one("table", "results"))
    assert head == ["run", "success, %", "tests passed, %", "turns", "dialogues", "unscored"]
    assert "No dialogue failed" in section(whole, "results").text
    hopeless = compose("t", [run("base", {"a": 0.0, "b": None})])  # success is zero either way
    for some in (TWO, hopeless):
        assert "No dialogue failed" not in section(some, "results").text


def test_runs_on_different_tasks_come_with_a_warning():
    assert "different tasks" in section(TWO, "results").text
    same = compose("t", [run("base", {"a": 0.0, "b": 1.0}), run("sweet", {"a": 1.0, "b": 1.0})])
    assert "different tasks" not in section(same, "results").text


def test_runs_of_other_scorers_have_tables_of_their_own():
    pages = Run("pages", *records({"p": 0.6}, scorer="frontend-layout/1"))
    contents = compose("t", [run("base", {"a": 1.0}), pages, run("sweet", {"a": 0.0})])
    tables = section(contents, "results").all("table", "results")
    assert [[row[0] for row in cells(table)[1:]] for table in tables] == [["base", "sweet"], ["pages"]]
    assert "similarity, %" in cells(tables[1])[0]


def test_metrics_of_unknown_names_are_shown_under_them():
    method = Method(
        "m", metrics=(Metric("wall_seconds", 12.0, 11.0, 13.0, 4), Metric("nothing", None, None, None, 0))
    )
    head, row = cells(section(ReportContents("t", methods=(method,)), "results").one("table", "results"))
    assert head[1] == "wall seconds"
    assert row[1] == "12.0011.00 to 13.00"
    assert "nothing" not in head


def test_differences_name_both_runs_and_their_measure():
    comparison = Comparison(
        "sweet", "base", "success", Metric("success", 0.064, 0.03, 0.1, 300), 46, 220, 34, 0.0004
    )
    methods = (Method("base", "Base"), Method("sweet", "SWEET"))
    shown = section(ReportContents("t", methods=methods, comparisons=(comparison,)), "differences")
    [_, row] = cells(shown.one("table"))
    assert row == ["SWEET − Base", "+6.4", "+3.0 to +10.0", "46", "220", "34", "300", "< 0.001"]
    assert "plus" in shown.one("g", "difference").classes


def test_who_beats_whom_is_counted_on_common_tasks():
    rewards = {"a": (1.0, 0.0), "b": (1.0, 1.0), "c": (0.0, 1.0), "d": (0.0, 1.0)}
    runs = [run(name, {task: each[i] for task, each in rewards.items()}) for i, name in enumerate("xy")]
    shown = section(compose("t", runs), "tasks")
    _, first, second = cells(shown.one("table", "matrix"))
    assert (first, second) == (["x", "·", "1"], ["y", "2", "·"])
    rows = shown.one(class_="task-list").all(class_="task")
    assert [row.attributes["data-values"] for row in rows] == ["1,0", "1,1", "0,1", "0,1"]
    assert "✓ 1/1" in rows[0].text
    assert "✗ 0/1" in rows[0].text


def test_pages_are_compared_by_their_similarity():
    runs = [
        Run(name, *records({"p": reward}, scorer="frontend-clip/1"))
        for name, reward in (("x", 0.61), ("y", 1.0))
    ]
    [row] = section(compose("t", runs), "tasks").one(class_="task-list").all(class_="task")
    assert row.attributes["data-values"] == "0.61,1"
    assert [cell.text for cell in row.one("summary", "row").all(class_="score")] == ["x 0.610", "y 1.000"]


def test_a_long_list_keeps_the_tasks_that_differ_and_counts_the_others(monkeypatch):
    monkeypatch.setattr(tasks_section, "ROWS", 3)
    same = {f"same{number}": 0.0 for number in range(5)}
    runs = [run("x", {**same, "z": 1.0}), run("y", {**same, "z": 0.0})]
    shown = section(compose("t", runs), "tasks")
    rows = shown.one(class_="task-list").all(class_="task")
    names = [row.one(class_="name").one("code").text for row in rows]
    assert "z" in names
    assert len(names) == 3
    assert "3 more tasks are left out" in shown.text


def test_training_curves_are_drawn_by_step_the_important_ones_first():
    points = tuple((step, 1 / step) for step in range(1, 30))
    training = Training("critic", dict.fromkeys(("zeta", "margin", "loss", "accuracy", "grad_norm"), points))
    assert [figure.title for figure in curves(training)] == ["loss", "pairs told apart", "margin", "zeta"]
    shown = section(ReportContents("t", trainings=(training,)), "training")
    assert len(shown.all("svg", "lines")) == 4


def test_what_is_constant_is_not_drawn():
    points = ((1, 0.5), (2, 0.5))
    falling = ((1, 0.5), (2, 0.4))
    training = Training("c", {"loss": falling, "learning_rate": points, "chosen_turn_tokens": points})
    assert [figure.title for figure in curves(training)] == ["loss"]
    runs = [run("base", {"a": 0.0, "b": 1.0}), run("sweet", {"a": 1.0, "b": 1.0})]
    shown = section(compose("t", runs), "results")
    assert [each.text for each in shown.all("text", "panel-title")] == ["success, %", "tests passed, %"]
    assert "The same for all runs, and not drawn: turns." in shown.text


def test_what_shows_collapse_has_plots_of_its_own_however_much_else_was_logged():
    logged = dict.fromkeys(("loss", "accuracy", "margin", "nll", "other"), ((1, 1.0), (2, 0.5)))
    watched = {
        "kl": ((0, 0.0), (2, 0.3)),
        "turn_tokens": ((0, 9.0), (2, 2.0)),
        "chosen_turn_tokens": ((0, 4.0), (2, 4.0)),
        "held_out_loss": ((0, 1.0), (2, 0.9)),
    }
    found = curves(Training("policy", logged | watched))[4:]
    assert [figure.title for figure in found] == [
        "KL to the base model, nats per token",
        "tokens per turn",
        "held-out loss",
    ]
    assert [series.label for series in found[1].series] == ["written by the model", "chosen in the data"]
    shown = section(ReportContents("t", trainings=(Training("policy", logged | watched),)), "training")
    assert "written by the model" in shown.text


def test_long_curves_become_means_over_stretches():
    points = [(step, float(step % 10)) for step in range(1, 10_001)]
    shown = thinned(points)
    assert len(shown) == BINS
    assert shown[-1].x == 10_000
    assert all(point.y == pytest.approx(4.5, abs=0.2) for point in shown)
    assert all(point.low <= point.y <= point.high for point in shown)
    assert thinned(points[:50])[7] == Point(8, 8.0)


def test_figures_take_the_colours_of_their_methods():
    figure = Figure("f", "x", "y", (Series("second", (Point(1, 1), Point(2, 2)), "b"),))
    contents = ReportContents("t", methods=(Method("a"), Method("b")), figures=(figure,))
    shown = section(contents, "figures")
    assert shown.one("li").classes == ["series-1"]
    assert len(shown.all("g", "series-1")) == 1


def test_dialogues_show_turns_credit_and_verdict():
    contents = compose("t", [run("base", {"a": 0.7}, credit=credit("a", [0.25, -0.5]))])
    shown = section(contents, "dialogues").one("details", "dialogue")
    agent, collaborator = shown.all("li", "agent"), shown.all("li", "collaborator")
    assert [each.one(class_="bubble").text for each in collaborator] == ["Yes."]
    assert [each.one(class_="credit").one(class_="value").text for each in agent] == ["+0.250", "−0.500"]
    assert [each.one("svg").classes[1] for each in agent] == ["plus", "minus"]
    assert "def double(x):" in agent[1].one("pre").text
    assert "7 of 10 hidden tests passed, reward 0.700" in shown.one(class_="verdict").text
    assert len(shown.all("li", "passed")) == 7
    assert "returned 3" in shown.all("li", "wrong")[0].text


def test_dialogues_show_what_the_agents_own_words_broke():
    held = episode("a")
    unread = msgspec.structs.replace(held.turns[0], reply=Reply("Too long.", excuse="context_length"))
    silent = Turn("", "", unfinished=True, trouble="agent: <b>content_filter")
    held = msgspec.structs.replace(held, turns=(unread, silent), ending=Ending.BROKE_OFF)
    shown = section(compose("t", [Run("base", [held], [verdict("a", 0.0)])]), "dialogues")
    assert shown.all("li", "collaborator")[0].one(class_="who").text == "colleague · no reply: context_length"
    assert shown.all("li", "agent")[1].one(class_="who").text == "agent · turn 2 · agent: <b>content_filter"
    assert "2 turns, broke off" in shown.text


def test_what_was_unscored_says_why_and_not_zero():
    shown = section(compose("t", [Run("base", [episode("a")], [verdict("a", None)])], examples=1), "results")
    assert cells(shown.one("table", "results"))[1][-1] == "1"
    both = compose(
        "t", [Run("base", [episode("a"), episode("a", 1)], [verdict("a", None), verdict("a", 1.0, 1)])]
    )
    text = section(both, "dialogues").text
    assert "Unscored: score: SandboxError: no isolation" in text
    assert "reward 0" not in text


def test_how_it_was_made_is_told_with_the_configuration_folded():
    entry = Provenance("runs/a", (("seed", "7"), ("SHA-256", ""), ("wall clock", "3 s")), '{"agent": "x"}')
    shown = section(ReportContents("t", provenance=(entry,)), "provenance")
    assert [node.text for node in shown.all("dt")] == ["seed", "wall clock"]
    assert shown.one("details").one("pre").text == '{"agent": "x"}'


def test_a_page_stays_small_whatever_it_is_given():
    worst = '"1' * 1_500_000
    turns = (Turn(worst + "OUTPUT:", worst, Reply(worst)),) * 400
    held = msgspec.structs.replace(episode("a"), request=worst, turns=turns)
    tokens = (TokenCredit(worst, 1.0),) * 10_000
    credited = [msgspec.structs.replace(each, tokens=tokens) for each in credit("a", [0.1] * 400)]
    contents = compose("t", [Run("base", [held], [verdict("a", 0.5)], credit=credited)])
    many = Method("many", tasks={f"{worst[:500]}{number}": TaskScore(1, 0, 0.1) for number in range(20_000)})
    contents = replace(
        contents,
        title=worst,
        summary=worst,
        methods=(*contents.methods, many),
        provenance=(Provenance(worst, (("x", worst),), worst),),
    )
    page = render(contents)
    assert len(page) < 4_000_000
    assert "more turns are left out" in page


def test_the_same_contents_give_the_same_page():
    assert render(TWO) == render(TWO)
