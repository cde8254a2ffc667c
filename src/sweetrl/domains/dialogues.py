"""Dialogue files: our episodes, chat logs, or the published ColBench format, which is written back unchanged.

A published line holds its whole task, secrets included, and an `Episode` may hold none, so a line becomes a
(Task, Episode) pair. What neither has a field for (`input`, `reward`, unknown keys, the order of keys) is
kept in `Episode.extra["published"]`: the line itself, with null in place of what the records hold.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from sweetrl.domains import colbench
from sweetrl.domains.chat import logs
from sweetrl.domains.chat.files import Entry, entries, is_messages
from sweetrl.domains.registry import reference_text
from sweetrl.errors import DataError, one_line
from sweetrl.outputs import ANSWER_MARKER, find_page
from sweetrl.records import IdSet, LineDecoder
from sweetrl.types import (
    Ending,
    Episode,
    Reply,
    Role,
    Task,
    Turn,
    Verdict,
    digest,
)

PUBLISHED = "published"
"""Name of agent and collaborator in imported dialogues, which do not name them, and of their part of `extra`."""

_UNESCAPED = "unescaped"
"""In `extra` of an episode that came from a line with characters beyond ASCII."""
_UNNAMED = "unnamed"
_PAGES = "frontend"
"""The domain whose published answers are paths of images."""
_HELD = {Role.USER: ("content",), Role.ASSISTANT: ("content", "output")}
"""Keys of a message that the records have fields for."""


class _PublishedMessage(Struct):
    role: Literal["user", "assistant"]
    content: str
    output: str | UnsetType = UNSET


class _PublishedDialogue(Struct):
    task: dict[str, Any]
    # The request and at least one turn: without them nothing can be learned or scored.
    dialogue_history: Annotated[list[_PublishedMessage], Meta(min_length=2)]
    answer: str | None


# ---------------------------------------------------------------- reading files


def read_episodes(path: Path, tasks: Collection[Task] | None = None) -> Iterator[Episode]:
    """The episodes of a file in any format, which is recognised line by line.

    Given `tasks`, every episode belongs to one of them. A published dialogue has no task id: it is matched by
    its own copy of the task (request and reference), and without `tasks` named after it.
    """
    known = None if tasks is None else TaskMatcher(tasks)
    attempts: Counter[str] = Counter()
    decode = LineDecoder(Episode, path)
    for line in _told_apart(path):
        if line.foreign is not None:
            task, number = line.task(), line.entry.number
            yield line.episode(task if known is None else known.match(task, path, number), attempts)
            continue
        episode = decode(line.entry.number, line.entry.raw)
        if known is not None and not known.has(episode.task_id):
            raise DataError(_unknown(f"the task {episode.task_id}"), path=path, line=line.entry.number)
        yield episode


def distinct_episodes(path: Path, tasks: Mapping[str, Task] | None = None) -> Iterator[Episode]:
    """The episodes of a file in any format; a repeated id is an error."""
    seen = IdSet()
    for episode in read_episodes(path, None if tasks is None else tasks.values()):
        if not seen.add(episode.id):
            raise DataError(f"holds two dialogues with the id {episode.id}; ids must differ", path=path)
        yield episode


def load_episodes(path: Path, tasks: Mapping[str, Task] | None = None) -> dict[str, Episode]:
    """The episodes of a file by id."""
    return {episode.id: episode for episode in distinct_episodes(path, tasks)}


def read_dialogues(
    path: Path, outcome_field: str | None = None, *, without_tasks: bool = False
) -> Iterator[tuple[Task, Episode]]:
    """The dialogues of a published file or a chat log, each with the task that it carries.

    With `without_tasks` episodes of ours are taken, too: what is known of their tasks is the request. A chat in which
    the assistant says nothing is then an episode without turns, and otherwise an error.
    """
    attempts: Counter[str] = Counter()
    decode = LineDecoder(Episode, path)
    for line in _told_apart(path, outcome_field):
        if line.foreign is not None:
            try:
                task = line.task()
            except logs.SilentChat:
                if not without_tasks:
                    raise
                yield logs.silent_chat(line.entry.number)
            else:
                yield task, line.episode(task, attempts)
        elif without_tasks:
            episode = decode(line.entry.number, line.entry.raw)
            yield logs.bare_task(episode), episode
        else:
            raise line.entry.complaint(
                "neither a dialogue as ColBench publishes them nor a chat with `messages`; is it the right file?"
            )


class _Probe(Struct):
    dialogue_history: Raw | UnsetType = UNSET
    schema: Raw | UnsetType = UNSET
    task_id: Raw | UnsetType = UNSET


def _told_apart(path: Path, outcome_field: str | None = None) -> "Iterator[_Line]":
    probe, decode = LineDecoder(_Probe, path), LineDecoder[Any](Any, path)
    for entry in entries(path):
        is_object = entry.raw.lstrip().startswith(b"{")
        keys = probe(entry.number, entry.raw) if is_object else _Probe()
        if keys.dialogue_history is UNSET and (keys.schema is not UNSET or keys.task_id is not UNSET):
            yield _Line(entry, None)
            continue
        found = decode(entry.number, entry.raw)
        if is_messages(found):
            found = {"messages": found}
        is_chat = isinstance(found, dict) and any(name in found for name in logs.MESSAGES)
        if not is_chat and keys.dialogue_history is UNSET:
            raise entry.wrong_shape(found)
        yield _Line(entry, found, is_chat, outcome_field)


class _Line(NamedTuple):
    entry: Entry
    foreign: dict[str, Any] | None
    """Its content, if it is not one of our records."""
    is_chat: bool = False
    outcome_field: str | None = None

    def task(self) -> Task:
        """The task that the line carries."""
        if self.is_chat:
            return self._chat().task()
        content = (self.foreign or {}).get("task")
        if not isinstance(content, dict):
            raise self.entry.complaint("the dialogue has no task: an object was expected")
        try:
            task = colbench.parse_task(content, position_id=_UNNAMED, split="", ascii_only=True)
        except msgspec.ValidationError as error:
            raise self.entry.complaint(f"task: {one_line(error)}") from None
        return task if "id" in content else msgspec.structs.replace(task, id=content_id(task))

    def episode(self, task: Task, attempts: Counter[str]) -> Episode:
        """The episode of the line, numbered after those on the same task before it."""
        attempt = attempts[task.id]
        attempts[task.id] += 1
        if self.is_chat:
            return self._chat().episode(task, attempt)
        try:
            return episode_from_published(
                self.foreign or {}, task, attempt=attempt, escaped=colbench.is_escaped(self.entry.raw)
            )
        except DataError as error:
            raise self.entry.complaint(str(error)) from None

    def _chat(self) -> logs.Spoken:
        try:
            return logs.read_chat(self.foreign or {}, self.outcome_field)
        except DataError as error:
            raise self.entry.complaint(f"{error}; expected {logs.SHAPE}", type(error)) from None


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
    return "colbench-" + digest(f"{task.request}\x1f{reference_text(task)}")


def _unknown(what: str) -> str:
    return f"{what} is not among the tasks; give the file that the dialogues were made on with --tasks"


# ---------------------------------------------------------------- one line to records


def episode_from_published(
    line: dict[str, Any], task: Task, *, attempt: int, escaped: bool = True
) -> Episode:
    """The episode in a published line, which belongs to `task`; `escaped` if the line is in ASCII."""
    try:
        known = msgspec.convert(line, _PublishedDialogue)
    except msgspec.ValidationError as error:
        raise DataError(one_line(error)) from None
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
        answer=_last_page(turns) if task.domain == _PAGES else known.answer,
        extra={PUBLISHED: _outline(line, task), **({} if escaped else {_UNESCAPED: True})},
    )


def published_verdict(episode: Episode, success_at: float = 1.0) -> Verdict | None:
    """The reward or outcome that an imported dialogue came with, as a verdict; None if it has none.

    From `success_at` on it is a success.
    """
    if logs.LOG in episode.extra:
        return logs.outcome_verdict(episode, success_at)
    reward = episode.extra.get(PUBLISHED, {}).get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float):
        return None
    return logs.brought_verdict(episode, PUBLISHED, reward, success_at)


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
    """The last page in the messages: published frontend answers are paths of images."""
    for turn in reversed(turns):
        if page := find_page(turn.said) or find_page(turn.output):
            return page
    return None


def _outline(line: dict[str, Any], task: Task) -> dict[str, Any]:
    """The line with null in place of what the records hold."""
    held = {"task"} if task.domain == _PAGES else {"task", "answer"}
    outline: dict[str, Any] = {key: None if key in held else value for key, value in line.items()}
    outline["dialogue_history"] = [
        {key: None if key in _HELD[message["role"]] else value for key, value in message.items()}
        for message in line["dialogue_history"]
    ]
    return outline


# ---------------------------------------------------------------- records to one line


def published_from_episode(task: Task, episode: Episode, *, reward: float | None = None) -> dict[str, Any]:
    """The published line of an episode: the very one that it was imported from, or a new one.

    `reward` is the scorer's; without it an imported line keeps its own. The `input` of a turn of ours is the
    dialogue before it as text: the agent's system prompt is not part of an episode.
    """
    imported = PUBLISHED in episode.extra
    line = dict(episode.extra[PUBLISHED]) if imported else _new_outline(episode)
    line["dialogue_history"] = _filled(line["dialogue_history"], episode)
    line["task"] = json.loads(colbench.published_line(task))
    # The path of an image cannot be made from a page: an imported design keeps its own.
    if task.domain != _PAGES or not imported:
        line["answer"] = episode.answer
    if reward is not None:
        line["reward"] = reward
    return line


def published_line(task: Task, episode: Episode, *, reward: float | None = None) -> bytes:
    """The episode as a line of a published file, newline included."""
    fields = published_from_episode(task, episode, reward=reward)
    return json.dumps(fields, ensure_ascii=_UNESCAPED not in episode.extra).encode() + b"\n"


def _new_outline(episode: Episode) -> dict[str, Any]:
    history: list[dict[str, Any]] = [{"role": "user", "content": None}]
    for number, turn in enumerate(episode.turns):
        shown = "\n".join(f"{message.role}: {message.text}" for message in episode.history(number))
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
