"""The page of metrics: results with intervals, paired differences, training curves."""

from sweetrl.report import ReportContents
from sweetrl.report.markup import Markup, element
from sweetrl.report.results import differences, results, trainings
from sweetrl.viewer.pages.frame import page


def metrics_page(contents: ReportContents) -> str:
    """As the report has it, for all runs as they are now."""
    parts = [
        ("Results", results(contents)),
        ("Paired differences", differences(contents)),
        ("Training", trainings(contents)),
    ]
    sections = [_section(title, content) for title, content in parts if content]
    empty = element("p", "No results yet.", class_="empty")
    return page("Metrics", element("div", *(sections or [empty]), id="live"), at="Metrics", live=True)


def _section(title: str, content: Markup) -> Markup:
    return element("section", element("h2", title), content)
