"""Commands that are imported when they are called, listed in panels, and explained with an example."""

import re
import textwrap
from collections import UserDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from sweetrl.cli import console

if TYPE_CHECKING:
    from typer._click import Command as AnyCommand
    from typer._click import Context, HelpFormatter

EXAMPLE = "Example:"
"""The line of a docstring after which there is a command line."""
EXAMPLE_WIDTH = 76


class DocumentedCommand(TyperCommand):
    """A command whose help ends with its example, and which still knows options by their old names."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.help, _, example = (self.help or "").partition(f"\n{EXAMPLE}\n")
        self.example = " ".join(example.split())
        for option in self.params:
            if isinstance(option, TyperOption) and option.default is None and not option.required:
                option.show_default = "not set" if option.show_default is True else option.show_default

    def format_epilog(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Show the example so that it can be copied into a shell."""
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section(EXAMPLE.rstrip(":")):
                pairs = re.sub(r" (--?[\w-]+) (?!-)", " \\1\0", self.example)
                lines = textwrap.wrap(pairs, EXAMPLE_WIDTH, break_on_hyphens=False)
                formatter.write(textwrap.indent(" \\\n    ".join(lines), "  ").replace("\0", " ") + "\n")

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Take old names of options for new ones."""
        from sweetrl.settings.words import current_words

        known = {name for option in self.params for name in option.opts}
        return super().parse_args(ctx, current_words(args, known, console.note))


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are asked for, each from the module of its name."""

    panels: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """The commands, and a sentence about each, under the headings of the help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names = [name for panel in self.panels.values() for name in panel]
        self.commands = _LazyCommands({**dict.fromkeys(names), **self.commands})

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:  # noqa: ARG002
        """List the commands without importing them."""
        width = max(len(name) for name in self.commands)
        for heading, panel in self.panels.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), sentence) for name, sentence in panel.items()])


class _LazyCommands(UserDict[str, Any]):
    """Commands by name; None stands for one that is not imported yet."""

    def __getitem__(self, name: str) -> "AnyCommand":
        return super().__getitem__(name) or load_command(name)


@cache
def load_command(name: str) -> "AnyCommand":
    """The command, or group of commands, of a module of `sweetrl.cli`."""
    from sweetrl.cli.options import with_options

    module = import_module(f"sweetrl.cli.{name.replace('-', '_')}")
    group = getattr(module, "app", None)
    app = group or typer.Typer(add_completion=False, rich_markup_mode=None)
    if group is None:
        app.command(name)(getattr(module, name.replace("-", "_")))
    for command in app.registered_commands:
        assert command.callback is not None
        command.cls, command.callback = DocumentedCommand, with_options(command.callback)
    # A group as such has no options for shell completion.
    return typer.main.get_command(app) if group is None else typer.main.get_group(app)
