"""What was hidden in a task, for those who ask to see it: found through the run's journal, or given."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from sweetrl.domains.domain import Domain, SecretPart
from sweetrl.domains.registry import domain_of, domain_of_scorer
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import SweetError
from sweetrl.experiments.journal import JOURNAL
from sweetrl.types import Task, Verdict
from sweetrl.viewer.sources import TASKS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Hidden:
    """A task as those see it who may see everything."""

    task: Task
    domain: Domain
    parts: Sequence[SecretPart]
    reference: str


@dataclass
class Secrets:
    """The tasks of all runs. They are loaded when something hidden is first asked for."""

    sources: Sequence[str]
    """Given with `--tasks`."""
    roots: Sequence[Path]
    """Folders whose journals name more."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, task_id: str) -> Hidden | None:
        """What was hidden in a task; None where its source is not known."""
        with self._lock:
            task = self._tasks.get(task_id)
        if task is None:
            return None
        try:
            domain = domain_of(task)
            parts = domain.parts_of(task)
            return Hidden(task, domain, parts, domain.reference(domain.secret_of(task)))
        except SweetError as error:
            logger.warning("%s", error)
            return None

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        found: dict[str, Task] = {}
        for source in dict.fromkeys([*self.sources, *_named_in_journals(self.roots)]):
            try:
                found |= load_tasks(source)
            except SweetError as error:
                logger.warning("%s", error)
        return found


def _named_in_journals(roots: Sequence[Path]) -> Iterator[str]:
    """What stages were given as `--tasks`, and files of tasks in the folders themselves."""
    for root in roots:
        for folder in (root, *root.parents[:2]):
            if (folder / JOURNAL).is_file():
                yield from _tasks_of(folder / JOURNAL)
                break
        if (root / TASKS).is_file():
            yield str(root / TASKS)


def _tasks_of(journal: Path) -> Iterator[str]:
    try:
        stages: list[dict[str, Any]] = msgspec.json.decode(journal.read_bytes(), type=list[dict[str, Any]])
    except (OSError, msgspec.DecodeError):
        return
    for stage in stages:
        words = stage.get("arguments")
        if isinstance(words, list) and "--tasks" in words[:-1]:
            yield str(words[words.index("--tasks") + 1])


def domain_for(hidden: Hidden | None, verdict: Verdict | None) -> Domain | None:
    """What a dialogue is about, as far as its task or its scorer tell."""
    if hidden is not None:
        return hidden.domain
    return None if verdict is None else domain_of_scorer(verdict.scorer)
