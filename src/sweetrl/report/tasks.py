"""The section about single tasks: where each method wins and loses, as counts and as a list to search and open."""

from collections.abc import Mapping, Sequence
from itertools import chain, groupby

from sweetrl.report.charts import swatch
from sweetrl.report.contents import Example, Method, ReportContents, TaskScore
from sweetrl.report.dialogues import Setting, anchor, brief
from sweetrl.report.headline import by_success, reward_measure, value_of
from sweetrl.report.markup import Markup, counted, element, excerpt, join
from sweetrl.report.results import groups
from sweetrl.report.scales import amount
from sweetrl.report.tables import grid

ROWS = 1000
"""Tasks in one list, at most."""
_REQUEST_CHARACTERS = 140


def tasks(contents: ReportContents, setting: Setting) -> Markup:
    """For each scorer that judged several methods: who beats whom, and on which tasks."""
    opened = _opened(contents, setting)
    return join(
        _Tasks(members, f"tasks-{number}").shown(opened)
        for number, (_, members) in enumerate(groups(contents))
        if any(method.tasks for _, method in members)
    )


def _opened(contents: ReportContents, setting: Setting) -> dict[str, Markup]:
    """The content of each opened row: short dialogues on a task, and links to those that are shown in full."""

    def task(example: Example) -> str:
        return example.episode.task_id

    full = {name: anchor(number) for number, (name, _) in enumerate(groupby(contents.examples, key=task))}
    if contents.duel is not None:
        full[task(contents.duel.failure)] = "opening"
    return {
        name: join(
            [
                element("p", element("a", "Turn by turn", href=f"#{full[name]}")) if name in full else None,
                *(brief(each, setting) for each in examples),
            ]
        )
        for name, examples in groupby(contents.transcripts, key=task)
    }


class _Tasks:
    """The methods of one scorer, task by task."""

    def __init__(self, members: Sequence[tuple[int, Method]], identity: str) -> None:
        self._members = members
        self._methods = [method for _, method in members]
        self._identity = identity
        self._by_success = by_success(self._methods[0].scorer)

    def shown(self, opened: Mapping[str, Markup]) -> Markup:
        """Counts, controls and the list."""
        listed, left_out = self._chosen()
        omitted = f"{left_out:,} more tasks are left out, first those on which all runs agree."
        return element(
            "div",
            self._matrix() if len(self._members) > 1 else None,
            self._controls(len(listed)),
            self._list(listed, opened),
            element("p", omitted, class_="note") if left_out else None,
            class_="tasks",
            id=self._identity,
        )

    def _chosen(self) -> tuple[list[str], int]:
        """The tasks to list, in the order of their ids, and how many are left out: first those without a difference."""
        every = sorted(set(chain.from_iterable(method.tasks for method in self._methods)))
        kept = sorted(every, key=lambda task: len(set(self._values(task))) == 1)[:ROWS]
        return sorted(kept), len(every) - len(kept)

    def _values(self, task: str) -> list[float | None]:
        return [value_of(method.tasks.get(task), by_success=self._by_success) for method in self._methods]

    # -------- who beats whom

    def _matrix(self) -> Markup:
        what = "succeeded more often" if self._by_success else "earned more"
        heads = [_heading(colour, method, "col") for colour, method in self._members]
        rows = [
            element(
                "tr",
                _heading(colour, method, "row"),
                *(self._duel(row, column) for column in range(len(self._methods))),
            )
            for row, (colour, method) in enumerate(self._members)
        ]
        caption = f"On how many tasks the run on the left {what} than the run above."
        return grid((element("td"), *heads), rows, caption=caption, kind="matrix")

    def _duel(self, row: int, column: int) -> Markup:
        if row == column:
            return element("td", "·", class_="self")
        common = self._methods[row].tasks.keys() & self._methods[column].tasks.keys()
        values = map(self._values, common)
        pairs = [(each[row], each[column]) for each in values]
        wins = sum(a is not None and b is not None and a > b for a, b in pairs)
        button = element(
            "button",
            str(wins),
            type="button",
            data_list=self._identity,
            data_better=row,
            data_worse=column,
            aria_label=f"{wins} of {len(pairs)} tasks: show those",
        )
        return element("td", button)

    # -------- the list

    def _controls(self, count: int) -> Markup:
        def choice(name: str, caption: str) -> Markup:
            options = [element("option", "any run", value="")]
            options += [
                element("option", excerpt(method.title, 60), value=str(index))
                for index, method in enumerate(self._methods)
            ]
            return element("label", caption, " ", element("select", *options, data_role=name))

        search = element("input", type="search", data_role="search", placeholder="id or words of the request")
        choices = (choice("better", "Better with"), choice("worse", "than with"))
        return element(
            "div",
            *(choices if len(self._members) > 1 else ()),
            element("label", "Search ", search),
            element("output", counted(count, "task"), data_role="count", aria_live="polite"),
            class_="controls",
            data_list=self._identity,
        )

    def _list(self, shown: Sequence[str], opened: Mapping[str, Markup]) -> Markup:
        reward = reward_measure(self._methods[0].scorer).label
        what = f"successes of attempts, and {reward}" if self._by_success else reward
        opens = " A row opens the dialogues on its task." if opened else ""
        heads = [
            element("span", swatch(colour), excerpt(method.title, 40), class_="score")
            for colour, method in self._members
        ]
        head = element("div", element("span", "task", class_="name"), *heads, class_="row head")
        return join(
            [
                element("p", f"Per run: {what}.{opens}", class_="note"),
                element(
                    "div",
                    head,
                    *(self._task(task, opened.get(task)) for task in shown),
                    class_="task-list",
                    tabindex=0,
                ),
            ]
        )

    def _task(self, task: str, dialogues: Markup | None) -> Markup:
        values = ",".join("" if value is None else f"{value:g}" for value in self._values(task))
        row = [self._name(task), *(self._score(colour, method, task) for colour, method in self._members)]
        if dialogues is None:
            return element("div", element("div", *row, class_="row"), class_="task", data_values=values)
        folded = element("div", dialogues, class_="opened")
        return element(
            "details", element("summary", *row, class_="row"), folded, class_="task", data_values=values
        )

    def _name(self, task: str) -> Markup:
        request = next((each.requests[task] for each in self._methods if task in each.requests), "")
        return element(
            "span",
            element("code", excerpt(task, 80)),
            element("span", excerpt(request, _REQUEST_CHARACTERS), class_="request") if request else None,
            class_="name",
        )

    def _score(self, colour: int, method: Method, task: str) -> Markup:
        """A method's score. The list's heading names the method, or the cell itself on narrow screens."""
        who = element("span", swatch(colour), f"{excerpt(method.title, 40)} ", class_="whose")
        return element("span", who, *self._score_text(method.tasks.get(task)), class_="score")

    def _score_text(self, score: TaskScore | None) -> list[Markup]:
        if score is None or not score.attempts:
            return [element("span", "–", class_="missing")]
        measure = reward_measure(self._methods[0].scorer)
        reward = amount(score.reward, percent=measure.percent) + (" %" if measure.percent else "")
        if not self._by_success:
            return [element("span", f"{score.reward:.3f}")]
        solved = "all" if score.successes == score.attempts else "some" if score.successes else "none"
        mark = {"all": "✓", "some": "◐", "none": "✗"}[solved]
        return [
            element("span", f"{mark} {score.successes}/{score.attempts}", class_=f"solved-{solved}"),
            element("span", reward, class_="interval"),
        ]


def _heading(colour: int, method: Method, scope: str) -> Markup:
    return element("th", swatch(colour), excerpt(method.title, 40), scope=scope)
