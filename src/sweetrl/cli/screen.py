"""Stages that a person watches: one line for each that is done, a bar for each that runs, and the time that is left.

Stages differ a thousandfold, so the time left is not told from their number: each has a weight, in seconds of an
ordinary laptop, and the stages that are done say how fast this machine is. What stages say goes to files.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweetrl.cli import children, console, live, nursery, progress
from sweetrl.cli.estimates import cost
from sweetrl.cli.runner import Runner
from sweetrl.cli.schedule import Schedule

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sweetrl.cli.children import Child
    from sweetrl.cli.road import Stage
    from sweetrl.settings import Recipe, ServerSettings, Study

LOGS = "logs"
"""The folder of what stages say."""
LAST_WORDS = 20
"""Lines of a stage that failed which are shown."""
START = 4.0
"""Seconds until Python and PyTorch are there."""
DRAWN, READ, TRAINED = 4e-4, 1.3e-4, 6e-5
"""Seconds for a token that the tiny model writes, reads or learns from."""
WATCHED = 20.0
"""Seconds of work after which this machine's own speed counts for more than an ordinary one."""

WORDS = {
    "rollout": "the untrained agent holds dialogues to learn from",
    "score": "their answers meet hidden tests",
    "pairs": "better dialogues are paired with worse ones on the same task",
    "candidates": "the agent says what else it might have said at each turn",
    "rank": "the critic ranks what might have been said",
    "turn-pairs": "better turns are paired with worse ones",
    "train rft": "{label}: learns from the dialogues that succeeded",
    "train dpo": "{label}: learns from pairs of dialogues",
    "train critic": "a critic who sees the solution learns which turns earned the reward",
    "train policy": "{label}: learns from pairs of turns",
    "evaluate": "{label}: works on tasks that it has never seen",
    "values": "what might have been said is played to the end, to know its true value",
    "select": "a part of the dialogues is taken",
}


def weight(recipe: "Recipe", stage: "Stage") -> float:
    """About how many seconds a stage takes."""
    command, estimated = stage.arguments[0], cost(recipe, stage)
    tokens, turns = estimated.tokens or 0, (estimated.requests or 0) / 2
    if command == "train":
        return START + TRAINED * tokens
    if command == "rank":
        return START + READ * tokens
    if command == "candidates":
        return START + DRAWN * turns * recipe.candidates.n * recipe.estimate.output_tokens
    if command in ("rollout", "evaluate", "values"):
        return START + DRAWN * turns * recipe.estimate.output_tokens
    return START / 2


def in_words(study: "Study", stage: "Stage") -> str:
    """What a stage does."""
    command = " ".join(stage.arguments[: 2 if stage.arguments[0] == "train" else 1])
    method = study.methods.get(stage.output.name)
    label = (method.label if method is not None else "") or stage.output.name
    seed = f"{stage.name.partition('/')[0]}, " if study.seeds > 1 else ""
    return seed + WORDS[command].format(label=label)


@dataclass
class Clock:
    """How much is done of all that there is to do, and how long the rest takes."""

    weights: Sequence[float]
    schedule: Schedule
    now: Callable[[], float] = time.monotonic
    _worked: float = 0.0
    """Weight that this run has done, and in how many seconds of its stages."""
    _seconds: float = 0.0
    _started: dict[int, float] = field(default_factory=dict)

    def start(self, number: int) -> None:
        """A stage begins."""
        self._started[number] = self.now()

    def finish(self, number: int) -> None:
        """It ends."""
        self._seconds += self.now() - self._started.pop(number)
        self._worked += self.weights[number]

    def share(self, parts: Mapping[int, float]) -> float:
        """Of all that is done, with these parts of the stages that run."""
        done = sum(self.weights[number] for number in self.schedule.done)
        return (done + self._weight(parts)) / sum(self.weights)

    def left(self, parts: Mapping[int, float]) -> float:
        """Seconds until all is done, at the speed so far and with as many stages at a time as there can be."""
        return self.schedule.length({number: self.left_of(number, parts) for number in self._undone()})

    def left_of(self, number: int, parts: Mapping[int, float]) -> float:
        """Seconds that one stage still takes."""
        return self._speed(parts) * self.weights[number] * (1 - parts.get(number, 0.0))

    def _undone(self) -> tuple[int, ...]:
        return (*self.schedule.running, *self.schedule.waiting)

    def _speed(self, parts: Mapping[int, float]) -> float:
        now = self.now()
        seconds = self._seconds + sum(now - started for started in self._started.values())
        # An ordinary speed counts as if it had been watched for a while: the first seconds say little.
        return (seconds + WATCHED) / (self._worked + self._weight(parts) + WATCHED)

    def _weight(self, parts: Mapping[int, float]) -> float:
        return sum(part * self.weights[number] for number, part in parts.items())


@dataclass(frozen=True)
class View:
    """What is told of the stages of a plan."""

    weights: Sequence[float]
    """About how many seconds each takes."""
    words: "Callable[[Stage], str]" = lambda stage: stage.name


class ScreenedRunner(Runner):
    """Runs stages and shows how far they are."""

    def __init__(
        self,
        folder: Path,
        planned: "list[Stage]",
        servers: "tuple[ServerSettings, ...]" = (),
        *,
        view: View,
        forked: bool = False,
        jobs: int = 1,
        allow_failures: bool = False,
        quiet: bool = False,
    ) -> None:
        """With `forked`, stages are forks of a process that has loaded the training stack."""
        super().__init__(folder, planned, servers, jobs=jobs, allow_failures=allow_failures, quiet=quiet)
        self._forked = forked
        self._words_for = view.words
        self._clock = Clock(view.weights, self._schedule)
        self._screen: _Screen | None = None
        self._told = Path()
        """The folder in which stages tell how far they are."""
        self._said: dict[int, int] = {}
        """How long the log of a stage was when it began."""
        self._updated = 0.0

    def run(self) -> list[dict[str, Any]]:
        """Do what is not done; what became of each stage."""
        with tempfile.TemporaryDirectory(prefix="sweetrl-") as folder, self._shown():
            self._told = Path(folder)
            return super().run()

    @property
    def has_work(self) -> bool:
        """Whether there are stages that are not done; to be asked before they run."""
        return not all(map(self._journal.has, self._planned))

    # -------- stages

    def _launch(self, number: int) -> "Child":
        path, stage = self._log(number), self._planned[number]
        path.parent.mkdir(parents=True, exist_ok=True)
        variables = self._variables() | {progress.VARIABLE: str(self._told / str(number))}
        with path.open("ab") as log:
            self._said[number] = log.tell()
            forked = None
            if self._forked and not stage.launcher:
                forked = nursery.start(stage.arguments, log=path, variables=variables)
            return forked or children.start(self._words(number), output=log, errors=log, variables=variables)

    def _log(self, number: int) -> Path:
        return self._folder / LOGS / f"{self._planned[number].name}.log"

    def _watch(self) -> None:
        super()._watch()
        if self._screen is not None and time.monotonic() - self._updated >= progress.SECONDS:
            self._update(self._screen)
            self._updated = time.monotonic()

    # -------- telling

    def _tell_done_before(self, number: int) -> None:
        """Nothing: what is told is what this run does."""

    def _tell_start(self, number: int) -> None:
        self._clock.start(number)

    def _tell_end(self, number: int, seconds: float) -> None:
        self._clock.finish(number)
        left = "" if self._screen is not None else f", about {live.duration(self._clock.left({}))} left"
        words = f"{self._words_for(self._planned[number])} ({live.duration(seconds)}{left})"
        self._note(f"[{len(self._schedule.done)}/{len(self._planned)}] {words}")

    def _tell_failure(self, number: int) -> None:
        with self._log(number).open("rb") as log:
            log.seek(self._said[number])
            lines = log.read().decode("utf-8", "replace").splitlines()
        for line in lines[-LAST_WORDS:]:
            console.note(line)
        self._note(f"more in {self._log(number)}")

    @contextlib.contextmanager
    def _shown(self) -> Iterator[None]:
        if self._quiet or not sys.stderr.isatty():
            yield
            return
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = [
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.description}", markup=False),
        ]
        with Progress(*columns, console=console.messages(), transient=True) as bars:
            self._screen = _Screen(bars)
            yield
        self._screen = None

    def _update(self, screen: "_Screen") -> None:
        parts = {number: progress.told(self._told / str(number)) for number in self._running}
        done = f"{len(self._schedule.done)} of {len(self._planned)} stages done"
        screen.show_all(self._clock.share(parts), f"{live.duration(self._clock.left(parts))} left · {done}")
        lines = {
            number: f"{live.duration(self._clock.left_of(number, parts))} left · "
            f"{self._words_for(self._planned[number])}"
            for number in parts
        }
        screen.show_stages(parts, lines)


class _Screen:
    """A bar for all, and below it one for each stage that runs."""

    def __init__(self, bars: "Progress") -> None:
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
