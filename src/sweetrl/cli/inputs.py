"""Files that a command reads: what they hold, and a fingerprint for the run card."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sweetrl.errors import DataError

if TYPE_CHECKING:
    from sweetrl.types import Episode, Task


def path_of(name: str | None) -> Path | None:
    """A file that a setting may name."""
    return None if name is None else Path(name)


def fingerprint(path: Path) -> str:
    """Of a file's content: a resumed run must read the same."""
    from sweetrl.records import unreadable

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise unreadable(path, error) from error


def fingerprint_of_tasks(tasks: "Iterable[Task]") -> str:
    """Of the tasks' content, in whatever file and order."""
    import msgspec

    lines = sorted(msgspec.json.encode((task.id, task.kind, task.request, task.secret)) for task in tasks)
    content = hashlib.sha256(b"\n".join(lines)).hexdigest()
    return f"{len(lines)} tasks {content[:16]}"


def tasks_or_none(source: str | None) -> "dict[str, Task] | None":
    """The tasks of a source by id; None where no source is given."""
    from sweetrl.tasks.sources import load_tasks

    return None if source is None else load_tasks(source)


def each_episode(path: Path, tasks: "dict[str, Task] | None" = None) -> "Iterator[Episode]":
    """The dialogues of a file in either format, each id once."""
    from sweetrl.records import IdSet
    from sweetrl.tasks.dialogues import read_episodes

    seen = IdSet()
    for episode in read_episodes(path, None if tasks is None else tasks.values()):
        if not seen.add(episode.id):
            raise DataError(f"holds two dialogues with the id {episode.id}; ids must differ", path=path)
        yield episode


def load_episodes(path: Path, tasks: "dict[str, Task] | None" = None) -> "dict[str, Episode]":
    """The dialogues of a file by id."""
    return {episode.id: episode for episode in each_episode(path, tasks)}
