"""Plain tables of a report: a title, a sentence, headings and rows."""

from collections.abc import Iterable

from sweetrl.report.contents import Table
from sweetrl.report.markup import Markup, element, excerpt, join

CELL_CHARACTERS = 300


def scrolling(content: Markup) -> Markup:
    """Something that is wider than narrow screens."""
    return element("div", content, class_="scroll", tabindex=0)


def grid(
    headings: Iterable[str], rows: Iterable[Markup], *, caption: str | None = None, kind: str | None = None
) -> Markup:
    """A table of rows that are markup already; headings that are none become cells."""
    heads = (each if isinstance(each, Markup) else element("th", each, scope="col") for each in headings)
    return scrolling(
        element(
            "table",
            None if caption is None else element("caption", caption),
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
            class_=kind,
        )
    )


def table(contents: Table) -> Markup:
    """A table of texts."""
    rows = (
        element(
            "tr",
            *(
                element("td", excerpt(cell, CELL_CHARACTERS), data_heading=heading)
                for heading, cell in zip(contents.headings, row, strict=True)
            ),
        )
        for row in contents.rows
    )
    return grid(contents.headings, rows, kind="texts")


def sections(tables: tuple[Table, ...]) -> list[tuple[str, str, str, Markup]]:
    """Each table as a section of its own."""
    return [
        (f"table-{number}", each.title, each.lead, table(each) if each.rows else join([]))
        for number, each in enumerate(tables)
    ]
