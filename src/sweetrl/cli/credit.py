"""`sweetrl credit`: which turns of dialogues earned or lost the outcome."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.reporting import TerminalReporter, report_tally
from sweetrl.domains.logged import LoggedDialogue
from sweetrl.errors import UsageError
from sweetrl.evaluation.turning_points import CreditReport
from sweetrl.experiments.stages.credit import credit_file
from sweetrl.records import shard_path, write_atomically
from sweetrl.report.credit_page import believed, credit_page, refuse_foreign
from sweetrl.settings import CreditSettings
from sweetrl.types import TokenCredit, TurnCredit

LogArgument = Annotated[
    Path | None,
    typer.Argument(metavar="DIALOGUES", help="Chats, published dialogues or our episodes, as JSON."),
]
CreditOutput = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="The file to write.", show_default="NAME.credit.jsonl"
    ),
]
LearnFlag = Annotated[
    bool, typer.Option("--learn", help="Learn a critic from the outcomes of the dialogues themselves.")
]
EpisodeTasks = Annotated[
    str | None,
    typer.Option("--tasks", metavar="TASKS", help="The tasks of our episodes; others carry their own."),
]
EpisodeVerdicts = Annotated[
    Path | None, typer.Option("--verdicts", metavar="VERDICTS", help="The outcomes of our episodes.")
]
TokensFlag = Annotated[
    bool, typer.Option("--tokens", help="Show which words earned it, where the critic can tell.")
]
GradingPrompt = Annotated[
    Path | None,
    typer.Option("--judge-prompt", metavar="FILE", help="Prompt for a judge that grades {output}."),
]
SAID_CHARACTERS = 100
"""How much of a turn a table shows."""
WORST = 12
"""Rows of the table of worst turns; the page has them all."""


def credit(
    log: LogArgument = None,
    output: CreditOutput = None,
    settings: CreditSettings = CreditSettings(),  # noqa: B008  frozen
    *,
    learn: LearnFlag = False,
    dialogues: Annotated[Path | None, typer.Option("--dialogues", hidden=True)] = None,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    tasks: EpisodeTasks = None,
    verdicts: EpisodeVerdicts = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many dialogues to show.")] = 3,
    tokens: TokensFlag = False,
    judge_prompt: GradingPrompt = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Tell which turns of dialogues earned or lost the outcome.

    Takes chat logs as they are: OpenAI messages, ShareGPT conversations, published ColBench dialogues, our episodes.
    Without --critic the outcomes of the dialogues teach one (--learn); a dialogue is never credited by a fit that
    saw its outcome. Writes an advantage for each turn to FILE, and a page beside it. An advantage above zero
    helped, one below hurt. Rerun the same command to do what is missing or failed.

    Example:
        sweetrl credit examples/chats.jsonl --learn -o credit.jsonl
    """
    path = _only(log, dialogues)
    target = output or Path(f"{path.stem}.credit.jsonl")
    page = shard_path(target, settings.shard).with_suffix(".html")
    refuse_foreign(page)
    if learn and settings.critic is not None:
        raise UsageError(
            f"--learn makes a critic of its own; leave out --learn or --critic {settings.critic}"
        )
    tally, report = credit_file(
        settings,
        path,
        target,
        TerminalReporter(quiet=quiet),
        source=tasks,
        verdicts=verdicts,
        judge_prompt=judge_prompt,
    )
    write_atomically(page, credit_page(report).encode("utf-8", "replace"))
    if json:
        tally.extra |= report.as_json() | {"page": str(page)}
    else:
        _print(report, show, tokens=tokens)
        console.results().print(Text(f"Turn by turn: {page}"), soft_wrap=True)
    report_tally(tally, json=json, quiet=quiet)


def _only(log: Path | None, dialogues: Path | None) -> Path:
    """The one file that was named, by its place or by the option that used to name it."""
    if (log is None) == (dialogues is None):
        raise UsageError("which dialogues? name one file: sweetrl credit chats.jsonl")
    return log or dialogues or Path()


# ---------------------------------------------------------------- showing


def _print(report: CreditReport, count: int, *, tokens: bool) -> None:
    screen = console.results()
    for dialogue in _first(report, count):
        if (turns := report.by_dialogue.get(dialogue.episode.id)) is not None:
            screen.print(_dialogue_table(dialogue, turns, tokens=tokens))
    screen.print(_means(report.credit))
    if report.worst_turns:
        screen.print(_worst_table(report))
    if report.habits:
        screen.print(_habit_table(report))
    for line in report.summary:
        style = "bold yellow" if line.startswith("WARNING") else ""
        screen.print(Text(console.printable(line), style=style))


def _first(report: CreditReport, count: int) -> Sequence[LoggedDialogue]:
    """The dialogues to show: those that failed worst, if outcomes are known, or else the first."""
    if report.auc is None:
        return report.dialogues[:count]
    by_id = {each.episode.id: each for each in report.dialogues}
    return [by_id[each.episode_id] for each in report.worst_turns[:count]]


def _dialogue_table(each: LoggedDialogue, turns: Sequence[TurnCredit], *, tokens: bool) -> Table:
    table = Table("turn", "advantage", "", "what the agent said", title=Text(console.printable(each.label)))
    scale = max((abs(one.advantage) for one in turns if one.advantage is not None), default=0.0)
    for one in turns:
        excerpt = _excerpt(each.episode.turns[one.turn].said)
        words = _coloured(one.tokens) if tokens and one.tokens is not None else excerpt
        number = "failed" if one.advantage is None else f"{one.advantage:+.4f}"
        table.add_row(str(one.turn + 1), number, _bar(one.advantage, scale), words)
    return table


def _excerpt(said: str) -> Text:
    return Text(console.printable(said)[:SAID_CHARACTERS])


def _bar(advantage: float | None, scale: float) -> Text:
    """Its size as a bar, green above zero and red below."""
    if advantage is None or not scale:
        return Text("")
    return Text("█" * max(1, round(8 * abs(advantage) / scale)), style="green" if advantage > 0 else "red")


def _coloured(tokens: Sequence[TokenCredit]) -> Text:
    """The turn with the tokens that matter most in colour."""
    strongest = max((abs(token.advantage) for token in tokens), default=0.0)
    text = Text()
    for token in tokens:
        matters = strongest and abs(token.advantage) >= strongest / 3
        style = "" if not matters else "bold green" if token.advantage > 0 else "bold red"
        text.append(console.printable(token.text), style=style)
    return text


def _means(credit: Iterable[TurnCredit]) -> Table:
    """The mean advantage of each turn number."""
    sums: dict[int, list[float]] = {}
    for each in credit:
        if each.advantage is not None:
            sums.setdefault(each.turn, []).append(each.advantage)
    table = Table("turn", "mean advantage", "dialogues", title="All dialogues")
    for turn, advantages in sorted(sums.items()):
        table.add_row(str(turn + 1), f"{sum(advantages) / len(advantages):+.4f}", str(len(advantages)))
    return table


def _worst_table(report: CreditReport) -> Table:
    more = len(report.worst_turns) - WORST
    table = Table("dialogue", "turn", "advantage", "among all turns", "what the agent said")
    table.title, table.caption = "The turn that hurt most", f"{more} more on the page" if more > 0 else None
    for each in report.worst_turns[:WORST]:
        place, why = f"{each.number} of {each.turns}", believed(each, len(report.credit))
        name, said = Text(console.printable(each.dialogue)), _excerpt(each.said)
        table.add_row(name, place, f"{each.advantage:+.4f}", why, said)
    return table


def _habit_table(report: CreditReport) -> Table:
    table = Table(
        "phrase", "in successes", "in failures", "p", title="What successes do that failures do not"
    )
    for each in report.habits:
        table.add_row(Text(each.phrase), f"{each.successes:.0%}", f"{each.failures:.0%}", f"{each.p:.1g}")
    return table
