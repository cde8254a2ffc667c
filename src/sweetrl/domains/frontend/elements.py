"""The things a person would point at on a page, and the matching of those of two pages."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sweetrl.types import Box, Shot

MOST_ELEMENTS = 250
"""Elements of a page that are looked at: the first ones."""
MOST_CHARACTERS = 1200
"""Characters of text kept for one element. Published pages have at most 1,133."""

_NOUNS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("input", "textarea", "select"), "input field"),
    **dict.fromkeys(("img", "svg", "canvas", "video"), "picture"),
    "header": "header",
    "nav": "navigation",
    "footer": "footer",
    "form": "form",
    "table": "table",
    "p": "paragraph",
    "a": "link",
    "button": "button",
    "label": "label",
    "li": "list item",
    "td": "table cell",
    "th": "table heading",
    "tr": "table row",
}
_ALWAYS = {"header", "nav", "footer", "form", "table", "img", "svg", "input", "textarea", "select", "button"}
"""Tags that are something to point at even where they paint nothing of their own."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True)
class Element:
    """Something on a page that has a name."""

    index: int
    """Index of its box."""
    box: Box
    noun: str
    number: int
    """Which of the things with this noun it is, from 0."""
    count: int
    """How many there are."""
    backdrop: str
    """The colour behind it; `#rrggbb`."""
    words: str
    """The words in it, those of the elements inside included, up to `MOST_CHARACTERS`."""

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Its different words."""
        return frozenset(self.words.split())

    @property
    def painted(self) -> bool:
        """Whether its own background differs from what is around it."""
        return bool(self.box.background) and self.box.background[:7] != self.backdrop

    @property
    def colour(self) -> str:
        """Its visible background colour."""
        return self.box.background[:7] or self.backdrop

    def called(self, *, quote: bool = False) -> str:
        """`the header`, `the second button`, or with its words `the button "Send"`."""
        if quote and self.words and len(self.words) <= 60:
            return f'the {self.noun} "{self.words}"'
        if self.count == 1:
            return f"the {self.noun}"
        if self.number == self.count - 1:
            return f"the last {self.noun}"
        if self.number < len(_ORDINALS):
            return f"the {_ORDINALS[self.number]} {self.noun}"
        return f"the {self.noun} number {self.number + 1}"


def elements_of(shot: Shot) -> list[Element]:
    """The things to point at, in document order."""
    backdrops = _backdrops(shot.boxes)
    words = _words(shot.boxes)
    named = [
        (index, box, _noun(box, backdrops[index]))
        for index, box in enumerate(shot.boxes)
        if box.visible and box.depth > 0 and _stands_out(box, backdrops[index])
    ][:MOST_ELEMENTS]
    totals = Counter(noun for _, _, noun in named)
    seen: Counter[str] = Counter()
    found = []
    for index, box, noun in named:
        found.append(Element(index, box, noun, seen[noun], totals[noun], backdrops[index], words[index]))
        seen[noun] += 1
    return found


def _backdrops(boxes: Sequence[Box]) -> list[str]:
    """The colour behind each box."""
    behind: list[str] = []
    painted: list[str] = []
    for box in boxes:
        behind.append(painted[box.parent] if box.parent >= 0 else "#ffffff")
        painted.append(box.background[:7] or behind[-1])
    return behind


def _words(boxes: Sequence[Box]) -> list[str]:
    """The text of each box and those inside it, in document order. Cut, or deep pages would repeat text per level."""
    said = [box.text[:MOST_CHARACTERS] if box.visible else "" for box in boxes]
    inside = [""] * len(boxes)
    for index in range(len(boxes) - 1, -1, -1):
        said[index] = _joined(said[index], inside[index])
        if (parent := boxes[index].parent) >= 0:
            inside[parent] = _joined(said[index], inside[parent])
    return said


def _joined(one: str, other: str) -> str:
    return f"{one} {other}"[:MOST_CHARACTERS] if one and other else one or other


def last_inside(boxes: Sequence[Box]) -> list[int]:
    """For each box the index of the last one inside it, or its own: in document order those between are inside too."""
    last = list(range(len(boxes)))
    for index in range(len(boxes) - 1, -1, -1):
        if (parent := boxes[index].parent) >= 0:
            last[parent] = max(last[parent], last[index])
    return last


def _stands_out(box: Box, backdrop: str) -> bool:
    paints = bool(box.background) and box.background[:7] != backdrop
    framed = box.border_width >= 1 and box.border_color[:7] not in ("", backdrop)
    return box.tag in _ALWAYS or bool(box.text) or box.image or paints or framed


def _noun(box: Box, backdrop: str) -> str:
    if box.image and box.tag not in _NOUNS:
        return "picture"
    if box.tag == "a" and box.background and box.background[:7] != backdrop:
        return "button"
    return _NOUNS.get(box.tag, "text" if box.text and not box.background else "section")


# ---------------------------------------------------------------- which is which

_SAME_NOUN = 1.0
_SAME_WORDS = 4.0
_SAME_SIZE = 1.0
_SAME_COLOUR = 0.5


def align(reference: Sequence[Element], answer: Sequence[Element]) -> list[tuple[int, int]]:
    """The best pairing that keeps the order of both pages: places in `reference` and in `answer`."""
    gains = [[_gain(one, other) for other in answer] for one in reference]
    rows, columns = len(reference), len(answer)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        below, here = best[row + 1], best[row]
        for column in range(columns - 1, -1, -1):
            gain = gains[row][column]
            paired = gain + below[column + 1] if gain else 0.0
            here[column] = max(paired, below[column], here[column + 1])
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        gain = gains[row][column]
        if gain and best[row][column] == gain + best[row + 1][column + 1]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row + 1][column]:
            row += 1
        else:
            column += 1
    return pairs


def _gain(one: Element, other: Element) -> float:
    if one.noun != other.noun:
        return 0.0
    gain = _SAME_NOUN + _SAME_SIZE * _closeness(one.box, other.box)
    gain += _SAME_COLOUR * (one.colour == other.colour)
    if one.words == other.words:
        gain += _SAME_WORDS if one.words else _SAME_WORDS / 2
    elif one.words and other.words:
        gain += _SAME_WORDS * _shared_words(one, other)
    return gain


def _closeness(one: Box, other: Box) -> float:
    width = min(one.width, other.width) / max(one.width, other.width, 1.0)
    height = min(one.height, other.height) / max(one.height, other.height, 1.0)
    return width * height


def _shared_words(one: Element, other: Element) -> float:
    shared = len(one.vocabulary & other.vocabulary)
    return shared / (len(one.vocabulary) + len(other.vocabulary) - shared)
