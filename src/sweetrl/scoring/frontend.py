"""Scoring pages: reference and answer rendered, and the likeness of the two pictures measured.

An answer without a page, or with one that cannot be shown, gets the lowest reward. A browser that breaks down,
or a reference that cannot be shown, leaves the episode unscored.
"""

import asyncio
import re

from sweetrl.errors import DataError, PageError, RenderError, StageError
from sweetrl.protocols import Renderer
from sweetrl.scoring.answers import ANSWER_MARKER, fenced_blocks
from sweetrl.scoring.similarity import Likeness, Similarity
from sweetrl.types import (
    Check,
    Ending,
    Episode,
    Failure,
    FrontendSecret,
    Outcome,
    Shot,
    Task,
    Verdict,
    digest,
)

GOOD = 0.9
"""A part of the likeness passes its check from here on."""
SUCCESS = 0.99
"""A page that is as good as the reference: what differs is hard to see."""

_PAGE = re.compile(
    # To the last end of a page, or if there is none to the end of the fence or of the answer.
    r"(?:<!doctype\s[^<>]*>\s*)?<html\b(?:.*</html\s*>|.*?(?=```|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_MARKUP = re.compile(r"<[a-z!/][^<>]*>", re.IGNORECASE)


class FrontendScorer:
    """A `Scorer` for frontend tasks. Its renderer should remember references, and is its owner's to close."""

    def __init__(self, references: Renderer, answers: Renderer, similarity: Similarity) -> None:
        """`references` shows the pages that come again and again, `answers` those that come once."""
        self._references = references
        self._answers = answers
        self._similarity = similarity

    @property
    def name(self) -> str:
        """Name and version; the version changes whenever a verdict could."""
        return f"frontend-{self._similarity.name}"

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """Judge the episode's last page; unscored if it failed for reasons of ours, or the browser does."""
        failure = episode.failure if episode.ending is Ending.FAILED else None
        if failure is None:
            try:
                return self._verdict(task, episode, *await self._judge(task, episode.answer))
            except StageError as error:
                failure = Failure("score", type(error).__name__, str(error))
        return self._verdict(task, episode, None, (), failure)

    async def _judge(self, task: Task, answer: str | None) -> tuple[float, tuple[Check, ...]]:
        page = page_in(answer)
        if page is None:
            return 0.0, (Check("page", Outcome.UNUSABLE, "no page"),)
        reference, shown = await asyncio.gather(
            self.reference(task), self._answers.render(page), return_exceptions=True
        )
        if isinstance(reference, BaseException):
            raise reference
        if isinstance(shown, PageError):
            return 0.0, (Check("page", Outcome.UNUSABLE, str(shown)),)
        if isinstance(shown, BaseException):
            raise shown
        likeness = await self._similarity.compare(reference, shown)
        return likeness.score, _checks(likeness)

    async def reference(self, task: Task) -> Shot:
        """The reference's picture. `RenderError` if there is none, whoever is to blame."""
        page = frontend_secret(task).page
        try:
            return await self._references.render(page)
        except PageError as error:
            raise RenderError(f"the reference of {task.id} cannot be shown: {error}") from error

    def _verdict(
        self,
        task: Task,
        episode: Episode,
        reward: float | None,
        checks: tuple[Check, ...],
        failure: Failure | None = None,
    ) -> Verdict:
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=reward,
            success=reward is not None and reward >= SUCCESS,
            checks=checks,
            failure=failure,
        )


def frontend_secret(task: Task) -> FrontendSecret:
    """The task's secret; an error that names the task if it is of the other kind."""
    if not isinstance(task.secret, FrontendSecret):
        raise DataError(f"task {task.id} is a {task.kind} task; the frontend scorer cannot judge it")
    return task.secret


def page_in(answer: str | None) -> str | None:
    """The page in an answer: bare, fenced, or among prose; None if there is none."""
    text = answer or ""
    if ANSWER_MARKER in text:
        text = text.split(ANSWER_MARKER, 1)[1]
    if whole := _PAGE.search(text):
        return whole[0].strip()
    fenced = [block for block in fenced_blocks(text) if _MARKUP.search(block)]
    if fenced:
        return fenced[-1]
    return text if _MARKUP.match(text.lstrip()) else None


def _checks(likeness: Likeness) -> tuple[Check, ...]:
    """The parts of a likeness as checks: the figure is in the detail."""
    return tuple(
        Check(name, Outcome.PASSED if value >= GOOD else Outcome.WRONG, f"{value:.4f}")
        for name, value in likeness.parts.items()
    )
