"""Dialogues: messages, turns, episodes."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from sweetrl.types.tasks import Count, NonEmpty


class Role(StrEnum):
    """The speaker of a message, as chat models call it. The collaborator is the user."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class Message(Struct, frozen=True):
    """One message of a chat."""

    role: Role
    text: str
    images: tuple[bytes, ...] = ()
    """PNG files."""


class Reply(Struct, frozen=True):
    """The collaborator's answer to one turn."""

    text: str
    screenshot: str | None = None
    """Content hash of the page that the agent had shown, for frontend tasks."""
    excuse: str = ""
    """Why `text` is a fixed sentence instead of a reply: the agent's words got none. Empty for a real reply."""


class Unfinished(str):
    """An output that the limit of tokens ended: the agent did not end its turn, and must not learn to there.

    A text like any other, so that whoever does not care need not know; records keep it as a field of their own.
    """

    __slots__ = ()


def as_given(output: str, *, unfinished: bool) -> str:
    """The output as the agent gave it."""
    return Unfinished(output) if unfinished else output


class Turn(Struct, frozen=True):
    """One utterance of the agent and the answer to it."""

    output: str
    """The raw generation: what is trained on."""
    said: str
    """The part that the collaborator and later turns see (no thoughts)."""
    reply: Reply | None = None
    """None on the last turn."""
    unfinished: bool = False
    """Whether the limit of tokens ended the output."""
    trouble: str = ""
    """What the agent's own words broke on its side: `agent: CAUSE` if it could not speak, `critic: CAUSE` if
    the first draft was said because no critic could rank them. Empty as a rule."""

    @property
    def answered(self) -> bool:
        """Whether the collaborator replied in its own words."""
        return self.reply is not None and not self.reply.excuse

    @property
    def troubles(self) -> list[str]:
        """Failures that the agent's words caused at this turn, as `side: cause`."""
        excuse = "" if self.reply is None else self.reply.excuse
        return [each for each in (self.trouble, excuse and f"collaborator: {excuse}") if each]

    @property
    def given(self) -> str:
        """The output as the agent gave it."""
        return as_given(self.output, unfinished=self.unfinished)


class Ending(StrEnum):
    """Why a dialogue ended."""

    ANSWERED = "answered"
    TURN_LIMIT = "turn_limit"
    BROKE_OFF = "broke_off"
    """The agent could not go on, because of its own words."""
    FAILED = "failed"


class Failure(Struct, frozen=True):
    """Something of ours broke. Never a judgement on the agent."""

    stage: str
    kind: str
    message: str

    def __str__(self) -> str:
        """The failure in one line; messages of models begin with the kind themselves."""
        return f"{self.stage}: {self.kind}: {self.message.removeprefix(f'{self.kind}: ')}"


class Episode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One whole dialogue. It holds nothing that the agent may not see."""

    schema: Literal["episode/1"] = "episode/1"
    task_id: NonEmpty
    attempt: Count
    seed: int
    agent: str
    collaborator: str
    request: str
    turns: tuple[Turn, ...]
    ending: Ending
    answer: str | None
    """The code, or the HTML of the last page shown; None where there is none."""
    failure: Failure | None = None
    extra: dict[str, Any] = {}
    """Fields of an imported dialogue that sweetrl does not use; kept for a lossless export."""

    @property
    def id(self) -> str:
        """Unique within a run."""
        return episode_id(self.task_id, self.attempt)

    def history(self, turn: int) -> tuple[Message, ...]:
        """The messages that the agent saw before `turn` (0-based), without the system prompt."""
        return history_of(self.request, self.turns[:turn])


def history_of(request: str, turns: Iterable[Turn]) -> tuple[Message, ...]:
    """The messages of a dialogue that the agent has seen so far, without the system prompt."""
    messages = [Message(Role.USER, request)]
    for past in turns:
        messages.append(Message(Role.ASSISTANT, past.said))
        if past.reply is not None:
            messages.append(Message(Role.USER, past.reply.text))
    return tuple(messages)


def episode_id(task_id: str, attempt: int) -> str:
    """The id of the `attempt`-th dialogue (from 0) on a task."""
    return f"{task_id}#{attempt}"
