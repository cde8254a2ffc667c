"""The rules of the game (paper, section 4), each a pure function of text.

An agent speaks at most ten times. What stands before `OUTPUT:` is a thought that nobody else sees. It ends
the dialogue by saying `I WANT TO ANSWER:`; otherwise its last message (backend) or the last page it showed
(frontend) is the answer. A collaborator's reply is cut to a fixed length.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sweetrl.outputs import (
    ANSWER_MARKER,
    OUTPUT_MARKER,
    find_page,
    last_page,
    marked_answer,
    spoken,
    without_page,
)
from sweetrl.prompts import TURN_LIMIT
from sweetrl.types import Ending, Kind

__all__ = [
    "ANSWER_MARKER",
    "OUTPUT_MARKER",
    "REPLY_CHARACTERS",
    "Conclusion",
    "Rules",
    "broken_off",
    "conclude",
    "cut_reply",
    "find_page",
    "last_page",
    "marked_answer",
    "spoken",
    "without_page",
]

REPLY_CHARACTERS = {Kind.BACKEND: 400, Kind.FRONTEND: 1000}


class Rules(Struct, frozen=True, kw_only=True):
    """What may differ between runs."""

    turn_limit: Annotated[int, Meta(ge=1)] = TURN_LIMIT
    """How often the agent speaks at most."""
    single_turn: bool = False
    """The agent has one message, nobody answers it, and the message is the answer."""


class Conclusion(NamedTuple):
    """How a dialogue ended, and with which answer."""

    ending: Ending
    answer: str | None


def cut_reply(text: str, kind: Kind) -> str:
    """The part of a collaborator's reply that the agent gets to see."""
    return text.strip()[: REPLY_CHARACTERS[kind]]


def conclude(kind: Kind, said: Sequence[str], rules: Rules) -> Conclusion | None:
    """How the dialogue ends with the last thing that the agent said; None if it goes on."""
    marked = marked_answer(said[-1])
    if marked is not None or rules.single_turn:
        ending = Ending.ANSWERED
    elif len(said) >= rules.turn_limit:
        ending = Ending.TURN_LIMIT
    else:
        return None
    if kind is Kind.FRONTEND:
        return Conclusion(ending, last_page(said))
    return Conclusion(ending, said[-1] if marked is None else marked)


def broken_off(kind: Kind, said: Sequence[str]) -> Conclusion:
    """How a dialogue ends in which the agent cannot go on: as if what it has said were all that it may say."""
    ended = conclude(kind, said, Rules(turn_limit=1)) if said else None
    return Conclusion(Ending.BROKE_OFF, None if ended is None else ended.answer)
