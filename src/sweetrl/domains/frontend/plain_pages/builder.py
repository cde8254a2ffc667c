"""A mediocre builder of plain pages, whose dialogues train the tiny page model.

It guesses a first draft, then acts on what the designer names. Every turn is good or bad by chance alone, independent
of the others: it may leave a remark alone, spoil a choice that nobody named, or hand in too early. It understands
about half of the designer's words for colours and sizes, and tries another value at random for the rest: their
meaning has to be learned from rewards. All its knowledge comes from the dialogue.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from sweetrl.domains.frontend.colours import colour_name
from sweetrl.domains.frontend.designer import SATISFIED
from sweetrl.domains.frontend.mini_frontend import BUSINESSES, Business
from sweetrl.domains.frontend.plain_pages.designs import (
    CHOICES,
    HEADING_SIZES,
    NAME,
    Choices,
    draw_choices,
    plain_design,
    read_choices,
    written_page,
)
from sweetrl.domains.frontend.plain_pages.sketch import COLOURS, remark_on
from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.errors import UsageError
from sweetrl.outputs import ANSWER_MARKER, last_page
from sweetrl.seeds import derive_seed
from sweetrl.types import Message, Role, Task

TURN_LIMIT = 5
KNOWN_WORDS = frozenset(
    {"red", "blue", "green", "light red", "light blue", "light green", "larger", "smaller"}
    | {"on the left", "centred", "on the right"}
)
"""The designer's words that the builder understands."""
_TEXT_OF_HEADING = r'The text of the heading "[^"]*" should be'
_REMARKS = {
    "header_colour": r"The header should be ([\w ]+) instead of",
    "hero_colour": r"The section should be ([\w ]+) instead of",
    "hero_align": rf"{_TEXT_OF_HEADING} (on the left|on the right|centred)",
    "heading_size": rf"{_TEXT_OF_HEADING} ((?:much )?(?:larger|smaller))",
    "button_colour": r"The button should be ([\w ]+) instead of",
    "footer_colour": r"The footer should be ([\w ]+) instead of",
    "footer_align": r"The text of the paragraph should be (on the left|on the right|centred)",
}
"""The designer's name of each choice."""
_SIDES = {"on the left": "left", "centred": "center", "on the right": "right"}


class Habits(Struct, frozen=True, kw_only=True):
    """Behaviour of a builder: probabilities of its actions at a turn, and the words it knows."""

    listen: float = 0.9
    """That it acts on a remark."""
    slip: float = 0.15
    """That it changes a choice that was not named, at random."""
    hurry: float = 0.06
    """That it hands in although something was named."""
    finish: float = 0.7
    """That it hands in when the designer is satisfied."""
    words: frozenset[str] | None = KNOWN_WORDS
    """The designer's words that it understands; None for all."""
    peek: float = 0.0
    """That it sets a choice as in the reference, regardless of the designer's words."""


HABITS = Habits()
LISTENING = Habits(listen=1.0, slip=0.0, hurry=0.0, finish=1.0, words=None)
"""Understands every word and does exactly what the designer says: the upper limit."""
GUESSING = Habits(listen=0.0, slip=1.0, hurry=0.0)
"""Changes one choice after the other at random: what chance reaches."""
KNOWING = Habits(listen=1.0, slip=0.0, hurry=0.0, finish=1.0, words=None, peek=0.4)
"""Habits of a builder who has read the reference: drafts come nearer to it than the remarks explain."""


def hold_dialogue(task: Task, seed: int, habits: Habits = HABITS) -> list[Message]:
    """One dialogue with the scripted designer, request and answer included."""
    rng = random.Random(derive_seed("page corpus", task.id, seed))  # noqa: S311  not a secret
    wanted = read_choices(frontend_secret(task).page)
    business = business_of(task.request)
    history = [Message(Role.USER, task.request)]
    while True:
        output = next_output(history, rng, habits, TURN_LIMIT, reference=wanted)
        history.append(Message(Role.ASSISTANT, output))
        if output.startswith(ANSWER_MARKER):
            return history
        shown = plain_design(business, read_choices(output))
        history.append(Message(Role.USER, remark_on(plain_design(business, wanted), shown)))


def next_output(
    history: Sequence[Message],
    rng: random.Random,
    habits: Habits,
    turn_limit: int,
    reference: Choices | None = None,
) -> str:
    """The next turn of a builder; only one who peeks needs the reference."""
    said = [message.text for message in history if message.role is Role.ASSISTANT]
    draft = last_page(said)
    if draft is None:
        remark, choices = "", draw_choices(rng)
    else:
        remark = history[-1].text
        choices = mended(read_choices(draft), remark, rng, habits)
    for name, value in (reference or {}).items():
        if rng.random() < habits.peek:
            choices[name] = value
    page = written_page(business_of(history[0].text), choices)
    hands_in = len(said) + 1 >= turn_limit or (said and rng.random() < _impatience(remark, habits))
    return f"{ANSWER_MARKER}\n{page}" if hands_in else page


def _impatience(remark: str, habits: Habits) -> float:
    return habits.finish if remark == SATISFIED else habits.hurry


def mended(choices: Choices, remark: str, rng: random.Random, habits: Habits) -> Choices:
    """The choices after a remark."""
    after, named = dict(choices), dict(named_choices(remark))
    for name, words in named.items():
        if rng.random() < habits.listen:
            understood = habits.words is None or words in habits.words
            values = meant(name, words, choices[name]) if understood else CHOICES[name]
            after[name] = rng.choice([value for value in values if value != choices[name]])
    if rng.random() < habits.slip and remark != SATISFIED:
        spoiled = rng.choice([name for name in CHOICES if name not in named])
        after[spoiled] = rng.choice([value for value in CHOICES[spoiled] if value != choices[spoiled]])
    return after


def named_choices(remark: str) -> Iterator[tuple[str, str]]:
    """The choices that a remark is about, each with the designer's words for what it should be."""
    for name, pattern in _REMARKS.items():
        if (found := re.search(pattern, remark)) is not None:
            yield name, found[1]


def meant(name: str, words: str, current: str) -> list[str]:
    """The values that the designer's words fit."""
    if name.endswith("_align"):
        return [_SIDES[words]]
    if name == "heading_size":
        return list(_SIZES[current, words])
    return [value for value in CHOICES[name] if colour_name(COLOURS[value]) == words]


_SIZES = {
    ("2xl", "larger"): ("4xl",),
    ("2xl", "much larger"): ("6xl",),
    ("4xl", "much larger"): ("6xl",),
    ("4xl", "smaller"): ("2xl",),
    ("6xl", "much smaller"): HEADING_SIZES[:2],
}
"""Current size and words -> what may be meant."""


def business_of(request: str) -> Business:
    """The business of a request; `UsageError` if it names none of the generator's."""
    for business in BUSINESSES:
        if business.what in request:
            return business
    raise UsageError(
        f"a builder of plain pages knows {NAME} tasks only, and not {request[:60]!r}; give a model as agent"
    )


class _PageBuilder:
    """An `Agent` with the habits of a builder."""

    name: str
    habits: Habits

    def __init__(self, tasks: Iterable[Task], turn_limit: int) -> None:
        """The tasks are only looked at for whether it can build them."""
        self._turn_limit = turn_limit
        for task in tasks:
            business_of(task.request)

    async def sample(self, history: Sequence[Message], *, n: int, seed: int) -> list[str]:
        """Drafts, each drawn for itself."""
        drawn = (random.Random(derive_seed(seed, number)) for number in range(n))  # noqa: S311  not a secret
        return [next_output(history, rng, self.habits, self._turn_limit) for rng in drawn]


class MediocreBuilder(_PageBuilder):
    """The builder that the tiny page model imitates."""

    name, habits = "page-mediocre", HABITS


class ListeningBuilder(_PageBuilder):
    """Mends everything that is named: what can be reached."""

    name, habits = "page-listening", LISTENING


class GuessingBuilder(_PageBuilder):
    """Changes a choice at random at every turn: what chance reaches."""

    name, habits = "page-guessing", GUESSING
