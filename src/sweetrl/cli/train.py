"""`sweetrl train`: one command for each method; all share the options of `Common`.

What they do is in `cli/training.py`, which needs PyTorch.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from sweetrl.cli import console
from sweetrl.cli.console import JsonFlag, QuietFlag
from sweetrl.cli.domains import PromptDomainOption
from sweetrl.cli.options import AgentPrompt, EpisodesOption
from sweetrl.cli.options import KnownTasksOption as TasksOption
from sweetrl.errors import MissingExtra

app = typer.Typer(
    help="Train a policy or a critic on stored dialogues.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=console.GROUP_SETTINGS,
)

KindOption = PromptDomainOption
PairsOption = Annotated[
    Path, typer.Option("--pairs", metavar="PAIRS", help="Pairs of dialogues, from `sweetrl pairs`.")
]


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options of every method. None is the paper's value for the method."""

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


Body = Callable[..., None]


def _method(body: Body) -> Body:
    """Make a command of a function that takes its own options, and those of `Common` as one argument."""
    own = [
        parameter
        for name, parameter in inspect.signature(body, eval_str=True).parameters.items()
        if name != "common"
    ]
    hints = get_type_hints(Common, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(Common)
    ]

    @functools.wraps(body)
    def command(**options: Any) -> None:
        common = Common(**{parameter.name: options.pop(parameter.name) for parameter in shared})
        body(**options, common=common)

    command.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in [*own, *shared]}
    del command.__wrapped__  # typer would look there for the signature
    app.command()(command)
    return body


BetaOption = Annotated[
    float | None, typer.Option("--beta", min=0, help="How strongly preferences count against the seed model.")
]
NllOption = Annotated[float | None, typer.Option("--nll", min=0, help="Weight of imitating what was chosen.")]
ImitationOption = Annotated[
    float | None,
    typer.Option("--imitation", min=0, help="Weight of imitating answers that succeeded, with --verdicts."),
]
SuccessesOption = Annotated[
    Path | None,
    typer.Option("--verdicts", metavar="VERDICTS", help="Which dialogues succeeded, for --imitation."),
]


@_method
def rft(
    *,
    episodes: EpisodesOption,
    verdicts: Annotated[Path, typer.Option("--verdicts", metavar="VERDICTS", help="What they earned.")],
    tasks: TasksOption = None,
    kind: KindOption = None,
    agent_prompt: AgentPrompt = None,
    common: Common,
) -> None:
    """Imitate the dialogues that succeeded (rejection fine-tuning).

    Example:
        sweetrl train rft --episodes run/episodes.jsonl --verdicts run/verdicts.jsonl
        --model mini -o policy
    """
    _training().imitate(common, episodes, verdicts, tasks, kind, agent_prompt)


@_method
def dpo(
    *,
    pairs: PairsOption,
    episodes: EpisodesOption,
    tasks: TasksOption = None,
    kind: KindOption = None,
    agent_prompt: AgentPrompt = None,
    beta: BetaOption = None,
    nll: NllOption = None,
    imitation: ImitationOption = None,
    verdicts: SuccessesOption = None,
    common: Common,
) -> None:
    """Prefer whole dialogues to others (multi-turn DPO).

    Example:
        sweetrl train dpo --episodes run/episodes.jsonl --pairs pairs.jsonl --model mini -o policy
    """
    settings = {"beta": beta, "nll": nll, "imitation": imitation}
    _training().prefer_dialogues(common, pairs, episodes, verdicts, tasks, kind, agent_prompt, settings)


@_method
def critic(
    *,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="PAIRS", help="Pairs of dialogues, from `sweetrl pairs`."),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            "--verdicts", metavar="VERDICTS", help="What they earned, for --kind value, in place of pairs."
        ),
    ] = None,
    episodes: EpisodesOption,
    tasks: Annotated[str, typer.Option("--tasks", metavar="TASKS", help="The tasks, with their references.")],
    kind: Annotated[
        Literal["advantage", "value", "regression"],
        typer.Option("--kind", help="Log-ratios of the model itself, or a head for success or for scores."),
    ] = "advantage",
    normalisation: Annotated[
        Literal["turn_mean", "dialogue_mean", "none"],
        typer.Option("--normalisation", help="Of the log-ratios of tokens; turn_mean is the paper's."),
    ] = "turn_mean",
    vision: Annotated[
        bool,
        typer.Option(
            "--vision",
            help="Show it the reference page as a picture: a vision-language model, --kind regression.",
        ),
    ] = False,
    blind: Annotated[bool, typer.Option("--blind", help="Do not show it the reference (ablation).")] = False,
    plain_reference: Annotated[
        bool,
        typer.Option(
            "--plain-reference",
            help="Rank turns against the reference model without the reference in its prompt, "
            "as the published code does.",
        ),
    ] = False,
    critic_prompt: Annotated[
        Path | None,
        typer.Option("--critic-prompt", metavar="FILE", help="Text around {hidden_information}."),
    ] = None,
    agent_prompt: AgentPrompt = None,
    beta: BetaOption = None,
    nll: NllOption = None,
    common: Common,
) -> None:
    """Learn which turns earn the reward, with the reference in sight.

    Example:
        sweetrl train critic --tasks mini-backend:train:20 --episodes run/episodes.jsonl --pairs pairs.jsonl
        --model mini -o critic
    """
    settings = {
        "kind": kind,
        "normalisation": normalisation,
        "vision": vision,
        "privileged": not blind,
        "plain_reference": plain_reference,
        "beta": beta,
        "nll": nll,
    }
    _training().judge(common, pairs, verdicts, episodes, tasks, agent_prompt, critic_prompt, settings)


@_method
def policy(
    *,
    pairs: Annotated[
        Path, typer.Option("--pairs", metavar="TURN_PAIRS", help="Pairs of turns, from `sweetrl turn-pairs`.")
    ],
    kind: KindOption = None,
    agent_prompt: AgentPrompt = None,
    beta: BetaOption = None,
    nll: NllOption = None,
    imitation: ImitationOption = None,
    episodes: Annotated[
        Path | None,
        typer.Option("--episodes", metavar="EPISODES", help="Dialogues to imitate, for --imitation."),
    ] = None,
    verdicts: SuccessesOption = None,
    common: Common,
) -> None:
    """Prefer single turns to others, as a critic ranked them (turn-wise DPO).

    Example:
        sweetrl train policy --pairs turn_pairs.jsonl --model mini -o policy
    """
    settings = {"beta": beta, "nll": nll, "imitation": imitation}
    _training().prefer_turns(common, pairs, episodes, verdicts, kind, agent_prompt, settings)


def _training() -> Any:
    try:
        from sweetrl.cli import training
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("sweetrl"):
            raise
        raise MissingExtra("training", "train") from error
    return training
