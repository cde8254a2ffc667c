"""How fair the collaborator of stored dialogues was."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl.domains.dialogues import read_episodes
from sweetrl.evaluation.fairness import DialogueFairness, FairnessReport, FairnessTally, assess_dialogue
from sweetrl.records import read_records
from sweetrl.types import Ending, Task, Verdict


def assess_dialogues(
    tasks: dict[str, Task], episodes: Path, verdicts: Path | None, tally: FairnessTally
) -> Iterator[DialogueFairness]:
    """Each dialogue as it is assessed and added up; failed ones say nothing about a whole dialogue."""
    successes = {} if verdicts is None else _successes(verdicts)
    for episode in read_episodes(episodes, tasks.values()):
        if episode.ending is Ending.FAILED:
            continue
        dialogue = assess_dialogue(tasks[episode.task_id], episode)
        tally.add(dialogue, success=successes.get(episode.id))
        yield dialogue


def _successes(path: Path) -> dict[str, bool]:
    verdicts: Iterator[Verdict] = read_records(path, Verdict)
    return {verdict.episode_id: verdict.success for verdict in verdicts if verdict.reward is not None}


def fairness_of(tasks: dict[str, Task], episodes: Path, verdicts: Path) -> FairnessReport:
    """The fairness of a scored run."""
    tally = FairnessTally()
    for _ in assess_dialogues(tasks, episodes, verdicts, tally):
        pass
    return tally.report()
