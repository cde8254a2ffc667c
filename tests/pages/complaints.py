"""Whether what a designer names first is the one thing that was changed on a page."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pages.mutations import KINDS, Mutation, Node, body_of, mutate, parse
from sweetrl.domains.frontend.differences import Aspect, Difference, differences, striking
from sweetrl.protocols import Renderer
from sweetrl.types import Shot

# What browsers leave out of the boxes, or put in by themselves.
UNSEEN = {"script", "style", "link", "meta", "title", "template", "base", "br", "option", "tbody"}

ACCEPTED = {
    "background": {Aspect.BACKGROUND},
    "colour": {Aspect.COLOUR},
    "text_size": {Aspect.TEXT_SIZE},
    "alignment": {Aspect.ALIGNMENT, Aspect.PLACE},
    "spacing": {Aspect.SIZE, Aspect.PLACE},
    "picture": {Aspect.SIZE},
    "words": {Aspect.WORDS},
    "missing": {Aspect.MISSING},
    "extra": {Aspect.EXTRA},
    "order": {Aspect.ORDER, Aspect.WORDS},
}
"""Which claims are true of which change. Two things that have swapped places have also swapped their words."""


@dataclass
class Tally:
    """Of single changes that can be seen."""

    right: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)
    skipped: int = 0
    """Malformed pages of which the browser makes other elements than the mutations do."""

    @property
    def share(self) -> float:
        return self.right.total() / self.asked.total()


async def tally_complaints(renderer: Renderer, pages: Sequence[str], *, seed: int = 0) -> Tally:
    """One change of each kind to each page, and what the designer says first about it."""
    tally = Tally()
    for number, page in enumerate(pages):
        reference = await renderer.render(page)
        if not _read_alike(page, reference):
            tally.skipped += 1
            continue
        for kind in KINDS:
            mutation = mutate(page, kind, random.Random(f"{seed} {number} {kind}"))
            if mutation is None:
                continue
            changed = await renderer.render(mutation.page)
            if changed.png == reference.png:
                continue  # nothing to see
            named = striking(differences(reference, changed))[:1]
            tally.asked[kind] += 1
            if named and is_true(named[0], mutation, page, reference):
                tally.right[kind] += 1
            else:
                tally.misses.append(f"{number} {kind} {mutation.tag} {mutation.detail[:60]!r}: {named}")
    return tally


def is_true(claim: Difference, mutation: Mutation, page: str, reference: Shot) -> bool:
    """Whether the claim is about what was changed, and about where."""
    if claim.aspect not in ACCEPTED[mutation.kind]:
        return False
    first, last = _boxes_of(mutation, page, reference)
    if claim.aspect is Aspect.EXTRA:
        # The copy comes right after the original, which pushes the original's box on.
        assert claim.shown is not None
        return first <= claim.shown <= last + (last - first + 1)
    assert claim.wanted is not None
    if mutation.kind == "spacing":
        around = _ancestors(reference, first)
        return claim.wanted >= first or claim.wanted in around
    return first <= claim.wanted <= last


def _boxes_of(mutation: Mutation, page: str, reference: Shot) -> tuple[int, int]:
    """The first and the last box of the element that was changed (of both, where two changed places)."""
    body = body_of(parse(page))
    elements = list(body.elements())
    node = elements[mutation.element]
    nodes = [node]
    if mutation.kind == "order":
        parent = next(each for each in elements if any(child is node for child in each.children))
        shown = [child for child in parent.children if child.tag and child.words().strip()]
        nodes.append(shown[next(at for at, child in enumerate(shown) if child is node) + 1])
    boxes = [at for at, box in enumerate(reference.boxes) if box.tag not in UNSEEN]
    seen = [each for each in elements if each.tag not in UNSEEN]
    inside = [each for node in nodes for each in node.elements() if each.tag not in UNSEEN]
    places = [_place(seen, inside[0]), _place(seen, inside[-1])]
    return boxes[places[0]], boxes[places[1]]


def _read_alike(page: str, shot: Shot) -> bool:
    tags = [each.tag for each in body_of(parse(page)).elements()]
    seen = [box.tag for box in shot.boxes]
    return [tag for tag in tags if tag not in UNSEEN] == [tag for tag in seen if tag not in UNSEEN]


def _place(elements: Sequence[Node], node: Node) -> int:
    return next(at for at, each in enumerate(elements) if each is node)


def _ancestors(shot: Shot, index: int) -> set[int]:
    found = set()
    while (index := shot.boxes[index].parent) >= 0:
        found.add(index)
    return found
