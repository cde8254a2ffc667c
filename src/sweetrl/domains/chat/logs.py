"""Chat logs in OpenAI's format as tasks, episodes and verdicts.

    {"messages": [{"role": "user", "content": "..."}, ...], "reference": "...", "outcome": 1, "id": "..."}

`reference` (what a good result looks like), `outcome` (a number, or true and false) and `id` may be missing. Chats with
the same first message, system message and reference are attempts at one task, so that they can be paired.
"""

from itertools import groupby
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.domain import last_message
from sweetrl.errors import DataError
from sweetrl.types import Ending, Episode, Reply, Task, Turn, Verdict, digest

LOG = "chat"
"""Name of agent and collaborator in imported chats, and of their part of `extra`."""
SCORER = "chat-outcome"
"""In verdicts: the outcome came with the chat."""
_SYSTEM = ("system", "developer")


class _Part(Struct):
    type: Literal["text"]
    text: str


class _ChatMessage(Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


class _Chat(Struct, forbid_unknown_fields=True):
    messages: Annotated[list[_ChatMessage], Meta(min_length=2)]
    reference: str = ""
    outcome: bool | float | None = None
    id: str | None = None


class Spoken(Struct, frozen=True):
    """A chat, taken apart."""

    system: str
    request: str
    turns: tuple[Turn, ...]
    reference: str
    outcome: float | None
    id: str | None

    def task(self) -> Task:
        """What the chat is about, named by its content."""
        name = digest("\x1f".join((self.system, self.request, self.reference)))
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


def read_chat(fields: dict[str, Any]) -> Spoken:
    """The chat in a line; `DataError` says what is wrong with it."""
    try:
        chat = msgspec.convert(fields, _Chat)
    except msgspec.ValidationError as error:
        raise DataError(f"not a chat: {' '.join(str(error).split())}") from None
    told = [message.text for message in chat.messages if message.role in _SYSTEM]
    spoken = [message for message in chat.messages if message.role not in _SYSTEM]
    # Several messages of one side in a row are one turn.
    sides = [
        (role, "\n\n".join(each.text for each in said)) for role, said in groupby(spoken, lambda m: m.role)
    ]
    if not sides or sides[0][0] != "user" or not sides[0][1].strip():
        raise DataError("not a chat: the first message must be the user's request")
    if len(sides) < 2:
        raise DataError("not a chat: the assistant says nothing")
    return Spoken(
        "\n\n".join(told),
        sides[0][1],
        _turns([text for _, text in sides[1:]]),
        chat.reference,
        None if chat.outcome is None else float(chat.outcome),
        chat.id,
    )


def _turns(said: list[str]) -> tuple[Turn, ...]:
    """Messages of assistant and user in turn, as turns."""
    replies = [Reply(text) for text in said[1::2]]
    outputs = said[::2]
    padded = [*replies, *([None] * (len(outputs) - len(replies)))]
    return tuple(Turn(text, text, reply) for text, reply in zip(outputs, padded, strict=True))


def outcome_verdict(episode: Episode) -> Verdict | None:
    """The outcome that a chat came with, as a verdict; None if it has none."""
    outcome = episode.extra.get(LOG, {}).get("outcome")
    if outcome is None:
        return None
    return Verdict(
        task_id=episode.task_id,
        episode_id=episode.id,
        scorer=SCORER,
        answer_digest=digest(episode.answer),
        reward=float(outcome),
        success=outcome >= 1,
    )
