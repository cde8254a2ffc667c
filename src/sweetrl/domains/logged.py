"""Dialogues of a log with all that came with them: task, outcome, and the name that people know them by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sweetrl.domains.chat.logs import LOG, OUTCOMES, name_in_log
from sweetrl.domains.dialogues import distinct_episodes, published_verdict, read_dialogues
from sweetrl.domains.registry import reference_text
from sweetrl.errors import DataError, UsageError
from sweetrl.records import IdSet
from sweetrl.types import Ending, Episode, Task, Verdict


@dataclass(frozen=True)
class LoggedDialogue:
    """One dialogue of a log."""

    task: Task
    episode: Episode
    verdict: Verdict | None
    """None where the log has no outcome for it."""
    label: str
    """Its `id` in the log, or else its place in it: `#7`."""

    @property
    def success(self) -> bool | None:
        """Whether it succeeded; None if the outcome is unknown."""
        return None if self.verdict is None or self.verdict.reward is None else self.verdict.success


class DialogueLog(NamedTuple):
    """The content of a log."""

    dialogues: list[LoggedDialogue]
    left_out: int
    """Dialogues in which the agent says nothing, or that failed through no fault of the agent."""


def read_logged(
    path: Path,
    *,
    tasks: Mapping[str, Task] | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    outcome_field: str | None = None,
    success_at: float = 1.0,
) -> DialogueLog:
    """The dialogues of a file in any format.

    `tasks` and `verdicts` belong to episodes of ours. Outcomes from `success_at` on are successes.
    """
    found, left_out, seen = [], 0, IdSet()
    for number, (task, episode) in enumerate(_pairs(path, tasks, outcome_field), start=1):
        if not seen.add(episode.id):
            raise DataError(f"holds two dialogues with the id {episode.id}; ids must differ", path=path)
        if episode.ending is Ending.FAILED or not episode.turns:
            left_out += 1
            continue
        given = None if verdicts is None else verdicts.get(episode.id)
        verdict = given or published_verdict(episode, success_at)
        found.append(LoggedDialogue(task, episode, verdict, _label(episode, number)))
    if not found:
        raise DataError(
            "has no dialogue in which the agent speaks; give chats with messages of the assistant", path=path
        )
    return DialogueLog(found, left_out)


def _pairs(
    path: Path, tasks: Mapping[str, Task] | None, outcome_field: str | None
) -> Iterator[tuple[Task, Episode]]:
    if tasks is None:
        yield from read_dialogues(path, outcome_field, without_tasks=True)
    else:
        yield from ((tasks[episode.task_id], episode) for episode in distinct_episodes(path, tasks))


def _label(episode: Episode, number: int) -> str:
    if LOG in episode.extra:
        return name_in_log(episode.extra[LOG]) or f"#{number}"
    return episode.id


def refuse_without_references(dialogues: list[LoggedDialogue], path: Path, critic: str) -> None:
    """Stop if a critic that compares with a reference is given dialogues without one."""
    lacking = next((each for each in dialogues if not reference_text(each.task)), None)
    if lacking is not None:
        raise UsageError(
            f"{path}: {lacking.label} has no reference, which the critic {critic} needs; add one (a field "
            '"reference", or --tasks for episodes of ours), or use --learn or --critic judge:MODEL'
        )


def refuse_without_outcomes(dialogues: list[LoggedDialogue], path: Path, outcome_field: str | None) -> None:
    """Stop if too few dialogues succeeded or failed to learn from."""
    known = [each.success for each in dialogues if each.success is not None]
    if not known:
        looked = f'"{outcome_field}"' if outcome_field else f"{', '.join(OUTCOMES[:-1])} or {OUTCOMES[-1]}"
        raise UsageError(
            f"{path}: no dialogue has an outcome (a field {looked} that is true, false or a number); name the "
            "field with --outcome-field, give --verdicts for episodes of ours, or ask a model with --critic judge:MODEL"
        )
    fewer = min(known.count(True), known.count(False))
    if fewer < FEWEST:
        raise UsageError(
            f"{path}: {known.count(True)} successes and {known.count(False)} failures; learning needs {FEWEST} of "
            "each; set from which outcome on a dialogue is a success with --success-at, or use --critic judge:MODEL"
        )


FEWEST = 5
"""Successes, and failures, to learn from: one for each fold."""
