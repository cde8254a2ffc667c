"""The rules of the game (paper, section 4), each a pure function of text.

An agent speaks at most ten times. The text before `OUTPUT:` is a thought that nobody else sees. `I WANT TO ANSWER:`
ends the dialogue. Which part of a message is the answer, and the length that a collaborator's reply is cut to,
depend on the domain.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sweetrl.domains.domain import Domain
from sweetrl.errors import SweetError, broke_down
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
from sweetrl.types import Ending

__all__ = [
    "ANSWER_MARKER",
    "OUTPUT_MARKER",
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


class Rules(Struct, frozen=True, kw_only=True):
    """Rules that may differ between runs."""

    turn_limit: Annotated[int, Meta(ge=1)] = TURN_LIMIT
    """How often the agent speaks at most."""
    single_turn: bool = False
    """The agent has one message, which gets no reply and is the answer."""


class Conclusion(NamedTuple):
    """How a dialogue ended, and with which answer."""

    ending: Ending
    answer: str | None


def cut_reply(text: str, domain: Domain) -> str:
    """The part of a collaborator's reply that the agent gets to see."""
    return text.strip()[: domain.reply_limit]


def conclude(domain: Domain, said: Sequence[str], rules: Rules) -> Conclusion | None:
    """How the dialogue ends with the agent's last message; None if it goes on."""
    if rules.single_turn or marked_answer(said[-1]) is not None:
        ending = Ending.ANSWERED
    elif len(said) >= rules.turn_limit:
        ending = Ending.TURN_LIMIT
    else:
        return None
    return Conclusion(ending, _answer(domain, said))


def broken_off(domain: Domain, said: Sequence[str]) -> Conclusion:
    """How a dialogue ends if the agent cannot go on: what it has said so far is taken as all it says."""
    ended = conclude(domain, said, Rules(turn_limit=1)) if said else None
    return Conclusion(Ending.BROKE_OFF, None if ended is None else ended.answer)


def _answer(domain: Domain, said: Sequence[str]) -> str | None:
    """The answer in what the agent said, by the domain's own rule."""
    try:
        return domain.answer(said)
    except SweetError:
        raise
    except Exception as error:
        raise broke_down(f"the function `answer` of the domain {domain.name}", error) from error
