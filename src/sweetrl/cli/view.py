"""`sweetrl view`: all dialogues of runs in a browser."""

import getpass
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag
from sweetrl.cli.domains import DomainOption
from sweetrl.viewer.server import Settings, serve
from sweetrl.viewer.sources import parse_words

RunsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Folders of runs, recipes or studies, record files or chat logs; LABEL=PATH gives one a label.",
    ),
]
TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks", metavar="TASKS", help="Where hidden information comes from, if the run does not say."
    ),
]
HostOption = Annotated[str, typer.Option("--host", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 for any that is free.")]
IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index", metavar="FILE", help="Where to keep the index; by default in the user's cache folder."
    ),
]


def view(
    runs: RunsArgument,
    *,
    tasks: TasksOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 7777,
    index: IndexOption = None,
    author: Annotated[
        str | None, typer.Option("--author", help="Name for annotations; by default yours.")
    ] = None,
    domain: DomainOption = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    json: JsonFlag = False,
) -> None:
    """Look at all dialogues of one or more runs in a browser.

    Search and filter them, see the credit of every turn, compare runs, and annotate turns. A run that is going on
    fills in as it goes. The page is on this machine only and asks nothing of any other.

    Example:
        sweetrl view quickstart
    """
    del domain  # known to this process from now on
    settings = Settings(
        given=parse_words(runs),
        host=host,
        port=port,
        tasks=tasks or (),
        index=None if index is None else index.resolve(),
        author=author or _user(),
    )

    def announce(address: str, once: str) -> None:
        if json:
            console.print_json({"address": address})
        else:
            console.note(f"{address}  (Ctrl-C ends it)")
        if browser and settings.is_local:
            webbrowser.open(once)

    serve(settings, announce)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
