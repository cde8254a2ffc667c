"""The `sweetrl` command as a process: runs one of the commands, and turns errors into a line and an exit code.

Exit codes: 0 done, 1 some items failed (recorded, resumable), 2 usage or data error, 130 interrupted.

Nothing is imported here that takes time, so that Ctrl-C is heard before anything does.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from sweetrl import interrupts

if TYPE_CHECKING:
    import typer


def main() -> NoReturn:
    """Run the command line of this process."""
    interrupts.listen()
    # By default the threads of PyTorch wait in a busy loop: beside other programs that took ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Unexpected errors keep their traceback."""
    # Loaded before Ctrl-C raises anything: a module that was cut short cannot be imported again.
    from sweetrl.cli import commands, console

    logging.lastResort = console.LogLines(logging.WARNING)
    commands.preload(arguments)
    try:
        with interrupts.handled():
            return _exit_code(commands.app, arguments)
    except KeyboardInterrupt as interrupt:
        interrupts.tell(console.printable(str(interrupt)))
        return interrupts.EXIT_CODE


def _exit_code(app: "typer.Typer", arguments: Sequence[str]) -> int:
    try:
        code = _invoke(app, arguments)
        sys.stdout.flush()
    except Exception as error:
        # Libraries turn an interrupt into errors of their own, and programs that we started may have got it as well.
        if interrupts.came():
            raise KeyboardInterrupt from error
        return _complain(error)
    return code


def _invoke(app: "typer.Typer", arguments: Sequence[str]) -> int:
    import typer

    # Typer's own `app()` would turn errors into boxes and Ctrl-C into silence.
    command = typer.main.get_command(app)
    try:
        with command.make_context("sweetrl", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    return 0


def _complain(error: Exception) -> int:
    import typer

    from sweetrl.errors import SweetError, UsageError

    match error:
        case typer.TyperException():
            return _say(_usage_message(error), error.exit_code)
        case UsageError():
            return _say(str(error), 2)
        case SweetError():
            return _say(str(error), 1)
        case BrokenPipeError():
            _forget_output()
            return 1
    raise error


def _say(message: str, code: int) -> int:
    from sweetrl.cli import console

    # Under torchrun all processes of a machine get the same bad input; the first one reports it.
    if code != 2 or os.environ.get("LOCAL_RANK", "0") == "0":
        console.note(f"error: {message}")
    return code


def _usage_message(error: "typer.TyperException") -> str:
    message = " ".join(error.format_message().split()).removesuffix(".").replace(": Value error, ", ": ")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message}{' See' if message.endswith('?') else '; see'} `{context.command_path} --help`"


def _forget_output() -> None:
    """The reader of our output is gone: keep the interpreter's last flush from complaining about it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
