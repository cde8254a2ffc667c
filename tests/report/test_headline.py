from dataclasses import replace

import msgspec
import pytest

from report.reading import read
from report.samples import credit, records
from sweetrl.domains import registry
from sweetrl.domains.domain import Domain, Labels
from sweetrl.domains.registry import find_domain
from sweetrl.report import Run, compose, render
from sweetrl.report.headline import headline, reward_measure


def run(name, rewards, scorer="backend-module/1", **more):
    return Run(name, *records(rewards, scorer=scorer), **more)


def opening(contents):
    page = read(render(contents))
    return next(node for node in page.all("section") if node.attributes.get("id") == "opening")


MANY = [f"t{number}" for number in range(40)]
BASE = run("base", dict.fromkeys(MANY, 0.0))
DPO = run("dpo", {task: 1.0 * (number < 20) for number, task in enumerate(MANY)}, label="DPO")
SWEET = run("sweet", dict.fromkeys(MANY, 1.0), label="SWEET-RL")


def test_the_headline_names_the_best_the_next_and_the_first():
    rft = run("rft", {task: 1.0 * (number < 10) for number, task in enumerate(MANY)})
    contents = compose("t", [BASE, rft, DPO, SWEET])
    assert contents.headline == "SWEET-RL solves 100 % of 40 tasks, DPO 50 %, base 0 %."


def test_tasks_are_called_unseen_only_where_that_is_known():
    contents = compose("t", [BASE, SWEET], unseen=True)
    assert contents.headline == "SWEET-RL solves 100 % of tasks it has never seen, base 0 %."


def test_a_difference_that_may_be_chance_is_said_to_be_too_close():
    close = run("close", {task: 1.0 * (number < 21) for number, task in enumerate(MANY)})
    assert (
        compose("t", [DPO, close]).headline
        == "close solves 52 % of 40 tasks, DPO 50 %: too close to tell apart."
    )


def test_equal_runs_are_too_close_whatever_the_comparisons():
    again = run("again", dict.fromkeys(MANY, 1.0))
    assert compose("t", [again, SWEET]).headline == (
        "again solves 100 % of 40 tasks, SWEET-RL 100 %: too close to tell apart."
    )


def test_runs_without_any_success_have_no_winner():
    other = run("other", dict.fromkeys(MANY, 0.4))
    assert compose("t", [BASE, other]).headline == "No run solves any of 40 tasks."
    assert compose("t", [BASE, other], unseen=True).headline == "No run solves a task it has never seen."
    assert compose("t", [BASE]).headline == "base solves 0 % of 40 tasks."


def test_pages_are_told_by_their_similarity():
    runs = [run(name, {"p": value}, "frontend-clip/1") for name, value in (("x", 0.61), ("y", 0.9))]
    assert compose("t", runs).headline.startswith("y reaches 90 % similarity on 1 task, x 61 %")


def test_the_headline_keeps_braces_in_names():
    assert compose("t", [run("{x}", {"a": 1.0})]).headline == "{x} solves 100 % of 1 task."


def test_nothing_scored_is_no_headline():
    assert headline([]) == ""
    page = read(render(compose("Title", [run("base", {"a": None})])))
    assert page.one("h1").text == "Title"


def test_the_report_opens_with_a_failure_beside_a_success_on_the_same_task():
    base = run("base", {"a": 0.3, "b": 1.0}, credit=credit("a", [-0.4, 0.1]))
    sweet = run("sweet", {"a": 1.0, "b": 1.0}, credit=credit("a", [0.02, 0.01]))
    shown = opening(compose("t", [base, sweet]))
    first, second = shown.one(class_="duel").all("details", "dialogue")
    assert "open" in first.attributes
    assert "open" in second.attributes
    assert "✗ tests passed: 30.0 %" in first.text
    assert "✓ success" in second.text
    assert "One of 1 tasks that base fails and sweet solves" in shown.text
    assert "on 0 it is the other way round" in shown.text


def test_each_dialogue_has_its_own_scale_and_names_its_strongest_turns():
    base = run("base", {"a": 0.3}, credit=credit("a", [-0.4, 0.1]))
    sweet = run("sweet", {"a": 1.0}, credit=credit("a", [0.02, 0.01]))
    first, second = opening(compose("t", [base, sweet])).one(class_="duel").all("details", "dialogue")
    widths = [
        float(each.one("svg", "advantage").one("rect").attributes["width"])
        for each in first.all("li", "agent")
    ]
    own = [
        float(each.one("svg", "advantage").one("rect").attributes["width"])
        for each in second.all("li", "agent")
    ]
    assert widths[0] == own[0] > max(widths[1], own[1])
    assert [each.text for each in first.all(class_="remark")] == ["hurt most", "helped most"]
    assert [each.text for each in second.all(class_="remark")] == ["helped most"]


def test_without_a_better_run_there_is_no_duel():
    assert compose("t", [SWEET, BASE]).duel is None
    assert compose("t", [BASE]).duel is None


@pytest.fixture
def grades():
    """A domain whose reward is a grade and no share."""
    backend = find_domain("backend")
    domain = Domain(
        name="essay",
        secret=backend.secret,
        reference=backend.reference,
        prompts=backend.prompts,
        labels=Labels(task="An agent writes essays.", reward="grade", share=False, meaning="From 1 to 6."),
    )
    registry._in_use["essay"] = domain
    yield domain
    registry.forget()


def test_a_domain_says_what_its_reward_is_called_and_whether_it_is_a_share(grades):
    episodes, verdicts = records({"a": 0.2}, scorer="essay-teacher/1")
    verdicts = [msgspec.structs.replace(each, reward=4.5) for each in verdicts]
    page = read(render(compose("t", [Run("x", episodes, verdicts)])))
    [table] = page.all("table", "results")
    heads = [each.text for each in table.all("th")]
    assert "grade" in heads
    assert "grade, %" not in heads
    assert "4.50" in table.text
    assert "✗ grade: 4.50" in page.text
    assert "An agent writes essays." in page.one("header").text
    meanings = page.one("dl", "meanings")
    assert ("grade", "From 1 to 6.") in zip(
        [each.text for each in meanings.all("dt")], [each.text for each in meanings.all("dd")], strict=True
    )


def test_a_reward_of_the_usual_name_is_in_per_cent_only_if_it_is_a_share(monkeypatch):
    points = replace(find_domain("chat"), name="points", labels=Labels(share=False))
    monkeypatch.setattr(registry, "_from_variable", lambda _: {"points": points})
    assert not reward_measure("points-sum/1").percent
    assert reward_measure("nobody-knows/1").percent
