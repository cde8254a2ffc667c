"""The viewer in a real browser: it can be used, by keys too, follows a run, keeps marks, and runs nobody's text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Page, expect

from report.samples import credit, episode, verdict
from sweetrl.types import Annotation, CandidateSet, Check, Failure, Outcome, Reply, TokenCredit, Turn
from sweetrl.viewer.annotations import append_annotation, read_annotations
from viewer.attacks import ATTACKS
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


def dialogue(site: str, run: str, name: str, **more: str) -> str:
    return f"{site}/dialogue?{urlencode({'of': run, 'id': name, **more})}"


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


def test_keys_lead_through_the_list_the_turns_and_back(page: Page, site: str) -> None:
    page.goto(f"{site}/?run=base")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".rows .chosen")).to_contain_text("Please write b.")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("b#0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-2")
    assert page.url.endswith("#turn-2")
    page.reload()
    expect(page.locator(".chat > li.current")).to_have_attribute("id", "turn-2")
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_have_text("c#0")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("h1")).to_have_text("b#0")
    page.keyboard.press("u")
    expect(page.locator(".rows li")).to_have_count(3)
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
    page.keyboard.press("h")
    expect(page.locator(".hidden-parts")).to_contain_text(HIDDEN_TEST)
    expect(page.locator(".diff .wanted")).to_have_text("−    return x + x\n")
    expect(page.locator(".diff .given")).to_have_text("+    return 2 * x\n")
    expect(page.locator(".check.wrong").first).to_contain_text("returned 3")
    page.locator("#hidden-switch").click()
    expect(page.locator(".hidden-parts")).to_have_count(0)


def test_the_slider_moves_over_two_screenshots(page: Page, site: str) -> None:
    page.goto(dialogue(site, "page", "p#0"))
    expect(page.locator(".answer img")).to_have_count(1)
    page.goto(dialogue(site, "page", "p#0", hidden="1"))
    over = page.locator(".slider .over")
    assert over.evaluate("image => image.complete && image.naturalWidth") == 120
    page.locator(".slider input").fill("20")
    assert over.evaluate("image => getComputedStyle(image).clipPath") == "inset(0px 80% 0px 0px)"


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


@pytest.mark.parametrize("path", ["/", "/metrics", "/dialogue?of=trained&id=a%230&hidden=1"])
def test_pages_fit_a_phone(page: Page, site: str, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(site + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_theme_is_remembered(page: Page, site: str) -> None:
    page.goto(site)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    page.goto(f"{site}/metrics")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light


# ---------------------------------------------------------------- injections


def write_hostile_run(folder: Path) -> Path:
    """Every field that a model, a critic, a scorer or a person fills, filled with attacks."""
    everything = "\n".join(ATTACKS)
    for number, attack in enumerate(ATTACKS):
        name = attack.encode("utf-8", "replace").decode()
        turns = tuple(
            Turn(f"{each} OUTPUT: {each}", each, Reply(each, each, each))
            for each in (name, everything if number == 0 else name)
        )
        held = msgspec.structs.replace(
            episode(name),
            request=name,
            turns=turns,
            agent=name,
            answer=name,
            failure=Failure(name, name, name),
        )
        judged = msgspec.structs.replace(
            verdict(name, 0.5), scorer=name, checks=(Check(name, Outcome.WRONG, name),), failure=None
        )
        judgement = [
            msgspec.structs.replace(each, critic=name, tokens=(TokenCredit(name, 1.0),))
            for each in credit(name, [-float(number + 1)])
        ]
        candidates = CandidateSet(
            episode_id=held.id,
            task_id=name,
            turn=0,
            outputs=(name, f"{name}!"),
            advantages=(1, 2),
            critic=name,
        )
        for file, record in zip(
            ("episodes", "verdicts", "credit", "ranked"),
            (held, judged, judgement[0], candidates),
            strict=True,
        ):
            write_records(folder / f"{file}.jsonl", [record], "ab")
        mark = Annotation(episode_id=held.id, task_id=name, turn=0, mark="hurt", note=name, author=name)
        append_annotation(folder, mark)
    return folder


def unharmed(page: Page) -> None:
    page.mouse.move(300, 300)
    state: Any = page.evaluate(
        """() => [window.hit, document.querySelectorAll('main script, main iframe, main object, main base, main meta,'
        + 'main style, main link, main img, main [style], main video, main template').length,
        [...document.querySelectorAll('main *')].flatMap((each) => each.getAttributeNames())
            .filter((name) => name.startsWith('on')).length,
        [...document.querySelectorAll('main a, main form')].filter(
            (each) => !(each.href ?? each.action).startsWith(location.origin)).length]"""
    )
    assert state == [None, 0, 0, 0]


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = write_hostile_run(tmp_path_factory.mktemp("hostile") / "run")
    tasks = write_tasks(folder.parent / "tasks.jsonl", [each for each in ATTACKS if each.isascii()])
    label = "</option><script>hit()</script>"
    with served([f"{label}={folder}"], folder.parent / "index.sqlite", tasks=[str(tasks)]) as address:
        yield address


def test_no_injection_runs_or_leaves_the_page(page: Page, hostile_site: str) -> None:
    visited = 0
    for number in (0, 1):
        page.goto(f"{hostile_site}/?page={number}&sort=hurt")
        unharmed(page)
        addresses = page.locator(".rows a").evaluate_all("links => links.map((link) => link.href)")
        for address in addresses:
            page.goto(f"{address}&hidden=1", wait_until="domcontentloaded")
            unharmed(page)
            assert page.locator(".chat").count() == 1
            visited += 1
    assert visited == len(ATTACKS)
    page.goto(f"{hostile_site}/metrics")
    unharmed(page)


def test_no_injection_in_an_address_runs(page: Page, site: str) -> None:
    for attack in ATTACKS:
        words = urlencode({"q": attack, "task": attack}, errors="replace")
        page.goto(f"{site}/?{words}", wait_until="domcontentloaded")
        unharmed(page)
    context = page.request
    for attack in ATTACKS:
        for field in ("ending", "outcome", "sort", "run", "page"):
            answer = context.get(f"{site}/?{urlencode({field: attack}, errors='replace')}")
            assert answer.status in (200, 400)
            assert "<script>window" not in answer.text()
