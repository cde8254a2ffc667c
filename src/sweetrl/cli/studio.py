"""What commands that look at pages share."""

from typing import Annotated

import typer

SCREENSHOTS = "screenshots"
"""The folder of pictures in a run, each file named by the hash of its content."""

SimilarityOption = Annotated[
    str,
    typer.Option(
        "--similarity",
        metavar="NAME",
        help="How pages are compared: layout, or clip:PATH_OR_ID of a CLIP model.",
    ),
]
