"""`sweetrl run`: a whole experiment from one recipe.

Each stage runs as the command that a person would type, in a process of its own: what a stage holds (a model
on the GPU, a thousand connections) is gone when it ends, a launcher such as torchrun fits in front of it, and
the log shows commands that can be repeated by hand. Starting Python costs less than a second per stage.

A stage that is done is noted in `run.json` and not started again; one that was interrupted goes on by itself,
because every command resumes.
"""

import contextlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sweetrl.cli import children, console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.errors import ConfigError, DataError

if TYPE_CHECKING:
    from rich.table import Table

    from sweetrl.cli.estimates import Cost
    from sweetrl.cli.road import Stage
    from sweetrl.config import Recipe, ServerSettings, Study

JOURNAL = "run.json"


def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A TOML file; recipes/ has some.")],
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe, for example critic.epochs=2."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and what it would take.")] = False,
    allow_failures: Annotated[
        bool, typer.Option("--allow-failures", help="Go on when some items of a stage failed.")
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run all stages of a recipe, each as a command of its own.

    The same command again goes on where it stopped.
    """
    from sweetrl.config import Study, load_experiment

    experiment = load_experiment(recipe, changes or [])
    options = {"dry_run": dry_run, "allow_failures": allow_failures, "json": json, "quiet": quiet}
    if isinstance(experiment, Study):
        _run_study(experiment, **options)
    else:
        _run_recipe(experiment, **options)


def _run_recipe(recipe: "Recipe", *, dry_run: bool, allow_failures: bool, json: bool, quiet: bool) -> None:
    from sweetrl.cli.estimates import costs
    from sweetrl.cli.road import stages

    _refuse_unknown_stages(recipe)
    planned = stages(recipe)
    if dry_run:
        _show_plan(recipe.output, planned, costs(recipe, planned), json=json)
        return
    runner = Runner(Path(recipe.output), planned, recipe.servers, allow_failures=allow_failures, quiet=quiet)
    done = runner.run()
    if json:
        console.print_json({"output": recipe.output, "stages": done})


def _run_study(study: "Study", *, dry_run: bool, allow_failures: bool, json: bool, quiet: bool) -> None:
    from sweetrl.cli.estimates import cost
    from sweetrl.cli.study import plan
    from sweetrl.cli.study_results import finish

    planned = plan(study)
    if dry_run:
        estimated = [cost(*each) for each in zip(planned.recipes, planned.stages, strict=True)]
        _show_plan(study.output, planned.stages, estimated, json=json)
        return
    runner = Runner(Path(study.output), planned.stages, allow_failures=allow_failures, quiet=quiet)
    done = runner.run()
    written = finish(study, planned, quiet=quiet or json)
    if json:
        console.print_json({"output": study.output, "stages": done, **written})


def _refuse_unknown_stages(recipe: "Recipe") -> None:
    from difflib import get_close_matches

    from sweetrl.cli.road import NAMES

    for index, server in enumerate(recipe.servers):
        for name in sorted(set(server.stages).difference(NAMES)):
            close = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(NAMES)}"
            raise ConfigError(f"servers[{index}].stages: there is no stage '{name}'; {hint}")


# ---------------------------------------------------------------- the plan


def _show_plan(output: str, planned: "list[Stage]", estimated: "list[Cost]", *, json: bool) -> None:
    if json:
        rows = [
            {
                "stage": stage.name,
                "command": shlex.join(["sweetrl", *stage.arguments]),
                "inputs": stage.inputs,
                "output": str(stage.output),
                "requests": cost.requests,
                "tokens": cost.tokens,
                "gpu_hours": cost.gpu_hours,
            }
            for stage, cost in zip(planned, estimated, strict=True)
        ]
        console.print_json({"output": output, "stages": rows})
        return
    console.results().print(_plan_table(planned, estimated))
    for stage in planned:
        typer.echo(shlex.join(["sweetrl", *stage.arguments]))


def _plan_table(planned: "list[Stage]", estimated: "list[Cost]") -> "Table":
    from rich.table import Table

    table = Table("stage", "reads", "writes", "requests", "tokens", "GPU hours")
    for stage, cost in zip(planned, estimated, strict=True):
        read = "\n".join(stage.inputs)
        table.add_row(
            stage.name,
            read,
            str(stage.output),
            _shown(cost.requests),
            _shown(cost.tokens),
            _shown(cost.gpu_hours),
        )
    return table


def _shown(number: float | None) -> str:
    if number is None:
        return "?"
    return f"{number:.1f}" if isinstance(number, float) else f"{number:,}"


# ---------------------------------------------------------------- running


class Runner:
    """Does the stages of an experiment one after the other, those that are not done yet."""

    def __init__(
        self,
        folder: Path,
        planned: "list[Stage]",
        servers: "tuple[ServerSettings, ...]" = (),
        *,
        allow_failures: bool = False,
        quiet: bool = False,
    ) -> None:
        self._planned = planned
        self._servers = servers
        self._allow_failures = allow_failures
        self._quiet = quiet
        self._folder = folder
        self._journal = _Journal(folder)

    def run(self) -> list[dict[str, Any]]:
        """Do what is not done; what became of each stage."""
        with _terminable():
            for number, stage in enumerate(self._planned, start=1):
                self._do_once(number, stage)
        return self._journal.entries

    def _do_once(self, number: int, stage: "Stage") -> None:
        if self._journal.has(stage):
            self._note(f"[{number}/{len(self._planned)}] {stage.name}: done before")
        else:
            self._note(f"[{number}/{len(self._planned)}] {stage.name}: {shlex.join(stage.arguments)}")
            self._do(stage)

    def _do(self, stage: "Stage") -> None:
        from sweetrl.cli.servers import running

        wanted = tuple(server for server in self._servers if stage.name in server.stages)
        started = time.monotonic()
        with running(wanted, self._folder):
            code = self._call(stage)
        if code in _INTERRUPTED:
            raise KeyboardInterrupt(f"in the stage {stage.name}; the same command goes on with it")
        if code == 1 and self._allow_failures:
            self._note(f"{stage.name}: some items failed; going on without them")
        elif code:
            self._note(f"the stage {stage.name} {_ended(code)}; {_advice(code)}")
            raise typer.Exit(2 if code == 2 else 1)
        self._journal.add(stage, code, time.monotonic() - started)

    def _call(self, stage: "Stage") -> int:
        return self._awaited(self._start(stage, quiet=self._quiet))

    def _start(
        self, stage: "Stage", *, quiet: bool, variables: dict[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        stage.output.parent.mkdir(parents=True, exist_ok=True)
        words = [*(stage.launcher or [sys.executable]), "-m", "sweetrl", *stage.arguments]
        # Our standard output is for the one JSON object that --json promises.
        return children.start(
            [*words, *(["--quiet"] if quiet else [])], output=sys.stderr, variables=variables
        )

    def _awaited(
        self,
        process: "subprocess.Popen[bytes]",
        *,
        every: float | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> int:
        """How the process ends; until then, `meanwhile` is called now and then."""
        while True:
            try:
                return process.wait(every)
            except subprocess.TimeoutExpired:
                meanwhile()
            except _Terminated:
                process.terminate()
            except KeyboardInterrupt:
                # The stage got the same Ctrl-C and knows best how to end.
                continue

    def _note(self, text: str) -> None:
        if not self._quiet:
            console.note(text)


class _Terminated(KeyboardInterrupt):
    """It was this process, and not its stage, that was asked to end."""


_INTERRUPTED = (130, -signal.SIGTERM, 128 + signal.SIGTERM)
"""How stages, and launchers in front of them, end when they are asked to."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C would, so that nothing that it started is left running."""

    def terminate(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: ending takes its time
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _ended(code: int) -> str:
    return f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"


def _advice(code: int) -> str:
    if code < 0:
        return "run the same command again to go on"
    if code == 1:
        return "the same command again does the failed items, --allow-failures goes on without them"
    return "mend what it said and run the same command again"


class _Journal:
    """Which stages are done, in a file of the run's folder."""

    def __init__(self, folder: Path) -> None:
        from sweetrl.records import unwritable

        self._path = folder / JOURNAL
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from error
        self.entries = self._read()

    def _read(self) -> list[dict[str, Any]]:
        import msgspec

        if not self._path.exists():
            return []
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[dict[str, Any]])
        except msgspec.DecodeError as error:
            raise DataError(f"not the journal of a run: {error}", path=self._path) from None

    def has(self, stage: "Stage") -> bool:
        """Whether the stage is done; one that was done otherwise is an error."""
        entry = next((each for each in self.entries if each["stage"] == stage.name), None)
        if entry is None:
            return False
        if entry["arguments"] != list(stage.arguments):
            raise ConfigError(
                f"{self._path}: the stage {stage.name} was done with other settings "
                f"({_difference(entry['arguments'], stage.arguments)}); choose another output"
            )
        return True

    def add(self, stage: "Stage", code: int, seconds: float) -> None:
        """Note that the stage is done."""
        import msgspec

        from sweetrl.records import write_atomically

        self.entries.append(
            {
                "stage": stage.name,
                "arguments": list(stage.arguments),
                "output": str(stage.output),
                "code": code,
                "seconds": round(seconds, 1),
            }
        )
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(self.entries)) + b"\n")


def _difference(before: list[str], now: tuple[str, ...]) -> str:
    gone = [word for word in before if word not in now]
    new = [word for word in now if word not in before]
    return f"was {shlex.join(gone) or 'without'}, now {shlex.join(new) or 'without'}"
