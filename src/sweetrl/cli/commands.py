"""The commands of `sweetrl`.

Each of them is a plain function in a file of its own, registered below in one line. Those files import nothing heavy
at the top, so that every `--help` answers at once.
"""

from typing import Annotated

import typer

from sweetrl.cli import (
    candidates,
    compare,
    console,
    credit,
    credit_quality,
    doctor,
    episodes,
    evaluate,
    fairness,
    make_model,
    pairs,
    play,
    quickstart,
    rank,
    report,
    rollout,
    score,
    select,
    tasks,
    train,
    turn_pairs,
    values,
)
from sweetrl.cli import run as run_command

# Plain help: drawing it with rich would double the time that it takes.
app = typer.Typer(
    name="sweetrl", add_completion=False, rich_markup_mode=None, context_settings=console.GROUP_SETTINGS
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Train and evaluate language-model agents that work with a person over many turns.

    Each command reads record files and writes one: tasks, episodes, verdicts, and so on.
    """
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(f"sweetrl {installed_version('sweetrl')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.add_typer(tasks.app, name="tasks")
app.command()(score.score)
app.command()(doctor.doctor)
app.command()(rollout.rollout)
app.add_typer(episodes.app, name="episodes")
app.command()(fairness.fairness)
app.command()(evaluate.evaluate)
app.command()(compare.compare)
app.command()(play.play)
app.command()(pairs.pairs)
app.command()(candidates.candidates)
app.command()(rank.rank)
app.command()(turn_pairs.turn_pairs)
app.add_typer(train.app, name="train")
app.command()(credit.credit)
app.command()(report.report)
app.command()(make_model.make_model)
app.command()(values.values)
app.command()(credit_quality.credit_quality)
app.command()(select.select)
app.command()(run_command.run)
app.command()(quickstart.quickstart)
