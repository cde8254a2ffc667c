"""`sweetrl quickstart`: the paper in miniature, from dialogues to a table, on a laptop.

It runs a study that ships with the package and explains each step in plain words.
"""

import importlib.util
import json as json_text
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.figures import percent_with_interval, plain
from sweetrl.cli.screen import Asked, View, refuse_problems, run_stages
from sweetrl.errors import UsageError, installing
from sweetrl.evaluation.studies import StudyResults
from sweetrl.experiments.layout import METRICS
from sweetrl.experiments.local import usable_cores
from sweetrl.experiments.plan import Plan
from sweetrl.experiments.results import write_results, written_results
from sweetrl.experiments.stage_words import in_words
from sweetrl.experiments.study_plan import plan
from sweetrl.experiments.study_summary import caveats, metrics_of
from sweetrl.experiments.time_left import weight
from sweetrl.records import write_atomically
from sweetrl.settings import Study, load_study

MOST_JOBS = 4
"""Stages at a time, unless more are asked for: each holds a model in memory."""
RECIPES = {"": "quickstart.toml", "fast": "quickstart_fast.toml", "full": "mini_paper.toml"}


def quickstart(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The folder to write.", show_default="the recipe's"
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Fewer tasks and dialogues: about two minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The whole study: all ablations, five seeds, many hours.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="The same seed gives the same table.", show_default="0"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Stages at a time.", show_default="cores, at most 4"),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train SWEET-RL and its baselines on a laptop.

    A tiny agent that ships with the package asks a scripted colleague, writes Python functions and learns from their
    scores. Writes DIR/metrics.json and DIR/report.html. Rerun the same command to resume.

    Example:
        sweetrl quickstart --fast -o quickstart
    """
    variant = _variant(fast=fast, full=full)
    study = _study(output, variant, seed)
    planned = plan(study)
    fresh = _run(study, planned, jobs, quiet=quiet or json)
    results = _results(study, planned, fresh=fresh, quiet=quiet or json)
    report = Path(study.output) / "report.html"
    if json:
        console.print_json({"output": study.output, "report": str(report), **metrics_of(results)})
        return
    if not fresh and not quiet:
        console.note(f"{study.output}: was finished before; remove the folder to run it again")
    console.results().print(results_table(results))
    console.paragraphs(caveats(results))
    typer.echo(f"Report: {report}")
    if not quiet:
        for line in next_steps(study, results.tasks, shipped(RECIPES[variant])):
            console.note(line)


def _run(study: Study, planned: Plan, jobs: int | None, *, quiet: bool) -> bool:
    """Do what is not done; whether there was anything."""
    view = View(
        [weight(*each) for each in zip(planned.recipes, planned.stages, strict=True)],
        lambda stage: in_words(study, stage),
    )
    refuse_problems(Path(study.output), planned.stages, planned.recipes, quiet=quiet)
    jobs = min(usable_cores(), MOST_JOBS) if jobs is None else jobs
    _, fresh = run_stages(Path(study.output), planned.stages, Asked(jobs, quiet=quiet), view=view)
    return fresh


def _variant(*, fast: bool, full: bool) -> str:
    if fast and full:
        raise UsageError("--fast and --full contradict each other; give one of them")
    return "fast" if fast else "full" if full else ""


def _study(output: Path | None, variant: str, seed: int | None) -> Study:
    changes = [] if output is None else [f"output={json_text.dumps(str(output))}"]
    if seed is not None:
        changes.append(f"seed={seed}")
    # A page of the checkout's documentation is written by `sweetrl run` alone.
    return load_study(shipped(RECIPES[variant]), [*changes, "page="])


def shipped(name: str) -> Path:
    """A recipe of the package."""
    return Path(str(resources.files("sweetrl").joinpath("recipes", name)))


# ---------------------------------------------------------------- results


def _results(study: Study, planned: Plan, *, fresh: bool, quiet: bool) -> StudyResults:
    """The results; those of a finished run are read, not computed again."""
    results = None if fresh else written_results(study)
    if results is None:
        if not quiet:
            console.note("Writing the report")
        write_results(study, planned)
        results = written_results(study)
        assert results is not None
    metrics = msgspec.json.format(msgspec.json.encode(metrics_of(results))) + b"\n"
    write_atomically(Path(study.output) / METRICS, metrics)
    return results


def next_steps(study: Study, tasks: str, recipe: Path) -> Iterator[str]:
    """Suggestions for a finished run, as commands that work from this folder."""
    folder = f"{study.output}/seed-{study.seed}"
    dialogues, verdicts = (f"{folder}/evaluations/sweet/{name}.jsonl" for name in ("episodes", "verdicts"))
    critic, credit = f"{folder}/critics/sweet", f"{study.output}/credit.jsonl"
    another = f"output={study.output}-beta"
    yield "What to do next: open the report in a browser, or"
    for words in (
        ("episodes", "show", dialogues),
        ("credit", dialogues, "--tasks", tasks, "--verdicts", verdicts, "--critic", critic, "-o", credit),
        ("play",),
        ("run", _from_here(recipe.resolve()), "--set", "methods.sweet.policy.beta=0.5", "--set", another),
        ("view", study.output),
    ):
        first = (
            "" if words[0] != "view" or importlib.util.find_spec("starlette") else f"{installing('view')} && "
        )
        yield f"  {first}{shlex.join((_this_command(), *words))}"


def _this_command() -> str:
    """How this program is called here: by name if the shell finds it, else by its path."""
    own = Path(sys.executable).with_name("sweetrl")
    return "sweetrl" if shutil.which("sweetrl") == str(own) else _from_here(own)


def _from_here(path: Path) -> str:
    """The path as short as it works in this folder."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def results_table(results: StudyResults) -> Table:
    """The methods, one row each; without padding, so that 80 columns cut nothing off."""
    table = Table(title=f"{results.title}: {results.tasks}", title_justify="left", padding=0)
    table.add_column("")
    names = {"reward": "tests\npassed, %", "turns": "turns", "coverage": "facts\nasked, %"}
    names |= {"repeats": "repeats", "premature": "premature,\n%"}
    found = [name for name in names if any(name in each.figures for each in results.methods.values())]
    for heading in ("success, %\n(95 % interval)", *(names[name] for name in found)):
        table.add_column(heading, justify="right", no_wrap=True)
    for method in results.methods.values():
        cells = (plain(method.figures.get(name), percent=names[name].endswith("%")) for name in found)
        table.add_row(method.label, percent_with_interval(method.figures["success"]), *cells)
    return table
