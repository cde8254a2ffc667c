"""Changes to Tailwind pages, one at a time and in graded chains, for measuring what looks at pages.

mutate(page, "colour", rng)      one change of a kind, with the element that it touched; None if it cannot
chain(page, rng, 8)              the page after 8 changes of any kind
"""

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
HUES = ("gray", "red", "yellow", "green", "blue", "indigo", "purple", "pink")
WORDS = (
    *(
        "amber",
        "brook",
        "candle",
        "drift",
        "ember",
        "fable",
        "grove",
        "harbour",
        "island",
        "jasper",
        "kettle",
    ),
    *("lantern", "meadow", "north", "orchard", "pebble", "quartz", "river", "saddle", "timber", "velvet"),
)
SIZES = (
    "text-sm",
    "text-base",
    "text-lg",
    "text-xl",
    "text-2xl",
    "text-3xl",
    "text-4xl",
    "text-5xl",
    "text-6xl",
)
ALIGNMENTS = ("text-left", "text-center", "text-right")
BLOCKS = ("header", "nav", "section", "div", "footer", "main", "table", "form", "ul", "article", "aside")


@dataclass
class Node:
    """An element, or with an empty tag a piece of text."""

    tag: str = ""
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    @property
    def classes(self) -> list[str]:
        return (dict(self.attributes).get("class") or "").split()

    @classes.setter
    def classes(self, names: Sequence[str]) -> None:
        self.attributes = [item for item in self.attributes if item[0] != "class"]
        self.attributes.append(("class", " ".join(names)))

    def elements(self) -> Iterator["Node"]:
        """The element itself and all below it, in document order."""
        if self.tag:
            yield self
        for child in self.children:
            yield from child.elements()

    def words(self) -> str:
        return self.text + "".join(child.words() for child in self.children)

    def html(self) -> str:
        if not self.tag:
            return self.text
        inside = "".join(child.html() for child in self.children)
        attributes = "".join(
            f" {key}" if value is None else f' {key}="{value}"' for key, value in self.attributes
        )
        return f"<{self.tag}{attributes}>" + ("" if self.tag in VOID else f"{inside}</{self.tag}>")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.root = Node("root")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        node = Node(tag, [(key, value and value.replace('"', "&quot;")) for key, value in attributes])
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(Node(text=data))

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")


def parse(page: str) -> Node:
    """The page as a tree, without its comments."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.root


def written(root: Node) -> str:
    return "".join(child.html() for child in root.children)


def body_of(root: Node) -> Node:
    return next((node for node in root.elements() if node.tag == "body"), root)


@dataclass(frozen=True)
class Mutation:
    """A changed page."""

    page: str
    kind: str
    tag: str
    element: int
    """Where the touched element is among those of the body, itself first, in the page that still has it."""
    detail: str = ""


def mutate(page: str, kind: str, rng: random.Random) -> Mutation | None:
    """One change of a kind; None where the page has nothing to change in that way."""
    root = parse(page)
    body = body_of(root)
    elements = list(body.elements())
    made = _KINDS[kind](elements, rng)
    if made is None:
        return None
    node, detail = made
    place = next(number for number, each in enumerate(elements) if each is node)
    return Mutation(written(root), kind, node.tag, place, detail)


def chain(page: str, rng: random.Random, steps: int, kinds: Sequence[str] | None = None) -> str:
    """The page after that many changes."""
    names = tuple(_KINDS) if kinds is None else tuple(kinds)
    done = 0
    for _ in range(20 * steps):
        if done == steps:
            break
        if (mutation := mutate(page, rng.choice(names), rng)) is not None:
            page, done = mutation.page, done + 1
    return page


def reworded(page: str, rng: random.Random) -> str:
    """The page with every word replaced by another of about its length."""
    root = parse(page)
    for element in body_of(root).elements():
        for child in element.children:
            if child.text.strip():
                child.text = _other_words(child.text, rng)
    return written(root)


# ---------------------------------------------------------------- kinds of change

_Made = tuple[Node, str] | None


def _recolour(prefix: str, elements: list[Node], rng: random.Random) -> _Made:
    pattern = re.compile(rf"{prefix}-(?:({'|'.join(HUES)})-(\d+)|white|black)")
    found = [(node, name) for node in elements for name in node.classes if pattern.fullmatch(name)]
    if not found:
        return None
    node, old = rng.choice(found)
    matched = pattern.fullmatch(old)
    assert matched is not None
    hue = rng.choice([each for each in HUES[1:] if each != matched[1]])
    new = f"{prefix}-{hue}-{rng.choice((300, 500, 700))}"
    node.classes = [new if name == old else name for name in node.classes]
    return node, f"{old} -> {new}"


def _background(elements: list[Node], rng: random.Random) -> _Made:
    return _recolour("bg", elements, rng)


def _colour(elements: list[Node], rng: random.Random) -> _Made:
    return _recolour("text", elements, rng)


def _one_of(names: Sequence[str], elements: list[Node], rng: random.Random, *, far: int = 1) -> _Made:
    """Replace a class that is one of `names` by another, at least `far` places away where that is possible."""
    found = [(node, name) for node in elements for name in node.classes if name in names]
    if not found:
        return None
    node, old = rng.choice(found)
    others = [name for name in names if abs(names.index(name) - names.index(old)) >= far]
    new = rng.choice(others)
    node.classes = [new if name == old else name for name in node.classes]
    return node, f"{old} -> {new}"


def _text_size(elements: list[Node], rng: random.Random) -> _Made:
    return _one_of(SIZES, elements, rng, far=2)


def _alignment(elements: list[Node], rng: random.Random) -> _Made:
    return _one_of(ALIGNMENTS, elements, rng)


def _spacing(elements: list[Node], rng: random.Random) -> _Made:
    pattern = re.compile(r"(p[xytb]?|m[ytb])-(\d+)")
    found = [(node, name) for node in elements for name in node.classes if pattern.fullmatch(name)]
    if not found:
        return None
    node, old = rng.choice(found)
    matched = pattern.fullmatch(old)
    assert matched is not None
    new = (
        f"{matched[1]}-{rng.choice([step for step in (0, 4, 8, 12, 16, 24, 32) if step != int(matched[2])])}"
    )
    node.classes = [new if name == old else name for name in node.classes]
    return node, f"{old} -> {new}"


def _picture(elements: list[Node], rng: random.Random) -> _Made:
    sized = re.compile(r"/(\d+)/(\d+)\Z")
    found = [
        node
        for node in elements
        if node.tag == "img" and sized.search(dict(node.attributes).get("src") or "")
    ]
    if not found:
        return None
    node = rng.choice(found)
    factor = rng.choice((0.4, 0.6, 1.6))
    old = dict(node.attributes)["src"] or ""
    new = sized.sub(lambda m: f"/{int(int(m[1]) * factor)}/{int(int(m[2]) * factor)}", old)
    node.attributes = [(key, new if key == "src" else value) for key, value in node.attributes]
    return node, f"{old} -> {new}"


def _words(elements: list[Node], rng: random.Random) -> _Made:
    found = [(node, child) for node in elements for child in node.children if child.text.strip()]
    if not found:
        return None
    node, child = rng.choice(found)
    old = child.text.strip()
    child.text = _other_words(child.text, rng)
    return node, f"{old} -> {child.text.strip()}"


def _other_words(text: str, rng: random.Random) -> str:
    return re.sub(r"[A-Za-z]{2,}", lambda _: rng.choice(WORDS), text)


def _removable(elements: list[Node]) -> list[tuple[Node, Node]]:
    """Elements with something to see in them, and the element around each."""
    below = [(parent, child) for parent in elements for child in parent.children if child.tag]
    return [
        (parent, child) for parent, child in below if child.words().strip() or child.tag in ("img", "input")
    ]


def _missing(elements: list[Node], rng: random.Random) -> _Made:
    found = [(parent, child) for parent, child in _removable(elements) if parent.tag != "html"]
    if not found:
        return None
    parent, child = rng.choice(found)
    parent.children = [each for each in parent.children if each is not child]
    return child, child.words().strip()[:60]


def _extra(elements: list[Node], rng: random.Random) -> _Made:
    found = _removable(elements)
    if not found:
        return None
    parent, child = rng.choice(found)
    place = next(number for number, each in enumerate(parent.children) if each is child)
    parent.children.insert(place, child)
    return child, child.words().strip()[:60]


def _order(elements: list[Node], rng: random.Random) -> _Made:
    found = []
    for parent in elements:
        shown = [child for child in parent.children if child.tag and child.words().strip()]
        found += [(parent, one, two) for one, two in itertools.pairwise(shown) if one.html() != two.html()]
    if not found:
        return None
    parent, one, two = rng.choice(found)
    swapped = {id(one): two, id(two): one}
    parent.children = [swapped.get(id(child), child) for child in parent.children]
    return one, f"{one.tag} <-> {two.tag}"


_KINDS = {
    "background": _background,
    "colour": _colour,
    "text_size": _text_size,
    "alignment": _alignment,
    "spacing": _spacing,
    "picture": _picture,
    "words": _words,
    "missing": _missing,
    "extra": _extra,
    "order": _order,
}
KINDS = tuple(_KINDS)
