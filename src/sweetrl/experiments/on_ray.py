"""Runs stages on a Ray cluster, as tasks of Ray core: each on whichever machine has room, in shards where asked for.

Every machine sees the run's folder under the same path. A process that Ray keeps between tasks has its modules and
sandboxes ready for the next shard. Shards of stages with a model of their own go to actors, which keep the model too.
This process alone writes the journal and merges; stages with a launcher run here.
"""

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sweetrl import interrupts
from sweetrl.errors import UsageError, needs_extra
from sweetrl.experiments.local import LocalExecutor
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.processes import Child, die_with_parent
from sweetrl.experiments.ray_crew import Crew
from sweetrl.experiments.sharding import LOST, loads_model
from sweetrl.experiments.warm_workers import Command, environment
from sweetrl.models.kept import keep_networks
from sweetrl.sandbox import keep_warm

PASSED_ON = "SWEETRL_"
"""Prefix of the variables that are passed to other machines; keys and the like must be set there."""


class RayExecutor(LocalExecutor):
    """Starts stages of one run on a Ray cluster. They write to logs."""

    def __init__(
        self, folder: Path, *, command: Command, jobs: int = 1, shards: Mapping[str, int] | None = None
    ) -> None:
        """`command` runs a stage, given its arguments."""
        super().__init__(folder.absolute(), jobs=jobs, logs=True, shards=shards)
        self._command = command
        self._crews: dict[str, Crew] = {}
        """The crew of each stage whose shards keep their models."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """The length of a run, connected to the cluster."""
        with super().opened(), _connected():
            yield

    def takes_all(self, stage: Stage) -> bool:
        """Whether nothing may run beside the stage: those with a launcher take this machine."""
        return bool(stage.launcher)

    def _places(self, _stage: Stage, count: int) -> list[str]:
        """All shards are given to Ray, which starts as many as there is room for."""
        return [""] * count

    def _workers(self, _places: int) -> int:
        """A task has one core."""
        return 1

    def _launch_part(self, places: list[str], stage: Stage, place: int | None) -> Child:
        if place is None or not loads_model(stage):
            return super()._launch_part(places, stage, place)
        if stage.name not in self._crews:
            import ray

            self._crews[stage.name] = Crew(ray.remote(_Actor).options(**_resources(stage)))
        return self._crews[stage.name].start(*self._call(stage, self._variables(len(places))))

    def _launch(self, stage: Stage, variables: Mapping[str, str]) -> Child:
        if stage.launcher or stage.arguments[0] == "merge":
            return super()._launch(stage, variables)
        import ray

        resources = _resources(stage)
        # What to do about a lost worker is decided here: Ray would start a second writer of the same files. A worker
        # that had a GPU ends with the stage, as it would keep memory there for as long as it lives.
        once = {"max_calls": 1} if resources["num_gpus"] else {}
        task = ray.remote(max_retries=0, **once)(_perform).options(name=stage.name, **resources)
        return _Task(task.remote(*self._call(stage, variables)))

    def _call(self, stage: Stage, variables: Mapping[str, str]) -> tuple[Any, ...]:
        """The arguments of a call in a worker."""
        known = {**os.environ, **variables}
        told = {name: value for name, value in known.items() if name.startswith(PASSED_ON)}
        return self._command, stage.arguments, Path.cwd(), self.log(stage), told


def _resources(stage: Stage) -> dict[str, int]:
    """The resources that a stage requests from the cluster."""
    import ray

    has_gpus = loads_model(stage) and ray.cluster_resources().get("GPU")
    return {"num_cpus": 1, "num_gpus": 1 if has_gpus else 0}


class _Task:
    """A stage on some machine of the cluster, to be asked as a process is."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference
        self._future = reference.future()
        self._asked = False

    def poll(self) -> int | None:
        """Its exit code, if it has ended; `LOST` if its process or its machine is gone."""
        if interrupts.came():
            self.terminate()  # other machines hear no Ctrl-C
        if not self._future.done():
            return None
        from ray.exceptions import RayError

        try:
            code: int = self._future.result()
        except RayError:
            return -signal.SIGTERM if self._asked else LOST
        return code

    def terminate(self) -> None:
        """End it; its records are in its file."""
        if not self._asked:
            import ray

            self._asked = True
            ray.cancel(self._reference, force=True)

    def wait(self) -> int | None:
        """Wait until it has ended."""
        with contextlib.suppress(Exception):
            self._future.result()
        return self.poll()


def _perform(
    command: Command, arguments: tuple[str, ...], folder: Path, log: Path, variables: Mapping[str, str]
) -> int:
    """Run a command in a worker. Ray reuses workers, so sandboxes are warm for the next shard."""
    die_with_parent()  # Ray lets a worker live on without its raylet
    os.chdir(folder)
    keep_warm()
    with (
        environment(variables),
        log.open("a", encoding="utf-8") as said,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        try:
            return command(arguments)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return 1


class _Actor:
    """A worker of one stage, whose shards load the same models."""

    def __init__(self) -> None:
        keep_networks()

    def perform(self, *call: Any) -> int:
        """Make a shard."""
        return _perform(*call)


@contextlib.contextmanager
def _connected() -> Iterator[None]:
    """While the block runs, this process is the driver of a Ray job; the job's processes end with it."""
    with needs_extra('executor = "ray"', "ray"):
        import ray
    if ray.is_initialized():
        yield
        return
    on_terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address="auto", log_to_driver=False, logging_level="error")
    except ConnectionError:
        raise UsageError(
            'executor = "ray": there is no Ray cluster; start one with `ray start --head`, or give RAY_ADDRESS'
        ) from None
    try:
        signal.signal(signal.SIGTERM, on_terminate)  # a run has its own reaction
        yield
    finally:
        ray.shutdown()
