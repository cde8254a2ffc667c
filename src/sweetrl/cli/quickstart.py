"""`sweetrl quickstart`: the paper in miniature, from dialogues to a table, on a laptop.

It runs a study that ships with the package and says in plain words what is going on.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from sweetrl.cli.study import Plan
    from sweetrl.evaluation.studies import StudyResults
    from sweetrl.settings import Study

METRICS = "metrics.json"
MOST_JOBS = 4
"""Stages at a time, unless more are asked for: each holds a model in memory."""
RECIPES = {"": "quickstart.toml", "fast": "quickstart_fast.toml", "full": "mini_paper.toml"}


def quickstart(
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The folder to write; if not given, the one that the recipe names.",
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Fewer tasks and dialogues: about two minutes.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The whole study: all ablations, five seeds, many hours.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="The same seed gives the same table; 0.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Stages at a time; as many as cores, at most 4."),
    ] = None,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Train SWEET-RL and its baselines on a laptop.

    A tiny agent that ships with the package asks a scripted colleague, writes Python functions and learns from how
    they did. Writes DIR/metrics.json and DIR/report.html. Rerun the same command to resume.

    Example:
        sweetrl quickstart --fast -o quickstart
    """
    from sweetrl.cli.study import plan

    study = _study(output, _variant(fast=fast, full=full), seed)
    planned = plan(study)
    fresh = _run(study, planned, jobs, quiet=quiet or json)
    results = _results(study, planned, fresh=fresh, quiet=quiet or json)
    report = Path(study.output) / "report.html"
    if json:
        console.print_json({"output": study.output, "report": str(report), **metrics_of(results)})
    else:
        if not fresh and not quiet:
            console.note(f"{study.output}: was finished before; remove the folder to run it again")
        console.results().print(results_table(results))
        for line in caveats(results, fast=fast):
            typer.echo(line)
        typer.echo(f"Report: {report}")


def _run(study: "Study", planned: "Plan", jobs: int | None, *, quiet: bool) -> bool:
    """Do what is not done; whether there was anything."""
    from sweetrl.cli import nursery
    from sweetrl.cli.runner import usable_cores
    from sweetrl.cli.screen import ScreenedRunner, View, in_words, weight

    view = View(
        [weight(*each) for each in zip(planned.recipes, planned.stages, strict=True)],
        lambda stage: in_words(study, stage),
    )
    jobs = min(usable_cores(), MOST_JOBS) if jobs is None else jobs
    forked = nursery.is_possible()
    runner = ScreenedRunner(
        Path(study.output), planned.stages, view=view, forked=forked, jobs=jobs, quiet=quiet
    )
    fresh = runner.has_work
    runner.run()
    return fresh


def _variant(*, fast: bool, full: bool) -> str:
    if fast and full:
        raise UsageError("--fast and --full contradict each other; give one of them")
    return "fast" if fast else "full" if full else ""


def _study(output: Path | None, variant: str, seed: int | None) -> "Study":
    from sweetrl.settings import load_study

    changes = [] if output is None else [f"output={_quoted(output)}"]
    if seed is not None:
        changes.append(f"seed={seed}")
    # A page of the checkout's documentation is written by `sweetrl run` alone.
    return load_study(shipped(RECIPES[variant]), [*changes, "page="])


def _quoted(path: Path) -> str:
    import json

    return json.dumps(str(path))


def shipped(name: str) -> Path:
    """A recipe of the package."""
    from importlib import resources

    return Path(str(resources.files("sweetrl").joinpath("recipes", name)))


# ---------------------------------------------------------------- results


def _results(study: "Study", planned: "Plan", *, fresh: bool, quiet: bool) -> "StudyResults":
    """What came out; a finished run is not gone through again."""
    import msgspec

    from sweetrl.cli.study_results import finish
    from sweetrl.records import write_atomically

    results = None if fresh else _written(study)
    if results is None:
        if not quiet:
            console.note("Writing the report")
        finish(study, planned, quiet=True)
        results = _written(study)
        assert results is not None
    metrics = msgspec.json.format(msgspec.json.encode(metrics_of(results))) + b"\n"
    write_atomically(Path(study.output) / METRICS, metrics)
    return results


def _written(study: "Study") -> "StudyResults | None":
    """The results that are there, if they and their report are those of this study."""
    import msgspec

    from sweetrl.cli.study_report import REPORT
    from sweetrl.cli.study_results import RESULTS
    from sweetrl.evaluation.studies import StudyResults

    folder = Path(study.output)
    if not all((folder / name).is_file() for name in (RESULTS, REPORT)):
        return None
    try:
        results = msgspec.json.decode((folder / RESULTS).read_bytes(), type=StudyResults)
    except msgspec.DecodeError:
        return None
    own = msgspec.json.decode(msgspec.json.encode(study))
    return results if results.settings == own else None


def metrics_of(results: "StudyResults") -> dict[str, object]:
    """The figures of each method in short, and nothing that depends on the machine's speed or folders."""
    import msgspec

    return {
        "methods": {
            name: {
                "label": method.label,
                "success": method.figures["success"].value,
                "low": method.figures["success"].low,
                "high": method.figures["success"].high,
                "count": method.figures["success"].count,
                "unscored": method.unscored + method.failed,
                **{key: metric.value for key, metric in method.figures.items() if key != "success"},
            }
            for name, method in results.methods.items()
        },
        "steps": msgspec.to_builtins(results.steps),
        "tasks": results.tasks,
        "seeds": results.seeds,
    }


def caveats(results: "StudyResults", *, fast: bool) -> "Iterator[str]":
    """What the table must not be read as."""
    if fast:
        yield "--fast is too small to rank the methods: it shows the pipeline. Run without --fast for a comparison."
    labels = {name: method.label for name, method in results.methods.items()}
    level = [
        f"{labels[step.first]} and {labels[step.second]}"
        for step in results.steps
        if step.low is not None and step.high is not None and step.low <= 0 <= step.high
    ]
    if level:
        yield f"Not told apart by this run (the interval of the difference holds 0): {'; '.join(level)}."


def results_table(results: "StudyResults") -> "Table":
    """The methods, one row each; without padding, so that 80 columns cut nothing off."""
    from rich.table import Table

    from sweetrl.cli.figures import percent_with_interval, plain

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
