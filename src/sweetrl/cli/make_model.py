"""`sweetrl make-model`: tiny models, made from a seed."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl.cli import console, live
from sweetrl.cli.console import QuietFlag
from sweetrl.errors import UsageError, needs_extra

if TYPE_CHECKING:
    from sweetrl.learning.mini import Progress

LINE_EVERY = 100
"""Steps between two lines about the progress."""


def make_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="mini, mini-large, mini-long or mini-page.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    *,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same weights.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", min=1, help="Stop early, to try it out; the learning-rate schedule does not change."
        ),
    ] = None,
    with_reference: Annotated[
        int | None,
        typer.Option(
            "--with-reference",
            metavar="PERCENT",
            min=0,
            max=100,
            help="Percentage of pre-training dialogues that follow their reference solution; 40 if not given.",
        ),
    ] = None,
    quiet: QuietFlag = False,
) -> None:
    """Train a tiny language model on scripted dialogues.

    It starts from random weights and learns mini-backend tasks, or plain pages (mini-page). One thread computes it, so
    that the same machine gives the same weights. Takes a quarter of an hour (mini) to an hour (mini-long).

    Example:
        sweetrl make-model mini --steps 100 -o mini
    """
    with needs_extra("training a model", "train"):
        from sweetrl.learning.mini import SIZES, build

    if name not in SIZES:
        raise UsageError(f"there is no model {name!r}; there is {', '.join(SIZES)}")
    if output.exists():
        raise UsageError(f"{output}: exists already; choose another folder with -o")
    started = time.monotonic()

    def observe(progress: "Progress") -> None:
        if not quiet and progress.step % LINE_EVERY == 0:
            left = (time.monotonic() - started) / progress.step * (progress.steps - progress.step)
            console.note(
                f"step {progress.step}/{progress.steps} · loss {progress.loss:.3f} · {live.duration(left)} left"
            )

    size = SIZES[name] if with_reference is None else replace(SIZES[name], with_reference=with_reference)
    build(size, output, name=name, seed=seed, observe=observe, stop_after=steps)
