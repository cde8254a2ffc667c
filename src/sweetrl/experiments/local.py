"""Runs stages on this machine, each in a process of its own, or in several that make a part of its records each.

The stages write to our standard error. With `logs`, each writes to a file of its own and reports its progress.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from sweetrl.experiments import processes, progress, warm_workers
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.processes import Child
from sweetrl.experiments.sharding import SHARDS, Parts, ShardedStage, loads_model

LOGS = "logs"
"""The folder of the logs."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
"""Variables that say how many threads a stage computes with."""
GPUS = "CUDA_VISIBLE_DEVICES"
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


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them."""
    chosen = os.environ.get(GPUS)
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip()]
    return sorted((path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")), key=int)


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
        shards: Mapping[str, int] | None = None,
    ) -> None:
        """With `warm`, logged stages call it, in forks of a process that has loaded the training stack.

        `shards` says in how many parts the stages of a command are run.
        """
        self._folder = folder
        self._jobs = jobs
        self._quiet = quiet
        self._logs = logs
        self._warm = warm
        self._shards = dict(shards or {})
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

    def takes_all(self, stage: Stage) -> bool:
        """Whether nothing may run beside the stage: launchers and shards take all GPUs."""
        return bool(stage.launcher) or self._count(stage) > 1

    def start(self, number: int, stage: Stage) -> Child:
        """Start the stage with this number in the plan."""
        path = self.log(stage)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._begun[number] = path.stat().st_size if path.exists() else 0
        told = self._progress / str(number)
        if (count := self._count(stage)) > 1:
            places = self._places(stage, count)
            parts = Parts(
                stage, self._folder / SHARDS / stage.name, count, workers=self._workers(len(places))
            )
            return ShardedStage(parts, partial(self._launch_part, places), len(places), progress.Teller(told))
        return self._launch(stage, self._variables(self._jobs) | {progress.VARIABLE: str(told)})

    def _count(self, stage: Stage) -> int:
        """In how many shards a stage is run."""
        return self._shards.get(stage.arguments[0], 1)

    def _places(self, stage: Stage, count: int) -> list[str]:
        """The GPU of each shard that may run at a time; where none is needed, one shard for each core."""
        gpus = visible_gpus() if loads_model(stage) else []
        return (gpus or [""] * usable_cores())[:count]

    def _workers(self, places: int) -> int:
        """How many answers a shard scores at a time."""
        return max(1, usable_cores() // places)

    def _launch_part(self, places: list[str], stage: Stage, place: int | None) -> Child:
        """Start a command of a stage in shards."""
        if place is None:
            return self._launch(stage, self._variables(1))
        gpu = {GPUS: places[place]} if places[place] else {}
        return self._launch(stage, self._variables(len(places)) | gpu)

    def _launch(self, stage: Stage, variables: Mapping[str, str]) -> Child:
        path = self.log(stage)
        if path is None:
            # Our standard output is for the one JSON object that --json promises.
            words = [*self._words(stage), *(["--quiet"] if self._quiet else [])]
            return processes.start(words, output=sys.stderr, variables=variables)
        with path.open("ab") as log:
            forked = None
            if self._warm is not None and not stage.launcher:
                forked = warm_workers.start(self._warm, stage.arguments, log=path, variables=variables)
            return forked or processes.start(self._words(stage), output=log, errors=log, variables=variables)

    def log(self, stage: Stage) -> Path | None:
        """The log of a stage, if it has one."""
        return self._folder / LOGS / f"{stage.name}.log" if self._logs else None

    def said(self, number: int, stage: Stage) -> str:
        """The stage's log since it started."""
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

    def _variables(self, beside: int) -> dict[str, str]:
        """Environment variables for one of `beside` processes that share the cores. What the user has set is kept."""
        variables = dict(MEMORY)
        if beside > 1:
            variables |= dict.fromkeys(THREADS, str(max(1, usable_cores() // beside)))
        return {name: os.environ.get(name, value) for name, value in variables.items()}
