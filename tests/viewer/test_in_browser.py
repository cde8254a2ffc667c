"""The viewer in a real browser: it can be used, by keys too, follows a run, keeps marks, and runs nobody's text."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

import sweetrl
from conftest import CHECKOUT
from report.samples import credit, episode, verdict
from sweetrl.domains import registry
from sweetrl.types import Annotation, Check, Ending, Outcome, Reply, TokenCredit, Turn
from sweetrl.viewer.annotations import append_annotation, read_annotations
from viewer.stored_runs import (
    HIDDEN_TEST,
    said,
    served,
    write_candidates,
    write_pages,
    write_records,
    write_run,
    write_tasks,
    write_training,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "runs"
    write_run(folder / "base", {"a": 1.0, "b": 0.3, "c": None})
    write_run(folder / "trained", {"a": 0.2, "b": 1.0}, worst=-2.0)
    write_candidates(folder / "trained", "a#0")
    write_pages(folder / "page", "p")
    write_tasks(folder / "tasks.jsonl", ["a", "b", "c", "p"])
    return folder


@pytest.fixture(scope="module")
def site(runs: Path) -> Iterator[str]:
    with served([str(runs)], runs.parent / "index.sqlite") as address:
        yield address


SECRETS = (HIDDEN_TEST, "x + x", "returned 3")


def dialogue(site: str, run: str, name: str, **more: str) -> str:
    return f"{site}/dialogue?{urlencode({'of': run, 'id': name, **more})}"


def arrived(page: Page, title: str) -> None:
    """Wait for a dialogue and the script that listens for keys."""
    expect(page.locator("h1")).to_have_text(title)
    page.wait_for_load_state()


def test_the_list_is_filtered_searched_and_sorted(page: Page, site: str) -> None:
    page.goto(site)
    rows = page.locator(".rows li")
    expect(rows).to_have_count(6)
    page.select_option("[name=run]", "trained")
    expect(rows).to_have_count(2)
    page.select_option("[name=outcome]", "success")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Please write b.")
    page.goto(f"{site}/?sort=hurt")
    expect(rows.first).to_contain_text("trained")
    expect(rows.first).to_contain_text("turn 2: −2.10")
    page.fill("#search", '"write c"')
    expect(rows).to_have_count(1)
    assert "write+c" in page.url


def test_whoever_goes_back_finds_the_filters_that_the_address_has(page: Page, site: str) -> None:
    page.goto(site)
    for field, value in (("outcome", "failure"), ("sort", "hurt")):
        with page.expect_navigation():
            page.select_option(f"[name={field}]", value)
    page.go_back()
    expect(page.locator("[name=outcome]")).to_have_value("failure")
    expect(page.locator("[name=sort]")).to_have_value("file")
    expect(page.locator("#filters :disabled")).to_have_count(0)


def write_varied_run(folder: Path) -> Path:
    """Dialogues that differ in everything that a list is filtered by."""
    cut = Turn("Hm", "Hm", Reply("Sorry.", excuse="too long"), unfinished=True)
    asked = said(episode("long"), "Is it one?", "Is it two?", "Is it three?")
    stopped = msgspec.structs.replace(
        episode("stopped"), ending=Ending.TURN_LIMIT, answer=None, turns=(cut, cut)
    )
    write_records(folder / "episodes.jsonl", [asked, stopped, episode("plain")])
    slow = msgspec.structs.replace(verdict("plain", 0.0), checks=(Check("test1", Outcome.TIMED_OUT),))
    write_records(folder / "verdicts.jsonl", [verdict("long", 1.0), slow])
    return folder


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("outcome", "success", ["long"]),
        ("outcome", "failure", ["plain"]),
        ("outcome", "unscored", ["stopped"]),
        ("ending", "turn_limit", ["stopped"]),
        ("ending", "answered", ["long", "plain"]),
        ("defect", "no reply", ["stopped"]),
        ("defect", "cut off", ["stopped"]),
        ("defect", "timed out", ["plain"]),
        ("min", "3", ["long"]),
        ("max", "2", ["stopped", "plain"]),
        ("sort", "best", ["long", "plain", "stopped"]),
        ("sort", "reward", ["plain", "long", "stopped"]),
        ("sort", "turns", ["long", "stopped", "plain"]),
        ("q", "Is it thr", ["long"]),
    ],
)
def test_every_filter_and_order_can_be_set_and_is_in_the_address(
    page: Page, varied_site: str, field: str, value: str, found: list[str]
) -> None:
    page.goto(varied_site)
    expect(page.locator(".rows li")).to_have_count(3)
    control = page.locator(f"#filters [name={field}]")
    if control.evaluate("each => each.tagName") == "SELECT":
        control.select_option(value)
    else:
        control.fill(value)
        control.press("Enter")
    ids = [f"{name}#0" for name in found]
    expect(page.locator(".rows .about code")).to_have_text(ids)
    page.goto(page.url)  # a permanent link
    expect(page.locator(".rows .about code")).to_have_text(ids)
    expect(control).to_have_value(value)
    page.get_by_text("clear filters").click()
    expect(page.locator(".rows li")).to_have_count(3)


@pytest.fixture(scope="module")
def varied_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = write_varied_run(tmp_path_factory.mktemp("varied") / "run")
    with served([str(folder)], folder.parent / "index.sqlite") as address:
        yield address


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("long") / "run"
    write_records(folder / "episodes.jsonl", [episode(f"task-{number:03}") for number in range(120)])
    with served([str(folder)], folder.parent / "index.sqlite") as address:
        yield address


def test_a_long_list_has_pages_and_neighbours_across_them(page: Page, long_site: str) -> None:
    page.goto(long_site)
    counted = page.locator(".counted output")
    expect(counted).to_have_text("1–50 of 120 dialogues")
    page.get_by_role("link", name="next ›").click()
    expect(page.locator(".rows .about code").first).to_have_text("task-050#0")
    page.locator(".rows a").first.click()
    arrived(page, "task-050#0")
    page.keyboard.press("ArrowLeft")
    arrived(page, "task-049#0")
    page.keyboard.press("u")
    expect(counted).to_have_text("1–50 of 120 dialogues")
    page.get_by_role("link", name="last »").click()
    expect(page.locator(".rows li")).to_have_count(20)


def test_keys_lead_through_the_list_the_turns_and_back(page: Page, site: str) -> None:
    page.goto(f"{site}/?run=base")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".rows .chosen")).to_contain_text("Please write b.")
    page.keyboard.press("Enter")
    arrived(page, "b#0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-2")
    assert page.url.endswith("#turn-2")
    page.reload()
    expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-2")
    page.keyboard.press("ArrowRight")
    arrived(page, "c#0")
    page.keyboard.press("ArrowLeft")
    arrived(page, "b#0")
    page.keyboard.press("u")
    expect(page.locator(".rows li")).to_have_count(3)
    page.wait_for_load_state()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()


def test_a_turn_shows_its_credit_and_what_else_might_have_been_said(page: Page, site: str) -> None:
    page.goto(dialogue(site, "trained", "a#0"))
    turn = page.locator("#turn-1")
    expect(turn.locator("> .credit .value")).to_have_text("+0.400")
    expect(turn.locator(".tokens .plus-4")).to_have_text(" 1?")
    expect(turn.locator(".tokens .minus-1")).to_have_text("Question")
    turn.locator("summary", has_text="3 candidates").click()
    candidates = turn.locator(".candidates li")
    expect(candidates.nth(0)).to_contain_text("How large?")
    expect(candidates.nth(1)).to_contain_text("said")
    expect(candidates.nth(1)).to_contain_text("value 0.50 in 2 replays")
    expect(candidates.nth(2)).to_contain_text("−0.200")


def test_hidden_information_is_shown_behind_its_switch_only(page: Page, site: str) -> None:
    page.goto(dialogue(site, "trained", "a#0"))
    content = page.content()
    assert HIDDEN_TEST not in content
    assert "x + x" not in content
    assert "returned 3" not in content
    page.keyboard.press("j")
    page.keyboard.press("h")
    expect(page.locator(".hidden-parts")).to_contain_text(HIDDEN_TEST)
    expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-1")
    expect(page.locator(".diff .wanted")).to_have_text("−    return x + x\n")
    expect(page.locator(".diff .given")).to_have_text("+    return 2 * x\n")
    expect(page.locator(".check.wrong").first).to_contain_text("returned 3")
    page.locator("#hidden-switch").click()
    expect(page.locator(".hidden-parts")).to_have_count(0)


@pytest.mark.parametrize(
    "path", ["/", "/dialogue", "/compare", "/api/dialogue", "/api/dialogues", "/metrics"]
)
def test_nothing_hidden_is_sent_before_it_is_asked_for(page: Page, site: str, path: str) -> None:
    fields = {"of": "trained", "id": "a#0", "left": "trained", "right": "base", "other": "a#0"}
    wanted = f"{site}{path}?{urlencode(fields)}"
    before, after = (page.request.get(wanted + more).text() for more in ("", "&hidden=1"))
    assert not [secret for secret in SECRETS if secret in before]
    if path == "/api/dialogue":
        assert not [secret for secret in SECRETS if secret not in after]
    page.goto(site)


def test_a_dialogue_of_another_domain_is_shown_in_its_own_words(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(CHECKOUT / "examples/sql_domain/src")
    sweetrl.use_domain("sweetrl_sql:SQL")
    try:
        [task] = sweetrl.load_tasks("mini-sql:test:1")
        held = msgspec.structs.replace(
            episode(task.id), request=task.request, answer="SELECT COUNT(*) FROM x"
        )
        write_records(tmp_path / "run" / "episodes.jsonl", [held])
        write_records(tmp_path / "run" / "verdicts.jsonl", [verdict(task.id, 0.0, scorer="sql-rows/1")])
        write_records(tmp_path / "run" / "tasks.jsonl", [task])
        with served([str(tmp_path / "run")], tmp_path / "index.sqlite") as site:
            page.goto(dialogue(site, "run", held.id))
            labels = registry.find_domain("sql").labels
            expect(page.locator(".answer .code-keyword").first).to_have_text("SELECT")
            expect(page.locator(".chat .collaborator .who")).to_have_text(labels.collaborator)
            page.keyboard.press("h")
            expect(page.locator(".answer h3")).to_have_text(f"Difference to the {labels.reference}")
            expect(page.locator(".hidden-parts h3").first).to_be_visible()
    finally:
        registry.forget()


def test_the_slider_moves_over_two_screenshots(page: Page, site: str) -> None:
    page.goto(dialogue(site, "page", "p#0"))
    expect(page.locator(".answer img")).to_have_count(1)
    page.goto(dialogue(site, "page", "p#0", hidden="1"))
    over = page.locator(".slider .over")
    assert over.locator("img").evaluate("image => image.complete && image.naturalWidth") == 120
    page.locator(".slider input").fill("20")
    clips = [
        each.evaluate("each => getComputedStyle(each).clipPath")
        for each in (page.locator(".slider > div").first, over)
    ]
    assert clips == ["inset(0px 0px 0px 20%)", "inset(0px 80% 0px 0px)"]


def test_pages_of_two_heights_are_seen_whole_under_the_slider(page: Page, tmp_path: Path) -> None:
    folder = write_pages(tmp_path / "run", "p", heights=(80, 140))
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        page.goto(dialogue(site, "run", "p#0", hidden="1"))
        expect(page.locator(".slider .over img")).to_be_visible()
        heights = page.evaluate(
            "[...document.querySelectorAll('.slider, .slider > div:has(img)')].map((each) => each.clientHeight)"
        )
        assert heights == [140, 140, 140]


def test_two_runs_on_one_task_stand_side_by_side(page: Page, site: str) -> None:
    page.goto(dialogue(site, "base", "a#0"))
    page.locator("#others .compare").first.click()
    expect(page.locator(".side > h2")).to_have_text(["base", "trained"])
    boxes = [side.bounding_box() for side in page.locator(".side").all()]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    expect(page.locator(".side").nth(0)).to_contain_text("✓ success")
    expect(page.locator(".side").nth(1)).to_contain_text("✗ tests passed: 20.0 %")


def test_metrics_have_intervals_and_differences(page: Page, site: str) -> None:
    page.goto(f"{site}/metrics")
    row = page.locator("table.results tr", has_text="trained").first
    expect(row).to_contain_text("50.0")
    expect(row.locator(".interval").first).to_be_visible()
    expect(page.locator("h2", has_text="Paired differences")).to_be_visible()


def test_training_curves_grow_with_their_log(page: Page, site: str, runs: Path) -> None:
    write_training(runs / "trained" / "policy", 3)
    page.goto(f"{site}/metrics")
    section = page.locator(".training", has_text="trained/policy")
    expect(section.locator("svg")).to_have_count(1)
    before = section.locator("svg").inner_html()
    write_training(runs / "trained" / "policy", 9)
    page.reload()
    expect(section.locator("svg")).to_be_visible()
    assert section.locator("svg").inner_html() != before


def test_a_run_that_goes_on_fills_in(page: Page, site: str, runs: Path) -> None:
    with page.expect_response("**/api/state"):
        page.goto(f"{site}/?q=lighthouse")
    expect(page.locator(".empty")).to_be_visible()
    write_records(runs / "live" / "episodes.jsonl", [said(episode("new"), "Is it a lighthouse?")])
    expect(page.locator(".rows li")).to_have_count(1)
    expect(page.locator("#pulse")).to_be_visible()
    write_records(runs / "live" / "verdicts.jsonl", [verdict("new", 1.0)])
    expect(page.locator(".rows .grade.success")).to_have_count(1)
    expect(page.locator("[name=run] option[value=live]")).to_have_text("live (1)")
    page.select_option("[name=run]", "live")
    expect(page.locator(".rows li")).to_have_count(1)
    assert "run=live" in page.url


def test_what_was_unfolded_stays_so_while_metrics_follow_a_run(page: Page, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / "runs" / name, {"a": 1.0, "b": 0.3})
    with served([str(tmp_path / "runs")], tmp_path / "index.sqlite") as site:
        with page.expect_response("**/api/state"):
            page.goto(f"{site}/metrics")
        page.locator("summary", has_text="Numbers").first.click()
        write_records(tmp_path / "runs" / "one" / "episodes.jsonl", [episode("c")], "ab")
        expect(page.locator("table.results tr", has_text="one").first).to_contain_text("3")
        expect(page.locator("#pulse")).to_be_visible()
        expect(page.locator("details[open]")).to_have_count(1)


def test_the_chosen_row_stays_chosen_while_the_list_grows(page: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0, "b": 1.0})
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        with page.expect_response("**/api/state"):
            page.goto(f"{site}/?sort=hurt")
        page.keyboard.press("j")
        chosen = page.locator(".rows .chosen")
        expect(chosen).to_contain_text("Please write b.")
        write_records(folder / "episodes.jsonl", [episode("new")], "ab")
        write_records(folder / "credit.jsonl", credit("new", [-9.0]), "ab")  # above the others
        expect(page.locator(".rows li").first).to_contain_text("Please write new.")
        expect(chosen).to_contain_text("Please write b.")
        expect(page.locator(".rows .fresh")).to_have_count(1)
        page.keyboard.press("Enter")
        arrived(page, "b#0")


def test_an_open_dialogue_gets_its_verdict_and_credit_and_the_reader_keeps_the_place(
    page: Page, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    held = said(episode("a"), *(f"Question {number}?" for number in range(12)))
    write_records(folder / "episodes.jsonl", [held])
    write_tasks(tmp_path / "tasks.jsonl", ["a"])
    with served([str(tmp_path)], tmp_path / "index.sqlite") as site:
        page.goto(dialogue(site, "run", "a#0", hidden="1"))
        for _ in range(9):
            page.keyboard.press("j")
        turn = page.locator("#turn-9")
        form = turn.locator(".annotation")
        form.get_by_text("▲ helped").click()
        expect(form.locator(".saved")).to_have_text("saved")
        form.locator("input").press_sequentially("half a no")
        page.evaluate("scrollBy({top: 60, behavior: 'instant'})")
        page.evaluate(
            "document.querySelectorAll('main, .chat, .chat > li').forEach((each) => { each.kept = true })"
        )
        top = turn.evaluate("each => each.getBoundingClientRect().top")
        assert page.evaluate("scrollY") > 0
        credited = [-0.5, 0.1] * 6
        tokens = (TokenCredit("Question", -0.1), TokenCredit(" 1?", 0.5))
        judged = [msgspec.structs.replace(each, tokens=tokens) for each in credit("a", credited)]
        write_records(folder / "credit.jsonl", judged)
        expect(page.locator(".chat .credit .value")).to_have_count(12)
        expect(page.locator(".credit-key code")).to_have_text("critic:c@1")
        write_records(folder / "verdicts.jsonl", [verdict("a", 1.0)])
        expect(page.locator("#score")).to_be_visible()
        expect(page.locator(".headline .outcome")).to_contain_text("success")
        assert abs(turn.evaluate("each => each.getBoundingClientRect().top") - top) < 2
        expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-9")
        expect(form.locator("input")).to_be_focused()
        expect(form.locator("input")).to_have_value("half a no")
        expect(page.locator("#hidden-switch")).to_have_attribute("aria-checked", "true")
        assert page.evaluate("[...document.querySelectorAll('.chat > li')].every((each) => each.kept)")
        form.locator("input").blur()
        page.keyboard.press("j")
        expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-10")
        live = page.content()
        page.reload()
        expect(page.locator(".chat .credit .value")).to_have_count(12)
        assert text_of(page.content()) == text_of(live)


def text_of(page: str) -> list[str]:
    """What a page says, without what only its reader was told."""
    body = re.sub(r'<span class="saved".*?</span>|<div id="said".*?</div>|<[^>]*>', " ", page)
    return body.split()


def test_nothing_of_an_open_dialogue_changes_when_others_arrive(page: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        page.goto(dialogue(site, "run", "a#0"))
        version = page.request.get(f"{site}/api/state").json()["version"]
        assert page.locator("main").get_attribute("data-live") == str(version)  # later changes are not missed
        page.evaluate(
            "new MutationObserver((all) => { window.changed = all.length }).observe(document.querySelector('main'), "
            "{subtree: true, childList: true, attributes: true, characterData: true})"
        )
        with page.expect_response("**/dialogue?*"):
            write_records(folder / "episodes.jsonl", [episode("b")], "ab")
        expect(page.locator("#pulse")).to_be_visible()
        assert page.evaluate("window.changed") is None
        write_records(folder / "verdicts.jsonl", [verdict("a", 0.3)], "ab")
        expect(page.locator(".headline .outcome")).to_contain_text("30.0")


def test_turns_that_several_critics_judged_are_shown_by_one_at_a_time(page: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    other = [msgspec.structs.replace(each, critic="other") for each in credit("a", [-0.7, 0.2])]
    write_records(folder / "credit-other.jsonl", other)
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        page.goto(dialogue(site, "run", "a#0"))
        key, values = page.locator(".credit-key"), page.locator(".chat .credit .value")
        expect(key.locator("code")).to_have_text("other")
        expect(values).to_have_text(["−0.700", "+0.200"])
        page.locator(".other-critics a").click()
        expect(key.locator("code")).to_have_text("critic:c@1")
        expect(values).to_have_text(["+0.400", "−0.500"])
        page.goto(page.url)  # a permanent link
        expect(values).to_have_text(["+0.400", "−0.500"])


def test_the_list_is_sorted_by_one_critic_which_can_be_chosen(page: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0, "b": 0.3})
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        page.goto(f"{site}/?sort=hurt")
        expect(page.locator(".rows .value")).to_have_text(["turn 2: −0.60", "turn 2: −0.50"])
        expect(page.locator("[name=by]")).to_have_count(0)
        other = [msgspec.structs.replace(each, critic="other") for each in credit("a", [-70.0, 20.0])]
        write_records(folder / "credit-other.jsonl", other)
        with page.expect_response("**/?sort=hurt*"):
            pass
        expect(page.locator(".rows .value")).to_have_text(["turn 2: −0.60", "turn 2: −0.50"])
        page.reload()
        page.select_option("[name=by]", "other")
        expect(page.locator(".rows .value")).to_have_text(["turn 1: −70.00"])
        expect(page.locator(".rows .about code")).to_have_text(["a#0", "b#0"])
        expect(page.locator("[name=by]")).to_have_value("other")
        page.locator(".rows a").first.click()
        arrived(page, "a#0")
        expect(page.locator(".credit-key code")).to_have_text("other")
        page.locator(".other-critics a").click()
        expect(page.locator(".credit-key code")).to_have_text("critic:c@1")
        page.keyboard.press("ArrowRight")  # the list is still sorted by the critic that was chosen there
        arrived(page, "b#0")
        page.keyboard.press("u")
        expect(page.locator("[name=by]")).to_have_value("other")


def test_the_mark_of_another_person_is_told_and_stays(page: Page, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    ada = Annotation(episode_id="a#0", task_id="a", turn=0, mark="helped", note="well asked", author="Ada")
    append_annotation(folder, ada)
    with served([str(folder)], tmp_path / "index.sqlite") as site:
        page.goto(dialogue(site, "run", "a#0"))
        form = page.locator("#turn-1 .annotation")
        expect(form).to_contain_text("Ada thinks it helped: well asked")
        expect(form.locator("[aria-pressed=true]")).to_have_count(0)
        form.get_by_text("▲ helped").click()
        expect(form.locator(".saved")).to_have_text("saved")
        page.reload()
        expect(form.get_by_text("▲ helped")).to_have_attribute("aria-pressed", "true")
        expect(form).to_contain_text("Ada thinks it helped: well asked")
        marks = read_annotations(folder / "annotations.jsonl")
        assert [(each.author, each.mark) for each in marks] == [("Ada", "helped"), ("tester", "helped")]


def test_an_annotation_is_kept(page: Page, site: str, runs: Path) -> None:
    page.goto(dialogue(site, "base", "b#0"))
    form = page.locator("#turn-2 .annotation")
    form.get_by_text("▼ hurt").click()
    expect(form.locator(".saved")).to_have_text("saved")
    with page.expect_response("**/api/annotations"):
        form.locator("input").fill("asked <b>twice</b>")
        form.locator("input").blur()
    page.reload()
    expect(form.get_by_text("▼ hurt")).to_have_attribute("aria-pressed", "true")
    expect(form.locator("input")).to_have_value("asked <b>twice</b>")
    [kept] = read_annotations(runs / "base" / "annotations.jsonl")
    assert (kept.id, kept.mark, kept.note, kept.author) == ("b#0@1", "hurt", "asked <b>twice</b>", "tester")
    form.get_by_text("▼ hurt").click()
    expect(form.get_by_text("▼ hurt")).to_have_attribute("aria-pressed", "false")
    assert read_annotations(runs / "base" / "annotations.jsonl") == []


EVERY_PAGE = (
    "/",
    "/?q=nothing+like+it",
    "/metrics",
    "/dialogue?of=trained&id=a%230&hidden=1",
    "/dialogue?of=page&id=p%230&hidden=1",
    "/compare?left=base&id=a%230&right=trained&other=a%230&hidden=1",
)


@pytest.mark.parametrize("path", EVERY_PAGE)
def test_pages_fit_a_phone(page: Page, site: str, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(site + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [360, 900, 1200])
def test_nothing_lies_over_anything_else(page: Page, site: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for path in EVERY_PAGE[3:]:
        page.goto(site + path)
        for fold in page.locator(".chat details").all():
            fold.evaluate("each => { each.open = true }")
        assert page.evaluate(OVERLAPS) == []


OVERLAPS = """() => {
    const boxes = [...document.querySelectorAll(".credit .value, .credit .remark, .who, .output, .candidates .facts")]
        .map((each) => [each.textContent, each.getBoundingClientRect()]).filter(([, box]) => box.width);
    return boxes.flatMap(([text, a], number) => boxes.slice(number + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        .map(([other]) => [text, other]));
}"""


def test_the_browser_says_whether_it_is_dark(browser: Browser, site: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(site)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert grounds[0] == "rgb(255, 255, 255)"
    assert grounds[1] != grounds[0]


def test_the_theme_is_remembered(page: Page, site: str) -> None:
    page.goto(site)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.goto(f"{site}/metrics")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
