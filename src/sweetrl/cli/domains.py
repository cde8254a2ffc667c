"""`--domain`: what tasks are about, where the tasks themselves do not say or it is not installed."""

from typing import Annotated

import typer

from sweetrl.domains.registry import use_domain


def _use(spec: str | None) -> str | None:
    return None if spec is None else use_domain(spec).name


DomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        callback=_use,
        help="Domain of tasks that name none, or MODULE:OBJECT of one that is not installed.",
    ),
]
PromptDomainOption = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        callback=_use,
        help="Whose prompt the agent gets, if --agent-prompt gives none: backend, frontend, MODULE:OBJECT...",
    ),
]
