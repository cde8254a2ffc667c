"""The section that a report opens with: a task that one method fails and another solves, side by side."""

from dataclasses import replace

import msgspec

from sweetrl.report.contents import Duel, Example, ReportContents
from sweetrl.report.credit import credit_key
from sweetrl.report.dialogues import Setting, dialogue, gallery, task_request
from sweetrl.report.markup import Markup, element, excerpt, join


def opening(contents: ReportContents, setting: Setting) -> Markup:
    """Both dialogues, unfolded, with the credit of every turn."""
    duel = contents.duel
    if duel is None:
        return Markup()
    both = tuple(map(_without_words, (duel.failure, duel.success)))
    return join(
        [
            element("p", _lead(duel, setting), class_="lead"),
            task_request(both),
            credit_key([*both[0].credit, *both[1].credit]),
            gallery(both, setting),
            element("div", *(dialogue(each, setting, opened=True) for each in both), class_="duel"),
        ]
    )


def _lead(duel: Duel, setting: Setting) -> str:
    worse, better = (excerpt(setting.title(each), 60) for each in (duel.failure, duel.success))
    verdict = duel.success.verdict
    solved = verdict is not None and verdict.success
    what = f"{worse} fails and {better} solves" if solved else f"{better} does better on than {worse}"
    return (
        f"One of {duel.tasks:,} tasks that {what}, drawn by the seed; "
        f"on {duel.reversed:,} it is the other way round."
    )


def _without_words(example: Example) -> Example:
    """Credit turn by turn only: word by word, it is among the examples."""
    turns = (msgspec.structs.replace(each, tokens=()) for each in example.credit)
    return replace(example, credit=tuple(turns))
