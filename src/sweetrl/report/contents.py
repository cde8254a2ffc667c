"""The content of a report, without its presentation: plain data that callers fill and `render` turns into a page.

Every string may come from a model and is shown as text, never as markup. Sections without contents are left
out of the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweetrl.types import Episode, Metric, TurnCredit, Verdict


@dataclass(frozen=True)
class Measure:
    """A column of the results: how the metrics of one name are called and written."""

    name: str
    """The `name` of its metrics."""
    label: str
    percent: bool = True
    """Whether the values are shares, shown as percentages."""
    meaning: str = ""
    """One sentence for the reader."""


MEASURES = (
    Measure("success", "success", meaning="Dialogues whose answer meets everything asked for."),
    Measure(
        "success_failures_as_zero",
        "success, failures = 0",
        meaning="Success, with dialogues that failed or could not be scored counted as zero.",
    ),
    Measure("reward", "reward", meaning="The mean reward of the answers."),
    Measure("turns", "turns", percent=False, meaning="How often the agent spoke, on average."),
    Measure("coverage", "facts asked", meaning="Share of the hidden facts that the agent asked about."),
    Measure("repeats", "repeats", percent=False, meaning="Questions asked twice, per dialogue."),
    Measure("premature", "premature", meaning="Answers before everything that matters was asked."),
    Measure("excused_replies", "no reply", meaning="Messages whose words made a reply impossible."),
    Measure("leaking_dialogues", "leaks", meaning="Dialogues in which the collaborator gave code away."),
)
"""Metrics of sweetrl; a domain may call its reward otherwise."""


def unknown_measure(name: str) -> Measure:
    """Metrics of other names: shown as plain numbers."""
    return Measure(name, name.replace("_", " "), percent=False)


@dataclass(frozen=True)
class TaskScore:
    """The result of a method on one task."""

    attempts: int
    """Scored ones."""
    successes: int
    reward: float
    """The mean."""


@dataclass(frozen=True)
class Method:
    """A run, or a way of acting: one row of the results."""

    name: str
    """Unique within the report; comparisons and examples refer to it."""
    label: str = ""
    """The displayed name; `name` if empty."""
    scorer: str = ""
    """Only methods of one scorer are put side by side."""
    metrics: tuple[Metric, ...] = ()
    dialogues: int = 0
    tasks: Mapping[str, TaskScore] = field(default_factory=dict)
    """Scores by task id."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """The requests of the tasks, by id."""
    unscored: int = 0
    """Dialogues that could not be judged, for reasons that are not theirs. Not zeros."""
    with_failures: Mapping[str, float] = field(default_factory=dict)
    """Success by task, with those counted as zero; for all tasks that were attempted."""

    @property
    def title(self) -> str:
        """The displayed name."""
        return self.label or self.name


@dataclass(frozen=True)
class Comparison:
    """Two methods on the tasks that both were scored on."""

    first: str
    second: str
    """Names of methods."""
    measure: str
    difference: Metric
    """First less second, with its paired interval; `count` is the number of common tasks."""
    wins: int = 0
    """Tasks on which the first did better."""
    ties: int = 0
    losses: int = 0
    p_value: float | None = None


@dataclass(frozen=True)
class Training:
    """The log of one training run."""

    label: str
    curves: Mapping[str, tuple[tuple[float, float], ...]]
    """The points of each metric: (step, value), in order."""
    facts: tuple[tuple[str, str], ...] = ()
    """A few settings, shown beside the curves."""


@dataclass(frozen=True)
class Pictures:
    """PNG files that belong to a dialogue about a page; larger ones than the page has room for are left out."""

    reference: bytes | None = None
    answer: bytes | None = None
    drafts: Mapping[str, bytes] = field(default_factory=dict)
    """Pictures of drafts, by the content hash that replies refer to."""


@dataclass(frozen=True)
class Example:
    """One dialogue to show."""

    method: str
    """Name of its method."""
    episode: Episode
    verdict: Verdict | None = None
    credit: tuple[TurnCredit, ...] = ()
    """A critic's credit for its turns."""
    reference: str | None = None
    """The reference: code or HTML, shown as source."""
    pictures: Pictures = Pictures()


@dataclass(frozen=True)
class Duel:
    """A task that one method fails and another solves, to open the report with."""

    failure: Example
    success: Example
    tasks: int
    """How many tasks have the same result."""
    reversed: int
    """How many have the opposite one."""


@dataclass(frozen=True)
class Point:
    """A value, with its interval where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A line of a figure."""

    label: str
    points: tuple[Point, ...]
    method: str = ""
    """Name of the method whose colour it has, if it belongs to one."""


@dataclass(frozen=True)
class Figure:
    """A line plot, such as success against the number of candidates."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    caption: str = ""
    percent: bool = False
    """Whether y is a share, shown as a percentage."""
    log_x: bool = False


@dataclass(frozen=True)
class Table:
    """A table of texts, as a section of its own; left out if it has no rows."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lead: str = ""
    """The first sentence of the section."""


@dataclass(frozen=True)
class Provenance:
    """How one file or result was made."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    """Command, seed, times, hashes: short ones."""
    details: str = ""
    """A longer text, folded away: the whole configuration, for example."""


@dataclass(frozen=True)
class ReportContents:
    """A whole report."""

    title: str
    headline: str = ""
    """The result in one sentence, which the page opens with; the title if empty."""
    task: str = ""
    """The agents' job in these tasks, in one sentence."""
    summary: str = ""
    """A few sentences; an empty line starts a new paragraph."""
    duel: Duel | None = None
    methods: tuple[Method, ...] = ()
    measures: tuple[Measure, ...] = MEASURES
    comparisons: tuple[Comparison, ...] = ()
    figures: tuple[Figure, ...] = ()
    trainings: tuple[Training, ...] = ()
    examples: tuple[Example, ...] = ()
    """Examples on one task are next to each other."""
    names_tasks: bool = True
    """Whether the id of a task stands above its examples."""
    transcripts: tuple[Example, ...] = ()
    """Dialogues that the list of tasks opens, shown in short."""
    left_out: int = 0
    """Dialogues that are nowhere on the page."""
    provenance: tuple[Provenance, ...] = ()
    tables: tuple[Table, ...] = ()
    """Shown before the example dialogues."""
