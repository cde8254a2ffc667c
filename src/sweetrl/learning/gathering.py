"""Gathers requests that arrive while others are computed, and computes them together."""

import asyncio
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class _Asked(Generic[Question, Answer]):
    """A question, and in time its answer."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.outcome: Answer | BaseException

    def answer(self) -> Answer:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


class Gathering(Generic[Question, Answer]):
    """Passes questions from coroutines of any event loop to a function that answers many at a time.

    It runs in a thread, one call at a time, on all waiting questions in the order of arrival. It may return an
    exception in place of an answer, which is raised for the asker of that question only.
    """

    def __init__(self, answer_all: Callable[[Sequence[Question]], Sequence[Answer | Exception]]) -> None:
        self._answer_all = answer_all
        self._waiting: list[_Asked[Question, Answer]] = []
        self._arriving = Lock()
        self._answering = Lock()

    async def ask(self, question: Question) -> Answer:
        """The answer, once those before have theirs."""
        asked = _Asked[Question, Answer](question)
        with self._arriving:
            self._waiting.append(asked)
        await asyncio.sleep(0)  # whoever asks in the same turn of the loop is answered with it
        await asyncio.to_thread(self._answer_waiting)
        return asked.answer()

    def _answer_waiting(self) -> None:
        """Afterwards all that waited has been answered, by this thread or another one."""
        with self._answering:
            with self._arriving:
                taken, self._waiting = self._waiting, []
            if not taken:
                return
            try:
                outcomes = self._answer_all([asked.question for asked in taken])
            except BaseException as error:
                for asked in taken:
                    asked.outcome = error
                raise
            for asked, outcome in zip(taken, outcomes, strict=True):
                asked.outcome = outcome
