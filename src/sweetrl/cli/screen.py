"""A study that a person watches: one line for each stage in plain words, a bar, and the time that is left.

Stages differ a thousandfold, so the time left is not told from their number: each has a weight, in seconds of an
ordinary laptop, and the stages that are done say how fast this machine is.
"""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sweetrl.cli import console, live, progress
from sweetrl.cli.estimates import cost
from sweetrl.cli.run import Runner

if TYPE_CHECKING:
    from rich.progress import Progress

    from sweetrl.cli.road import Stage
    from sweetrl.cli.study import Plan
    from sweetrl.config import Recipe, Study

START = 4.0
"""Seconds until Python and PyTorch are there."""
DRAWN, READ, TRAINED = 4e-4, 4e-5, 3e-4
"""Seconds for a token that the tiny model writes, reads or learns from."""

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
        return START + DRAWN * 2 * turns * recipe.candidates.n * recipe.estimate.output_tokens
    if command in ("rollout", "evaluate", "values"):
        return START + DRAWN * turns * recipe.estimate.output_tokens
    return START / 2


def in_words(study: "Study", stage: "Stage") -> str:
    """What a stage does."""
    command = " ".join(stage.arguments[: 2 if stage.arguments[0] == "train" else 1])
    method = study.methods.get(stage.output.name)
    label = (method.label if method is not None else "") or stage.output.name
    return WORDS[command].format(label=label)


@dataclass
class Clock:
    """How much is done of all that there is to do, and how long the rest takes."""

    weights: Sequence[float]
    now: Callable[[], float] = time.monotonic
    done: float = 0.0
    """Weight of the stages behind us."""
    _worked: float = 0.0
    """Of it, what this run did, and in how many seconds."""
    _seconds: float = 0.0
    _started: float = field(default=0.0)

    def skip(self, number: int) -> None:
        """A stage was done before."""
        self.done += self.weights[number]

    def start(self) -> None:
        """A stage begins."""
        self._started = self.now()

    def finish(self, number: int) -> float:
        """It ends; the seconds that it took."""
        taken = self.now() - self._started
        self.done += self.weights[number]
        self._worked += self.weights[number]
        self._seconds += taken
        return taken

    def share(self, number: int, part: float) -> float:
        """Of all, with that part of a stage done."""
        return (self.done + part * self.weights[number]) / sum(self.weights)

    def left(self, number: int, part: float) -> float:
        """Seconds, at the speed so far."""
        own = self.weights[number]
        worked, seconds = self._worked + part * own, self._seconds + self.now() - self._started
        # A laptop's speed counts as if it had been watched for a while: the first seconds say little.
        speed = (seconds + START) / (worked + START)
        return speed * (sum(self.weights) - self.done - part * own)


class ScreenedRunner(Runner):
    """Runs the stages of a study and shows how far they are."""

    def __init__(self, study: "Study", planned: "Plan", *, quiet: bool) -> None:
        super().__init__(Path(study.output), planned.stages, quiet=quiet)
        self._study = study
        self._clock = Clock([weight(*each) for each in zip(planned.recipes, planned.stages, strict=True)])
        self._number = 0
        self._bar: Progress | None = None
        self._fresh = False

    def run_all(self) -> bool:
        """Do what is not done; whether there was anything."""
        with self._shown():
            self.run()
        return self._fresh

    def _do_once(self, number: int, stage: "Stage") -> None:
        self._number = number - 1
        if self._journal.has(stage):
            self._clock.skip(self._number)
            return
        self._fresh = True
        self._clock.start()
        self._update(stage, 0.0)
        self._do(stage)
        seconds = self._clock.finish(self._number)
        self._tell(stage, seconds)

    def _call(self, stage: "Stage") -> int:
        with tempfile.TemporaryDirectory(prefix="sweetrl-") as folder:
            path = Path(folder) / "progress"
            return self._awaited(
                self._start(stage, quiet=True, variables={progress.VARIABLE: str(path)}),
                every=progress.SECONDS,
                meanwhile=lambda: self._update(stage, progress.told(path)),
            )

    # -------- showing

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
        with Progress(*columns, console=console.messages(), transient=True) as bar:
            bar.add_task("", total=1.0)
            self._bar = bar
            yield
        self._bar = None

    def _update(self, stage: "Stage", part: float) -> None:
        if self._bar is None:
            return
        left = live.duration(self._clock.left(self._number, part))
        words = f"{left} left · {in_words(self._study, stage)}"
        [task] = self._bar.task_ids
        self._bar.update(task, completed=self._clock.share(self._number, part), description=words)

    def _tell(self, stage: "Stage", seconds: float) -> None:
        left = live.duration(self._clock.left(self._number, 1.0)) if self._bar is None else ""
        after = f", about {left} left" if left else ""
        words = f"{in_words(self._study, stage)} ({live.duration(seconds)}{after})"
        self._note(f"[{self._number + 1}/{len(self._planned)}] {self._seed_of(stage)}{words}")

    def _seed_of(self, stage: "Stage") -> str:
        return f"{stage.name.partition('/')[0]}, " if self._study.seeds > 1 else ""
