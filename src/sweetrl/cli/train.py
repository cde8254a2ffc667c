"""`sweetrl train ALGORITHM`: a command for each algorithm of the registry; all share the options of `Common`.

`cli/training.py`, which needs PyTorch, runs them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import PromptDomainOption
from sweetrl.cli.groups import DocumentedCommand
from sweetrl.cli.options import AgentPrompt, option_of
from sweetrl.errors import MissingExtra
from sweetrl.learning.algorithm import Algorithm, InputName
from sweetrl.learning.algorithms import algorithms, default_settings
from sweetrl.learning.settings import TRAINING_NAMES
from sweetrl.models.shipped import located
from sweetrl.models.specification import trainable
from sweetrl.settings import CriticNumbers, TrainNumbers, settings_fields
from sweetrl.settings.schema import Field
from sweetrl.settings.training import CHOSEN_BY_ALGORITHM


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


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every algorithm beside those of `TrainNumbers`."""

    model: Annotated[
        str,
        typer.Option("--model", metavar="PATH", help="The seed model: mini, a folder, or a name on the hub."),
    ]
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write the trained model in.")
    ]
    agent_prompt: AgentPrompt = None
    turn_limit: Annotated[
        int, typer.Option("--turn-limit", min=1, help="That the agent's prompt names, as in its dialogues.")
    ] = 10
    seed: Annotated[int, typer.Option("--seed", help="Of the order of the data, adapters and heads.")] = 0
    keep: Annotated[int, typer.Option("--keep", min=1, help="Checkpoints that are kept.")] = 2
    log_every: Annotated[
        int, typer.Option("--log-every", metavar="STEPS", min=1, help="Steps between lines of log.jsonl.")
    ] = 1
    monitor: Annotated[
        int,
        typer.Option(
            "--monitor",
            metavar="TIMES",
            min=0,
            help="How often KL to the base model, turn length and held-out loss are measured.",
        ),
    ] = 8
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Log for TensorBoard too.")] = False
    wandb: Annotated[bool, typer.Option("--wandb", help="Log to Weights & Biases too.")] = False
    json: JsonFlag = False
    quiet: QuietFlag = False


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


def parameters_of(algorithm: Algorithm) -> Iterator[inspect.Parameter]:
    """The options of an algorithm beside those of `Common`."""
    for given, read in algorithm.reads.items():
        kind, flag, _ = INPUTS[given]
        told = typer.Option(flag, metavar=given.upper(), help=read.help)
        yield (
            _keyword(given, Annotated[kind, told])
            if read.required
            else _keyword(given, Annotated[kind | None, told], None)
        )
    if not ("tasks" in algorithm.reads and algorithm.reads["tasks"].required):
        yield _keyword("domain", PromptDomainOption, None)
    for name, own in algorithm.hyperparameters.items():
        told = typer.Option(f"--{name.replace('_', '-')}", help=own.help)
        yield _keyword(name, Annotated[type(own.default), told], own.default)
    for field in settings_fields(CriticNumbers):
        if field.path[0] in setting_names(algorithm):
            yield _keyword(
                field.path[0], Annotated[field.type, option_of(_shown(field, algorithm))], field.default
            )


def setting_names(algorithm: Algorithm) -> tuple[str, ...]:
    """The settings of recipes that an algorithm takes."""
    shared = [field.name for field in settings_fields(TrainNumbers) if field.name not in CHOSEN_BY_ALGORITHM]
    return (*algorithm.takes, *shared, *(["prompt"] if algorithm.privileged else []))


def _shown(field: Field, algorithm: Algorithm) -> Field:
    """The setting with the default that the algorithm has for it."""
    value = getattr(default_settings(algorithm.name), TRAINING_NAMES.get(field.name, field.name), None)
    if field.default is not None or field.setting.default or value is None:
        return field
    return replace(field, setting=replace(field.setting, default=str(value)))


def _common_parameters() -> Iterator[inspect.Parameter]:
    hints = get_type_hints(Common, include_extras=True)
    for field in fields(Common):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield _keyword(field.name, hints[field.name], default)


def command_of(algorithm: Algorithm) -> Any:
    """The command that trains by an algorithm."""
    shared, own = list(_common_parameters()), list(parameters_of(algorithm))

    def command(**values: Any) -> None:
        common = Common(**{each.name: values.pop(each.name) for each in shared})
        located(trainable(common.model))  # before PyTorch is loaded, which takes seconds
        load_training()(algorithm, common, values)

    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
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


def load_training() -> Callable[..., None]:
    """The function that runs a training; it needs PyTorch."""
    try:
        from sweetrl.cli import training
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("training", "train") from error
    return training.train
