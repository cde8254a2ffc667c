"""Pages as tests read them: the elements, their classes and their words."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Node:
    name: str
    attributes: dict[str, str | None]
    children: "list[Node | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def classes(self) -> list[str]:
        return (self.attributes.get("class") or "").split()

    def all(self, name: str = "", class_: str = "") -> "list[Node]":
        """The elements below this one, in order, of a name and a class."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                if (not name or child.name == name) and (not class_ or class_ in child.classes):
                    found.append(child)
                found += child.all(name, class_)
        return found

    def one(self, name: str = "", class_: str = "") -> "Node":
        [found] = self.all(name, class_)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in ("meta", "link", "img", "input", "br"):
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read(html: str) -> Node:
    """The tree; elements that are not closed in order are an error."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.open[0]


def cells(table: Node) -> list[list[str]]:
    """The words of a table, row by row."""
    rows = table.all("tr")
    return [[cell.text for cell in row.children if isinstance(cell, Node)] for row in rows]
