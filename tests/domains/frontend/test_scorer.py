"""The frontend scorer, with painted pages in place of a browser."""

import asyncio
import math

import pytest

from pages.painted import PaintedPages, shop
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.layout import LayoutSimilarity
from sweetrl.domains.frontend.scorer import FrontendScorer, page_in
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.frontend.similarity import SimilarityScore
from sweetrl.errors import DataError, PageError, RenderError, StageError
from sweetrl.types import (
    Ending,
    Episode,
    Failure,
    Outcome,
    Screenshots,
    Task,
    Verdict,
    digest,
    picture_digest,
)

REFERENCE = "<html>reference</html>"
CLOSE, FAR = "<html>close</html>", "<html>far</html>"
ENDLESS, CRASH = "<html>endless</html>", "<html>crash</html>"
PAGES = {
    REFERENCE: shop(),
    CLOSE: shop(header="#ef4444"),
    FAR: shop(header="#16a34a", footer=False, cards=1),
    ENDLESS: PageError("the page never comes to rest"),
    CRASH: RenderError("the browser is gone"),
}
TASK = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(REFERENCE))


def episode(answer: str | None, **fields: object) -> Episode:
    given = {"ending": Ending.ANSWERED, "failure": None, **fields}
    return Episode(
        task_id="shop",
        attempt=0,
        seed=0,
        agent="",
        collaborator="",
        request="",
        turns=(),
        answer=answer,
        **given,
    )  # type: ignore[arg-type]


def judged(answer: str | None, *, task: Task = TASK, similarity=None, keep=None, **fields: object) -> Verdict:
    renderer = PaintedPages(PAGES)
    scorer = FrontendScorer(renderer, renderer, similarity or LayoutSimilarity(), keep=keep)
    return asyncio.run(scorer.score(task, episode(answer, **fields)))


def test_the_reference_itself_earns_1_and_success():
    verdict = judged(REFERENCE)
    assert (verdict.reward, verdict.success, verdict.failure) == (1.0, True, None)
    assert verdict.scorer == "frontend-layout/2"
    assert verdict.answer_digest == digest(REFERENCE)
    assert (verdict.task_id, verdict.episode_id) == ("shop", "shop#0")


def test_a_closer_page_earns_more_and_the_checks_say_by_what():
    close, far = judged(CLOSE), judged(FAR)
    assert 1.0 > close.reward > far.reward > 0.0
    assert not far.success
    outcomes = {check.name: check.outcome for check in far.checks}
    assert outcomes["completeness"] is Outcome.WRONG
    assert {check.name: check.outcome for check in close.checks}["position"] is Outcome.PASSED
    assert all(0 <= float(check.detail) <= 1 for check in far.checks)


@pytest.mark.parametrize("answer", [None, "", "I would make it red.", "2 < 3 and 5 > 4"])
def test_no_page_is_the_lowest_reward(answer):
    verdict = judged(answer)
    assert (verdict.reward, verdict.success, verdict.failure) == (0.0, False, None)
    assert [check.outcome for check in verdict.checks] == [Outcome.UNUSABLE]


def test_a_page_that_cannot_be_shown_is_its_authors_fault():
    verdict = judged(ENDLESS)
    assert verdict.reward == 0.0
    assert verdict.checks[0].detail == "the page never comes to rest"


def test_a_broken_browser_leaves_the_episode_unscored():
    verdict = judged(CRASH)
    assert verdict.reward is None
    assert verdict.failure == Failure("score", "RenderError", "the browser is gone")


def test_a_reference_that_cannot_be_shown_leaves_the_episode_unscored_whatever_the_answer():
    broken = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(ENDLESS))
    for answer in (CLOSE, ENDLESS):
        verdict = judged(answer, task=broken)
        assert verdict.reward is None
        assert "the reference of shop cannot be shown" in verdict.failure.message


def test_a_similarity_that_fails_leaves_the_episode_unscored():
    class Broken(LayoutSimilarity):
        name = "broken/1"

        async def compare(self, reference, answer):
            raise StageError("out of memory")

    verdict = judged(CLOSE, similarity=Broken())
    assert (verdict.reward, verdict.scorer) == (None, "frontend-broken/1")


def test_a_page_that_cannot_be_compared_is_its_authors_fault_and_can_be_looked_at():
    class Refusing(LayoutSimilarity):
        async def compare(self, reference, answer):
            raise PageError("no colour in it")

    verdict = judged(CLOSE, similarity=Refusing(), keep=Album().keep)
    assert (verdict.reward, verdict.failure, verdict.checks[0].detail) == (0.0, None, "no colour in it")
    assert verdict.screenshots.answer == picture_digest(PAGES[CLOSE].png)


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_similarity_that_is_no_number_is_the_lowest_reward(score):
    class Odd(LayoutSimilarity):
        async def compare(self, reference, answer):
            return SimilarityScore(score)

    assert judged(CLOSE, similarity=Odd()).reward == 0.0


def test_a_failed_dialogue_stays_unscored_with_its_own_reason():
    failure = Failure("agent", "timeout", "no reply")
    verdict = judged(REFERENCE, ending=Ending.FAILED, failure=failure)
    assert (verdict.reward, verdict.failure) == (None, failure)


class Album:
    """Keeps pictures in memory."""

    def __init__(self) -> None:
        self.pictures: dict[str, bytes] = {}

    def keep(self, png: bytes) -> str:
        self.pictures[picture_digest(png)] = png
        return picture_digest(png)


def test_a_verdict_names_the_pictures_that_were_compared():
    album = Album()
    verdict = judged(CLOSE, keep=album.keep)
    assert verdict.screenshots == Screenshots(
        picture_digest(PAGES[REFERENCE].png), picture_digest(PAGES[CLOSE].png)
    )
    assert set(album.pictures.values()) == {PAGES[REFERENCE].png, PAGES[CLOSE].png}
    assert judged(CLOSE).screenshots is None


@pytest.mark.parametrize("answer", [None, "prose only", ENDLESS])
def test_without_a_page_to_show_there_is_still_the_reference(answer):
    verdict = judged(answer, keep=Album().keep)
    assert verdict.screenshots == Screenshots(picture_digest(PAGES[REFERENCE].png), None)
    assert verdict.reward == 0.0


def test_keeping_pictures_changes_no_reward_where_the_reference_cannot_be_shown():
    broken = Task(id="shop", domain="frontend", request="A shop.", secret=FrontendSecret(ENDLESS))
    kept, plain = (judged("prose only", task=broken, keep=keep) for keep in (Album().keep, None))
    assert kept == plain
    assert kept.reward == 0.0


def test_a_backend_task_is_refused_by_name():
    task = Task(
        id="add", domain="backend", request="Add.", secret=BackendSecret("def f(): ...", {"a": "f()"})
    )
    with pytest.raises(DataError, match="task add is a backend task"):
        judged(REFERENCE, task=task)


@pytest.mark.parametrize(
    ("answer", "page"),
    [
        ("<html>a</html>", "<html>a</html>"),
        ("Here:\n```html\n<html>a</html>\n```\nDone.", "<html>a</html>"),
        ("I WANT TO ANSWER:\n<!doctype html>\n<html>a</html>", "<!doctype html>\n<html>a</html>"),
        ("<html><pre>```</pre></html> bye", "<html><pre>```</pre></html>"),
        ("```\n<html><p>cut off\n```", "<html><p>cut off"),
        ("```html\n<p>no html tag</p>\n```", "<p>no html tag</p>"),
        ("<div>bare</div>", "<div>bare</div>"),
        ("prose only", None),
    ],
)
def test_the_page_is_found_in_what_models_write(answer, page):
    assert page_in(answer) == page
