"""The frontend half with a real browser: tasks, dialogues with a designer, scores; and a model that sees."""

import base64
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from models.hostile_server import HostileServer, in_thread
from pages.complaints import tally_complaints
from pages.listening_agent import draft
from pages.ordering import make_series, order
from sweetrl.browser import BrowserPool, WebAssets, find_browser
from sweetrl.domains.frontend.designer import SATISFIED, remark
from sweetrl.domains.frontend.layout import LayoutSimilarity
from sweetrl.domains.frontend.mini_frontend import make_tasks
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.sources import read_tasks
from sweetrl.errors import UsageError
from sweetrl.records import read_records
from sweetrl.types import Ending, Episode, Message, Role, Verdict, picture_digest

TASKS = "mini-frontend:test:4"


@pytest.fixture(scope="module", autouse=True)
def _browser():
    pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    try:
        find_browser()
    except UsageError as error:
        pytest.skip(str(error))
    folder = WebAssets().folder
    if not (folder / "tailwindcss").is_dir():
        pytest.skip(f"no Tailwind CSS in {folder}: scripts/install-web-assets puts it there")


def shots_of(pages: Sequence[str]) -> list[Any]:
    import asyncio

    async def render() -> list[Any]:
        async with BrowserPool(workers=1) as pool:
            return [await pool.render(page) for page in pages]

    return asyncio.run(render())


def pages_of(source: str) -> list[str]:
    return [task.secret.page for task in read_tasks(source) if isinstance(task.secret, FrontendSecret)]


def history_of(body: dict[str, Any]) -> list[Message]:
    spoken = [message for message in body["messages"] if message["role"] != "system"]
    return [Message(Role(message["role"]), message["content"]) for message in spoken]


def saw(body: dict[str, Any]) -> list[bytes]:
    """The pictures that a request carries."""
    content = body["messages"][-1]["content"]
    urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True) for url in urls]


def names_in(verdict: Verdict) -> list[str]:
    shots = verdict.screenshots
    return [] if shots is None else [name for name in (shots.reference, shots.answer) if name]


def assert_pictures_are_beside(verdicts: Path) -> None:
    """Reference and answer of each verdict, byte for byte what the browser shows."""
    wanted = dict(zip((task.id for task in read_tasks(TASKS)), shots_of(pages_of(TASKS)), strict=True))
    for verdict in read_records(verdicts, Verdict):
        reference, answer = names_in(verdict)
        assert (verdicts.parent / "screenshots" / f"{answer}.png").is_file()
        shown = (verdicts.parent / "screenshots" / f"{reference}.png").read_bytes()
        assert shown == wanted[verdict.task_id].png


def test_no_screenshots_means_none(sweetrl, tmp_path):
    answers = tmp_path / "answers.jsonl"
    [task] = read_tasks("mini-frontend:test:1")
    answers.write_text(json.dumps({"task_id": task.id, "answer": "<html><p>Hi</p></html>"}) + "\n")
    given = ("--tasks", "mini-frontend:test:1", "--answers", answers, "--no-screenshots", "--no-check", "-q")
    assert sweetrl("score", *given, "-o", tmp_path / "verdicts.jsonl").code == 0
    [verdict] = read_records(tmp_path / "verdicts.jsonl", Verdict)
    assert verdict.screenshots is None
    assert not (tmp_path / "screenshots").exists()


def test_tasks_to_dialogues_to_scores_and_listening_pays(sweetrl, tmp_path):
    with in_thread(HostileServer(reply=lambda body, _: draft(history_of(body)))) as server:
        agent = ("--tasks", TASKS, "--agent", f"openai:a@{server.url}", "--quiet")
        talked = sweetrl("rollout", *agent, "--collaborator", "designer", "-o", tmp_path / "run")
        alone = sweetrl("rollout", *agent, "--single-turn", "-o", tmp_path / "alone")
    assert (talked.code, alone.code) == (0, 0), talked.err + alone.err
    means = []
    for run in ("run", "alone"):
        episodes, verdicts = tmp_path / run / "episodes.jsonl", tmp_path / run / "verdicts.jsonl"
        scored = sweetrl("score", "--tasks", TASKS, "--episodes", episodes, "-o", verdicts, "--json")
        assert scored.code == 0, scored.err
        report = json.loads(scored.out)
        assert report["defective_tasks"] == []
        rewards = [verdict.reward for verdict in read_records(verdicts, Verdict)]
        assert len(rewards) == 4
        assert_pictures_are_beside(verdicts)
        assert report["all"]["tests_passed"]["value"] == pytest.approx(sum(rewards) / 4)
        means.append(sum(rewards) / 4)
    assert means[0] > means[1]
    players = ("--agent", f"openai:a@{server.url}", "--collaborator", "designer")
    # All dialogues are there and scored: nobody is asked again.
    ended = sweetrl("evaluate", "--tasks", TASKS, *players, "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    figures = json.loads((tmp_path / "run" / "metrics.json").read_text())["metrics"]
    assert figures["reward"]["value"] == pytest.approx(means[0])
    assert "similarity, %" in ended.out
    episodes = list(read_records(tmp_path / "run" / "episodes.jsonl", Episode))
    named = {turn.reply.screenshot for episode in episodes for turn in episode.turns if turn.reply}
    verdicts_of_run = tmp_path / "run" / "verdicts.jsonl"
    stored = {path.stem: path.read_bytes() for path in (tmp_path / "run" / "screenshots").glob("*.png")}
    compared = {name for verdict in read_records(verdicts_of_run, Verdict) for name in names_in(verdict)}
    assert named | compared == stored.keys()
    assert all(picture_digest(png) == name for name, png in stored.items())
    against = ("--against", tmp_path / "alone" / "verdicts.jsonl", "--json")
    again = ("--episodes", tmp_path / "run" / "episodes.jsonl", "-o", tmp_path / "run" / "verdicts.jsonl")
    assert json.loads(sweetrl("score", "--tasks", TASKS, *again, *against).out)["win_rate"]["value"] > 0.5


def test_a_model_that_plays_the_client_gets_both_pages_as_pictures(sweetrl, tmp_path):
    from PIL import Image

    [page] = pages_of("mini-frontend:test:1")
    shown = "<html><body><h1>A first draft</h1></body></html>"

    def reply(body: dict[str, Any], _: int) -> str:
        if body["model"] == "client":
            return "Make it red. " * 200
        return shown if len(body["messages"]) == 2 else f"I WANT TO ANSWER: {shown}"

    with in_thread(HostileServer(reply=reply)) as server:
        ended = sweetrl(
            *("rollout", "--tasks", "mini-frontend:test:1", "--agent", f"openai:agent@{server.url}"),
            *("--collaborator", f"openai:client@{server.url}", "-o", tmp_path, "--quiet"),
        )
    assert ended.code == 0, ended.err
    [asked] = [asked.body for asked in server.asked if asked.body["model"] == "client"]
    pictures = saw(asked)
    assert pictures == [shot.png for shot in shots_of([page, shown])]
    assert [Image.open(io.BytesIO(png)).convert("RGB").width for png in pictures] == [1366, 1366]
    [text] = [part["text"] for part in asked["messages"][-1]["content"] if part["type"] == "text"]
    assert "The second picture is the designer's current draft." in text
    assert "<html" not in text
    [episode] = read_records(tmp_path / "episodes.jsonl", Episode)
    said = episode.turns[0].reply
    assert len(said.text) <= 1000
    assert said.screenshot == picture_digest(pictures[1])


def test_tasks_check_renders_every_reference_and_names_the_defective(sweetrl, tmp_path):
    tasks, good = tmp_path / "tasks.jsonl", tmp_path / "good.jsonl"
    pages = {"sound": pages_of("mini-frontend:test:1")[0], "blank": "<html><body></body></html>"}
    pages["hungry"] = '<html><img src="https://example.org/x.png"><p>Hi</p></html>'
    lines = [json.dumps({"id": k, "problem_description": "p", "ground_truth": v}) for k, v in pages.items()]
    tasks.write_text("\n".join(lines) + "\n")
    report = json.loads(sweetrl("tasks", "check", tasks, "-o", good, "--json").out)
    found = {defect["task_id"]: defect["reason"] for defect in report["defects"]}
    assert found == {"blank": "blank_page", "hungry": "incomplete_page"}
    assert [task.id for task in read_tasks(good)] == ["sound"]


BROKEN_PAGES = {
    "cut in a character": "<html><p>" + "a" * 1999 + "\U0001f600</html>",
    "half a character": "<html><p>\ud800</html>",
    "half a character in a configuration": "<html><script src='https://cdn.tailwindcss.com'></script><script>"
    "tailwind.config = { theme: { extend: { colors: { b: '\\ud800' } } } }</script><body class=bg-b>x</html>",
    "endless number": f"<html><link href='https://unpkg.com/tailwindcss@2.2.19/dist/tailwind.min.css' rel=stylesheet>"
    f"<p>&#{'9' * 5000};</html>",
}


def test_no_broken_page_stops_dialogues_with_the_designer_or_their_scores(sweetrl, tmp_path):
    pages = list(BROKEN_PAGES.values())

    def reply(body: dict[str, Any], _: int) -> str:
        turn = len(history_of(body)) // 2
        return pages[turn] if turn < len(pages) else f"I WANT TO ANSWER: {pages[0]}"

    with in_thread(HostileServer(reply=reply)) as server:
        agent = ("--tasks", "mini-frontend:test:1", "--agent", f"openai:a@{server.url}", "--quiet")
        ended = sweetrl("rollout", *agent, "--collaborator", "designer", "-o", tmp_path)
    assert ended.code == 0, ended.err
    [episode] = read_records(tmp_path / "episodes.jsonl", Episode)
    assert (episode.ending, len(episode.turns)) == (Ending.ANSWERED, 5)
    scored = sweetrl(
        *("score", "--tasks", "mini-frontend:test:1", "--episodes", tmp_path / "episodes.jsonl"),
        *("-o", tmp_path / "v.jsonl", "--quiet"),
    )
    assert scored.code == 0, scored.err


def test_broken_pages_are_scored_and_so_are_the_answers_after_them(sweetrl, tmp_path):
    [task] = read_tasks("mini-frontend:test:1")
    answers, verdicts = tmp_path / "answers.jsonl", tmp_path / "v.jsonl"
    given = [answer for page in BROKEN_PAGES.values() for answer in (page, task.secret.page)]
    answers.write_text("".join(json.dumps({"task_id": task.id, "answer": each}) + "\n" for each in given))
    scored = sweetrl(
        "score", "--tasks", "mini-frontend:test:1", "--answers", answers, "-o", verdicts, "--quiet"
    )
    assert scored.code == 0, scored.err
    rewards = [verdict.reward for verdict in read_records(verdicts, Verdict)]
    assert rewards[1::2] == [1.0] * len(BROKEN_PAGES)
    assert all(reward < 1 for reward in rewards[::2])


def test_a_person_shows_pages_from_a_file_to_the_designer(sweetrl, monkeypatch, tmp_path):
    [task] = read_tasks("mini-frontend:test:1")
    (tmp_path / "draft.html").write_text("<html><body><h1>A first draft</h1></body></html>")
    (tmp_path / "last.html").write_text(task.secret.page)
    typed = f"/file {tmp_path}/draft.html\n\n/answer /file {tmp_path}/last.html\n\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    ended = sweetrl(
        *("play", "--tasks", "mini-frontend:test:1", "--as", "agent", "--collaborator", "designer"),
        *("-o", tmp_path / "run"),
    )
    assert ended.code == 0, ended.err
    assert "reward 1.00" in ended.err
    [episode] = read_records(tmp_path / "run" / "episodes.jsonl", Episode)
    assert episode.answer == task.secret.page.strip()
    first = episode.turns[0].reply
    assert "missing" in first.text
    assert (tmp_path / "run" / "screenshots" / f"{first.screenshot}.png").is_file()


def run_with_browser(measure: Any) -> Any:
    import asyncio

    async def go() -> Any:
        async with BrowserPool(workers=2) as pool:
            return await measure(pool)

    return asyncio.run(go())


def test_mutated_pages_are_put_in_order():
    pages = [task.secret.page for task in make_tasks("test", 4)]

    async def measure(pool):
        return await order(LayoutSimilarity(), await make_series(pool, pages))

    found = run_with_browser(measure)
    assert found.spearman >= 0.8
    assert 0.5 <= found.pooled_spearman <= found.spearman
    assert found.mean_by_grade[1] > found.mean_other


def test_the_designer_names_the_one_change_and_is_satisfied_without_one():
    pages = pages_of("mini-frontend:validation:3")
    first, second = shots_of(pages[:1])[0], shots_of(pages[:1])[0]
    assert remark(first, second) == SATISFIED

    async def measure(pool):
        return await tally_complaints(pool, pages)

    tally = run_with_browser(measure)
    assert tally.asked.total() >= 15
    assert tally.share >= 0.9, tally.misses
