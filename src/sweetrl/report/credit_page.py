"""The page of `sweetrl credit`: which turn broke which dialogue, what successes do, and the dialogues turn by turn."""

from collections.abc import Iterator
from pathlib import Path

from sweetrl.domains.registry import reference_text
from sweetrl.errors import UsageError
from sweetrl.evaluation.turning_points import CreditReport, WorstTurn
from sweetrl.records import unreadable
from sweetrl.report.contents import Example, Provenance, ReportContents, Table
from sweetrl.report.page import render
from sweetrl.report.scales import advantage_text

TITLE = "Which turn broke the conversation"
DIALOGUES = 60
"""Dialogues that are shown, those that failed worst first."""


def credit_page(report: CreditReport, *, title: str = TITLE) -> str:
    """One self-contained HTML page."""
    examples = list(_examples(report))
    return render(
        ReportContents(
            title=title,
            summary="\n\n".join(report.summary),
            tables=(_worst(report), _habits(report)),
            examples=tuple(examples[:DIALOGUES]),
            left_out=max(0, len(examples) - DIALOGUES),
            names_tasks=False,  # the dialogues have the names that people know
            provenance=(Provenance(title="credit", facts=(("critic", report.critic),)),),
        )
    )


def refuse_foreign(page: Path) -> None:
    """Stop before any work if the page would replace a file of somebody else."""
    try:
        if page.exists() and b"Written by sweetrl" not in page.read_bytes():
            raise UsageError(f"{page}: exists and is not a page of sweetrl; choose another output with -o")
    except OSError as error:
        raise unreadable(page, error) from error


def believed(worst: WorstTurn, turns: int) -> str:
    """Why a turn is named: its place among all turns."""
    return f"rank {worst.rank} of {turns}, lower than {worst.lower_than:.0%}"


def _worst(report: CreditReport) -> Table:
    turns = sum(each.advantage is not None for each in report.credit)
    return Table(
        title="The turn that hurt most",
        lead="Of each failed dialogue. Rank and share are among all turns; a turn of low rank is unusual.",
        headings=("dialogue", "turn", "advantage", "among all turns", "what the assistant said"),
        rows=tuple(
            (
                each.dialogue,
                f"{each.number} of {each.turns}",
                advantage_text(each.advantage),
                believed(each, turns),
                each.said,
            )
            for each in report.worst_turns
        ),
    )


def _habits(report: CreditReport) -> Table:
    return Table(
        title="What successes do that failures do not",
        lead="Phrases of the assistant that go with the outcome, corrected for how many were looked at. "
        "A correlation is not a cause.",
        headings=("phrase", "in successes", "in failures", "p, corrected"),
        rows=tuple(
            (f"“{each.phrase}”", f"{each.successes:.0%}", f"{each.failures:.0%}", f"{each.p:.1g}")
            for each in report.habits
        ),
    )


def _examples(report: CreditReport) -> Iterator[Example]:
    """The dialogues with a worst turn in that order, then the others."""
    place = {each.episode_id: at for at, each in enumerate(report.worst_turns)}
    ordered = sorted(report.dialogues, key=lambda each: place.get(each.episode.id, len(place)))
    for dialogue in ordered:
        yield Example(
            method=dialogue.label,
            episode=dialogue.episode,
            verdict=dialogue.verdict,
            credit=tuple(report.by_dialogue.get(dialogue.episode.id, ())),
            reference=reference_text(dialogue.task) or None,
        )
