"""`sweetrl publish`: a model, a run or a record file on the Hugging Face hub."""

from pathlib import Path
from typing import Annotated

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag
from sweetrl.experiments.publishing import plan_publication
from sweetrl.experiments.publishing import publish as send


def publish(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A trained model, a run or a record file.")
    ],
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The repository on the hub.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Send it; without this only the plan is shown.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Let everybody see a new repository.")] = False,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="A scored run of the model, to publish with it."),
    ] = None,
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", metavar="OWNER/NAME", help="The dataset of those results.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option("--license", help="Licence of the records, for their card.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Put a model, a run or a record file on the Hugging Face hub.

    Shows which files would go there and sends nothing, unless --yes is given. Records hold requests, dialogues and
    hidden references: look before you publish.

    Example:
        sweetrl publish run/episodes.jsonl OWNER/NAME
    """
    planned = plan_publication(source, repository, results=results, benchmark=benchmark, licence=licence)
    address = send(planned, private=not public) if yes else None
    if json:
        shown = {"repository": repository, "kind": planned.kind, "files": list(planned.files)}
        console.print_json({**shown, "bytes": planned.size, "sent": address})
        return
    for name in planned.files:
        typer.echo(name)
    what = f"{len(planned.files)} files, {planned.size / 1e6:.1f} MB, of the {planned.kind} {repository}"
    console.note(f"sent: {what}: {address}" if yes else f"nothing was sent; --yes sends {what}")
