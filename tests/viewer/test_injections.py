"""Attacks in every field that others fill: in a real browser none runs, none leaves the page or its own place in it."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Page, expect

from report.samples import credit, episode, verdict
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.types import (
    Annotation,
    CandidateSet,
    Check,
    Failure,
    Metric,
    Outcome,
    OutputValue,
    Reply,
    RunMetrics,
    Screenshots,
    Task,
    TokenCredit,
    Turn,
    TurnValues,
)
from sweetrl.viewer.annotations import append_annotation
from sweetrl.viewer.queries import PAGE
from viewer.attacks import ATTACKS
from viewer.harm import unharmed
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
    for number in range(1 + (len(ATTACKS) - 1) // PAGE):
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
        words = urlencode({"q": attack, "task": attack, "critic": attack}, errors="replace")
        page.goto(f"{site}/?{words}", wait_until="domcontentloaded")
        unharmed(page)
    context = page.request
    for attack in ATTACKS:
        for field in ("ending", "outcome", "sort", "run", "page"):
            answer = context.get(f"{site}/?{urlencode({field: attack}, errors='replace')}")
            assert answer.status in (200, 400)
            assert "<script>window" not in answer.text()


def write_hostile_surroundings(folder: Path) -> None:
    """Attacks in what lies beside dialogues: logs, metrics, names of screenshots, replay values, endings, tests."""
    write_run(folder, {"a": 1.0})
    names = [attack.encode("utf-8", "replace").decode() for attack in ATTACKS]
    log = [{"step": step, "loss": 1.0} | dict.fromkeys(names, step) for step in (1, 2)]
    write_records(folder / "policy" / "log.jsonl", log)
    card = {"model": names[0], "settings": {"method": names[1]} | {name: name for name in names}}
    write_records(folder / "policy" / "sweetrl.json", [card])
    measured = {name: Metric(name, 0.5, 0.1, 0.9, count=3) for name in names}
    metrics = RunMetrics(tasks=1, dialogues=1, failed=0, unscored=0, metrics=measured)
    (folder / "metrics.json").write_bytes(msgspec.json.encode(metrics))
    shots = [
        msgspec.structs.replace(
            episode(f"shot-{number}"), turns=(Turn("x", "x", Reply("y", screenshot=name)), Turn("z", "z"))
        )
        for number, name in enumerate(names)
    ]
    write_records(folder / "episodes.jsonl", shots, "ab")
    scored = [
        msgspec.structs.replace(verdict(f"shot-{number}", 0.5), screenshots=Screenshots(name, name))
        for number, name in enumerate(names)
    ]
    write_records(folder / "verdicts.jsonl", scored, "ab")
    values = [
        TurnValues(
            episode_id="a#0",
            task_id="a",
            turn=0,
            outputs=(name,),
            values=(OutputValue((0.5,), (False,)),),
            agent=name,
            collaborator=name,
            scorer=name,
        )
        for name in names
    ]
    write_records(folder / "values.jsonl", values)
    about = {"episode_id": "a#0", "task_id": "a", "turn": 0, "critic": "c"}
    outputs = tuple(dict.fromkeys(names))
    ranked = CandidateSet(**about, outputs=outputs, advantages=tuple(map(float, range(len(outputs)))))
    write_records(folder / "ranked.jsonl", [ranked])
    odd = [
        msgspec.to_builtins(episode(f"ending-{number}")) | {"ending": name}
        for number, name in enumerate(names)
        if len(name) < 1000
    ]
    write_records(folder / "episodes.jsonl", odd, "ab")
    secret = BackendSecret(names[0], {f"{number} {name}": name for number, name in enumerate(names)})
    task = Task(id="a", domain="backend", request="x", secret=secret)
    write_records(folder / "tasks.jsonl", [task])


def test_no_injection_beside_the_dialogues_runs(page: Page, tmp_path: Path) -> None:
    write_hostile_surroundings(tmp_path / "run")
    with served([str(tmp_path / "run")], tmp_path / "index.sqlite") as site:
        for path in (
            "/",
            "/?page=1",
            "/?page=2",
            "/?page=3",
            "/metrics",
            "/dialogue?of=run&id=a%230&hidden=1",
        ):
            page.goto(site + path)
            for fold in page.locator("details").all():
                fold.evaluate("each => { each.open = true }")
            unharmed(page)
        expect(page.locator(".candidates li")).to_have_count(24)
        for number in range(len(ATTACKS)):
            page.goto(f"{site}/dialogue?of=run&id=shot-{number}%230&hidden=1", wait_until="domcontentloaded")
            unharmed(page)
            assert page.locator(".chat").count() == 1


def test_no_injection_in_a_chat_log_runs(page: Page, tmp_path: Path) -> None:
    names = [attack.encode("utf-8", "replace").decode() for attack in ATTACKS]
    chats = [
        {
            "id": f"{number} {name}",
            "messages": [{"role": "user", "content": name}, {"role": "assistant", "content": name}],
            "success": number % 2 == 0,
        }
        for number, name in enumerate(names)
    ]
    write_records(tmp_path / "chats.jsonl", chats)
    with served([str(tmp_path / "chats.jsonl")], tmp_path / "index.sqlite") as site:
        for number in range(1 + (len(ATTACKS) - 1) // PAGE):
            page.goto(f"{site}/?page={number}")
            unharmed(page)
        page.goto(site)
        for address in page.locator(".rows a").evaluate_all(
            "links => links.slice(0, 30).map((link) => link.href)"
        ):
            page.goto(f"{address}&hidden=1", wait_until="domcontentloaded")
            unharmed(page)
            assert page.locator(".chat").count() == 1
