"""Command lines in documents: found in their text, and compared with the commands that there are."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from sweetrl.cli.commands import app


def command_lines(page: str) -> Iterator[str]:
    """Each `sweetrl ...` at the start of a line of a code block, without comments and with its continuation lines."""
    blocks = re.findall(r"^```(?:sh|console|text)?\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    outside = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"(?:^ {4,}\S.*\n?)+", outside, re.MULTILINE)
    for block in blocks:
        for line in re.sub(r"\s*\\\n\s*", " ", block).splitlines():
            if found := re.match(r"\s*(?:\$ )?(?:\.venv/bin/)?sweetrl (\S[^#\n]*)", line):
                yield found[1].strip()


def complaint(line: str) -> str | None:
    """What is wrong with the words after `sweetrl`: a command or an option that does not exist."""
    words = shlex.split(line.replace("'s ", "s "))
    command = root()
    while words and getattr(command, "commands", None) is not None and not words[0].startswith("-"):
        name = words.pop(0).rstrip(",")
        if name not in command.commands:
            return f"no command {name}"
        command = command.commands[name]
    known = {"--help", *(word for each in command.params for word in (*each.opts, *each.secondary_opts))}
    given = [word.split("=")[0].strip("[]") for word in words]
    unknown = [word for word in given if re.match(r"--?[a-z]", word) and word not in known]
    return f"no option {', '.join(unknown)}" if unknown else None


@cache
def root() -> Any:
    """The command that has all others."""
    return typer.main.get_command(app)
