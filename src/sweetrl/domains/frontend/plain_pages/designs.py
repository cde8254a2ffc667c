"""Pages with a header, one section and a footer: seven choices are open, and everything else is always the same.

The request reveals none of the seven, so the designer has to tell them all. Each is drawn such that the designer has
a word for every value and a remark about one choice never hides another: the colours of a part are all dark or all
light.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence

from sweetrl.domains.frontend.mini_frontend import (
    ALIGNMENTS,
    BUSINESSES,
    DARK,
    LIGHT,
    Business,
    Design,
    page_of,
    tasks_of_designs,
)
from sweetrl.domains.frontend.secret import frontend_secret
from sweetrl.outputs import ANSWER_MARKER, find_page
from sweetrl.types import Message, Task

NAME = "mini-frontend-plain"
HEADING_SIZES = ("2xl", "4xl", "6xl")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "header_colour": DARK,
    "hero_colour": LIGHT[1:],  # a white section on a white page is none
    "hero_align": ALIGNMENTS,
    "heading_size": HEADING_SIZES,
    "button_colour": DARK,
    "footer_colour": DARK,
    "footer_align": ALIGNMENTS,
}
"""The open choices and their values, in the order of the page."""
_WRITTEN = {
    "header_colour": r'<header class="bg-([\w-]+) ',
    "hero_colour": r'<section class="bg-([\w-]+) ',
    "hero_align": r'<section class="[^"]* text-(\w+)"',
    "heading_size": r'<h2 class="text-(\w+) ',
    "button_colour": r'<button class="bg-([\w-]+) ',
    "footer_colour": r'<footer class="bg-([\w-]+) ',
    "footer_align": r'<footer class="[^"]* text-(\w+)"',
}
"""The place on the page of each choice."""

Choices = dict[str, str]
"""A value for each of `CHOICES`."""


def make_tasks(split: str, count: int, seed: int = 0) -> Iterator[Task]:
    """`count` different tasks of a split; a greater `count` only adds to them."""
    return tasks_of_designs(NAME, _draw_design, split, count, seed)


def _draw_design(rng: random.Random) -> Design:
    return plain_design(rng.choice(BUSINESSES), draw_choices(rng))


def draw_choices(rng: random.Random) -> Choices:
    """Every choice at random."""
    return {name: rng.choice(values) for name, values in CHOICES.items()}


def plain_design(business: Business, choices: Choices) -> Design:
    """The design with these choices. Of what a plain page does not show, one value is as good as another."""
    return Design(
        business=business,
        sections=("hero",),
        page_colour="white",
        navigation="none",
        hero_padding=16,
        bar_colour="white",
        card_count=2,
        card_colour="white",
        card_pictures=False,
        table_rows=2,
        table_colour=DARK[0],
        form_fields=1,
        form_width="full",
        **choices,
    )


def written_page(business: Business, choices: Choices) -> str:
    """The page with these choices."""
    return page_of(plain_design(business, choices))


def read_choices(page: str) -> Choices:
    """The choices that a page shows; a page of another kind shows fewer than seven."""
    found = {name: re.search(pattern, page) for name, pattern in _WRITTEN.items()}
    return {name: match[1] for name, match in found.items() if match is not None}


def right_choices(task: Task, _: Sequence[Message], output: str) -> float:
    """The share of the choices that a turn gets right: an oracle's opinion of it.

    An answer that leaves something wrong wastes the rest of the dialogue, and counts half.
    """
    page = find_page(output)
    wanted, shown = read_choices(frontend_secret(task).page), read_choices(page or "")
    share = sum(shown.get(name) == value for name, value in wanted.items()) / len(CHOICES)
    return share / 2 if ANSWER_MARKER in output and share < 1 else share
