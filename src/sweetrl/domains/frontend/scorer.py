"""Scoring pages: reference and answer rendered, and the similarity of the two pictures measured.

An answer without a page, or with one that cannot be shown, gets the lowest reward. A browser that breaks down,
or a reference that cannot be shown, leaves the episode unscored.
"""

import asyncio
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.domains.frontend.similarity import Similarity, SimilarityScore
from sweetrl.errors import PageError, RenderError, StageError
from sweetrl.outputs import find_page, marked_answer
from sweetrl.protocols import Renderer
from sweetrl.types import (
    Check,
    Ending,
    Episode,
    Failure,
    Outcome,
    Screenshots,
    Shot,
    Task,
    Verdict,
    digest,
)

GOOD = 0.9
"""A part of the similarity passes its check from here on."""
SUCCESS = 0.99
"""A page that is as good as the reference: what differs is hard to see."""

_MARKUP = re.compile(r"<[a-z!/][^<>]*>", re.IGNORECASE)


@dataclass(frozen=True)
class _Judgement:
    """The judgement of an answer, without its episode."""

    reward: float | None
    checks: tuple[Check, ...] = ()
    screenshots: Screenshots | None = None
    failure: Failure | None = None


class FrontendScorer:
    """A `Scorer` for frontend tasks. Its renderer should remember references, and is its owner's to close."""

    def __init__(
        self,
        references: Renderer,
        answers: Renderer,
        similarity: Similarity,
        *,
        keep: Callable[[bytes], str] | None = None,
    ) -> None:
        """`references` renders pages that recur, `answers` those that occur once.

        `keep` stores a picture and returns its content hash; without it verdicts name no screenshots.
        """
        self._references = references
        self._answers = answers
        self._similarity = similarity
        self._keep = keep

    @property
    def name(self) -> str:
        """Name and version; the version changes whenever a verdict could."""
        return f"frontend-{self._similarity.name}"

    async def score(self, task: Task, episode: Episode) -> Verdict:
        """Judge the episode's last page; unscored if it failed for reasons of ours, or the browser does."""
        if episode.ending is Ending.FAILED and episode.failure is not None:
            return self._verdict(task, episode, _Judgement(None, failure=episode.failure))
        try:
            judgement = await self._judge(task, episode.answer)
        except StageError as error:
            judgement = _Judgement(None, failure=Failure("score", type(error).__name__, str(error)))
        return self._verdict(task, episode, judgement)

    async def _judge(self, task: Task, answer: str | None) -> _Judgement:
        page = page_in(answer)
        if page is None:
            return _unusable("no page", await self._kept_reference(task))
        reference, shown = await asyncio.gather(
            self.reference(task), self._answers.render(page), return_exceptions=True
        )
        if isinstance(reference, BaseException):
            raise reference
        if isinstance(shown, PageError):
            return _unusable(str(shown), self._kept(reference))
        if isinstance(shown, BaseException):
            raise shown
        try:
            found = await self._similarity.compare(reference, shown)
        except PageError as error:
            return _unusable(str(error), self._kept(reference, shown))
        if not math.isfinite(found.score):
            # Stored, it would be read as unscored.
            return _unusable("the page cannot be compared", self._kept(reference, shown))
        return _Judgement(found.score, _checks(found), self._kept(reference, shown))

    def _kept(self, reference: Shot, answer: Shot | None = None) -> Screenshots | None:
        """The pictures, stored if they are to be."""
        if self._keep is None:
            return None
        return Screenshots(self._keep(reference.png), None if answer is None else self._keep(answer.png))

    async def _kept_reference(self, task: Task) -> Screenshots | None:
        """The reference alone, for those who look at the verdict: the reward does not depend on it."""
        if self._keep is None:
            return None
        try:
            return self._kept(await self.reference(task))
        except RenderError:
            return None

    async def reference(self, task: Task) -> Shot:
        """Render the reference; `RenderError` if that fails, whoever is to blame."""
        page = frontend_secret(task).page
        try:
            return await self._references.render(page)
        except PageError as error:
            raise RenderError(f"the reference of {task.id} cannot be shown: {error}") from error

    def _verdict(self, task: Task, episode: Episode, judgement: _Judgement) -> Verdict:
        reward = judgement.reward
        return Verdict(
            task_id=task.id,
            episode_id=episode.id,
            scorer=self.name,
            answer_digest=digest(episode.answer),
            reward=reward,
            success=reward is not None and reward >= SUCCESS,
            checks=judgement.checks,
            screenshots=judgement.screenshots,
            failure=judgement.failure,
        )


def page_in(answer: str | None) -> str | None:
    """The page in an answer: bare, fenced, or among prose; None without one."""
    text = answer or ""
    bare = marked_answer(text) or text
    return find_page(text) or (bare if _MARKUP.match(bare.lstrip()) else None)


def _unusable(reason: str, screenshots: Screenshots | None) -> _Judgement:
    return _Judgement(0.0, (Check("page", Outcome.UNUSABLE, reason),), screenshots)


def _checks(found: SimilarityScore) -> tuple[Check, ...]:
    """The parts of a similarity as checks: the number is in the detail."""
    return tuple(
        Check(name, Outcome.PASSED if value >= GOOD else Outcome.WRONG, f"{value:.4f}")
        for name, value in found.parts.items()
    )
