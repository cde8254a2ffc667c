"""`sweetrl score`: what answers and dialogues earned."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.cli.fairness import fairness_table
from sweetrl.cli.figures import percent_with_interval, reward_label, with_interval
from sweetrl.cli.options import LimitOption, OutputOption, TasksOption
from sweetrl.cli.reporting import TerminalReporter
from sweetrl.domains.domain import Domain
from sweetrl.domains.sources import load_tasks
from sweetrl.evaluation.fairness import FairnessReport
from sweetrl.evaluation.scores import Summary, summarise
from sweetrl.evaluation.wins import win_rate
from sweetrl.experiments.layout import SCREENSHOTS
from sweetrl.experiments.stages.fairness import fairness_of
from sweetrl.experiments.stages.score import Answers, find_defective, score_answers
from sweetrl.records import read_records
from sweetrl.settings import ScorerSettings, ScoringSettings, ShardSettings
from sweetrl.types import Verdict

AnswersOption = Annotated[
    Path | None, typer.Option("--answers", help='Lines of {"task_id": ..., "answer": ...}.')
]
EpisodesOption = Annotated[
    Path | None, typer.Option("--episodes", help="Dialogues: our episodes.jsonl or a published file.")
]
AgainstOption = Annotated[
    Path | None,
    typer.Option("--against", metavar="VERDICTS", help="Also the win rate against this scored run."),
]
ScreenshotsFlag = Annotated[
    bool,
    typer.Option(
        "--screenshots/--no-screenshots",
        help="Keep pictures of both pages in screenshots/ beside the verdicts.",
    ),
]
CheckFlag = Annotated[
    bool,
    typer.Option("--check/--no-check", help="Also look for defective tasks, and give metrics without them."),
]


def score(
    tasks: TasksOption,
    output: OutputOption,
    settings: ScorerSettings,
    scoring: ScoringSettings,
    part: ShardSettings,
    *,
    domain: DomainOption = None,  # noqa: ARG001  its callback makes the domain known
    answers: AnswersOption = None,
    episodes: EpisodesOption = None,
    screenshots: ScreenshotsFlag = True,
    against: AgainstOption = None,
    check: CheckFlag = True,
    limit: LimitOption = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Score answers: code by hidden tests, pages by similarity.

    Code runs in a sandbox; pages are rendered and compared with the reference. One verdict per answer is appended as it
    is reached. Rerun the same command to resume; answers that could not be scored are tried again.

    Example:
        sweetrl score --tasks mini-backend:train:20 --episodes run/episodes.jsonl -o run/verdicts.jsonl
    """
    known = load_tasks(tasks)
    source = Answers(known, answers, episodes, limit, part.shard)
    total, about = source.validate()
    rivals = None if against is None else list(read_records(against, Verdict))
    reporter = TerminalReporter(quiet=quiet or json)
    pictures = output.parent / SCREENSHOTS if screenshots else None
    with about.open_scoring(settings, screenshots=pictures) as backend:
        cost = scoring.turn_cost
        speed = score_answers(source, total, output, backend, turn_cost=cost, reporter=reporter)
        output = source.part.file(output)
        scored = {verdict.task_id: known[verdict.task_id] for verdict in read_records(output, Verdict)}
        defective = find_defective(scored, backend, reporter) if check else None
    # A shard says too little about the collaborator.
    fairness = None if episodes is None or part.shard else fairness_of(known, episodes, output)
    _report(output, about, speed | {"answers": total}, defective, fairness, rivals, json=json, quiet=quiet)


def _report(
    output: Path,
    domain: Domain,
    speed: dict[str, float],
    defective: list[str] | None,
    fairness: FairnessReport | None,
    rivals: list[Verdict] | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Say what the verdicts come to; unscored ones end the command with their exit code."""
    summary = summarise(read_records(output, Verdict))
    sound = None if defective is None else summarise(read_records(output, Verdict), without=defective)
    wins = None if rivals is None else win_rate(read_records(output, Verdict), rivals)
    if json:
        report = {"output": str(output), **speed, "all": summary, "fairness": fairness, "win_rate": wins}
        console.print_json(report | {"without_defective_tasks": sound, "defective_tasks": defective})
    elif not quiet:
        _print_tables(summary, sound, defective or [], speed, reward=reward_label(domain.labels))
        if fairness is not None:
            console.messages().print(fairness_table(fairness))
        if wins is not None:
            console.note(f"win rate, per cent: {percent_with_interval(wins)}")
    if summary.unscored:
        console.note(
            f"{summary.unscored} unscored: see `failure` in {output}; rerun the same command to try again"
        )
        raise typer.Exit(1)


def _print_tables(
    summary: Summary,
    sound: Summary | None,
    defective: list[str],
    speed: dict[str, float],
    *,
    reward: str,
) -> None:
    table = Table(title="means with 95 % intervals", title_justify="left")
    table.add_column("tasks", justify="left")
    for column in ("success, %", "failures = 0, %", reward, "answers", "unscored"):
        table.add_column(column, justify="right")
    table.add_row(f"all {summary.tasks}", *_cells(summary, reward))
    if sound is not None:
        table.add_row(f"{sound.tasks} without defects", *_cells(sound, reward))
    console.messages().print(table)
    ended = ", ".join(
        f"{count} {outcome.replace('_', ' ')}" for outcome, count in summary.outcomes.items() if count
    )
    console.note(f"checks: {ended or 'none'}")
    console.note(
        f"{speed['scored_now']} answers scored in {speed['seconds']} s ({speed['answers_per_second']}/s)"
    )
    if defective:
        shown = ", ".join(defective[:5]) + (", ..." if len(defective) > 5 else "")
        console.note(f"defective: {shown}; `sweetrl tasks check` says why")


def _cells(summary: Summary, reward: str) -> tuple[str, ...]:
    shares = map(percent_with_interval, (summary.success, summary.success_failures_as_zero))
    earned = with_interval(summary.tests_passed, reward)
    return (*shares, earned, str(summary.success.count), str(summary.unscored))
