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
from sweetrl.records import is_on_hub
from sweetrl.types import Task, Verdict
from sweetrl.viewer.sources import TASKS

logger = logging.getLogger(__name__)

MOST_TASKS = 20_000
"""How many are loaded because the files of a run name them."""


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
        room = MOST_TASKS
        for source in dict.fromkeys(_named_in_journals(self.roots)):
            tasks = _loaded(source, room)
            found |= tasks
            room -= len(tasks)
        for source in self.sources:
            found |= _loaded(source, None)
        return found


def _loaded(source: str, limit: int | None) -> dict[str, Task]:
    try:
        return load_tasks(source, limit)
    except (SweetError, ValueError) as error:  # a journal may name what can be no file
        logger.warning("%s", error)
        return {}


def _named_in_journals(roots: Sequence[Path]) -> Iterator[str]:
    """What stages were given as `--tasks`, and files of tasks in the folders themselves.

    The run may be a stranger's: nothing is fetched because it says so, and no pipe is waited for.
    """
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
            source = str(words[words.index("--tasks") + 1])
            if _is_harmless(source):
                yield source


def _is_harmless(source: str) -> bool:
    """Whether tasks can be read without asking the network or waiting for a pipe."""
    try:
        return not is_on_hub(source) and (Path(source).is_file() or not Path(source).exists())
    except OSError:
        return False  # no file can have such a name


def domain_for(hidden: Hidden | None, verdict: Verdict | None) -> Domain | None:
    """What a dialogue is about, as far as its task or its scorer tell."""
    if hidden is not None:
        return hidden.domain
    return None if verdict is None else domain_of_scorer(verdict.scorer)
