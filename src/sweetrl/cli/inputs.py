"""Files that a command reads: what they hold, and a fingerprint for the run card."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.domains.sources import load_tasks
from sweetrl.records import unreadable
from sweetrl.types import Episode, Task


def path_of(name: str | None) -> Path | None:
    """A file that a setting may name."""
    return None if name is None else Path(name)


def fingerprint(path: Path) -> str:
    """Of a file's content: a resumed run must read the same."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise unreadable(path, error) from error


def fingerprint_of_tasks(tasks: Iterable[Task]) -> str:
    """Of the tasks' content, in whatever file and order."""
    lines = sorted(msgspec.json.encode((task.id, task.domain, task.request, task.secret)) for task in tasks)
    content = hashlib.sha256(b"\n".join(lines)).hexdigest()
    return f"{len(lines)} tasks {content[:16]}"


def tasks_or_none(source: str | None) -> dict[str, Task] | None:
    """The tasks of a source by id; None where no source is given."""
    return None if source is None else load_tasks(source)


def each_episode(path: Path, tasks: dict[str, Task] | None = None) -> Iterator[Episode]:
    """The dialogues of a file in either format, each id once."""
    return distinct_episodes(path, None if tasks is None else tasks.values())


def load_episodes(path: Path, tasks: dict[str, Task] | None = None) -> dict[str, Episode]:
    """The dialogues of a file by id."""
    return {episode.id: episode for episode in each_episode(path, tasks)}
