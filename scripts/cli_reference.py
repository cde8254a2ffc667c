"""The reference of all commands in Markdown: `scripts/cli_reference.py > docs/cli.md`."""

from collections.abc import Iterator

import typer
from typer.core import TyperGroup

from sweetrl.cli.commands import app

INTRODUCTION = """\
# Command line

Written by `make docs` from the help of each command; do not edit.

Results go to standard output, everything else to standard error; `--json` prints exactly one JSON object.
Exit codes: 0 done, 1 some items failed (recorded; rerun the command to retry them), 2 usage or data
error, 130 interrupted.
"""

WIDTH = 100
"""Columns of the help texts, whatever the terminal."""


def help_pages() -> dict[str, str]:
    """What `--help` says, at a fixed width, for `sweetrl` itself and for each group and command in it."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="sweetrl", terminal_width=WIDTH, max_content_width=WIDTH)
    return dict(_pages(context))


def _pages(context: typer.Context) -> Iterator[tuple[str, str]]:
    command = context.command
    yield context.command_path, command.get_help(context)
    if isinstance(command, TyperGroup):
        for name, each in sorted(command.commands.items()):
            # The width is inherited.
            yield from _pages(typer.Context(each, info_name=name, parent=context))


def reference() -> str:
    """The whole page."""
    sections = [f"## `{path}`\n\n```text\n{page}\n```\n" for path, page in help_pages().items()]
    return "\n".join([INTRODUCTION, *sections])


if __name__ == "__main__":
    typer.echo(reference(), nl=False)
