"""Folders of scored runs that are to be compared."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sweetrl.domains.dialogues import distinct_episodes
from sweetrl.errors import DataError
from sweetrl.evaluation.scores import TaskTally
from sweetrl.experiments.layout import EPISODES, VERDICTS
from sweetrl.records import card_path, read_card, read_records
from sweetrl.types import Verdict


@dataclass(frozen=True)
class ScoredRun:
    """The verdicts of a folder by task, with the tasks' requests."""

    folder: Path
    tally: TaskTally
    requests: dict[str, str]
    """The request of each task; empty where the dialogues are not there."""
    tasks: str | None
    """Fingerprint of all tasks, where the dialogues cover all of them."""

    def refuse_other_tasks(self, other: "ScoredRun") -> None:
        """Tasks of the same name must be the same."""
        both = sorted(self.requests.keys() & other.requests.keys())
        changed = [
            f"{task} asks for something else" for task in both if self.requests[task] != other.requests[task]
        ]
        if len(both) == len(self.requests) == len(other.requests) and None not in (self.tasks, other.tasks):
            changed += ["their references or tests differ"] if self.tasks != other.tasks else []
        if changed:
            raise DataError(
                f"{self.folder} and {other.folder} are on different tasks: {changed[0]}; "
                "only runs on the same tasks can be compared"
            )


def distinct_names(folders: Sequence[Path]) -> dict[Path, str]:
    """Each folder's path without the part that all share, which would not fit into a table."""
    if len({folder.is_absolute() for folder in folders}) > 1:
        return {folder: str(folder) for folder in folders}
    shared = os.path.commonpath([folder.parent for folder in folders])
    return {folder: os.path.relpath(folder, shared or os.curdir) for folder in folders}


def read_scored_run(folder: Path) -> ScoredRun:
    """The run in a folder; without its dialogues, what the verdicts say alone."""
    verdicts, episodes = folder / VERDICTS, folder / EPISODES
    if not verdicts.is_file():
        raise DataError(
            "holds no verdicts.jsonl; `sweetrl evaluate` and `sweetrl score` make one", path=folder
        )
    tally = TaskTally(read_records(verdicts, Verdict))
    if not episodes.is_file():
        return ScoredRun(folder, tally, {}, None)
    requests = {episode.task_id: episode.request for episode in distinct_episodes(episodes)}
    card = read_card(episodes) if card_path(episodes).is_file() else None
    tasks = "" if card is None else str(card.config.get("tasks", ""))
    return ScoredRun(folder, tally, requests, tasks if tasks.startswith(f"{len(requests)} tasks ") else None)
