"""Broken text in a page ends in a verdict and in a reply, which files of records can hold."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from browser.broken_text import broken_pages
from sweetrl.browser import BrowserPool, RememberingRenderer, Shot, WebAssets
from sweetrl.dialogue.designer import ScriptedDesigner
from sweetrl.records import open_log, read_records
from sweetrl.scoring.frontend import FrontendScorer
from sweetrl.scoring.layout import LayoutSimilarity
from sweetrl.types import Ending, Episode, FrontendSecret, Kind, Message, Role, Task, Verdict

REFERENCE = "<html><h1 style='color:teal'>Welcome</h1><p>Text</p></html>"
TASK = Task(id="page", kind=Kind.FRONTEND, request="A page.", secret=FrontendSecret(REFERENCE))


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
def answers() -> list[Episode]:
    """A broken page and the reference in turns."""
    pages = [page for broken in broken_pages().values() for page in (broken, REFERENCE)]
    return [episode(attempt, page) for attempt, page in enumerate(pages)]


@pytest.fixture(scope="module")
def renderer(pool: BrowserPool, tailwind: WebAssets) -> RememberingRenderer:
    return RememberingRenderer(pool)


def test_there_are_many_places() -> None:
    assert len(broken_pages()) >= 60


def test_every_broken_page_is_scored_and_the_page_after_it_earns_1(
    run: Any, pool: BrowserPool, renderer: RememberingRenderer, answers: list[Episode], tmp_path: Path
) -> None:
    scorer = FrontendScorer(renderer, pool, LayoutSimilarity())

    async def score() -> None:
        with open_log(
            tmp_path / "verdicts.jsonl",
            Verdict,
            command="score",
            config={},
            identity=lambda each: each.episode_id,
        ) as log:
            for verdict in await asyncio.gather(*(scorer.score(TASK, each) for each in answers)):
                log.append(verdict.episode_id, verdict)

    run(score())
    verdicts = list(read_records(tmp_path / "verdicts.jsonl", Verdict))
    assert [verdict.failure for verdict in verdicts] == [None] * len(answers)
    assert [verdict.reward for verdict in verdicts[1::2]] == [1.0] * len(broken_pages())
    assert all(verdict.reward is not None and verdict.reward < 1 for verdict in verdicts[::2])


def test_the_designer_has_a_reply_to_every_broken_page(run: Any, renderer: RememberingRenderer) -> None:
    designer = ScriptedDesigner(renderer, quote=True)

    async def ask(page: str) -> str:
        history = [Message(Role.USER, TASK.request), Message(Role.ASSISTANT, f"<html>{page}</html>")]
        return (await designer.reply(TASK, history, seed=0)).text

    for page in broken_pages().values():
        assert run(ask(page)).encode()


def test_a_text_is_cut_between_characters(run: Any, pool: BrowserPool) -> None:
    shot: Shot = run(pool.render("<p>" + "a" * 1999 + "\U0001f600</p><p>" + "a" * 1998 + "\U0001f600</p>"))
    assert [len(box.text) for box in shot.boxes[1:]] == [1999, 1999]
    assert [box.text[-1] for box in shot.boxes[1:]] == ["a", "\U0001f600"]


def test_half_a_character_is_shown_as_what_a_file_would_hold(run: Any, pool: BrowserPool) -> None:
    texts = ("\ud83d\ude00 \ud83d", "\U0001f600 \ufffd", "\U0001f600 ?")
    broken, whole, other = (run(pool.render(f"<p>{text}")) for text in texts)
    assert broken == whole != other
