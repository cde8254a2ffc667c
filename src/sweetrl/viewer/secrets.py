"""What was hidden in a task, for those who ask to see it: found through journals and run cards, or given."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sweetrl.domains.domain import Domain, SecretPart
from sweetrl.domains.registry import domain_of, domain_of_scorer
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import SweetError
from sweetrl.experiments.journal import JOURNAL
from sweetrl.records import is_on_hub
from sweetrl.types import Task, Verdict
from sweetrl.viewer.sources import TASKS

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TASKS = 20_000
"""How many are loaded because the files of a run name them."""
LARGEST_FILE = 64 << 20
"""Bytes of a journal or a run card; a longer one is no JSON for us."""


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

    given: Sequence[str]
    """Sources named with `--tasks`."""
    roots: Sequence[Path]
    """Folders whose journals name more."""
    runs: Callable[[], Iterable[Path]] = tuple
    """Finds the folders of runs, whose cards name more; there are more of them as time goes on."""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    """Sources that were loaded."""
    _named: int = 0
    """How many tasks those have that files of runs named."""
    _lock: Lock = field(default_factory=Lock)

    def of(self, task_id: str) -> Hidden | None:
        """What was hidden in a task; None where its source is not known."""
        task = self._find(task_id)
        if task is None:
            return None
        try:
            domain = domain_of(task)
            parts = domain.parts_of(task)
            return Hidden(task, domain, parts, domain.reference(domain.secret_of(task)))
        except SweetError as error:
            logger.warning("%s", error)
            return None

    def _find(self, task_id: str) -> Task | None:
        with self._lock:
            if task_id not in self._tasks:
                self._load_more()
            return self._tasks.get(task_id)

    def _load_more(self) -> None:
        """Load what was not loaded yet; of several tasks with one id the first counts."""
        for source in self.given:
            self._load(source, None)
        for source in _named_by(self.roots, self.runs()):
            self._named += self._load(source, MOST_TASKS - self._named)

    def _load(self, source: str, limit: int | None) -> int:
        if source in self._read:
            return 0
        self._read.add(source)
        tasks = _loaded(source, limit)
        self._tasks = tasks | self._tasks
        return len(tasks)


def _loaded(source: str, limit: int | None) -> dict[str, Task]:
    try:
        return load_tasks(source, limit)
    except (SweetError, ValueError) as error:  # a journal may name what can be no file
        logger.warning("%s", error)
        return {}


def _named_by(roots: Sequence[Path], runs: Iterable[Path]) -> Iterator[str]:
    """Where journals and run cards say that tasks came from, and files of tasks in the folders themselves.

    The run may be a stranger's: nothing is fetched because it says so, and no pipe is waited for.
    """
    for root in roots:
        for folder in (root, *root.parents[:2]):
            if (folder / JOURNAL).is_file():
                yield from filter(_is_harmless, _tasks_of(folder / JOURNAL))
                break
    for folder in dict.fromkeys((*roots, *runs)):
        for card in sorted(folder.glob("*.run.json")):
            yield from filter(_is_harmless, _source_of(card))
        if (folder / TASKS).is_file():
            yield str(folder / TASKS)


def _tasks_of(journal: Path) -> Iterator[str]:
    """What stages were given as `--tasks`."""
    for stage in _read_json(journal, list[dict[str, Any]]) or []:
        words = stage.get("arguments")
        if isinstance(words, list) and "--tasks" in words[:-1]:
            yield str(words[words.index("--tasks") + 1])


class _Card(Struct):
    source: str = ""


def _source_of(card: Path) -> Iterator[str]:
    found = _read_json(card, _Card)
    if found is not None and found.source:
        yield found.source


def _read_json(path: Path, kind: type[T]) -> T | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(LARGEST_FILE), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


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
