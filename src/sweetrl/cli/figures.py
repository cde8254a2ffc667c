"""Metrics with intervals as tables show them."""

from rich.table import Table

from sweetrl.domains.domain import Domain, Labels
from sweetrl.evaluation.compare import Difference
from sweetrl.types import Metric, RunMetrics

NOTHING = "-"
"""In place of a metric that rests on nothing."""

LABELS = {
    "success": "success, %",
    "success_failures_as_zero": "success, failures = 0, %",
    "turns": "turns",
    "coverage": "hidden facts asked about, %",
    "repeats": "repeated questions",
    "premature": "premature answers, %",
}
LEAKS = "leaking_dialogues"


def plain(metric: Metric | None, *, percent: bool) -> str:
    """`40.4`, or `2.31` for what is no share; a dash for nothing."""
    return NOTHING if metric is None else _number(metric.value, "%" if percent else "")


def percent_with_interval(metric: Metric) -> str:
    """`40.4 (37.4 to 43.5)`."""
    return with_interval(metric, "%")


def with_interval(metric: Metric | Difference, label: str, sign: str = "") -> str:
    """A metric as its label says, in per cent or as it is; `sign` is "+" for a difference."""
    mean = _number(metric.value, label, sign)
    return NOTHING if metric.value is None else f"{mean} ({_interval(metric, label, sign)})"


def add_row(table: Table, label: str, metric: Metric, scale: str) -> None:
    """A row of name, mean, interval and count; in per cent if the text `scale` ends so."""
    table.add_row(label, _number(metric.value, scale), _interval(metric, scale), str(metric.count))


def metrics_table(run: RunMetrics, domain: Domain) -> Table:
    """The metrics of a run, one row each."""
    title = f"{run.dialogues} dialogues on {run.tasks} tasks, {run.failed} failed, {run.unscored} unscored"
    if run.broke_off or run.unanswered:
        title += f"; by the agent's own words {run.broke_off} broken off, {run.unanswered} messages without a reply"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in ("mean", "95 % interval", "of"):
        table.add_column(heading, justify="right")
    successes = ("success", "success_failures_as_zero")
    labels = {name: LABELS[name] for name in successes} | {"reward": reward_label(domain.labels)} | LABELS
    for name, label in labels.items():
        if name in run.metrics:
            add_row(table, label, run.metrics[name], label)
    for metric in run.fairness:
        if metric.name == LEAKS:
            add_row(table, "dialogues with code of the reference, %", metric, "%")
    return table


def reward_label(labels: Labels) -> str:
    """The domain's name for its reward, with a per cent sign if it is a share."""
    return f"{labels.reward}, %" if labels.share else labels.reward


def _number(value: float | None, label: str, sign: str = "") -> str:
    factor, digits = (100, 1) if label.endswith("%") else (1, 2)
    return NOTHING if value is None else f"{factor * value:{sign}.{digits}f}"


def _interval(metric: Metric | Difference, label: str, sign: str = "") -> str:
    low, high = (_number(end, label, sign) for end in (metric.low, metric.high))
    return NOTHING if metric.low is None else f"{low} to {high}"
