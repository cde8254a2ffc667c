"""`sweetrl run`: a whole experiment from one recipe.

Each stage runs as the command that a person would type, in a process of its own: what a stage holds (a model
on the GPU, a thousand connections) is gone when it ends, a launcher such as torchrun fits in front of it, and
the log shows commands that can be repeated by hand. Stages side by side are forks of a process that has loaded
PyTorch (see `experiments/warm_workers.py`), or each would spend eight seconds on that.

A stage that is done is noted in `run.json` and not started again; one that was interrupted goes on by itself,
because every command resumes.
"""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.screen import Asked, View, refuse_problems, run_stages, tell_problems
from sweetrl.errors import ConfigError, UsageError, suggestion
from sweetrl.experiments.checks import Problem, check
from sweetrl.experiments.estimates import Cost, cost
from sweetrl.experiments.pipeline import Stage, servers_of, stage_names, stages
from sweetrl.experiments.plan import Plan
from sweetrl.experiments.recipe_report import write_recipe_report
from sweetrl.experiments.results import write_results
from sweetrl.experiments.study_plan import parts_of, plan
from sweetrl.experiments.time_left import weight
from sweetrl.settings import Recipe, ServerSettings, Study, load_experiment

HARDWARE = ("GiB a GPU", "GiB a host", "GiB disk")


def run(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A TOML file; recipes/ has some.")],
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe, for example critic.epochs=2."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Stages at a time; they share the cores.")
    ] = 1,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="PART,...",
            help="For a study: methods, ablations, credit, best_of, sizes, off_policy, and what they need.",
        ),
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="For a study: write the results so far, and run nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, its cost and its problems.")
    ] = False,
    allow_failures: Annotated[
        bool, typer.Option("--allow-failures", help="Go on when some items of a stage failed.")
    ] = False,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Run all stages of a recipe or a study.

    Each stage is a command of its own. Rerun the same command to resume. --dry-run looks for tasks, files, models,
    packages, endpoints and disk space that stages need; the exit code is 2 if something is missing.

    Example:
        sweetrl run recipes/laptop.toml --set critic.max_steps=20
    """
    experiment = load_experiment(recipe, changes or [], console.note)
    asked = Asked(jobs=jobs, allow_failures=allow_failures, quiet=quiet, execution=experiment)
    if isinstance(experiment, Study):
        if report_only:
            _report_study(experiment, json=json, quiet=quiet)
        else:
            _run_study(experiment, asked, only, dry_run=dry_run, json=json)
    elif only is not None or report_only:
        raise UsageError(f"{recipe}: is a recipe, not a study; leave out --only and --report-only")
    else:
        _run_recipe(experiment, asked, dry_run=dry_run, json=json)


def _run_recipe(recipe: Recipe, asked: Asked, *, dry_run: bool, json: bool) -> None:
    _refuse_unknown_stages(recipe)
    planned, servers = stages(recipe), servers_of(recipe)
    if dry_run:
        problems = check(planned, [recipe], servers)
        estimated = [cost(recipe, stage) for stage in planned]
        _show_plan(recipe.output, planned, estimated, problems, json=json)
        return
    done = _run_stages(recipe.output, planned, [recipe] * len(planned), asked, servers)
    report = write_recipe_report(recipe)
    if json:
        console.print_json({"output": recipe.output, "stages": done, "report": report and str(report)})
    elif report is not None and not asked.quiet:
        console.note(f"report: {report}")


def _run_study(study: Study, asked: Asked, only: str | None, *, dry_run: bool, json: bool) -> None:
    whole = plan(study)
    planned = whole if only is None else whole.of(_parts(study, only))
    if dry_run:
        estimated = [cost(*each) for each in zip(planned.recipes, planned.stages, strict=True)]
        problems = check(planned.stages, planned.recipes)
        if json:
            _show_plan(study.output, planned.stages, estimated, problems, json=True)
        else:
            _show_study(study, planned.stages, estimated)
            tell_problems(problems)
        return
    done = _run_stages(study.output, planned.stages, planned.recipes, asked)
    written = _finish(study, whole, quiet=asked.quiet or json)
    if json:
        console.print_json({"output": study.output, "stages": done, **written})


def _report_study(study: Study, *, json: bool, quiet: bool) -> None:
    written = _finish(study, plan(study), quiet=quiet or json)
    if json:
        console.print_json({"output": study.output, **written})


def _finish(study: Study, planned: Plan, *, quiet: bool) -> dict[str, str]:
    written = write_results(study, planned)
    if not quiet:
        for name, path in written.items():
            console.note(f"{name}: {path}")
    return written


def _parts(study: Study, only: str) -> list[str]:
    """The parts of the study that were asked for."""
    known = parts_of(study)
    asked = [name.strip() for name in only.split(",")]
    for name in asked:
        if name not in known:
            raise UsageError(f"--only: the study has no part '{name}'; {suggestion(name, known)}")
    return asked


def _run_stages(
    output: str,
    planned: list[Stage],
    recipes: list[Recipe],
    asked: Asked,
    servers: tuple[ServerSettings, ...] = (),
) -> list[dict[str, Any]]:
    """Run the stages. One at a time, each prints its own output; several at a time, their progress is shown."""
    refuse_problems(Path(output), planned, recipes, servers, quiet=asked.quiet)
    view = None
    if asked.jobs > 1:
        view = View([weight(*each) for each in zip(recipes, planned, strict=True)])
    return run_stages(Path(output), planned, asked, servers=servers, view=view)[0]


def _refuse_unknown_stages(recipe: Recipe) -> None:
    names = stage_names()
    for index, server in enumerate(recipe.servers):
        for name in sorted(set(server.stages).difference(names)):
            raise ConfigError(
                f"servers[{index}].stages: there is no stage '{name}'; {suggestion(name, names)}"
            )


# ---------------------------------------------------------------- the plan


def _show_plan(
    output: str, planned: list[Stage], estimated: list[Cost], problems: list[Problem], *, json: bool
) -> None:
    if json:
        rows = [
            {
                "stage": stage.name,
                "command": shlex.join(["sweetrl", *stage.arguments]),
                "inputs": stage.inputs,
                "output": str(stage.output),
                **estimate.numbers,
            }
            for stage, estimate in zip(planned, estimated, strict=True)
        ]
        console.print_json({"output": output, "stages": rows, "problems": problems})
        tell_problems(problems)
        return
    console.results().print(_plan_table(planned, estimated))
    for stage in planned:
        typer.echo(shlex.join(["sweetrl", *stage.arguments]))
    tell_problems(problems)


def _show_study(study: Study, planned: list[Stage], estimated: list[Cost]) -> None:
    """The plan of the first seed, and what all of them take."""
    others = tuple(f"seed-{seed}/" for seed in study.run_seeds[1:])
    table = _stage_table()
    for stage, estimate in zip(planned, estimated, strict=True):
        if not stage.name.startswith(others):
            table.add_row(stage.name, *map(_shown, (estimate.requests, estimate.tokens, estimate.gpu_hours)))
    console.results().print(table)
    for stage in planned:
        if not stage.name.startswith(others):
            typer.echo(shlex.join(["sweetrl", *stage.arguments]))
    tokens = sum(estimate.tokens or 0 for estimate in estimated)
    typer.echo(f"{study.seeds} seeds: {len(planned)} stages, {tokens:,} tokens in all")


def _stage_table(*more: str) -> Table:
    """A table of stages, whose names and counts are not cut on a narrow screen."""
    whole = [Column(name, no_wrap=True) for name in ("stage", "requests", "tokens")]
    return Table(*whole, "GPU hours", *more)


def _plan_table(planned: list[Stage], estimated: list[Cost]) -> Table:
    """A table of the cost of each stage; the commands say what it reads and writes."""
    table = _stage_table(*HARDWARE)
    for stage, estimate in zip(planned, estimated, strict=True):
        table.add_row(stage.name, *map(_shown, estimate.numbers.values()))
    return table


def _shown(number: float | None) -> str:
    if number is None:
        return "?"
    return f"{number:.1f}" if isinstance(number, float) else f"{number:,}"
