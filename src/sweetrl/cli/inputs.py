"""Files that a command reads: what they hold, and a fingerprint for the run card."""

from pathlib import Path

from sweetrl.domains.dialogues import distinct_episodes as each_episode
from sweetrl.domains.sources import fingerprint_of_tasks, tasks_or_none
from sweetrl.records import fingerprint

__all__ = ["each_episode", "fingerprint", "fingerprint_of_tasks", "path_of", "tasks_or_none"]


def path_of(name: str | None) -> Path | None:
    """A file that a setting may name."""
    return None if name is None else Path(name)
