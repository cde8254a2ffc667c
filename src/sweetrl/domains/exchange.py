"""Dialogues of other formats as records, and records in the published format and layout."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl.domains.dialogues import (
    block_order,
    published_line,
    published_verdict,
    read_dialogues,
    read_episodes,
)
from sweetrl.records import IdSet, read_records
from sweetrl.types import Ending, Episode, Task, Verdict


class ForeignDialogues:
    """Published dialogues or a chat log, read again for each kind of record instead of being held in memory."""

    def __init__(self, path: Path, tasks: dict[str, Task] | None = None) -> None:
        """Without `tasks` the dialogues carry their own."""
        self._path = path
        self._tasks = tasks

    def episodes(self) -> Iterator[Episode]:
        """The dialogues."""
        if self._tasks is not None:
            return read_episodes(self._path, self._tasks.values())
        return (episode for _, episode in read_dialogues(self._path))

    def tasks(self) -> Iterator[Task]:
        """The tasks that the dialogues carry, each once."""
        seen = IdSet()
        return (task for task, _ in read_dialogues(self._path) if seen.add(task.id))

    def verdicts(self) -> Iterator[Verdict]:
        """The rewards or outcomes that the dialogues carry."""
        return filter(None, map(published_verdict, self.episodes()))


def published_lines(
    path: Path, tasks: dict[str, Task], verdicts: Path | None = None, *, as_is: bool = False
) -> Iterator[bytes]:
    """The dialogues of a file in the published format, failed ones left out.

    They are laid out in blocks, all tasks once and then all again, unless they are to stay in the order of the file.
    """
    rewards = {} if verdicts is None else _rewards(verdicts)
    for episode in _in_file_order(path, tasks) if as_is else _in_blocks(path, tasks):
        yield published_line(tasks[episode.task_id], episode, reward=rewards.get(episode.id))


def _rewards(path: Path) -> dict[str, float]:
    verdicts: Iterator[Verdict] = read_records(path, Verdict)
    return {verdict.episode_id: verdict.reward for verdict in verdicts if verdict.reward is not None}


def _in_file_order(path: Path, tasks: dict[str, Task]) -> Iterator[Episode]:
    return (episode for episode in read_episodes(path, tasks.values()) if episode.ending is not Ending.FAILED)


def _in_blocks(path: Path, tasks: dict[str, Task]) -> Iterator[Episode]:
    """The episodes in the published layout. Only those that must wait for their place are in memory."""
    order = block_order((episode.task_id, episode.attempt) for episode in _in_file_order(path, tasks))
    waiting: dict[int, Episode] = {}
    source = enumerate(_in_file_order(path, tasks))
    for wanted in order:
        while wanted not in waiting:
            position, episode = next(source)
            waiting[position] = episode
        yield waiting.pop(wanted)
