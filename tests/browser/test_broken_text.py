"""Broken text in a page ends in a verdict and in a reply, which files of records can hold."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from browser.broken_text import broken_pages
from sweetrl.browser import BrowserPool, RememberingRenderer, Shot, WebAssets
from sweetrl.domains.frontend.designer import ScriptedDesigner
from sweetrl.domains.frontend.layout import LayoutSimilarity
from sweetrl.domains.frontend.scorer import FrontendScorer
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.records import open_log, read_records
from sweetrl.types import Ending, Episode, Message, Role, Task, Verdict

REFERENCE = "<html><h1 style='color:teal'>Welcome</h1><p>Text</p></html>"
TASK = Task(id="page", domain="frontend", request="A page.", secret=FrontendSecret(REFERENCE))


PAGES = [f"<html>{page}</html>" for page in broken_pages().values()]


def episode(attempt: int, page: str) -> Episode:
    return Episode(
        task_id="page",
        attempt=attempt,
        seed=0,
        agent="",
        collaborator="",
        request="",
        turns=(),
        ending=Ending.ANSWERED,
        answer=page,
    )


@pytest.fixture(scope="module")
def renderer(pool: BrowserPool, tailwind: WebAssets) -> RememberingRenderer:
    """Shared, so that each broken page is shown once."""
    return RememberingRenderer(pool)


def test_there_are_many_places() -> None:
    assert len(broken_pages()) >= 60


def test_every_broken_page_is_scored_and_the_next_page_is_as_ever(
    run: Any, pool: BrowserPool, renderer: RememberingRenderer, tmp_path: Path
) -> None:
    scorer = FrontendScorer(renderer, renderer, LayoutSimilarity())

    async def score(attempt: int, page: str) -> tuple[Verdict, Shot]:
        return await scorer.score(TASK, episode(attempt, page)), await pool.render(REFERENCE)

    async def score_all() -> list[tuple[Verdict, Shot]]:
        return await asyncio.gather(*(score(*each) for each in enumerate(PAGES)))

    honest = run(pool.render(REFERENCE))
    path = tmp_path / "verdicts.jsonl"
    with open_log(path, Verdict, command="score", config={}, identity=lambda each: each.episode_id) as log:
        for verdict, after in run(score_all()):
            log.append(verdict.episode_id, verdict)
            assert after == honest
    verdicts = list(read_records(path, Verdict))
    assert [verdict.failure for verdict in verdicts] == [None] * len(PAGES)
    assert all(verdict.reward is not None and verdict.reward < 1 for verdict in verdicts)


def test_the_designer_has_a_reply_to_every_broken_page(run: Any, renderer: RememberingRenderer) -> None:
    designer = ScriptedDesigner(renderer, quote=True)

    async def ask(page: str) -> str:
        history = [Message(Role.USER, TASK.request), Message(Role.ASSISTANT, page)]
        return (await designer.reply(TASK, history, seed=0)).text

    for page in PAGES:
        assert run(ask(page)).encode()


def test_a_text_is_cut_between_characters(run: Any, pool: BrowserPool) -> None:
    shot: Shot = run(pool.render("<p>" + "a" * 1999 + "\U0001f600</p><p>" + "a" * 1998 + "\U0001f600</p>"))
    assert [len(box.text) for box in shot.boxes[1:]] == [1999, 1999]
    assert [box.text[-1] for box in shot.boxes[1:]] == ["a", "\U0001f600"]


def test_half_a_character_is_shown_as_what_a_file_would_hold(run: Any, pool: BrowserPool) -> None:
    texts = ("\ud83d\ude00 \ud83d", "\U0001f600 \ufffd", "\U0001f600 ?")
    broken, whole, other = (run(pool.render(f"<p>{text}")) for text in texts)
    assert broken == whole != other
