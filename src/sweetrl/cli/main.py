"""The `sweetrl` command: its subcommands, and what becomes of their errors.

Each subcommand is a plain function in a file of its own, registered below in one line. Those files import
nothing heavy at the top, so that every `--help` answers at once.

Exit codes: 0 done, 1 some items failed (recorded, resumable), 2 usage or data error, 130 interrupted.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from sweetrl.cli import (
    candidates,
    compare,
    console,
    credit,
    credit_quality,
    doctor,
    episodes,
    evaluate,
    fairness,
    make_model,
    pairs,
    play,
    quickstart,
    rank,
    report,
    rollout,
    score,
    select,
    tasks,
    train,
    turn_pairs,
    values,
)
from sweetrl.cli import run as run_command
from sweetrl.errors import SweetError, UsageError

# Plain help: drawing it with rich would double the time that it takes.
app = typer.Typer(
    name="sweetrl", add_completion=False, rich_markup_mode=None, context_settings=console.GROUP_SETTINGS
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Train and evaluate language-model agents that work with a person over many turns.

    Each command reads record files and writes one: tasks, episodes, verdicts, and so on.
    """
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(f"sweetrl {installed_version('sweetrl')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.add_typer(tasks.app, name="tasks")
app.command()(score.score)
app.command()(doctor.doctor)
app.command()(rollout.rollout)
app.add_typer(episodes.app, name="episodes")
app.command()(fairness.fairness)
app.command()(evaluate.evaluate)
app.command()(compare.compare)
app.command()(play.play)
app.command()(pairs.pairs)
app.command()(candidates.candidates)
app.command()(rank.rank)
app.command()(turn_pairs.turn_pairs)
app.add_typer(train.app, name="train")
app.command()(credit.credit)
app.command()(report.report)
app.command()(make_model.make_model)
app.command()(values.values)
app.command()(credit_quality.credit_quality)
app.command()(select.select)
app.command()(run_command.run)
app.command()(quickstart.quickstart)


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; the exit code. Errors nobody planned for keep their traceback."""
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _complain(_usage_message(error), error.exit_code)
    except UsageError as error:
        return _complain(str(error), 2)
    except SweetError as error:
        return _complain(str(error), 1)
    except KeyboardInterrupt as interrupt:
        console.note(f"interrupted{f': {interrupt}' if str(interrupt) else ''}")
        return 130
    except BrokenPipeError:
        _forget_output()
        return 1
    return code


def _invoke(arguments: Sequence[str]) -> int:
    # Typer's own `app()` would turn errors into boxes and Ctrl-C into silence.
    command = typer.main.get_command(app)
    try:
        with command.make_context("sweetrl", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _complain(message: str, code: int) -> int:
    # Under torchrun all processes of a machine meet the same bad input; the first one says it.
    if code != 2 or os.environ.get("LOCAL_RANK", "0") == "0":
        console.note(f"error: {message}")
    return code


def _usage_message(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split()).removesuffix(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message}{' See' if message.endswith('?') else '; see'} `{context.command_path} --help`"


def _forget_output() -> None:
    """Whoever read our output has gone: the interpreter's last flush shall not complain about it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
