"""`render`: the whole page. Style and script are files of ours, put in as they are and allowed by their hashes.

The page's own policy lets the browser run that one script, apply that one style and show pictures that are
inside the page; it may request nothing, whatever the contents say.
"""

import base64
import hashlib
from importlib import resources

from sweetrl.report import tables
from sweetrl.report.contents import Provenance, ReportContents
from sweetrl.report.dialogues import Setting, dialogues
from sweetrl.report.markup import Markup, cut, element, excerpt, join
from sweetrl.report.messages import cut_note
from sweetrl.report.opening import opening
from sweetrl.report.results import differences, figures, results, trainings
from sweetrl.report.tasks import tasks

DETAILS_CHARACTERS = 8000


def render(contents: ReportContents) -> str:
    """One self-contained HTML page."""
    style, script = _file("style.css"), _file("script.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", excerpt(contents.title, 200)),
        element("style", style),
    )
    body = element("body", *_body(contents), element("script", script))
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def _file(name: str) -> Markup:
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _body(contents: ReportContents) -> list[Markup]:
    sections = [(name, title, lead, part) for name, title, lead, part in _sections(contents) if part]
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _, _ in sections]
    return [
        element("a", "Skip to the results", href=f"#{sections[0][0] if sections else 'top'}", class_="skip"),
        element(
            "header",
            element(
                "button", "◐", type="button", id="theme", aria_label="light or dark", title="light or dark"
            ),
            *_title(contents),
            element("p", excerpt(contents.task, 400), class_="task") if contents.task else None,
            element("div", *_paragraphs(contents.summary), class_="summary"),
            element("nav", element("ul", *links), aria_label="sections") if len(links) > 1 else None,
        ),
        element("main", *(_section(*section) for section in sections)),
        element("footer", element("p", "Written by sweetrl. This page needs no network.")),
        element(
            "dialog", element("button", "×", type="button", class_="close", aria_label="close"), id="enlarged"
        ),
        element("div", id="tip", role="tooltip", hidden=True),
    ]


def _title(contents: ReportContents) -> list[Markup]:
    """The result in one sentence with the title above it, or the title alone."""
    if not contents.headline:
        return [element("h1", excerpt(contents.title, 200), id="top")]
    return [
        element("p", excerpt(contents.title, 200), class_="kicker"),
        # A line does not break before its per cent sign.
        element("h1", excerpt(contents.headline, 400).replace(" %", "\N{NO-BREAK SPACE}%"), id="top"),
    ]


def _paragraphs(content: str) -> list[Markup]:
    shown, left_out = cut(content)
    paragraphs = [element("p", part.strip()) for part in shown.split("\n\n") if part.strip()]
    return [*paragraphs, cut_note(left_out)] if left_out else paragraphs


def _sections(contents: ReportContents) -> list[tuple[str, str, str, Markup]]:
    """Name, title, first sentence, content; without content a section is left out."""
    several = len(contents.methods) > 1
    setting = Setting.of(contents)
    return [
        ("opening", "The same task, twice", "", opening(contents, setting)),
        ("results", "Results", "", results(contents)),
        (
            "differences",
            "Paired differences",
            "On the tasks that both runs share. An interval that does not touch zero is in colour.",
            differences(contents),
        ),
        ("figures", "Figures", "", figures(contents) if contents.figures else Markup()),
        (
            "training",
            "Training",
            "By step. Of long runs: means over stretches, and the range of the middle 80 % of their values.",
            trainings(contents),
        ),
        ("tasks", "Where runs win and lose" if several else "Task by task", "", tasks(contents, setting)),
        *tables.sections(contents.tables),
        ("dialogues", "Example dialogues", "", dialogues(contents, setting)),
        ("provenance", "How this was made", "", join(map(_entry, contents.provenance))),
    ]


def _section(name: str, title: str, lead: str, content: Markup) -> Markup:
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        element("p", lead, class_="lead") if lead else None,
        content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _entry(entry: Provenance) -> Markup:
    facts = [
        join([element("dt", name), element("dd", excerpt(value, 300))])
        for name, value in entry.facts
        if value
    ]
    shown, left_out = cut(entry.details, DETAILS_CHARACTERS)
    whole = [element("pre", element("code", shown), tabindex=0), cut_note(left_out) if left_out else None]
    return element(
        "article",
        element("h3", element("code", excerpt(entry.title, 200))),
        element("dl", *facts) if facts else None,
        element("details", element("summary", "Details"), *whole, class_="folded") if shown else None,
        class_="provenance",
    )
