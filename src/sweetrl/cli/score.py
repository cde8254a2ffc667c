"""`sweetrl score`: judge answers and dialogues."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.fairness import fairness_of, fairness_table
from sweetrl.cli.figures import percent_with_interval
from sweetrl.cli.studio import SCREENSHOTS, FrontendBench, SimilarityOption
from sweetrl.cli.workers import (
    BackendSandboxes,
    IsolationOption,
    ModeOption,
    WorkersOption,
    backend_sandboxes,
)

if TYPE_CHECKING:
    from sweetrl.evaluation.fairness import FairnessReport
    from sweetrl.evaluation.scores import Summary
    from sweetrl.records import RecordLog
    from sweetrl.types import Episode, Kind, Task, Verdict

Bench = BackendSandboxes | FrontendBench
"""What it takes to score the tasks of one kind."""


TasksOption = Annotated[
    str, typer.Option("--tasks", help="A tasks.jsonl, a ColBench file, or mini-frontend:SPLIT:N.")
]
AnswersOption = Annotated[
    Path | None, typer.Option("--answers", help='Lines of {"task_id": ..., "answer": ...}.')
]
EpisodesOption = Annotated[
    Path | None, typer.Option("--episodes", help="Dialogues: our episodes.jsonl or a published file.")
]
OutputOption = Annotated[
    Path, typer.Option("-o", "--output", help="The verdicts.jsonl to write or to go on with.")
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
    typer.Option("--check/--no-check", help="Also look for defective tasks, and give figures without them."),
]


def score(
    *,
    tasks: TasksOption,
    answers: AnswersOption = None,
    episodes: EpisodesOption = None,
    output: OutputOption,
    workers: WorkersOption = 0,
    mode: ModeOption = "module",
    isolation: IsolationOption = None,
    similarity: SimilarityOption = "layout",
    screenshots: ScreenshotsFlag = True,
    against: AgainstOption = None,
    check: CheckFlag = True,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Judge answers or dialogues: code by hidden tests in a sandbox, pages by their likeness to the reference.

    One verdict per answer is appended as it is reached. Stopped in the middle, the same command goes on where it
    was; answers that could not be judged are tried again.
    """
    from sweetrl.records import read_records
    from sweetrl.tasks.sources import load_tasks
    from sweetrl.types import Verdict

    known = load_tasks(tasks)
    source = _Source(known, answers, episodes)
    total, kind = source.validate()
    rivals = None if against is None else list(read_records(against, Verdict))
    silent = quiet or json
    if kind == "frontend":
        folder = output.parent / SCREENSHOTS if screenshots else None
        opened: AbstractContextManager[Bench] = nullcontext(FrontendBench(similarity, workers, folder))
    else:
        opened = backend_sandboxes(workers, mode, isolation)
    with opened as bench:
        speed = _score(source, total, output, _digest(known), bench, silent=silent)
        judged = {verdict.task_id: known[verdict.task_id] for verdict in read_records(output, Verdict)}
        defective = _defective(judged, bench, silent=silent) if check else None
    fairness = None if episodes is None else fairness_of(known, episodes, output)
    _report(output, kind, speed | {"answers": total}, defective, fairness, rivals, json=json, quiet=quiet)


def _report(
    output: Path,
    kind: "Kind",
    speed: dict[str, float],
    defective: list[str] | None,
    fairness: "FairnessReport | None",
    rivals: "list[Verdict] | None",
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Say what the verdicts come to; unscored ones end the command with their exit code."""
    from sweetrl.evaluation.scores import summarise
    from sweetrl.evaluation.wins import win_rate
    from sweetrl.records import read_records
    from sweetrl.types import Verdict

    summary = summarise(read_records(output, Verdict))
    sound = None if defective is None else summarise(read_records(output, Verdict), without=defective)
    wins = None if rivals is None else win_rate(read_records(output, Verdict), rivals)
    if json:
        report = {"output": str(output), **speed, "all": summary, "fairness": fairness, "win_rate": wins}
        console.print_json(report | {"without_defective_tasks": sound, "defective_tasks": defective})
    elif not quiet:
        reward = "likeness" if kind == "frontend" else "tests passed"
        _print_tables(summary, sound, defective or [], speed, reward=reward)
        if fairness is not None:
            console.messages().print(fairness_table(fairness))
        if wins is not None:
            console.note(f"win rate, per cent: {percent_with_interval(wins)}")
    if summary.unscored:
        console.note(
            f"{summary.unscored} unscored: see `failure` in {output}; run the same command to try again"
        )
        raise typer.Exit(1)


class _Source:
    """The episodes to score, read twice: once to see that all of them are sound, once to score them."""

    def __init__(self, tasks: "dict[str, Task]", answers: Path | None, episodes: Path | None) -> None:
        from sweetrl.errors import UsageError

        if (answers is None) == (episodes is None):
            raise UsageError("give either --answers or --episodes")
        self._tasks = tasks
        self._answers = answers
        self._episodes = episodes

    def __iter__(self) -> "Iterator[tuple[Task, Episode]]":
        from sweetrl.cli.answers import read_answers
        from sweetrl.tasks.dialogues import read_episodes

        if self._answers is not None:
            episodes = read_answers(self._answers, self._tasks)
        else:
            assert self._episodes is not None
            episodes = read_episodes(self._episodes, self._tasks.values())
        for episode in episodes:
            yield self._tasks[episode.task_id], episode

    def validate(self) -> "tuple[int, Kind]":
        """Read everything once; how many there are, and of which kind. Nothing is written before this."""
        from sweetrl.errors import DataError, UsageError
        from sweetrl.records import IdSet

        seen, kinds = IdSet(), set()
        for task, episode in self:
            kinds.add(task.kind)
            if not seen.add(episode.id):
                raise DataError(f"{episode.id} is there twice", path=self._answers or self._episodes)
        if len(kinds) > 1:
            raise UsageError("backend and frontend answers are scored one after the other; split the file")
        return len(seen), kinds.pop()


def _open_verdicts(path: Path, config: dict[str, Any]) -> "RecordLog[Verdict]":
    from sweetrl.records import open_log
    from sweetrl.types import Verdict

    return open_log(
        path,
        Verdict,
        command="score",
        config=config,
        identity=lambda verdict: verdict.episode_id,
        settled=lambda verdict: verdict.failure is None,
        mark=lambda verdict: verdict.answer_digest,
    )


def _score(
    source: _Source, total: int, output: Path, tasks: str, bench: Bench, *, silent: bool
) -> dict[str, float]:
    """Score what is not yet in the output; how much that was, and how fast."""
    import asyncio

    config = {**bench.settings, "tasks": tasks}
    with _open_verdicts(output, config) as log:
        if log.repaired and not silent:
            console.note(f"{output}: {log.repaired}")
        before, started = len(log), time.monotonic()
        try:
            with console.progress("scoring", total, done=before, quiet=silent) as advance:
                asyncio.run(_append_verdicts(source, bench, log, advance))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{len(log)} of {total} scored; run the same command to go on") from None
        log.finish()
        seconds = time.monotonic() - started
        fresh = len(log) - before
    return {
        "scored_now": fresh,
        "seconds": round(seconds, 3),
        "answers_per_second": round(fresh / seconds, 1),
    }


async def _append_verdicts(
    source: _Source, bench: Bench, log: "RecordLog[Verdict]", advance: Callable[[int], None]
) -> None:
    from contextlib import aclosing

    from sweetrl.scoring.batches import score_in_order
    from sweetrl.types import digest

    missing = (item for item in source if not log.has(item[1].id, digest(item[1].answer)))
    async with bench.opened() as scorer:
        verdicts = score_in_order(missing, scorer, concurrency=bench.workers)
        async with aclosing(verdicts) as stream:
            async for verdict in stream:
                log.append(verdict.episode_id, verdict)
                advance(1)


def _digest(tasks: "dict[str, Task]") -> str:
    """A hash of what the tasks ask and test, whatever the file they came in."""
    import hashlib

    import msgspec

    whole = hashlib.sha256()
    for task_id in sorted(tasks):
        whole.update(msgspec.json.encode((task_id, tasks[task_id].request, tasks[task_id].secret)))
    return whole.hexdigest()[:32]


def _defective(tasks: "dict[str, Task]", bench: Bench, *, silent: bool) -> list[str]:
    """The ids of the tasks that have a defect."""
    with console.progress("checking tasks", len(tasks), quiet=silent) as advance:
        found = bench.find_defects(tasks.values(), advance)
        return [task_id for task_id, defects in found if defects]


def _print_tables(
    summary: "Summary",
    sound: "Summary | None",
    defective: list[str],
    speed: dict[str, float],
    *,
    reward: str,
) -> None:
    from rich.table import Table

    table = Table(title="per cent, with 95 % intervals", title_justify="left")
    table.add_column("tasks", justify="left")
    for column in ("success", reward, "answers", "unscored"):
        table.add_column(column, justify="right")
    table.add_row(f"all {summary.tasks}", *_cells(summary))
    if sound is not None:
        table.add_row(f"{sound.tasks} without defects", *_cells(sound))
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


def _cells(summary: "Summary") -> tuple[str, ...]:
    shares = map(percent_with_interval, (summary.success, summary.tests_passed))
    return (*shares, str(summary.success.count), str(summary.unscored))
