"""Tasks written by a language model: drafts, and which of them are kept.

A draft is kept if it can be read as a task, has no defect that `sweetrl tasks check` finds, and repeats no existing
task. Everything follows from the model, the seed and the draft's number, so a run can be stopped and resumed.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sweetrl.domains.domain import Domain, TaskWriter
from sweetrl.domains.duplicates import KnownTasks
from sweetrl.domains.scoring import ScoringBackend
from sweetrl.errors import ModelError, StageError, UsageError
from sweetrl.protocols import ChatModel
from sweetrl.seeds import derive_seed
from sweetrl.types import Count, Failure, Message, Role, Sampling, Task

WAVE = 16
"""Drafts that are requested together, and then judged one after the other."""


class Draft(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model's attempt to write a task."""

    schema: Literal["draft/1"] = "draft/1"
    number: Count
    text: str
    rejected: str = ""
    """Why it gave no task, as `reason: detail`; empty if it was kept."""
    failure: Failure | None = None
    """Why nothing was written; such a draft is requested again."""

    @property
    def id(self) -> str:
        """Unique within a file."""
        return str(self.number)

    @property
    def kept(self) -> bool:
        """Whether it became a task."""
        return not self.rejected and self.failure is None


@dataclass(frozen=True)
class Drafting:
    """The settings and resources for writing drafts."""

    domain: Domain
    model: ChatModel
    inspirations: Sequence[str]
    """Topics or snippets; each draft takes the next one."""
    sampling: Sampling
    seed: int
    name: str
    """What the ids of the tasks begin with."""

    @property
    def writer(self) -> TaskWriter:
        """The domain's; an error where it has none."""
        if self.domain.writer is None:
            raise UsageError(f"{self.domain.name} tasks have no writer; give the domain a `TaskWriter`")
        return self.domain.writer

    def task_of(self, draft: Draft) -> Task:
        """The task that a draft makes; a `ValueError` if it makes none."""
        request, secret = self.writer.read(draft.text)
        return Task(
            id=f"{self.name}-{draft.number:06d}", domain=self.domain.name, request=request, secret=secret
        )

    async def draft(self, number: int) -> Draft:
        """What the model writes for a number, not judged yet."""
        inspiration = self.inspirations[number % len(self.inspirations)]
        chat = [Message(Role.USER, self.writer.prompt.render(inspiration=inspiration))]
        own_seed = derive_seed(self.seed, number, "task")
        try:
            [written] = await self.model.complete(chat, n=1, sampling=self.sampling, seed=own_seed)
        except StageError as error:
            kind = error.kind if isinstance(error, ModelError) else type(error).__name__
            return Draft(number=number, text="", failure=Failure("model", kind, str(error)))
        return Draft(number=number, text=written.text)


async def write_drafts(
    drafting: Drafting,
    scoring: ScoringBackend,
    known: KnownTasks,
    done: Iterable[Draft],
    *,
    wanted: int,
    most: int,
) -> AsyncGenerator[Draft]:
    """Judged drafts, until `wanted` are kept or `most` were written; `done` are those of an earlier run."""
    numbers, kept = set(), 0
    for draft in done:
        numbers.add(draft.number)
        if draft.kept:
            known.add(drafting.task_of(draft))
            kept += 1
    missing = (number for number in range(most) if number not in numbers)
    while kept < wanted and (wave := list(islice(missing, WAVE))):
        drafts = await asyncio.gather(*map(drafting.draft, wave))
        async for draft in _judged(drafting, scoring, known, drafts):
            kept += draft.kept
            yield draft


async def _judged(
    drafting: Drafting, scoring: ScoringBackend, known: KnownTasks, drafts: Sequence[Draft]
) -> AsyncGenerator[Draft]:
    """The drafts with why they are rejected. One after the other, because each that is kept is known to the next."""
    read = [_read(drafting, draft) for draft in drafts]
    tasks = [task for _, task in read if task is not None]
    defects = await scoring.find_defects(tasks, lambda _: None)
    for draft, task in read:
        if task is None:
            yield draft
        elif found := defects[task.id]:
            yield replace(draft, rejected=f"defective: {found[0].reason}")
        elif (same := known.same_as(task)) is not None:
            yield replace(draft, rejected=f"repeated: {same}")
        else:
            known.add(task)
            yield draft


def _read(drafting: Drafting, draft: Draft) -> tuple[Draft, Task | None]:
    if draft.failure is not None:
        return draft, None
    try:
        return draft, drafting.task_of(draft)
    except ValueError as error:
        return replace(draft, rejected=f"unreadable: {error}"), None


def kept_tasks(drafting: Drafting, drafts: Iterable[Draft], wanted: int) -> Iterator[Task]:
    """The first tasks in the order of their numbers."""
    kept = sorted((draft for draft in drafts if draft.kept), key=lambda draft: draft.number)
    return (drafting.task_of(draft) for draft in kept[:wanted])
