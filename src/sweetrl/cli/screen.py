"""The progress that `sweetrl run` and `sweetrl quickstart` print: lines, or bars on a terminal."""

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.table import Column

from sweetrl import interrupts
from sweetrl.cli import console, live, main
from sweetrl.errors import UsageError
from sweetrl.experiments import warm_workers
from sweetrl.experiments.checks import Problem, check
from sweetrl.experiments.events import (
    EndpointLimited,
    Event,
    ServerStarting,
    StageFailed,
    StageFinished,
    StageSkipped,
    StagesProgressed,
    StageStarted,
)
from sweetrl.experiments.journal import Journal
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.on_ray import RayExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.runner import RunFailedError, Runner, ending
from sweetrl.experiments.time_left import Clock, kind_of
from sweetrl.settings import ExecutionSettings, Recipe, ServerSettings

LAST_WORDS = 20
"""Lines of a stage that failed which are shown."""


@dataclass(frozen=True)
class View:
    """How the stages of a plan are shown."""

    weights: Sequence[float]
    """About how many seconds each takes."""
    words: Callable[[Stage], str] = lambda stage: stage.name


@dataclass(frozen=True)
class Asked:
    """How stages are run."""

    jobs: int
    allow_failures: bool = False
    quiet: bool = False
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)


def refuse_problems(
    folder: Path,
    planned: Sequence[Stage],
    recipes: Sequence[Recipe],
    servers: tuple[ServerSettings, ...] = (),
    *,
    quiet: bool = False,
) -> None:
    """Stop before the first stage if one cannot work; endpoints may still come up, and are asked again for a while."""
    if folder.is_dir() and all(map(Journal(folder).has, planned)):
        return
    problems = check(planned, recipes, servers, endpoints=False)
    if fatal := [problem.text for problem in problems if problem.fatal]:
        raise UsageError("; ".join(fatal))
    if not quiet:
        tell_problems(problems)


def tell_problems(problems: Sequence[Problem]) -> None:
    """A line for each problem; fatal ones end the command."""
    for problem in problems:
        console.note(f"{'error' if problem.fatal else 'warning'}: {problem.text}")
    if any(problem.fatal for problem in problems):
        raise typer.Exit(2)


def run_stages(
    folder: Path,
    planned: list[Stage],
    asked: Asked,
    *,
    servers: tuple[ServerSettings, ...] = (),
    view: View | None = None,
) -> tuple[list[dict[str, Any]], bool]:
    """Run the stages that are not done; the journal's entries, and whether there was anything to do.

    Without a view the stages write to standard error; with one they are watched from outside.
    """
    runner = Runner(
        folder,
        planned,
        servers,
        executor=_executor(folder, asked, watched=view is not None),
        jobs=asked.jobs,
        allow_failures=asked.allow_failures,
    )
    fresh = runner.has_work
    printer = Lines(len(planned), quiet=asked.quiet)
    if view is not None:
        clock = Clock(view.weights, runner.schedule, list(map(kind_of, planned)))
        printer = Screen(clock, view.words, quiet=asked.quiet)
    try:
        with printer.shown():
            return runner.run(printer), fresh
    except RunFailedError as failed:
        raise typer.Exit(failed.exit_code) from None  # the printer has said why


def _executor(folder: Path, asked: Asked, *, watched: bool) -> LocalExecutor:
    shards = {str(command): count for command, count in asked.execution.shards.items()}
    if asked.execution.executor == "ray":
        return RayExecutor(folder, command=main.run, jobs=asked.jobs, shards=shards)
    warm = main.run if watched and warm_workers.is_possible() else None
    return LocalExecutor(folder, jobs=asked.jobs, quiet=asked.quiet, logs=watched, warm=warm, shards=shards)


class Lines:
    """Prints a line when a stage starts; the stage itself says the rest."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._quiet = quiet

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """The length of the run."""
        yield

    def __call__(self, event: Event) -> None:
        """Print an event."""
        match event:
            case StageSkipped(number, stage):
                self._note(f"[{number + 1}/{self._total}] {stage.name}: done before")
            case StageStarted(number, stage):
                self._note(f"[{number + 1}/{self._total}] {stage.name}: {shlex.join(stage.arguments)}")
            case StageFinished(some_failed=True):
                self._note(f"{event.stage.name}: some items failed; going on without them")
            case StageFailed():
                self._tell_failure(event)
            case ServerStarting(command):
                console.note(f"starting: {command}")
            case EndpointLimited(model, what, consequence):
                self._note(f"warning: {model}: {what} is ignored or refused: {consequence}")

    def _tell_failure(self, event: StageFailed) -> None:
        for line in event.said.splitlines()[-LAST_WORDS:]:
            console.note(line)
        if event.log is not None:
            self._note(f"more in {event.log}")
        self._note(f"the stage {event.stage.name} {ending(event.code)}; {_advice(event.code)}")
        if event.beside:
            self._note(f"waiting for what runs beside it: {', '.join(event.beside)}")

    def _note(self, text: str) -> None:
        if not self._quiet:
            console.note(text)


class Screen(Lines):
    """Prints a line when a stage is done and shows how far those are that run, and the time that is left."""

    def __init__(self, clock: Clock, words: Callable[[Stage], str], *, quiet: bool) -> None:
        super().__init__(len(clock.weights), quiet=quiet)
        self._clock = clock
        self._words = words
        self._stages: dict[int, Stage] = {}
        """The stages that have started."""
        self._troubles: dict[int, str] = {}
        """What each of them waits for."""
        self._bars: _Bars | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """The length of the run: bars, if there is somebody who sees them."""
        if self._quiet or not sys.stderr.isatty():
            yield
            return
        # One line for each stage, whatever the width: the words give way, and never wrap.
        width = max(8, min(24, console.messages().width // 6))
        words = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        columns = [
            BarColumn(bar_width=width, table_column=Column(min_width=width)),
            TaskProgressColumn(table_column=Column(min_width=4)),
            TextColumn("{task.description}", markup=False, table_column=words),
        ]
        with Progress(*columns, console=console.messages(), transient=True, expand=True) as bars:
            self._bars = _Bars(bars)
            yield
        self._bars = None

    def __call__(self, event: Event) -> None:
        """Print an event, or show it."""
        match event:
            case StageSkipped():
                pass  # what is shown is what this run does
            case StageStarted(number, stage):
                self._stages[number] = stage
                self._clock.start(number)
            case StageFinished(number):
                super().__call__(event)
                self._clock.finish(number)
                self._tell_end(event)
            case StagesProgressed(shares, troubles):
                self._tell_troubles(troubles)
                if self._bars is not None:
                    self._update(self._bars, shares)
            case _:
                super().__call__(event)

    def _tell_troubles(self, troubles: Mapping[int, str]) -> None:
        """Say at once what a stage waits for; its bar says it as long as it does."""
        for number in troubles.keys() - self._troubles.keys():
            self._note(f"{self._stages[number].name}: {troubles[number]}")
        self._troubles = dict(troubles)

    def _tell_end(self, event: StageFinished) -> None:
        left = "" if self._bars is not None else f", about {live.duration(self._clock.left({}))} left"
        words = f"{self._words(event.stage)} ({live.duration(event.seconds)}{left})"
        self._note(f"[{len(self._clock.schedule.done)}/{self._total}] {words}")

    def _update(self, bars: "_Bars", shares: Mapping[int, float]) -> None:
        clock = self._clock
        done = f"{len(clock.schedule.done)} of {self._total} stages done"
        bars.show_all(clock.share(shares), f"{live.duration(clock.left(shares))} left · {done}")
        lines = {
            number: f"{self._pace(number, shares)} · {self._words(self._stages[number])}" for number in shares
        }
        bars.show_stages(shares, lines)

    def _pace(self, number: int, shares: Mapping[int, float]) -> str:
        """What a stage waits for, or how much time it still needs."""
        return self._troubles.get(number) or f"{live.duration(self._clock.left_of(number, shares))} left"


class _Bars:
    """A bar for all, and below it one for each stage that runs."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._whole = bars.add_task("", total=1.0)
        self._stages: dict[int, TaskID] = {}

    def show_all(self, share: float, words: str) -> None:
        """How far all is."""
        self._bars.update(self._whole, completed=share, description=words)

    def show_stages(self, parts: Mapping[int, float], lines: Mapping[int, str]) -> None:
        """How far each stage is that runs."""
        for number in [number for number in self._stages if number not in parts]:
            self._bars.remove_task(self._stages.pop(number))
        for number, part in parts.items():
            if number not in self._stages:
                self._stages[number] = self._bars.add_task("", total=1.0)
            self._bars.update(self._stages[number], completed=part, description=lines[number])


def _advice(code: int) -> str:
    if code < 0:
        return interrupts.RESUME
    if code == 1:
        return "rerun the same command to resume; --allow-failures continues without items that failed"
    return "fix this and run the same command again"
