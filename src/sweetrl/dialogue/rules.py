"""The rules of the game (paper, section 4), each a pure function of text.

An agent speaks at most ten times. What stands before `OUTPUT:` is a thought that nobody else sees. It ends
the dialogue by saying `I WANT TO ANSWER:`; otherwise its last message (backend) or the last page it showed
(frontend) is the answer. A collaborator's reply is cut to a fixed length.
"""

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from sweetrl.prompts import TURN_LIMIT
from sweetrl.types import Ending, Kind

ANSWER_MARKER = "I WANT TO ANSWER:"
OUTPUT_MARKER = "OUTPUT:"
REPLY_CHARACTERS = {Kind.BACKEND: 400, Kind.FRONTEND: 1000}

_PAGE_START = re.compile(r"<html\b", re.IGNORECASE)
_PAGE_END = re.compile(r"</html\s*>", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!doctype\s[^<>]*>\s*\Z", re.IGNORECASE)
_FENCED_HTML = re.compile(r"```html\s(.*?)(?:```|\Z)", re.IGNORECASE | re.DOTALL)


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


def spoken(output: str) -> str:
    """What others see of a raw output: the part after the first `OUTPUT:`, if it has one.

    An output that opens with the answer marker has no thought: `OUTPUT:` further on belongs to the answer.
    """
    if output.lstrip().startswith(ANSWER_MARKER):
        return output.strip()
    _, marker, after = output.partition(OUTPUT_MARKER)
    return after.strip() if marker else output.strip()


def marked_answer(said: str) -> str | None:
    """What follows the first answer marker; None where there is no marker."""
    _, marker, after = said.partition(ANSWER_MARKER)
    return after.strip() if marker else None


def cut_reply(text: str, kind: Kind) -> str:
    """The part of a collaborator's reply that the agent gets to see."""
    return text.strip()[: REPLY_CHARACTERS[kind]]


def find_page(said: str) -> str | None:
    """The last HTML page in a message; a page that breaks off counts, as browsers show those too."""
    span = _page_span(said)
    return None if span is None else said[span[0] : span[1]].strip()


def without_page(said: str, placeholder: str) -> str:
    """The message with its page replaced, for readers who see the page itself."""
    span = _page_span(said)
    return said if span is None else said[: span[0]] + placeholder + said[span[1] :]


def last_page(said: Sequence[str]) -> str | None:
    """The last page shown in a dialogue."""
    return next((page for text in reversed(said) if (page := find_page(text))), None)


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


def _page_span(said: str) -> tuple[int, int] | None:
    starts = [match.start() for match in _PAGE_START.finditer(said)]
    ends = [match.end() for match in _PAGE_END.finditer(said)]
    # The nearest `<html` before the last `</html>`: earlier ones may be mentions of the tag in prose.
    closed = [start for start in starts if ends and start < ends[-1]]
    if closed:
        return _with_doctype(said, closed[-1]), ends[-1]
    if starts:
        fence = said.find("```", starts[0])
        return _with_doctype(said, starts[0]), len(said) if fence < 0 else fence
    fenced = list(_FENCED_HTML.finditer(said))
    return fenced[-1].span(1) if fenced and fenced[-1][1].strip() else None


def _with_doctype(said: str, start: int) -> int:
    """Where the page starts, counting the document type before it: it decides how browsers lay out."""
    doctype = _DOCTYPE.search(said, max(0, start - 300), start)
    return start if doctype is None else doctype.start()
