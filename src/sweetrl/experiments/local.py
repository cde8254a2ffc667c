"""Runs stages on this machine, each in a process of its own.

The stages write to our standard error. With `logs`, each writes to a file of its own and reports its progress.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sweetrl.experiments import processes, progress, warm_workers
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.processes import Child

LOGS = "logs"
"""The folder of the logs."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables that say how many threads a stage computes with."""
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Lets the C library keep what a step of a tiny model allocates for the next one, in place of giving it back: a seventh
of the page faults, which took 7 % of the processor time of a training. Changes no result."""


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


class LocalExecutor:
    """Starts stages of one run and knows how far they are."""

    def __init__(
        self,
        folder: Path,
        *,
        jobs: int = 1,
        quiet: bool = False,
        logs: bool = False,
        warm: warm_workers.Command | None = None,
    ) -> None:
        """With `warm`, logged stages call it, in forks of a process that has loaded the training stack."""
        self._folder = folder
        self._jobs = jobs
        self._quiet = quiet
        self._logs = logs
        self._warm = warm
        self._progress = Path()
        """The folder in which stages write how far they are."""
        self._begun: dict[int, int] = {}
        """How long the log of a stage was when it started."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """The length of a run: there is a place for what stages report."""
        with tempfile.TemporaryDirectory(prefix="sweetrl-") as folder:
            self._progress = Path(folder)
            yield

    def start(self, number: int, stage: Stage) -> Child:
        """Start the stage with this number in the plan."""
        path = self.log(stage)
        if path is None:
            # Our standard output is for the one JSON object that --json promises.
            words = [*self._words(stage), *(["--quiet"] if self._quiet else [])]
            return processes.start(words, output=sys.stderr, variables=self._variables())
        path.parent.mkdir(parents=True, exist_ok=True)
        variables = self._variables() | {progress.VARIABLE: str(self._progress / str(number))}
        with path.open("ab") as log:
            self._begun[number] = log.tell()
            forked = None
            if self._warm is not None and not stage.launcher:
                forked = warm_workers.start(self._warm, stage.arguments, log=path, variables=variables)
            return forked or processes.start(self._words(stage), output=log, errors=log, variables=variables)

    def log(self, stage: Stage) -> Path | None:
        """The log of a stage, if it has one."""
        return self._folder / LOGS / f"{stage.name}.log" if self._logs else None

    def said(self, number: int, stage: Stage) -> str:
        """What the stage wrote to its log since it started."""
        path = self.log(stage)
        if path is None:
            return ""
        with path.open("rb") as log:
            log.seek(self._begun[number])
            return log.read().decode("utf-8", "replace")

    def progress(self, number: int) -> float:
        """The share of a stage that is done, as far as it reports it."""
        return progress.told(self._progress / str(number))

    def trouble(self, number: int) -> str:
        """What a stage waits for, such as an endpoint that does not answer; empty if it does not."""
        return progress.trouble(self._progress / str(number))

    def _words(self, stage: Stage) -> list[str]:
        return [*(stage.launcher or [sys.executable]), "-m", "sweetrl", *stage.arguments]

    def _variables(self) -> dict[str, str]:
        """Stages side by side share the cores. What the user has set is kept."""
        variables = dict(MEMORY)
        if self._jobs > 1:
            variables |= dict.fromkeys(THREADS, str(max(1, usable_cores() // self._jobs)))
        return {name: os.environ.get(name, value) for name, value in variables.items()}
