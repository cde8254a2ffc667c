"""Figures with intervals as tables show them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweetrl.types import Metric

NOTHING = "-"
"""In place of a figure that rests on nothing."""


def percent(metric: "Metric") -> str:
    """`40.4`."""
    return NOTHING if metric.value is None else f"{100 * metric.value:.1f}"


def percent_interval(metric: "Metric") -> str:
    """`37.4 to 43.5`."""
    if metric.low is None or metric.high is None:
        return NOTHING
    return f"{100 * metric.low:.1f} to {100 * metric.high:.1f}"


def percent_with_interval(metric: "Metric") -> str:
    """`40.4 (37.4 to 43.5)`."""
    return NOTHING if metric.value is None else f"{percent(metric)} ({percent_interval(metric)})"
