"""Chat logs as people have them, as tasks, episodes and verdicts.

    {"messages": [{"role": "user", "content": "..."}, ...], "reference": "...", "outcome": 1, "id": "..."}

Messages are OpenAI's (`role`, `content`, tool calls and their results) or ShareGPT's (`from`, `value`, under
`conversations`). The rest may be missing: `reference` or `solution` (what a good result looks like), `outcome`,
`reward` or `success` (a number, or true and false) and `id`. Other fields are ignored. Chats with the same first
message, system message and reference are attempts at one task, so that they can be paired.
"""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import Struct

from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.domain import last_message
from sweetrl.errors import DataError
from sweetrl.types import Ending, Episode, Reply, Task, Turn, Verdict, digest

LOG = "chat"
"""Name of agent and collaborator in imported chats, and of their part of `extra`."""
NAME_CHARACTERS = 200
SCORER = "chat-outcome"
"""In verdicts: the outcome came with the chat."""
MESSAGES = ("messages", "conversations", "conversation")
"""Fields that hold the messages."""
OUTCOMES = ("outcome", "reward", "success")
"""Fields that hold the outcome; the first that is there counts."""
REFERENCES = ("reference", "solution")
SHAPE = '{"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}], "outcome": true}'
"""A chat, for those whose file is something else."""
ASSISTANT_FIRST = "(The assistant speaks first.)"
"""The request of a chat that the assistant opens."""
NOTHING = "(nothing)"

_SYSTEM, _USER, _AGENT = "system", "user", "assistant"
_SIDES = {
    **dict.fromkeys(("system", "developer"), _SYSTEM),
    **dict.fromkeys(("user", "human", "customer"), _USER),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "model", "bot", "function_call", "tool_call"), _AGENT),
    # The assistant reads a tool's result next, like a reply.
    **dict.fromkeys(("tool", "function", "observation", "tool_response", "function_response"), _USER),
}
_TOOLS = frozenset(("tool", "function", "observation", "tool_response", "function_response"))


class SilentChat(DataError):  # noqa: N818  the name says it all
    """A chat in which the assistant does not speak."""


class _Said(NamedTuple):
    side: str
    text: str


class Spoken(Struct, frozen=True):
    """The parts of a chat."""

    system: str
    request: str
    turns: tuple[Turn, ...]
    reference: str
    outcome: float | None
    id: str | None

    def task(self) -> Task:
        """The task of the chat, named by its content."""
        # Chats with the same opening of the assistant may differ in subject: the first reply shows it.
        first = self.turns[0].reply if self.request == ASSISTANT_FIRST else None
        opening = (self.request,) if first is None else (self.request, first.text)
        name = digest("\x1f".join((self.system, *opening, self.reference)))
        return Task(
            id=f"{LOG}-{name}", domain="chat", request=self.request, secret=ChatSecret(self.reference)
        )

    def episode(self, task: Task, attempt: int) -> Episode:
        """The chat as an attempt at `task`."""
        kept = {"id": self.id, "system": self.system or None, "outcome": self.outcome}
        return Episode(
            task_id=task.id,
            attempt=attempt,
            seed=0,
            agent=LOG,
            collaborator=LOG,
            request=self.request,
            turns=self.turns,
            ending=Ending.ANSWERED,
            answer=last_message([turn.said for turn in self.turns]),
            extra={LOG: {key: value for key, value in kept.items() if value is not None}},
        )


def bare_task(episode: Episode) -> Task:
    """A task made from an episode alone, if its task is not at hand: it has the request and no secret."""
    return Task(id=episode.task_id, domain="chat", request=episode.request or NOTHING, secret=ChatSecret())


def silent_chat(number: int) -> tuple[Task, Episode]:
    """A chat in which the assistant does not speak, at its place in a log: there is nothing to score or to credit."""
    episode = Episode(
        task_id=f"{LOG}-silent-{number}",
        attempt=0,
        seed=0,
        agent=LOG,
        collaborator=LOG,
        request=NOTHING,
        turns=(),
        ending=Ending.ANSWERED,
        answer=None,
    )
    return bare_task(episode), episode


def read_chat(fields: Mapping[str, Any], outcome_field: str | None = None) -> Spoken:
    """The chat in a line; a `DataError` explains what is wrong with it."""
    name = next(name for name in MESSAGES if name in fields)
    said = list(_messages(name, fields[name]))
    told = [each.text for each in said if each.side == _SYSTEM]
    # Several messages of one side in a row are one turn.
    sides = [
        (side, "\n\n".join(each.text for each in group))
        for side, group in groupby((each for each in said if each.side != _SYSTEM), lambda each: each.side)
    ]
    if not any(side == _AGENT for side, _ in sides):
        raise SilentChat(f"{name}: the assistant says nothing")
    if sides[0][0] == _AGENT:
        sides.insert(0, (_USER, ASSISTANT_FIRST))
    return Spoken(
        "\n\n".join(told),
        sides[0][1],
        _turns([text for _, text in sides[1:]]),
        _reference(fields),
        _outcome(fields, outcome_field),
        None if fields.get("id") is None else str(fields["id"]),
    )


def _turns(said: list[str]) -> tuple[Turn, ...]:
    """Messages of assistant and user in turn, as turns."""
    replies = [Reply(text) for text in said[1::2]]
    outputs = said[::2]
    padded = [*replies, *([None] * (len(outputs) - len(replies)))]
    return tuple(Turn(text, text, reply) for text, reply in zip(outputs, padded, strict=True))


# ---------------------------------------------------------------- messages


def _messages(name: str, found: Any) -> Iterator[_Said]:
    """The messages in order; an assistant's message without any content is left out."""
    if found == []:
        raise SilentChat(f"{name} must be a list of messages, found {kind_of(found)}")
    if not isinstance(found, list):
        raise DataError(f"{name} must be a list of messages, found {kind_of(found)}")
    for position, message in enumerate(found):
        where = f"{name}[{position}]"
        if not isinstance(message, dict):
            raise DataError(f"{where} must be an object with role and content, found {kind_of(message)}")
        found_role = message.get("role", message.get("from"))
        role = found_role.lower() if isinstance(found_role, str) else ""
        side = _SIDES.get(role)
        if side is None:
            raise DataError(
                f"{where}.role must be user, assistant, system or tool, found {kind_of(found_role)}"
            )
        text = _text_of(message, where)
        if role in _TOOLS:
            text = f"[{' '.join(['result', *_of_tool(message)])}] {text}"
        if text.strip() or side == _USER:
            yield _Said(side, text if text.strip() else NOTHING)


def _of_tool(message: Mapping[str, Any]) -> list[str]:
    name = message.get("name")
    return ["of", name] if isinstance(name, str) and name else []


def _text_of(message: Mapping[str, Any], where: str) -> str:
    """The content of a message, and the tools that it calls."""
    content = message.get("content", message.get("value"))
    calls = message.get("tool_calls") or ([message["function_call"]] if message.get("function_call") else [])
    if not isinstance(calls, list):
        raise DataError(f"{where}.tool_calls must be a list, found {kind_of(calls)}")
    if "content" not in message and "value" not in message and not calls:
        raise DataError(f"{where} has no content; its fields are {', '.join(map(str, message))}")
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return "\n".join([*(_part(part, where) for part in parts), *map(_call, calls)])


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "refusal"):
            if isinstance(part.get(key), str):
                return str(part[key])
        return f"[{part.get('type', 'part')}]"
    raise DataError(f"{where}.content must be text or a list of parts, found {kind_of(part)}")


def _call(call: Any) -> str:
    """A call of a tool, as text."""
    function = call.get("function", call) if isinstance(call, dict) else {}
    if not isinstance(function, dict):
        function = {"name": function}
    arguments = function.get("arguments", "")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[calls {function.get('name', 'a tool')}({shown})]"


# ---------------------------------------------------------------- what else a line says


def _reference(fields: Mapping[str, Any]) -> str:
    for name in REFERENCES:
        if (found := fields.get(name)) is not None:
            if not isinstance(found, str):
                raise DataError(f"{name} must be text, found {kind_of(found)}")
            return found
    return ""


def _outcome(fields: Mapping[str, Any], named: str | None) -> float | None:
    for name in OUTCOMES if named is None else (named,):
        if (found := _at(fields, name)) is not None:
            if isinstance(found, bool | int | float) and math.isfinite(found):
                return float(found)
            raise DataError(f"{name} must be true, false or a number, found {kind_of(found)}")
    return None


def _at(fields: Mapping[str, Any], name: str) -> Any:
    """The field of a name; `metadata.rating` is `rating` in `metadata`."""
    if name in fields or "." not in name:
        return fields.get(name)
    first, _, rest = name.partition(".")
    inner = fields.get(first)
    return _at(inner, rest) if isinstance(inner, dict) else None


def kind_of(found: Any) -> str:
    """The kind of a value, for an error message."""
    if isinstance(found, dict):
        return (
            f"an object with the fields {', '.join(map(str, list(found)[:6]))}"
            if found
            else "an empty object"
        )
    if isinstance(found, list):
        return "a list" if found else "an empty list"
    if isinstance(found, str):
        return f"the text {found[:40]!r}"
    return {None: "nothing", True: "true", False: "false"}.get(found, f"the number {found}")


def name_in_log(about: object) -> str:
    """The id that a log gives to a chat, from the chat's part of `extra`; empty if it gives none."""
    name = about.get("id") if isinstance(about, dict) else None
    return str(name)[:NAME_CHARACTERS] if isinstance(name, str | int) else ""


def outcome_verdict(episode: Episode, success_at: float = 1.0) -> Verdict | None:
    """The outcome that a chat came with, as a verdict; None if it has none."""
    outcome = episode.extra.get(LOG, {}).get("outcome")
    return None if outcome is None else brought_verdict(episode, SCORER, outcome, success_at)


def brought_verdict(episode: Episode, scorer: str, reward: float, success_at: float) -> Verdict:
    """The verdict on a dialogue that came with its reward; from `success_at` on it is a success."""
    return Verdict(
        task_id=episode.task_id,
        episode_id=episode.id,
        scorer=scorer,
        answer_digest=digest(episode.answer),
        reward=float(reward),
        success=reward >= success_at,
    )
