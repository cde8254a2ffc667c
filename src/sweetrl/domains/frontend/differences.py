"""The differences between a draft and the wanted page, as true sentences.

The elements of both pages are paired, and pairs are compared by what is their own: words, colours, sizes. Sizes
and places follow from almost any other change, so they are named only where nothing else explains them. Every
claim is checked once more against both pages before it counts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from sweetrl.domains.frontend import colours
from sweetrl.domains.frontend.elements import Element, align, elements_of, last_inside
from sweetrl.types import Box, Shot


class Aspect(StrEnum):
    """In what two pages can differ."""

    MISSING = "missing"
    EXTRA = "extra"
    ORDER = "order"
    BACKGROUND = "background"
    COLOUR = "colour"
    TEXT_SIZE = "text_size"
    ALIGNMENT = "alignment"
    WORDS = "words"
    SIZE = "size"
    PLACE = "place"


@dataclass(frozen=True)
class Difference:
    """One claim about a draft."""

    aspect: Aspect
    weight: float
    """How striking it is."""
    sentence: str
    """Without a full stop and without a capital."""
    wanted: int | None = None
    """The box of the reference concerned."""
    shown: int | None = None
    """The box of the draft."""


_SEEN_COLOUR = 5.0
"""In CIELAB: less is hard to notice."""
_SEEN_RATIO = 1.08
"""Lengths and font sizes that differ by a smaller factor look the same."""
_SEEN_SHIFT = 8.0
"""Pixels."""
_STRIKING = {
    Aspect.MISSING: 4.0,
    Aspect.EXTRA: 3.5,
    Aspect.ORDER: 3.0,
    Aspect.BACKGROUND: 3.0,
    Aspect.COLOUR: 1.5,
    Aspect.TEXT_SIZE: 1.5,
    Aspect.ALIGNMENT: 2.0,
    Aspect.WORDS: 1.0,
    Aspect.SIZE: 1.0,
    Aspect.PLACE: 0.5,
}
_FOLLOWED = {Aspect.MISSING, Aspect.EXTRA, Aspect.ORDER, Aspect.TEXT_SIZE, Aspect.WORDS, Aspect.ALIGNMENT}
"""Differences that move and stretch other things."""
_SIDES = {"start": "left", "left": "left", "center": "centre", "end": "right", "right": "right"}


def differences(reference: Shot, answer: Shot, *, quote: bool = False) -> list[Difference]:
    """All differences, the most striking first. `quote` lets sentences use the words of the reference."""
    if reference.png == answer.png:
        return []
    pages = _Pages(reference, answer, quote=quote)
    found = [each for each in pages.own() if pages.holds(each)]
    if not any(each.aspect in _FOLLOWED for each in found):
        found += [each for each in pages.following() if pages.holds(each)]
    return sorted(found, key=lambda each: -each.weight)


def striking(found: Sequence[Difference]) -> list[Difference]:
    """The two most striking differences of different aspects; `found` is in the order of their weight."""
    first: dict[Aspect, Difference] = {}
    for each in found:
        first.setdefault(each.aspect, each)
    return list(first.values())[:2]


class _Pages:
    """The wanted page and the draft, with their elements paired."""

    def __init__(self, reference: Shot, answer: Shot, *, quote: bool) -> None:
        self._reference = reference
        self._answer = answer
        self._quote = quote
        self._wanted = elements_of(reference)
        self._shown = elements_of(answer)
        self._last_wanted = last_inside(reference.boxes)
        self._last_shown = last_inside(answer.boxes)
        self._pairs = [(self._wanted[i], self._shown[j]) for i, j in align(self._wanted, self._shown)]

    # ------------------------------------------------------------ finding

    def own(self) -> Iterator[Difference]:
        """Differences that are not consequences of other differences."""
        yield from self._page_colour()
        missing, extra, moved = self._unpaired()
        for wanted in missing:
            yield self._claim(Aspect.MISSING, f"{self._one(wanted)} is missing", wanted, None)
        for shown in extra:
            yield self._claim(Aspect.EXTRA, f"{shown.called()} should not be there", None, shown)
        for wanted, shown in moved:
            yield from self._order(wanted, shown)
        for wanted, shown in self._pairs:
            yield from self._look(wanted, shown)
            yield from self._text(wanted, shown)
            if wanted.noun in ("picture", "input field"):
                yield from self._size(wanted, shown)

    def following(self) -> Iterator[Difference]:
        """Sizes and places: of the innermost elements that differ, since those around them follow."""
        resized = [pair for pair in self._pairs if any(True for _ in self._size(*pair))]
        indices = [wanted.index for wanted, _ in resized]
        inner = [
            pair
            for pair in resized
            if not any(pair[0].index < index <= self._last_wanted[pair[0].index] for index in indices)
        ]
        for pair in inner:
            yield from self._size(*pair)
        if not inner:
            for wanted, shown in self._pairs:
                yield from self._place(wanted, shown)

    def _page_colour(self) -> Iterator[Difference]:
        bodies = self._reference.boxes[:1], self._answer.boxes[:1]
        wanted, shown = (boxes[0].background[:7] or "#ffffff" if boxes else "#ffffff" for boxes in bodies)
        if colours.distance(wanted, shown) > _SEEN_COLOUR:
            sentence = f"the background of the page should be {colours.wish(wanted, shown)}"
            area = float(self._reference.width * self._reference.height)
            yield Difference(Aspect.BACKGROUND, _weight(Aspect.BACKGROUND, area), sentence, 0, 0)

    def _unpaired(self) -> tuple[list[Element], list[Element], list[tuple[Element, Element]]]:
        """Elements of only the reference, elements of only the draft, and those of both in different places."""
        paired = {wanted.index for wanted, _ in self._pairs}, {shown.index for _, shown in self._pairs}
        missing = [each for each in self._wanted if each.index not in paired[0]]
        extra = [each for each in self._shown if each.index not in paired[1]]
        moved = []
        for wanted in list(missing):
            same = [each for each in extra if (each.noun, each.words) == (wanted.noun, wanted.words)]
            if same:
                moved.append((wanted, same[0]))
                missing.remove(wanted)
                extra.remove(same[0])
        outer = _outermost(self._last_wanted, [wanted for wanted, _ in moved])
        return (
            _outermost(self._last_wanted, missing),
            _outermost(self._last_shown, extra),
            [(wanted, shown) for wanted, shown in moved if wanted in outer],
        )

    def _order(self, wanted: Element, shown: Element) -> Iterator[Difference]:
        """Before or after what it should be: the nearest thing that it has changed sides with."""
        turned = [
            (abs(one.index - wanted.index), one, other)
            for one, other in self._pairs
            if not _related(self._last_wanted, one.index, wanted.index)
            and not _related(self._last_shown, other.index, shown.index)
            and _before(wanted.box, one.box) != _before(shown.box, other.box)
        ]
        if turned:
            _, one, other = min(turned, key=lambda each: each[0])
            side = "before" if _before(wanted.box, one.box) else "after"
            sentence = f"{self._name(shown)} should come {side} {self._name(other)}"
            yield self._claim(Aspect.ORDER, sentence, wanted, shown)

    def _look(self, wanted: Element, shown: Element) -> Iterator[Difference]:
        apart = colours.distance(wanted.colour, shown.colour)
        if (wanted.painted or shown.painted) and apart > _SEEN_COLOUR:
            sentence = f"{self._name(shown)} should be {colours.wish(wanted.colour, shown.colour)}"
            yield self._claim(Aspect.BACKGROUND, sentence, wanted, shown, apart / 50)

    def _text(self, wanted: Element, shown: Element) -> Iterator[Difference]:
        one, other = wanted.box, shown.box
        if not one.text or not other.text:
            return
        name = self._name(shown)
        apart = colours.distance(one.color, other.color)
        if apart > _SEEN_COLOUR:
            sentence = f"the text of {name} should be {colours.wish(one.color, other.color)}"
            yield self._claim(Aspect.COLOUR, sentence, wanted, shown, apart / 50)
        if _ratio(one.font_size, other.font_size) > _SEEN_RATIO:
            sentence = f"the text of {name} should be {_comparative(one.font_size, other.font_size)}"
            ratio = _ratio(one.font_size, other.font_size)
            yield self._claim(Aspect.TEXT_SIZE, sentence, wanted, shown, ratio - 0.5)
        sides = _side(one), _side(other)
        if sides[0] != sides[1]:
            sentence = f"the text of {name} should be {_aligned(sides[0])} instead of {_aligned(sides[1])}"
            yield self._claim(Aspect.ALIGNMENT, sentence, wanted, shown)
        if one.text != other.text:
            wish = f'say "{one.text}"' if self._quote else "have other words"
            yield self._claim(Aspect.WORDS, f"{name} should {wish}", wanted, shown)

    def _size(self, wanted: Element, shown: Element) -> Iterator[Difference]:
        one, other = wanted.box, shown.box
        sides = []
        if _differ(one.width, other.width):
            sides.append("wider" if one.width > other.width else "narrower")
        if _differ(one.height, other.height):
            sides.append("taller" if one.height > other.height else "less tall")
        if sides:
            sentence = f"{self._name(shown)} should be {' and '.join(sides)}"
            yield self._claim(Aspect.SIZE, sentence, wanted, shown)

    def _place(self, wanted: Element, shown: Element) -> Iterator[Difference]:
        right, down = wanted.box.x - shown.box.x, wanted.box.y - shown.box.y
        if max(abs(right), abs(down)) < _SEEN_SHIFT:
            return
        if abs(down) >= abs(right):
            where = "down" if down > 0 else "up"
        else:
            where = "to the right" if right > 0 else "to the left"
        yield self._claim(Aspect.PLACE, f"{self._name(shown)} should be further {where}", wanted, shown)

    # ------------------------------------------------------------ saying

    def _claim(
        self,
        aspect: Aspect,
        sentence: str,
        wanted: Element | None,
        shown: Element | None,
        degree: float = 1.0,
    ) -> Difference:
        box = (wanted or shown or self._wanted[0]).box
        weight = _weight(aspect, box.width * box.height) * min(degree, 2.0)
        return Difference(
            aspect,
            weight,
            sentence,
            wanted=None if wanted is None else wanted.index,
            shown=None if shown is None else shown.index,
        )

    def _name(self, shown: Element) -> str:
        """The draft's own words may always be quoted: the agent wrote them."""
        return shown.called(quote=shown.count > 1)

    def _one(self, wanted: Element) -> str:
        """A name for something that the draft lacks: its words if they may be quoted, and about where it would be."""
        if self._quote and wanted.words and len(wanted.words) <= 60:
            return f'the {wanted.noun} "{wanted.words}"'
        middle = wanted.box.y + wanted.box.height / 2
        third = min(int(3 * middle / max(self._reference.height, 1)), 2)
        where = ("near the top", "in the middle", "near the bottom")[max(third, 0)]
        article = "an" if wanted.noun[0] in "aeiou" else "a"
        return f"{article} {wanted.noun} {where} of the page"

    # ------------------------------------------------------------ checking

    def holds(self, claim: Difference) -> bool:
        """Whether the boxes of both pages support the claim."""
        one = None if claim.wanted is None else self._reference.boxes[claim.wanted]
        other = None if claim.shown is None else self._answer.boxes[claim.shown]
        if claim.aspect in (Aspect.MISSING, Aspect.EXTRA):
            return self._counts_differ(claim)
        assert one is not None
        assert other is not None
        return claim.wanted == 0 or _CHECKS.get(claim.aspect, _always)(one, other)

    def _counts_differ(self, claim: Difference) -> bool:
        """More of its kind on one page, or nothing with its words on the other."""
        here, there = self._wanted, self._shown
        index = claim.wanted
        if claim.aspect is Aspect.EXTRA:
            here, there, index = there, here, claim.shown
        [element] = [each for each in here if each.index == index]
        if self._nouns(here)[element.noun] > self._nouns(there)[element.noun]:
            return True
        return self._quote and bool(element.words) and element.words not in {each.words for each in there}

    def _nouns(self, elements: list[Element]) -> Counter[str]:
        return self._wanted_nouns if elements is self._wanted else self._shown_nouns

    @cached_property
    def _wanted_nouns(self) -> Counter[str]:
        return Counter(each.noun for each in self._wanted)

    @cached_property
    def _shown_nouns(self) -> Counter[str]:
        return Counter(each.noun for each in self._shown)


def _always(_: Box, __: Box) -> bool:
    return True


_CHECKS: dict[Aspect, Callable[[Box, Box], bool]] = {
    Aspect.COLOUR: lambda one, other: one.color != other.color,
    Aspect.TEXT_SIZE: lambda one, other: one.font_size != other.font_size,
    Aspect.ALIGNMENT: lambda one, other: one.text_align != other.text_align,
    Aspect.WORDS: lambda one, other: one.text != other.text,
    Aspect.SIZE: lambda one, other: (one.width, one.height) != (other.width, other.height),
    Aspect.PLACE: lambda one, other: (one.x, one.y) != (other.x, other.y),
    Aspect.BACKGROUND: lambda one, other: one.background != other.background,
}


def _weight(aspect: Aspect, area: float) -> float:
    """Large things strike more, but not in proportion."""
    return float(_STRIKING[aspect] * max(area, 1.0) ** 0.25)


def _related(last: Sequence[int], one: int, other: int) -> bool:
    """Whether one of the two is inside the other, or they are the same."""
    return max(one, other) <= last[min(one, other)]


def _outermost(last: Sequence[int], elements: list[Element]) -> list[Element]:
    """Those, of elements in document order, that are inside none of the others."""
    outer: list[Element] = []
    for each in elements:
        if not outer or each.index > last[outer[-1].index]:
            outer.append(each)
    return outer


def _before(one: Box, other: Box) -> bool:
    """As people read: above, or on about the same line further left."""
    if one.y + one.height <= other.y + 1 or other.y + other.height <= one.y + 1:
        return one.y < other.y
    return one.x < other.x


def _ratio(one: float, other: float) -> float:
    return max(one, other) / max(min(one, other), 0.1)


def _differ(one: float, other: float) -> bool:
    return abs(one - other) >= 4 and _ratio(one, other) > 1.02


def _comparative(wanted: float, shown: float) -> str:
    much = "much " if _ratio(wanted, shown) > 1.6 else ""
    return much + ("larger" if wanted > shown else "smaller")


def _side(box: Box) -> str:
    return _SIDES.get(box.text_align.removeprefix("-webkit-"), "left")


def _aligned(side: str) -> str:
    return "centred" if side == "centre" else f"on the {side}"
