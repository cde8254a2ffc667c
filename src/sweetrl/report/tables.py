"""Plain tables of a report: a title, a sentence, headings and rows."""

from sweetrl.report.contents import Table
from sweetrl.report.markup import Markup, element, excerpt, join

CELL_CHARACTERS = 300


def table(contents: Table) -> Markup:
    """A table that scrolls on narrow screens."""
    headings = [element("th", heading, scope="col") for heading in contents.headings]
    rows = [
        element("tr", *(element("td", excerpt(cell, CELL_CHARACTERS)) for cell in row))
        for row in contents.rows
    ]
    return element(
        "div",
        element("table", element("thead", element("tr", *headings)), element("tbody", *rows), class_="texts"),
        class_="scroll",
        tabindex=0,
    )


def sections(tables: tuple[Table, ...]) -> list[tuple[str, str, str, Markup]]:
    """Each table as a section of its own."""
    return [
        (f"table-{number}", each.title, each.lead, table(each) if each.rows else join([]))
        for number, each in enumerate(tables)
    ]
