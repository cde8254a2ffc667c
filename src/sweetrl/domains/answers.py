"""Answer files: lines of `{"task_id": ..., "answer": ...}`, read as episodes without a dialogue."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from sweetrl.errors import DataError
from sweetrl.records import LineDecoder, read_lines
from sweetrl.types import Count, Ending, Episode, NonEmpty


class Answer(Struct, frozen=True):
    """One line; other fields are the user's own business."""

    task_id: NonEmpty
    answer: str | None
    attempt: Count | None = None
    """Which answer to the task this is; counted in the order of the lines if it is not given."""


def read_answers(path: Path, tasks: Collection[str]) -> Iterator[Episode]:
    """The answers of a file. Several lines may answer one task."""
    decode = LineDecoder(Answer, path)
    attempts: Counter[str] = Counter()
    for number, line in read_lines(path):
        answer = decode(number, line)
        if answer.task_id not in tasks:
            raise DataError(
                f"unknown task {answer.task_id!r}: not in --tasks; give the tasks that were answered",
                path=path,
                line=number,
            )
        attempt = attempts[answer.task_id] if answer.attempt is None else answer.attempt
        attempts[answer.task_id] += 1
        yield Episode(
            task_id=answer.task_id,
            attempt=attempt,
            seed=0,
            agent="",
            collaborator="",
            request="",
            turns=(),
            ending=Ending.ANSWERED,
            answer=answer.answer,
        )
    if not attempts:
        raise DataError("has no records; give a file that has some", path=path)
