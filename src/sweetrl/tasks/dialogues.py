"""Dialogue files: our episodes or the published ColBench format, read as they are and written back unchanged.

A published line holds its whole task, secrets included, and an `Episode` may hold none, so a line becomes a
(Task, Episode) pair. What neither has a field for (`input`, `reward`, unknown keys, the order of keys) is
kept in `extra["published"]`: the line itself, with null in place of everything that the records hold.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sweetrl.errors import DataError
from sweetrl.records import LineDecoder, read_lines
from sweetrl.types import (
    BackendSecret,
    Ending,
    Episode,
    FrontendSecret,
    Kind,
    Message,
    NonEmpty,
    Reply,
    Role,
    Task,
    Turn,
    digest,
)

ANSWER_MARKER = "I WANT TO ANSWER:"
PUBLISHED = "published"
"""Name of agent and collaborator in imported dialogues, which do not say, and of their part of `extra`."""

_HELD = {Role.USER: ("content",), Role.ASSISTANT: ("content", "output")}
"""Keys of a message that the records have fields for."""
_PAGE = re.compile(r"<html\b.*?</html\s*>", re.DOTALL | re.IGNORECASE)


class _PublishedMessage(Struct):
    role: Literal["user", "assistant"]
    content: str
    output: str | UnsetType = UNSET


class _PublishedDialogue(Struct):
    task: dict[str, Any]
    # The request and at least one turn: nothing can be learnt or scored without.
    dialogue_history: Annotated[list[_PublishedMessage], Meta(min_length=2)]
    answer: str | None


# ---------------------------------------------------------------- reading files


def read_episodes(path: Path, tasks: Collection[Task] | None = None) -> Iterator[Episode]:
    """The episodes of a file in either format; the format is told line by line.

    Given `tasks`, every episode belongs to one of them. A published dialogue has no task id: it is matched by
    its own copy of the task (request and reference), and without `tasks` named after it.
    """
    known = None if tasks is None else TaskMatcher(tasks)
    attempts: Counter[str] = Counter()
    decode = LineDecoder(Episode, path)
    for number, line, published in _told_apart(path):
        if published is None:
            episode = decode(number, line)
            if known is not None and not known.has(episode.task_id):
                raise DataError(_unknown(f"the task {episode.task_id}"), path=path, line=number)
            yield episode
        else:
            task = _task_of(published, path, number)
            if known is not None:
                task = known.match(task, path, number)
            yield _episode_of(published, task, attempts, path, number)


def read_dialogues(path: Path) -> Iterator[tuple[Task, Episode]]:
    """The dialogues of a published file, each with the task that it carries."""
    attempts: Counter[str] = Counter()
    for number, _, published in _told_apart(path):
        if published is None:
            raise DataError("not a published dialogue: it has no dialogue_history", path=path, line=number)
        task = _task_of(published, path, number)
        yield task, _episode_of(published, task, attempts, path, number)


class _Probe(Struct):
    dialogue_history: Raw | UnsetType = UNSET


def _told_apart(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """Number and text of each line, and its content where it is in the published format."""
    probe, decode = LineDecoder(_Probe, path), LineDecoder(dict[str, Any], path)
    empty = True
    for number, line in read_lines(path):
        empty = False
        ours = probe(number, line).dialogue_history is UNSET
        yield number, line, None if ours else decode(number, line)
    if empty:
        raise DataError("has no records", path=path)


def _task_of(line: dict[str, Any], path: Path, number: int) -> Task:
    content = line.get("task")
    if not isinstance(content, dict):
        raise DataError("the dialogue has no task: an object was expected", path=path, line=number)
    try:
        unnamed = task_from_line(content, task_id="unnamed")
    except DataError as error:
        raise DataError(f"task: {error}", path=path, line=number) from None
    return unnamed if "id" in content else msgspec.structs.replace(unnamed, id=content_id(unnamed))


def _episode_of(line: dict[str, Any], task: Task, attempts: Counter[str], path: Path, number: int) -> Episode:
    try:
        episode = episode_from_published(line, task, attempt=attempts[task.id])
    except DataError as error:
        raise DataError(str(error), path=path, line=number) from None
    attempts[task.id] += 1
    return episode


# ---------------------------------------------------------------- which task


class TaskMatcher:
    """Finds the task that a dialogue belongs to: by id, or by the copy of the task that it carries."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._by_id: dict[str, Task] = {}
        self._by_content: dict[str, list[str]] = {}
        for task in tasks:
            self._by_id[task.id] = task
            self._by_content.setdefault(content_id(task), []).append(task.id)

    def has(self, task_id: str) -> bool:
        """Whether there is a task of this id."""
        return task_id in self._by_id

    def match(self, carried: Task, path: Path, line: int) -> Task:
        """The known task with the id, else with the content, of the one that line `line` carries."""
        if carried.id in self._by_id:
            return self._by_id[carried.id]
        same = self._by_content.get(content_id(carried), [])
        if not same:
            raise DataError(_unknown("the task that this dialogue carries"), path=path, line=line)
        if len(same) > 1:
            message = f"the task that this dialogue carries is there as {same[0]} and as {same[1]}"
            raise DataError(f"{message}; remove one of them from --tasks", path=path, line=line)
        return self._by_id[same[0]]


def content_id(task: Task) -> str:
    """A name for a task that has none: the same for the same request and reference, wherever they lie."""
    secret = task.secret.reference if isinstance(task.secret, BackendSecret) else task.secret.page
    return "colbench-" + digest(f"{task.request}\x1f{secret}")


def _unknown(what: str) -> str:
    return f"{what} is not among the tasks; give the file that the dialogues were made on with --tasks"


# ---------------------------------------------------------------- the task of a line

_HELD_OF_TASK = ("id", "problem_description", "ground_truth", "test_cases")


class _PublishedTask(Struct):
    problem_description: NonEmpty
    ground_truth: NonEmpty
    test_cases: Annotated[dict[str, NonEmpty], Meta(min_length=1)] | UnsetType = UNSET
    id: NonEmpty | UnsetType = UNSET


def task_from_line(content: dict[str, Any], *, task_id: str) -> Task:
    """The task in a published line; `task_id` names it where the line has no id of its own."""
    try:
        line = msgspec.convert(content, _PublishedTask)
    except msgspec.ValidationError as error:
        raise DataError(" ".join(str(error).split())) from None
    secret: BackendSecret | FrontendSecret
    if line.test_cases is UNSET:
        secret = FrontendSecret(line.ground_truth)
    else:
        secret = BackendSecret(line.ground_truth, line.test_cases)
    return Task(
        id=task_id if line.id is UNSET else line.id,
        kind=Kind.FRONTEND if line.test_cases is UNSET else Kind.BACKEND,
        request=line.problem_description,
        secret=secret,
        extra={PUBLISHED: {key: None if key in _HELD_OF_TASK else value for key, value in content.items()}},
    )


def line_from_task(task: Task) -> dict[str, Any]:
    """The published line of a task."""
    held: dict[str, Any] = {"id": task.id, "problem_description": task.request}
    if isinstance(task.secret, BackendSecret):
        held |= {"ground_truth": task.secret.reference, "test_cases": task.secret.tests}
    else:
        held["ground_truth"] = task.secret.page
    return {key: held.get(key, value) for key, value in task.extra.get(PUBLISHED, held).items()}


# ---------------------------------------------------------------- one line to records


def episode_from_published(line: dict[str, Any], task: Task, *, attempt: int) -> Episode:
    """The episode in a published line. `task` is the one that the line belongs to."""
    try:
        known = msgspec.convert(line, _PublishedDialogue)
    except msgspec.ValidationError as error:
        raise DataError(" ".join(str(error).split())) from None
    turns = _turns(known.dialogue_history)
    return Episode(
        task_id=task.id,
        attempt=attempt,
        seed=0,
        agent=PUBLISHED,
        collaborator=PUBLISHED,
        request=known.dialogue_history[0].content,
        turns=turns,
        ending=Ending.ANSWERED if ANSWER_MARKER in turns[-1].output else Ending.TURN_LIMIT,
        answer=known.answer if task.kind is Kind.BACKEND else _last_page(turns),
        extra={PUBLISHED: _outline(line, task.kind)},
    )


def _turns(history: Sequence[_PublishedMessage]) -> tuple[Turn, ...]:
    if history[0].role != "user":
        raise DataError("dialogue_history[0] is not the user's request")
    turns: list[Turn] = []
    for position, message in enumerate(history[1:], start=1):
        if message.role == "assistant":
            output = message.content if message.output is UNSET else message.output
            turns.append(Turn(output=output, said=message.content))
        elif turns and turns[-1].reply is None:
            turns[-1] = msgspec.structs.replace(turns[-1], reply=Reply(message.content))
        else:
            raise DataError(f"dialogue_history[{position}] is a second message of the user in a row")
    return tuple(turns)


def _last_page(turns: Sequence[Turn]) -> str | None:
    """Published frontend answers are paths of images; the page itself is in what was said."""
    for turn in reversed(turns):
        if pages := _PAGE.findall(turn.output):
            return str(pages[-1])
    return None


def _outline(line: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The line with null in place of what the records hold."""
    held = {"task", "answer"} if kind is Kind.BACKEND else {"task"}
    outline: dict[str, Any] = {key: None if key in held else value for key, value in line.items()}
    outline["dialogue_history"] = [
        {key: None if key in _HELD[message["role"]] else value for key, value in message.items()}
        for message in line["dialogue_history"]
    ]
    return outline


# ---------------------------------------------------------------- records to one line


def plain_prompt(history: Sequence[Message]) -> str:
    """What an agent had seen, as one text; stands for `input` where the full prompt was not stored."""
    return "\n".join(f"{message.role}: {message.text}" for message in history)


def published_from_episode(
    task: Task,
    episode: Episode,
    *,
    reward: float | None = None,
    prompt: Callable[[Sequence[Message]], str] = plain_prompt,
) -> dict[str, Any]:
    """The published line of an episode: the very one that it was imported from, or a new one.

    `reward` is the scorer's; without it an imported line keeps its own. `prompt` writes the `input` of
    the turns of an episode of ours.
    """
    imported = PUBLISHED in episode.extra
    line = dict(episode.extra[PUBLISHED]) if imported else _new_outline(episode, prompt)
    line["dialogue_history"] = _filled(line["dialogue_history"], episode)
    line["task"] = line_from_task(task)
    # The path of an image cannot be made from a page: an imported design keeps its own.
    if task.kind is Kind.BACKEND or not imported:
        line["answer"] = episode.answer
    if reward is not None:
        line["reward"] = reward
    return line


def encode_published(line: dict[str, Any]) -> bytes:
    """A line of a published file, newline included."""
    return json.dumps(line).encode() + b"\n"


def _new_outline(episode: Episode, prompt: Callable[[Sequence[Message]], str]) -> dict[str, Any]:
    history: list[dict[str, Any]] = [{"role": "user", "content": None}]
    for number, turn in enumerate(episode.turns):
        shown = prompt(episode.history(number))
        history.append({"role": "assistant", "content": None, "input": shown, "output": None})
        if turn.reply is not None:
            history.append({"role": "user", "content": None})
    return {"task": None, "dialogue_history": history, "answer": None}


def _filled(outline: Sequence[dict[str, Any]], episode: Episode) -> list[dict[str, Any]]:
    values: list[dict[str, str]] = [{"content": episode.request}]
    for turn in episode.turns:
        values.append({"content": turn.said, "output": turn.output})
        if turn.reply is not None:
            values.append({"content": turn.reply.text})
    if len(values) != len(outline):
        raise DataError(f"{episode.id}: its turns are not those that it was imported with")
    return [
        {key: held.get(key, value) for key, value in message.items()}
        for message, held in zip(outline, values, strict=True)
    ]


# ---------------------------------------------------------------- the layout of a file


def block_order(episodes: Iterable[tuple[str, int]]) -> list[int]:
    """Positions of (task id, attempt) pairs in the published layout: k blocks, each with all tasks once.

    Tasks keep the order in which they first appear. Attempts are ranked, so numbers may be missing, but every
    task must have as many as the others: readers of the format find a task by its position.
    """
    positions: dict[str, list[tuple[int, int]]] = {}
    for position, (task_id, attempt) in enumerate(episodes):
        positions.setdefault(task_id, []).append((attempt, position))
    ranked = [sorted(found) for found in positions.values()]
    fewest, most = min(ranked, key=len, default=[]), max(ranked, key=len, default=[])
    if len(fewest) != len(most):
        lacking = next(task_id for task_id, found in positions.items() if len(found) == len(fewest))
        raise DataError(
            f"{lacking} has {len(fewest)} of {len(most)} dialogues, so blocks of all tasks cannot be formed; "
            "complete the run, or keep the order of the file with --as-is"
        )
    return [position for block in zip(*ranked, strict=True) for _, position in block]
