"""Two dialogues on one task side by side."""

from sweetrl.report.charts import colour_class
from sweetrl.report.credit import CreditScale, credit_key
from sweetrl.report.dialogues import outcome
from sweetrl.report.markup import Markup, element, excerpt
from sweetrl.viewer.dialogues import Dialogue
from sweetrl.viewer.pages.dialogue import chat, hidden_part, outcome_parts, request
from sweetrl.viewer.pages.frame import address, hidden_switch, page
from sweetrl.viewer.secrets import Hidden


def compare_page(
    left: Dialogue, right: Dialogue, hidden: Hidden | None, here: str, *, show_hidden: bool
) -> str:
    """Both dialogues with their credit, answers and scores."""
    credit = [*left.credit, *right.credit]
    scale = CreditScale.of(credit)
    sides = [
        _side(each, hidden, number, scale, show_hidden=show_hidden)
        for number, each in enumerate((left, right))
    ]
    return page(
        f"{left.run} and {right.run}",
        element("nav", element("a", "‹ all dialogues", href="/", id="to-list"), class_="path"),
        element(
            "div",
            element("h1", element("code", excerpt(left.episode.task_id, 120))),
            hidden_switch(here, shown=show_hidden),
            class_="headline",
        ),
        request(left),
        credit_key(credit, whose="both dialogues", shaded=True),
        element("div", *sides, class_="sides"),
        hidden_part(hidden) if show_hidden else None,
    )


def _side(
    dialogue: Dialogue, hidden: Hidden | None, number: int, scale: CreditScale, *, show_hidden: bool
) -> Markup:
    swatch = element("span", class_=f"swatch {colour_class(number)}", aria_hidden="true")
    link = element(
        "a",
        excerpt(dialogue.title, 80),
        href=address("/dialogue", of=dialogue.run, id=dialogue.episode.id),
    )
    return element(
        "article",
        element("h2", swatch, excerpt(dialogue.run, 60)),
        element("p", outcome(dialogue.verdict), link, class_="summary-line"),
        chat(dialogue, prefix=f"side-{number}", scale=scale),
        *outcome_parts(dialogue, hidden, show_hidden=show_hidden),
        class_="side",
    )
