"""How the progress of a training run is shown: a bar on a terminal, a line now and then elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.progress import TextColumn

from sweetrl.cli import console, live
from sweetrl.experiments import progress

if TYPE_CHECKING:
    from sweetrl.learning.run_options import Progress


@contextlib.contextmanager
def shown_steps(label: str | None, *, main: bool) -> "Iterator[Callable[[Progress], None]]":
    """Show the progress under a label, if there is one; only the `main` process of a run tells its parent."""
    tell = progress.teller() if main else None
    if tell is not None:
        yield lambda done: tell(done.step, done.steps)
    elif label is None:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(label) as show:
            yield show
    else:
        yield _Heartbeat()


class _Heartbeat:
    """A line about the progress, at most once a minute."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._first: int | None = None
        self._spoken = self._started

    def __call__(self, progress: "Progress") -> None:
        now = time.monotonic()
        if self._first is None:
            self._first, self._started = progress.step, now
        if now - self._spoken >= live.HEARTBEAT_SECONDS and progress.step > self._first:
            self._spoken = now
            left = (now - self._started) / (progress.step - self._first) * (progress.steps - progress.step)
            console.note(
                f"step {progress.step}/{progress.steps} · loss {progress.loss:.4g} · {live.duration(left)} left"
            )


@contextlib.contextmanager
def _bar(label: str) -> "Iterator[Callable[[Progress], None]]":
    with console.bar(TextColumn("loss {task.fields[loss]}")) as display:
        task = display.add_task(label, total=None, loss="-")
        yield lambda progress: display.update(
            task, completed=progress.step, total=progress.steps, loss=f"{progress.loss:.4g}"
        )
