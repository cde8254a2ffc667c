"""`sweetrl train ALGORITHM`: a command for each algorithm of the registry; all share the options of `Common`.

`cli/training.py`, which needs PyTorch, runs them.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.groups import DocumentedCommand
from sweetrl.cli.options import AgentPrompt
from sweetrl.errors import MissingExtra
from sweetrl.learning.algorithm import Algorithm, InputName
from sweetrl.learning.algorithms import algorithms


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
    """The options of every algorithm. None is the default of the algorithm."""

    model: Annotated[
        str, typer.Option("--model", metavar="PATH", help="The seed model: a folder, or a name on the hub.")
    ]
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write the trained model in.")
    ]
    turn_limit: Annotated[
        int, typer.Option("--turn-limit", min=1, help="That the agent's prompt names, as in its dialogues.")
    ] = 10
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="Passes over the data.")] = None
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Examples in a step, over all processes.")
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", min=0, help="At the peak of the schedule.")
    ] = None
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="End after these.")] = None
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=1, help="Context; longer histories lose their oldest turns."),
    ] = None
    tokens_per_pass: Annotated[
        int | None,
        typer.Option("--tokens-per-pass", min=1, help="Tokens in memory at a time; changes no result."),
    ] = None
    warmup: Annotated[
        float | None, typer.Option("--warmup", min=0, max=1, help="Fraction of steps used for warm-up.")
    ] = None
    min_lr_ratio: Annotated[
        float | None,
        typer.Option(
            "--min-lr-ratio", min=0, max=1, help="Learning rate at the end, as a share of the peak."
        ),
    ] = None
    lora_rank: Annotated[
        int | None, typer.Option("--lora-rank", min=1, help="Train adapters of this rank, not all weights.")
    ] = None
    gradient_checkpointing: Annotated[
        bool, typer.Option("--gradient-checkpointing", help="Less memory, more time.")
    ] = False
    precision: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option("--precision", help="bfloat16 on a GPU, float32 elsewhere, if not given."),
    ] = None
    shard: Annotated[
        bool, typer.Option("--shard", help="Split the model over the processes of torchrun (FSDP2).")
    ] = False
    held_out: Annotated[
        float | None,
        typer.Option(
            "--held-out", min=0, max=0.9, help="Fraction of tasks kept from training for the held-out loss."
        ),
    ] = None
    seed: Annotated[int, typer.Option("--seed", help="Of the order of the data, adapters and heads.")] = 0
    save_every: Annotated[
        int, typer.Option("--save-every", metavar="STEPS", min=1, help="Steps between checkpoints.")
    ] = 100
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


# ---------------------------------------------------------------- options that not all algorithms have


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


@dataclass(frozen=True)
class Option:
    """An option of a command: its type, how typer shows it, and its default."""

    type: Any
    told: Any
    default: Any = inspect.Parameter.empty

    def parameter(self, name: str) -> inspect.Parameter:
        """A keyword of the command's function."""
        return _keyword(name, Annotated[self.type, self.told], self.default)


def _weight(flag: str, sentence: str) -> Option:
    return Option(float | None, typer.Option(flag, min=0, help=sentence), None)


def _flag(flag: str, sentence: str, **told: Any) -> Option:
    return Option(bool, typer.Option(flag, help=sentence, **told), default=False)


INPUTS: Mapping[InputName, tuple[Any, str, str]] = {
    "pairs": (Path, "--pairs", "pairs.jsonl"),
    "turn_pairs": (Path, "--pairs", "turn_pairs.jsonl"),
    "episodes": (Path, "--episodes", "run/episodes.jsonl"),
    "verdicts": (Path, "--verdicts", "run/verdicts.jsonl"),
    "tasks": (str, "--tasks", "mini-backend:train:20"),
}
"""Type and option of each input, and an example."""

SETTINGS = {
    "beta": _weight("--beta", "How strongly preferences count against the seed model."),
    "nll": _weight("--nll-weight", "Weight of the negative log-likelihood of what was chosen."),
    "imitation": _weight("--sft-weight", "Weight of imitating answers that succeeded, with --verdicts."),
    "kind": Option(
        Literal["advantage", "value", "regression"],
        typer.Option("--kind", help="Log-ratios of the model itself, or a head for success or for scores."),
        "advantage",
    ),
    "normalisation": Option(
        Literal["turn_mean", "dialogue_mean", "none"],
        typer.Option("--normalisation", help="Of the log-ratios of tokens; turn_mean is the paper's."),
        "turn_mean",
    ),
    "vision": _flag(
        "--vision", "Show it the reference page as a picture: a vision-language model, --kind regression."
    ),
    "privileged": _flag(
        "--no-reference", "Do not show it the reference (ablation).", callback=lambda hidden: not hidden
    ),
    "plain_reference": _flag(
        "--plain-reference",
        "Rank turns against the reference model without the reference in its prompt, as the published code does.",
    ),
}
"""Settings that only some algorithms take, by their name in `TrainingSettings`."""

DOMAIN = Option(
    Literal["backend", "frontend"] | None,
    typer.Option("--kind", help="Whose prompt the agent gets, if --agent-prompt gives none."),
    None,
)
CRITIC_PROMPT = Option(
    Path | None,
    typer.Option("--critic-prompt", metavar="FILE", help="Text around {hidden_information}."),
    None,
)


def parameters_of(algorithm: Algorithm) -> Iterator[inspect.Parameter]:
    """The options of an algorithm beside those of `Common`."""
    for given, read in algorithm.reads.items():
        kind, flag, _ = INPUTS[given]
        told = typer.Option(flag, metavar=given.upper(), help=read.help)
        yield (Option(kind, told) if read.required else Option(kind | None, told, None)).parameter(given)
    if not ("tasks" in algorithm.reads and algorithm.reads["tasks"].required):
        yield DOMAIN.parameter("domain")
    yield from (SETTINGS[name].parameter(name) for name in algorithm.takes)
    for name, own in algorithm.hyperparameters.items():
        told = typer.Option(f"--{name.replace('_', '-')}", help=own.help)
        yield Option(type(own.default), told, own.default).parameter(name)
    if algorithm.privileged:
        yield CRITIC_PROMPT.parameter("critic_prompt")
    yield _keyword("agent_prompt", AgentPrompt, None)


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
        _training()(algorithm, common, values)

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


def _training() -> Callable[..., None]:
    try:
        from sweetrl.cli import training
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("training", "train") from error
    return training.train
