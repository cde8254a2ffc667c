"""Writes the reference of the command line, a page made of every command's own help.

python scripts/write_cli_reference.py docs/cli.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from sweetrl.cli.main import app

INTRODUCTION = """\
# Command line

Written by `make docs` from the help of each command; do not edit.

Results go to standard output, everything else to standard error; `--json` prints exactly one JSON object.
Exit codes: 0 done, 1 some items failed (recorded, and done again by the same command), 2 usage or data
error, 130 interrupted.
"""

WIDTH = 100
"""Columns of the help texts, whatever the terminal."""


def reference() -> str:
    """The whole page."""
    root = typer.Context(typer.main.get_command(app), info_name="sweetrl", terminal_width=WIDTH)
    sections = [f"## `{each.command_path}`\n\n```text\n{each.get_help()}\n```\n" for each in walk(root)]
    return "\n".join([INTRODUCTION, *sections])


def walk(context: typer.Context) -> Iterator[typer.Context]:
    """The command of `context` and all below it, each after its parent."""
    yield context
    for name, command in sorted(getattr(context.command, "commands", {}).items()):
        yield from walk(typer.Context(command, info_name=name, parent=context, terminal_width=WIDTH))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
