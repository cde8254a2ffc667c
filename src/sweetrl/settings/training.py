"""The settings of training runs, as options of `sweetrl train` and as sections of recipes.

None leaves a setting to the algorithm, whose defaults are the paper's (table 5) where it has some.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from sweetrl.settings.schema import Name, NotNegative, Positive, Rate, Record, Section, Setting, Share

CHOSEN_BY_ALGORITHM = ("beta", "nll_weight", "sft_weight")
"""Settings of `TrainNumbers` that not every algorithm takes."""


class TrainNumbers(Section, frozen=True, kw_only=True):
    """The hyperparameters of one training run, and how it is run."""

    epochs: Annotated[Positive | None, Setting("Passes over the data.")] = None
    batch_size: Annotated[Positive | None, Setting("Examples in a step, over all processes.")] = None
    learning_rate: Annotated[Rate | None, Setting("Learning rate at the peak of the schedule.")] = None
    beta: Annotated[
        Rate | None, Setting("Beta of the loss: higher values stay closer to the seed model.")
    ] = None
    nll_weight: Annotated[
        NotNegative | None, Setting("Weight of the negative log-likelihood of the chosen side.")
    ] = None
    sft_weight: Annotated[
        NotNegative | None, Setting("Weight of imitating answers that succeeded, with --verdicts.")
    ] = None
    warmup: Annotated[Share | None, Setting("Fraction of steps used for warm-up.")] = None
    min_lr_ratio: Annotated[Share | None, Setting("Learning rate at the end, as a share of the peak.")] = None
    max_tokens: Annotated[Positive | None, Setting("Context; longer histories lose their oldest turns.")] = (
        None
    )
    tokens_per_pass: Annotated[
        Positive | None, Setting("Tokens in memory at a time; changes no result.", Record.NOTHING)
    ] = None
    max_steps: Annotated[Positive | None, Setting("Stop after these steps.", default="no limit")] = None
    held_out: Annotated[
        Annotated[float, Meta(ge=0, le=0.9)] | None,
        Setting("Fraction of tasks kept from training for the held-out loss."),
    ] = None
    lora_rank: Annotated[
        Positive | None,
        Setting("Train adapters of this rank, not all weights.", default="train all weights"),
    ] = None
    precision: Annotated[
        Literal["float32", "bfloat16"] | None,
        Setting("Number format in which the model computes.", default="bfloat16 on a GPU, else float32"),
    ] = None
    gradient_checkpointing: Annotated[
        bool, Setting("Recompute activations: less memory, more time.", Record.NOTHING)
    ] = False
    shard: Annotated[
        bool, Setting("Split the model over the processes of torchrun (FSDP2).", Record.NOTHING)
    ] = False
    save_every: Annotated[
        Positive | None,
        Setting("Steps between checkpoints.", Record.NOTHING, metavar="STEPS", default="100"),
    ] = None
    save_minutes: Annotated[
        Positive | None,
        Setting(
            "Minutes between checkpoints; steps count only if --save-every is given too.",
            Record.NOTHING,
            metavar="MINUTES",
            default="by steps",
        ),
    ] = None
    options: dict[str, bool | int | float | str] | UnsetType = UNSET
    """Hyperparameters that only the algorithm of the run has."""
    launcher: tuple[Name, ...] = ()
    """Words in front of `-m sweetrl`, such as those of torchrun or accelerate; empty for this Python."""


class TrainSettings(TrainNumbers, frozen=True, kw_only=True):
    """One training run."""

    model: Name
    """The seed model: a folder, a name on the hub, or one that ships."""


class TrainRunSettings(Section, frozen=True, kw_only=True):
    """Settings of every training run beside its hyperparameters."""

    model: Annotated[Name, Setting("The seed model: mini, a folder, or a name on the hub.", metavar="PATH")]
    agent_prompt: Annotated[
        Name | None,
        Setting("A file with another prompt.", metavar="FILE", default="the prompt that ships"),
    ] = None
    turn_limit: Annotated[Positive, Setting("The turn limit that the agent's prompt names.")] = 10
    seed: Annotated[int, Setting("Seed of the order of the data, of adapters and of heads.")] = 0
    keep: Annotated[Positive, Setting("Checkpoints that are kept.", Record.NOTHING)] = 2
    log_every: Annotated[
        Positive, Setting("Steps between lines of log.jsonl.", Record.NOTHING, metavar="STEPS")
    ] = 1
    monitor: Annotated[
        int,
        Meta(ge=0),
        Setting(
            "How often KL to the base model, turn length and held-out loss are measured.",
            Record.NOTHING,
            metavar="TIMES",
        ),
    ] = 8
    tensorboard: Annotated[bool, Setting("Log for TensorBoard too.", Record.NOTHING)] = False
    wandb: Annotated[bool, Setting("Log to Weights & Biases too.", Record.NOTHING)] = False
    mlflow: Annotated[bool, Setting("Log to MLflow too.", Record.NOTHING)] = False
    trackio: Annotated[bool, Setting("Log to trackio too.", Record.NOTHING)] = False


class CriticNumbers(TrainNumbers, frozen=True, kw_only=True):
    """The hyperparameters of one training run of a critic."""

    kind: Annotated[
        Literal["advantage", "value", "regression"] | None,
        Setting("Log-ratios of the model itself, or a head for success or for scores."),
    ] = None
    normalisation: Annotated[
        Literal["turn_mean", "dialogue_mean", "none"] | None,
        Setting("How log-ratios of tokens are averaged; turn_mean is the paper's."),
    ] = None
    vision: Annotated[
        bool,
        Setting("Show it the reference page as a picture: a vision-language model, --kind regression."),
    ] = False
    no_reference: Annotated[bool, Setting("Do not show it the reference (ablation).")] = False
    plain_reference: Annotated[
        bool,
        Setting(
            "Rank turns against the reference model without the reference in its prompt, "
            "as the published code does."
        ),
    ] = False
    prompt: Annotated[
        Name | None,
        Setting(
            "Text around {hidden_information}.",
            Record.DERIVED,
            metavar="FILE",
            default="the prompt that ships",
            option="critic_prompt",
        ),
    ] = None


class CriticSettings(CriticNumbers, frozen=True, kw_only=True):
    """One training run of a critic."""

    model: Name
    """The seed model, as for a policy."""
