"""The commands of `sweetrl`: each is a function in the module of its name, which is imported when it is called."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import typer

from sweetrl.cli.console import GROUP_SETTINGS
from sweetrl.cli.groups import LazyGroup, load_command

PANELS = {
    "Start": {
        "quickstart": "Train SWEET-RL and its baselines on a laptop.",
        "play": "Take part in a dialogue, at the terminal or in the browser.",
        "doctor": "Show what this machine can do and what it lacks.",
    },
    "Evaluate": {
        "evaluate": "Run dialogues, score them and report the metrics.",
        "compare": "Compare runs on the same tasks with the first one.",
        "report": "Write one HTML page about one or more runs.",
        "view": "Look at all dialogues of one or more runs in a browser.",
        "fairness": "Check whether the collaborator of a run was fair.",
    },
    "Explain": {
        "credit": "Tell which turns of dialogues earned or lost the outcome.",
    },
    "Train": {
        "run": "Run all stages of a recipe or a study.",
        "train": "Train a policy or a critic on stored dialogues.",
    },
    "Pipeline stages": {
        "rollout": "Run dialogues between an agent and a collaborator.",
        "score": "Score answers: code by hidden tests, pages by similarity.",
        "pairs": "Pair dialogues on the same task, one of which ended better.",
        "candidates": "Draw candidates for every turn of stored dialogues.",
        "rank": "Let a critic that sees the reference rank the candidates.",
        "turn-pairs": "Pair the candidates of each turn, to train a policy on.",
    },
    "Data": {
        "tasks": "Write, make, import, export, show and check tasks.",
        "episodes": "Import, export and show dialogues.",
        "merge": "Join the shards of a stage into one file.",
        "select": "Copy the records that are on some tasks.",
        "publish": "Put a model, a run or a record file on the Hugging Face hub.",
    },
    "Research": {
        "values": "Measure what candidates are worth by replaying them.",
        "credit-quality": "Measure critics against replays, or against what people marked.",
        "make-model": "Train a tiny language model on scripted dialogues.",
    },
}
"""The list that `sweetrl --help` shows. Each sentence is the first one of the command's own help."""


class Commands(LazyGroup):
    """All commands."""

    panels: ClassVar = PANELS


# Plain help: drawing it with rich would double the time that it takes.
app = typer.Typer(
    name="sweetrl",
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=GROUP_SETTINGS,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Train and evaluate language-model agents that work with a person over many turns.

    Each command reads record files and writes one: tasks, episodes, verdicts, and so on. Begin with
    `sweetrl quickstart`; `sweetrl COMMAND --help` has an example of each.
    """
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(f"sweetrl {installed_version('sweetrl')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def preload(arguments: Sequence[str]) -> None:
    """Import the command that is about to be called."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    if any(name in panel for panel in PANELS.values()):
        load_command(name)
