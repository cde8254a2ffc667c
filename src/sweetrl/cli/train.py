"""`sweetrl train ALGORITHM`: a command for each algorithm of the registry."""

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import DomainOption, PromptDomainOption
from sweetrl.cli.groups import DocumentedCommand
from sweetrl.cli.options import parameter_of
from sweetrl.cli.train_progress import shown_steps
from sweetrl.errors import needs_extra
from sweetrl.learning.algorithm import Algorithm, InputName
from sweetrl.learning.algorithms import algorithms, options_of
from sweetrl.settings import TrainRunSettings, settings_fields
from sweetrl.settings.schema import build

OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write the trained model in.")
]


class AlgorithmGroup(TyperGroup):
    """A group with a command for each algorithm."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: command_of(each) for name, each in sorted(algorithms().items())}


app = typer.Typer(
    cls=AlgorithmGroup,
    help="Train a policy or a critic on stored dialogues.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=console.GROUP_SETTINGS,
)


@app.callback()
def train() -> None:
    """Train a policy or a critic on stored dialogues."""


# ---------------------------------------------------------------- options of one algorithm


INPUTS: Mapping[InputName, tuple[Any, str, str]] = {
    "pairs": (Path, "--pairs", "pairs.jsonl"),
    "turn_pairs": (Path, "--pairs", "turn_pairs.jsonl"),
    "episodes": (Path, "--episodes", "run/episodes.jsonl"),
    "verdicts": (Path, "--verdicts", "run/verdicts.jsonl"),
    "tasks": (str, "--tasks", "mini-backend:train:20"),
}
"""Type and option of each input, and an example."""


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _parameters(algorithm: Algorithm) -> Iterator[inspect.Parameter]:
    """The options of an algorithm beside those of every run."""
    for given, read in algorithm.reads.items():
        kind, flag, _ = INPUTS[given]
        told = typer.Option(flag, metavar=given.upper(), help=read.help)
        yield (
            _keyword(given, Annotated[kind, told])
            if read.required
            else _keyword(given, Annotated[kind | None, told], None)
        )
    yield _keyword("domain", DomainOption if algorithm.privileged else PromptDomainOption, None)
    for name, own in algorithm.hyperparameters.items():
        told = typer.Option(f"--{name.replace('_', '-')}", help=own.help)
        yield _keyword(name, Annotated[type(own.default), told], own.default)
    for field in options_of(algorithm):
        yield parameter_of(field, field.path[0])


def _of_every_run() -> Iterator[inspect.Parameter]:
    yield _keyword("output", OutputOption)
    yield from map(parameter_of, settings_fields(TrainRunSettings))
    yield _keyword("json", JsonFlag, default=False)
    yield _keyword("quiet", QuietFlag, default=False)


def command_of(algorithm: Algorithm) -> Any:
    """The command that trains by an algorithm."""
    own = list(_parameters(algorithm))

    def command(output: Path, *, json: bool, quiet: bool, **values: Any) -> None:
        run = build(TrainRunSettings, values)
        chosen = {each.name: values[each.name] for each in own}
        _train(algorithm, run, output, chosen, json=json, quiet=quiet)

    command.__signature__ = inspect.Signature([*own, *_of_every_run()])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(algorithm.name, cls=DocumentedCommand, help=_help(algorithm))(command)
    return typer.main.get_command(single)


def _help(algorithm: Algorithm) -> str:
    """The algorithm's sentence, and an example with the inputs that it cannot do without."""
    given = [
        f"{INPUTS[name][1]} {INPUTS[name][2]}"
        for name, read in algorithm.reads.items()
        if read.required or name == "pairs"
    ]
    output = "critic" if algorithm.privileged else "policy"
    words = f"sweetrl train {algorithm.name} {' '.join(given)} --model mini -o {output}"
    return f"{algorithm.help}\n\nExample:\n{words}"


# ---------------------------------------------------------------- one run


def _train(
    algorithm: Algorithm,
    run: TrainRunSettings,
    output: Path,
    values: dict[str, Any],
    *,
    json: bool,
    quiet: bool,
) -> None:
    with needs_extra("training", "train"):
        from sweetrl.learning import training

    main = training.is_main()
    note = console.note if main and not quiet else lambda _: None
    shown = shown_steps(None if quiet else algorithm.name, main=main)
    card = training.train(algorithm, run, output, values, note=note, shown=shown)
    if not main:
        return
    if json:
        console.print_json({"output": str(output), "finished": card.finished, "metrics": card.metrics})
    names = ("loss", "accuracy", "margin", "nll")
    metrics = ", ".join(f"{name} {card.metrics[name]:.4g}" for name in names if name in card.metrics)
    note(f"{output}: {card.examples} examples, {card.metrics['step']:.0f} steps, {metrics}")
