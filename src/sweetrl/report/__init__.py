"""Reports: the results of runs, as one HTML page that needs nothing else.

`compose` turns records into `ReportContents`; `render` turns those into the page. Callers with figures of
their own fill in or add to the contents.
"""

from sweetrl.report.compose import compose
from sweetrl.report.contents import (
    Comparison,
    Example,
    Figure,
    Measure,
    Method,
    Pictures,
    Point,
    Provenance,
    ReportContents,
    Series,
    TaskScore,
    Training,
)
from sweetrl.report.page import render
from sweetrl.report.runs import Run

__all__ = [
    "Comparison",
    "Example",
    "Figure",
    "Measure",
    "Method",
    "Pictures",
    "Point",
    "Provenance",
    "ReportContents",
    "Run",
    "Series",
    "TaskScore",
    "Training",
    "compose",
    "render",
]
