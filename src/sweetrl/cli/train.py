"""`sweetrl train ALGORITHM`: a command for each algorithm of the registry; all share the options of `Common`.

`cli/training.py`, which needs PyTorch, runs them.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.rollout import AgentPrompt
from sweetrl.errors import MissingExtra

if TYPE_CHECKING:
    from sweetrl.learning.algorithm import Algorithm


class AlgorithmGroup(TyperGroup):
    """Reads the registry when its commands are asked for: `sweetrl --help` need not wait for it."""

    @property
    def commands(self) -> dict[str, Any]:
        """A command for each algorithm."""
        from sweetrl.learning.algorithms import algorithms

        return {name: command_of(each) for name, each in sorted(algorithms().items())}

    @commands.setter
    def commands(self, _: object) -> None:
        """The group is made with an empty list of commands, which is of no use."""


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
        float | None, typer.Option("--warmup", min=0, max=1, help="Share of the steps that it takes to rise.")
    ] = None
    floor: Annotated[
        float | None, typer.Option("--floor", min=0, max=1, help="Where it ends, as a share of the peak.")
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
    seed: Annotated[int, typer.Option("--seed", help="Of the order of the data, adapters and heads.")] = 0
    save_every: Annotated[
        int, typer.Option("--save-every", metavar="STEPS", min=1, help="Steps between checkpoints.")
    ] = 100
    keep: Annotated[int, typer.Option("--keep", min=1, help="Checkpoints that are kept.")] = 2
    log_every: Annotated[
        int, typer.Option("--log-every", metavar="STEPS", min=1, help="Steps between lines of log.jsonl.")
    ] = 1
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Log for TensorBoard too.")] = False
    wandb: Annotated[bool, typer.Option("--wandb", help="Log to Weights & Biases too.")] = False
    json: JsonFlag = False
    quiet: QuietFlag = False


# ---------------------------------------------------------------- options that not all algorithms have


@dataclass(frozen=True)
class Option:
    """An option of a command: its name in Python, its type for typer, and its default."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    def parameter(self) -> inspect.Parameter:
        """A keyword of the command's function."""
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, annotation=self.annotation, default=self.default
        )


INPUTS: dict[str, tuple[Any, str, str]] = {
    "pairs": (Path, "--pairs", "PAIRS"),
    "turn_pairs": (Path, "--pairs", "TURN_PAIRS"),
    "episodes": (Path, "--episodes", "EPISODES"),
    "verdicts": (Path, "--verdicts", "VERDICTS"),
    "tasks": (str, "--tasks", "TASKS"),
}
"""Type, option and placeholder of each input."""

SETTINGS = {
    option.name: option
    for option in (
        Option(
            "beta",
            Annotated[
                float | None,
                typer.Option("--beta", min=0, help="How strongly preferences count against the seed model."),
            ],
            None,
        ),
        Option(
            "nll",
            Annotated[
                float | None, typer.Option("--nll", min=0, help="Weight of imitating what was chosen.")
            ],
            None,
        ),
        Option(
            "imitation",
            Annotated[
                float | None,
                typer.Option(
                    "--imitation", min=0, help="Weight of imitating answers that succeeded, with --verdicts."
                ),
            ],
            None,
        ),
        Option(
            "kind",
            Annotated[
                Literal["advantage", "value", "regression"],
                typer.Option(
                    "--kind", help="Log-ratios of the model itself, or a head for success or for scores."
                ),
            ],
            "advantage",
        ),
        Option(
            "normalisation",
            Annotated[
                Literal["turn_mean", "dialogue_mean", "none"],
                typer.Option(
                    "--normalisation", help="Of the log-ratios of tokens; turn_mean is the paper's."
                ),
            ],
            "turn_mean",
        ),
        Option(
            "vision",
            Annotated[
                bool,
                typer.Option(
                    "--vision",
                    help="Show it the reference page as a picture: a vision-language model, --kind regression.",
                ),
            ],
            default=False,
        ),
        Option(
            "privileged",
            Annotated[
                bool,
                typer.Option(
                    "--blind",
                    callback=lambda blind: not blind,
                    help="Do not show it the reference (ablation).",
                ),
            ],
            default=False,
        ),
        Option(
            "plain_reference",
            Annotated[
                bool,
                typer.Option(
                    "--plain-reference",
                    help="Rank turns against the reference model without the reference in its prompt, "
                    "as the published code does.",
                ),
            ],
            default=False,
        ),
    )
}
"""Settings that only some algorithms take, by name."""

DOMAIN = Option(
    "domain",
    Annotated[
        Literal["backend", "frontend"] | None,
        typer.Option("--kind", help="Whose prompt the agent gets, if --agent-prompt gives none."),
    ],
    None,
)
CRITIC_PROMPT = Option(
    "critic_prompt",
    Annotated[
        Path | None,
        typer.Option("--critic-prompt", metavar="FILE", help="Text around {hidden_information}."),
    ],
    None,
)
AGENT_PROMPT = Option("agent_prompt", AgentPrompt, None)


def options_of(algorithm: "Algorithm") -> Iterator[Option]:
    """The options of an algorithm beside those of `Common`."""
    for read, given in algorithm.reads.items():
        kind, flag, metavar = INPUTS[read]
        told = typer.Option(flag, metavar=metavar, help=given.help)
        if given.required:
            yield Option(read, Annotated[kind, told])
        else:
            yield Option(read, Annotated[kind | None, told], None)
    if not ("tasks" in algorithm.reads and algorithm.reads["tasks"].required):
        yield DOMAIN
    yield from (SETTINGS[name] for name in algorithm.takes)
    for name, own in algorithm.hyperparameters.items():
        told = typer.Option(f"--{name.replace('_', '-')}", help=own.help)
        yield Option(name, Annotated[type(own.default), told], own.default)
    yield from (CRITIC_PROMPT, AGENT_PROMPT) if algorithm.privileged else (AGENT_PROMPT,)


def _common_options() -> Iterator[Option]:
    hints = get_type_hints(Common, include_extras=True)
    for field in fields(Common):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield Option(field.name, hints[field.name], default)


def command_of(algorithm: "Algorithm") -> Any:
    """The command that trains by an algorithm."""
    shared, own = list(_common_options()), list(options_of(algorithm))

    def command(**values: Any) -> None:
        common = Common(**{option.name: values.pop(option.name) for option in shared})
        _training()(algorithm, common, values)

    parameters = [option.parameter() for option in (*own, *shared)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(algorithm.name, help=algorithm.help)(command)
    return typer.main.get_command(single)


def _training() -> Callable[..., None]:
    try:
        from sweetrl.cli import training
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("training", "train") from error
    return training.train
