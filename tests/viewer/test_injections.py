"""Attacks in every field that others fill: in a real browser none runs, none leaves the page or its own place in it."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Page

from report.samples import credit, episode, verdict
from sweetrl.types import Annotation, CandidateSet, Check, Failure, Outcome, Reply, TokenCredit, Turn
from sweetrl.viewer.annotations import append_annotation
from viewer.attacks import ATTACKS
from viewer.stored_runs import served, write_records, write_run, write_tasks


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = write_run(tmp_path_factory.mktemp("site") / "run", {"a": 1.0})
    with served([str(folder)], folder.parent / "index.sqlite") as address:
        yield address


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
            extra={"chat": {"id": name if number % 2 else 7}, "play": {"player": name, "consented": name}},
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
    assert page.evaluate(STATE) == [None, 0, 0, 0, False, True]


STATE = r"""() => {
    const main = document.getElementById('content'), inside = (selector) => [...main.querySelectorAll(selector)];
    return [
        window.hit,
        inside('script, iframe, object, embed, base, meta, style, link, img, video, template, math, [style], [popover]')
            .length,
        inside('*').flatMap((each) => each.getAttributeNames()).filter((name) => name.startsWith('on')).length,
        inside('a, form').filter((each) => !(each.href ?? each.action).startsWith(location.origin)).length,
        /[\u001b\u009b\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title),
        document.documentElement.scrollWidth <= innerWidth,
    ];
}"""
"""What an attack would change: what ran, what is there, where it leads, what deceives, whether the page fits."""


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    name = "\u202e<img src=x onerror='window.hit=1'>\x1b[31m"
    folder = write_hostile_run(tmp_path_factory.mktemp("hostile") / name)
    with (folder / "credit.jsonl").open("ab") as file:
        file.write(b"no record\n")  # so that pages show the path
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


def test_no_injection_breaks_the_page_of_a_phone(page: Page, hostile_site: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/?sort=hurt", "/?sort=hurt&page=1", "/metrics"):
        page.goto(hostile_site + path)
        unharmed(page)
    page.goto(f"{hostile_site}/?sort=hurt")
    for address in page.locator(".rows a").evaluate_all(
        "links => links.slice(0, 12).map((link) => link.href)"
    ):
        page.goto(f"{address}&hidden=1", wait_until="domcontentloaded")
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
