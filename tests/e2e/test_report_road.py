"""The frontend road with a real browser, to its end: tasks, a listening agent, a designer, scores, a report."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from models.hostile_server import HostileServer, in_thread
from pages.listening_agent import draft
from report.reading import Node, cells, read
from sweetrl.browser import WebAssets, find_browser
from sweetrl.errors import UsageError
from sweetrl.records import read_records
from sweetrl.types import Message, Role, Verdict

TASKS = "mini-frontend:test:2"


@pytest.fixture(scope="module", autouse=True)
def _browser() -> None:
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    try:
        find_browser()
    except UsageError as error:
        pytest.skip(str(error))
    folder = WebAssets().folder
    if not (folder / "tailwindcss").is_dir():
        pytest.skip(f"no Tailwind CSS in {folder}: scripts/install-web-assets puts it there")


def history_of(body: dict[str, Any]) -> list[Message]:
    spoken = [message for message in body["messages"] if message["role"] != "system"]
    return [Message(Role(message["role"]), message["content"]) for message in spoken]


def section(page: Node, name: str) -> Node:
    return next(node for node in page.all("section") if node.attributes.get("id") == name)


def test_pages_are_discussed_scored_and_shown_side_by_side(sweetrl, tmp_path: Path) -> None:
    with in_thread(HostileServer(reply=lambda body, _: draft(history_of(body)))) as server:
        agent = ("--tasks", TASKS, "--agent", f"openai:a@{server.url}", "--quiet")
        assert sweetrl("rollout", *agent, "--single-turn", "-o", tmp_path / "alone").code == 0
        assert sweetrl("rollout", *agent, "--collaborator", "designer", "-o", tmp_path / "talks").code == 0
    means = {}
    for run in ("alone", "talks"):
        files = ("--episodes", tmp_path / run / "episodes.jsonl", "-o", tmp_path / run / "verdicts.jsonl")
        assert sweetrl("score", "--tasks", TASKS, *files, "--no-check", "--quiet").code == 0
        rewards = [
            verdict.reward or 0.0 for verdict in read_records(tmp_path / run / "verdicts.jsonl", Verdict)
        ]
        means[run] = sum(rewards) / len(rewards)
    credit = ("--dialogues", tmp_path / "talks" / "episodes.jsonl", "-o", tmp_path / "talks" / "credit.jsonl")
    assert sweetrl("credit", "--tasks", TASKS, "--critic", "scripted:overlap", *credit, "--quiet").code == 0

    output = tmp_path / "report.html"
    runs = (f"No questions={tmp_path / 'alone'}", f"With a designer={tmp_path / 'talks'}")
    done = sweetrl("report", *runs, "--tasks", TASKS, "-o", output, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["examples"] == 4
    page = read(output.read_text())

    heads, alone, talks = cells(section(page, "results").one("table", "results"))
    similarity = heads.index("similarity, %")
    assert alone[similarity].startswith(f"{100 * means['alone']:.1f}")
    assert talks[similarity].startswith(f"{100 * means['talks']:.1f}")
    assert "With a designer − No questions" in section(page, "differences").text

    galleries = page.all("div", "gallery")
    assert [[caption.text.split(":")[0] for caption in each.all("figcaption")] for each in galleries] == [
        ["wanted", "No questions", "With a designer"]
    ] * 2
    drafts = [node for node in page.all("figcaption") if node.text == "what the collaborator saw"]
    assert len(drafts) == 2 * 3
    assert all(image.attributes["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    assert len(page.all("div", "credit")) == 2 * 4
    # The pages that the agent wrote are there as source, and the report itself links to nothing.
    assert "cdn.jsdelivr.net" in page.text
    assert not re.search(r'(?:src|href)="(?!data:|#)', output.read_text().split("<body>")[1])
