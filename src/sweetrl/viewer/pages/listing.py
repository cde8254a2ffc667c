"""The list of dialogues: filters, search, sorting, one page after the other."""

from collections.abc import Mapping, Sequence

from sweetrl.domains.registry import labels_of_scorer
from sweetrl.report.charts import advantage_bar, colour_class
from sweetrl.report.markup import Markup, counted, element, excerpt, join
from sweetrl.report.scales import amount
from sweetrl.viewer.pages.frame import address, choice, page
from sweetrl.viewer.queries import DEFECTS, OUTCOMES, PAGE, SORTS, Query, Row, RunRow


def query_fields(query: Query, *, number: int | None = None) -> list[tuple[str, object]]:
    """The query as fields of an address; `number` is another page."""
    shown = query.page if number is None else number
    return [
        ("q", query.text),
        *(("run", run) for run in query.runs),
        ("outcome", query.outcome),
        ("ending", query.ending),
        ("defect", query.defect),
        ("task", query.task),
        ("min", "" if query.least_turns is None else query.least_turns),
        ("max", "" if query.most_turns is None else query.most_turns),
        ("sort", "" if query.sort == "file" else query.sort),
        ("by", query.critic),
        ("page", shown or ""),
    ]


def list_page(
    query: Query,
    rows: Sequence[Row],
    total: int,
    runs: Sequence[RunRow],
    endings: Sequence[str],
    unreadable: Mapping[str, int],
    critics: Sequence[str] = (),
) -> str:
    """One page of the list; the critic of the query is one of several `critics`."""
    colours = {run.title: number for number, run in enumerate(runs)}
    scale = max((abs(row.worst_advantage) for row in rows if row.worst_advantage is not None), default=0.0)
    first = query.page * PAGE
    shown = [_row(row, first + number, query, colours, scale) for number, row in enumerate(rows)]
    return page(
        "Dialogues",
        _filters(query, runs, endings, critics),
        _warning(unreadable),
        element(
            "div",
            _counted(query, rows, total),
            join([_COLUMNS, element("ol", *shown, class_="rows", start=first + 1)])
            if shown
            else element("p", _nothing(runs), class_="empty"),
            _pager(query, total),
            id="live",
        ),
        at="Dialogues",
        live=True,
    )


_COLUMNS = element(
    "div",
    *(
        element("span", title)
        for title in ("reward", "request, run and id", "turns, ending", "lowest advantage")
    ),
    class_="columns",
    aria_hidden="true",
)


def _nothing(runs: Sequence[RunRow]) -> str:
    return "No dialogue matches." if runs else "No dialogues yet. They appear here as they are recorded."


def _warning(unreadable: Mapping[str, int]) -> Markup | None:
    if not unreadable:
        return None
    parts = (f"{excerpt(path, 200)}: {count:,}" for path, count in sorted(unreadable.items()))
    return element("p", "Lines that are no records and are left out: ", "; ".join(parts), class_="warning")


def _filters(query: Query, runs: Sequence[RunRow], endings: Sequence[str], critics: Sequence[str]) -> Markup:
    titles = {run.title: f"{run.title} ({run.dialogues:,})" for run in runs}
    return element(
        "form",
        element(
            "input",
            type="search",
            name="q",
            value=query.text,
            placeholder="Search what was said",
            aria_label="search what was said",
            id="search",
        ),
        choice("run", "method", titles, query.runs[0] if query.runs else "", "all"),
        choice("outcome", "outcome", OUTCOMES.keys(), query.outcome, "any"),
        choice("ending", "ending", endings, query.ending, "any"),
        choice("defect", "defect", DEFECTS.keys(), query.defect, "any or none"),
        element(
            "span",
            element("span", "turns"),
            _number("min", query.least_turns, "least turns"),
            "–",
            _number("max", query.most_turns, "most turns"),
            class_="choice",
        ),
        choice("sort", "sort", {name: title for name, (title, _) in SORTS.items()}, query.sort),
        choice("by", "critic", {each: each for each in critics}, query.critic) if len(critics) > 1 else None,
        element("input", type="hidden", name="task", value=query.task) if query.task else None,
        element("button", "Apply", class_="apply"),
        class_="filters",
        autocomplete="off",  # whoever comes back sees what the address says, not what was chosen later
        id="filters",
        method="get",
        action="/",
        role="search",
    )


def _number(name: str, value: int | None, label: str) -> Markup:
    shown = None if value is None else str(value)
    return element("input", type="number", min=0, max=999, name=name, value=shown, aria_label=label)


def _counted(query: Query, rows: Sequence[Row], total: int) -> Markup:
    first = query.page * PAGE
    span = f"{first + 1:,}–{first + len(rows):,} of " if total > len(rows) and rows else ""
    reset = (
        element("a", "clear filters", href="/")
        if query != Query(page=query.page, critic=query.critic)
        else None
    )
    about = element("span", "on task ", element("code", excerpt(query.task, 60))) if query.task else None
    return element("p", element("output", span + counted(total, "dialogue")), about, reset, class_="counted")


def _pager(query: Query, total: int) -> Markup | None:
    last = max(0, (total - 1) // PAGE)
    if not last:
        return None

    def link(title: str, number: int, rel: str) -> Markup:
        if not 0 <= number <= last or number == query.page:
            return element("span", title, class_="disabled")
        return element("a", title, href=address("/", *query_fields(query, number=number)), rel=rel)

    return element(
        "nav",
        link("« first", 0, "first"),
        link("‹ previous", query.page - 1, "prev"),
        element("span", f"page {query.page + 1:,} of {last + 1:,}"),
        link("next ›", query.page + 1, "next"),
        link("last »", last, "last"),
        class_="pager",
        aria_label="pages of the list",
    )


def dialogue_address(row: Row, query: Query, number: int, *more: tuple[str, str]) -> str:
    """The permanent address of a dialogue, with its place in the list."""
    about = (("of", row.run), ("id", row.id), *query_fields(query, number=0), ("at", number + 1))
    return address("/dialogue", *about, *more)


def _row(row: Row, number: int, query: Query, colours: Mapping[str, int], scale: float) -> Markup:
    colour = colour_class(colours.get(row.run, 0))
    return element(
        "li",
        element(
            "a",
            _mark(row),
            element(
                "span",
                element("span", excerpt(row.request, 150), class_="request"),
                element(
                    "span",
                    element("span", class_=f"swatch {colour}", aria_hidden="true"),
                    element("span", excerpt(row.run, 40), class_="run"),
                    element("code", excerpt(row.title, 60)),
                    class_="about",
                ),
                class_="what",
            ),
            element(
                "span",
                element("span", counted(row.turns, "turn")),
                element("span", row.ending.replace("_", " ")),
                *(element("span", each, class_="defect") for each in row.defects),
                class_="facts",
            ),
            _worst(row, scale),
            href=dialogue_address(row, query, number, ("critic", query.critic)),
        ),
    )


def _mark(row: Row) -> Markup:
    if row.reward is None:
        return element("span", "–", element("span", "unscored", class_="unseen"), class_="grade unscored")
    sign, kind = ("✓", "success") if row.success else ("✗", "failure")
    labels = labels_of_scorer(row.scorer or "")
    earned = amount(row.reward, percent=labels.share) + (" %" if labels.share else "")
    said = f"{kind}; {labels.reward}: {earned}"
    return element(
        "span",
        element("span", sign, aria_hidden="true"),
        element("span", kind, class_="unseen"),
        element("span", earned, class_="earned"),
        class_=f"grade {kind}",
        title=said,
    )


def _worst(row: Row, scale: float) -> Markup:
    if row.worst_advantage is None or row.worst_turn is None:
        return element("span", class_="worst")
    number = f"{row.worst_advantage:+.2f}".replace("-", "−")
    return element(
        "span",
        advantage_bar(row.worst_advantage, scale),
        element("span", f"turn {row.worst_turn + 1}: {number}", class_="value"),
        class_="worst",
        title="the turn with the lowest advantage",
    )
