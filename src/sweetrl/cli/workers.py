"""Options that the commands which score answers share."""

from typing import Annotated, Literal

import typer

WorkersOption = Annotated[
    int, typer.Option("--workers", min=0, help="Answers judged at a time; 0 for one per core.")
]
ModeOption = Annotated[
    Literal["module", "official"],
    typer.Option(
        "--mode", help="Run answers as modules, or as the paper's scorer does, with its word filters."
    ),
]
TurnCostOption = Annotated[
    float,
    typer.Option(
        "--turn-cost", min=0, max=1, help="Take so much off the reward for each turn before the answer."
    ),
]
IsolationOption = Annotated[
    Literal["landlock", "bubblewrap", "unsafe"] | None,
    typer.Option("--isolation", help="What keeps answers in; the best that this machine offers by default."),
]
