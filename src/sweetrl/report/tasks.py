"""The section about single tasks: where each method wins and loses, as counts and as a list to search."""

from collections.abc import Sequence
from itertools import chain

from sweetrl.domains.registry import domain_of_scorer
from sweetrl.report.charts import colour_class
from sweetrl.report.contents import Method, ReportContents, TaskScore
from sweetrl.report.markup import Markup, element, excerpt, join
from sweetrl.report.results import groups
from sweetrl.report.scales import amount

ROWS = 1000
"""Tasks in one list, at most."""
_REQUEST_CHARACTERS = 140


def tasks(contents: ReportContents) -> Markup:
    """For each scorer that judged several methods: who beats whom, and on which tasks."""
    return join(
        _comparison(members, number)
        for number, (_, members) in enumerate(groups(contents))
        if any(method.tasks for _, method in members)
    )


def _comparison(members: Sequence[tuple[int, Method]], number: int) -> Markup:
    identity = f"tasks-{number}"
    shown, left_out = _chosen([method for _, method in members])
    return element(
        "div",
        _matrix(members, identity) if len(members) > 1 else None,
        _controls(members, identity, len(shown)),
        _list(members, shown, identity),
        element(
            "p", f"{left_out:,} more tasks are left out, first those on which all runs agree.", class_="note"
        )
        if left_out
        else None,
        class_="tasks",
        id=identity,
    )


def value_of(score: TaskScore | None, *, by_success: bool) -> float | None:
    """What a task is compared by: the share of successes, or the mean reward where success says nothing."""
    if score is None or not score.attempts:
        return None
    # As many digits as the list shows: what looks equal is equal.
    return round(score.successes / score.attempts if by_success else score.reward, 3)


def _by_success(methods: Sequence[Method]) -> bool:
    """Where answers are hardly ever perfect, the reward tells more."""
    domain = domain_of_scorer(methods[0].scorer)
    return domain is None or domain.by_success


def _chosen(methods: Sequence[Method]) -> tuple[list[str], int]:
    """The tasks to list, in the order of their ids, and how many are left out: first those without a difference."""
    every = sorted(set(chain.from_iterable(method.tasks for method in methods)))
    by_success = _by_success(methods)

    def agreed(task: str) -> bool:
        return len({value_of(method.tasks.get(task), by_success=by_success) for method in methods}) == 1

    kept = sorted(every, key=agreed)[:ROWS]
    return sorted(kept), len(every) - len(kept)


# ---------------------------------------------------------------- who beats whom


def _matrix(members: Sequence[tuple[int, Method]], identity: str) -> Markup:
    methods = [method for _, method in members]
    by_success = _by_success(methods)
    what = "succeeded more often" if by_success else "earned more"
    head = element("tr", element("td"), *(_heading(colour, method, "col") for colour, method in members))
    rows = [
        element(
            "tr",
            _heading(colour, method, "row"),
            *(_duel(row, column, methods, identity, by_success=by_success) for column in range(len(methods))),
        )
        for row, (colour, method) in enumerate(members)
    ]
    caption = element("caption", f"On how many tasks the run on the left {what} than the run above.")
    table = element("table", caption, element("thead", head), element("tbody", *rows), class_="matrix")
    return element("div", table, class_="scroll", tabindex=0)


def _heading(colour: int, method: Method, scope: str) -> Markup:
    swatch = element("span", class_=f"swatch {colour_class(colour)}", aria_hidden="true")
    return element("th", swatch, excerpt(method.title, 40), scope=scope)


def _duel(row: int, column: int, methods: Sequence[Method], identity: str, *, by_success: bool) -> Markup:
    if row == column:
        return element("td", "·", class_="self")
    first, second = methods[row].tasks, methods[column].tasks
    pairs = [
        (value_of(first[task], by_success=by_success), value_of(second[task], by_success=by_success))
        for task in first.keys() & second.keys()
    ]
    wins = sum(a is not None and b is not None and a > b for a, b in pairs)
    label = f"{wins} of {len(pairs)} tasks: show those"
    button = element(
        "button",
        str(wins),
        type="button",
        data_list=identity,
        data_better=row,
        data_worse=column,
        aria_label=label,
    )
    return element("td", button)


# ---------------------------------------------------------------- the list


def _controls(members: Sequence[tuple[int, Method]], identity: str, count: int) -> Markup:
    def choice(name: str, caption: str) -> Markup:
        options = [element("option", "any run", value="")]
        options += [
            element("option", excerpt(method.title, 60), value=str(index))
            for index, (_, method) in enumerate(members)
        ]
        return element("label", caption, " ", element("select", *options, data_role=name))

    search = element("input", type="search", data_role="search", placeholder="id or words of the request")
    return element(
        "div",
        *((choice("better", "Better with"), choice("worse", "than with")) if len(members) > 1 else ()),
        element("label", "Search ", search),
        element(
            "output", f"{count} {'task' if count == 1 else 'tasks'}", data_role="count", aria_live="polite"
        ),
        class_="controls",
        data_list=identity,
    )


def _list(members: Sequence[tuple[int, Method]], shown: Sequence[str], identity: str) -> Markup:
    methods = [method for _, method in members]
    by_success = _by_success(methods)
    head = element(
        "tr",
        element("th", "task", scope="col"),
        *(_heading(colour, method, "col") for colour, method in members),
    )
    rows = [_task(task, methods, by_success=by_success) for task in shown]
    caption = "Per run: successes of attempts, and mean reward." if by_success else "Per run: mean reward."
    table = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", *rows),
        class_="task-list",
        id=f"{identity}-list",
    )
    return element("div", table, class_="scroll tall", tabindex=0)


def _task(task: str, methods: Sequence[Method], *, by_success: bool) -> Markup:
    values = [value_of(method.tasks.get(task), by_success=by_success) for method in methods]
    request = next((method.requests[task] for method in methods if task in method.requests), "")
    return element(
        "tr",
        element(
            "th",
            element("code", excerpt(task, 80)),
            element("span", excerpt(request, _REQUEST_CHARACTERS), class_="request") if request else None,
            scope="row",
        ),
        *(_score(method.tasks.get(task), by_success=by_success) for method in methods),
        data_values=",".join("" if value is None else f"{value:g}" for value in values),
    )


def _score(score: TaskScore | None, *, by_success: bool) -> Markup:
    if score is None or not score.attempts:
        return element("td", "–", class_="missing")
    if not by_success:
        return element("td", f"{score.reward:.3f}")
    solved = "all" if score.successes == score.attempts else "some" if score.successes else "none"
    mark = {"all": "✓", "some": "◐", "none": "✗"}[solved]
    return element(
        "td",
        element("span", f"{mark} {score.successes}/{score.attempts}", class_=f"solved-{solved}"),
        element("span", f"{amount(score.reward, percent=True)} %", class_="interval"),
    )
