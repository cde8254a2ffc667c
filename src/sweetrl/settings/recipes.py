"""What a recipe says: one experiment, section by section."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from sweetrl.settings.schema import Name, NotNegative, Positive, Rate, Section
from sweetrl.settings.stages import (
    RANK_CONCURRENCY,
    AgentSettings,
    CollaboratorSettings,
    CriticPrompt,
    DrawSettings,
    JudgePrompt,
    JudgeRounds,
    PairSettings,
    RankConcurrency,
    RolloutSettings,
    ScoringSettings,
    TurnPairSettings,
)


class TaskFiles(Section, frozen=True, kw_only=True):
    """Where tasks come from, as `--tasks` takes them."""

    train: Name
    test: Name | None = None
    """Tasks to evaluate the policy on; without them it is not evaluated."""


class TrainNumbers(Section, frozen=True, kw_only=True):
    """The numbers of one training run; the paper's (table 5) are the command's defaults."""

    epochs: Positive | None = None
    batch_size: Positive | None = None
    learning_rate: Rate | None = None
    beta: Rate | None = None
    nll_weight: NotNegative | None = None
    """Weight of the negative log-likelihood of what was chosen."""
    sft_weight: NotNegative | None = None
    """Weight of imitating the answers that succeeded, beside turn pairs; other methods do not take it."""
    warmup: NotNegative | None = None
    min_lr_ratio: NotNegative | None = None
    max_tokens: Positive | None = None
    """Context."""
    tokens_per_pass: Positive | None = None
    max_steps: Positive | None = None
    held_out: Annotated[float, Meta(ge=0, le=0.9)] | None = None
    """Share of the training tasks that the held-out loss is measured on, and that nothing is learnt from."""
    lora_rank: Positive | None = None
    precision: Literal["float32", "bfloat16"] | None = None
    gradient_checkpointing: bool = False
    shard: bool = False
    """Split the model over the launcher's processes."""
    save_every: Positive | None = None
    """Steps between checkpoints."""
    options: dict[str, bool | int | float | str] | UnsetType = UNSET
    """Hyperparameters that only the algorithm of the run has."""
    launcher: tuple[Name, ...] = ()
    """Words in front of `-m sweetrl`, such as those of torchrun or accelerate; empty for this Python."""


class TrainSettings(TrainNumbers, frozen=True, kw_only=True):
    """One training run."""

    model: Name
    """The seed model: a folder, a name on the hub, or one that ships."""


class CriticNumbers(TrainNumbers, frozen=True, kw_only=True):
    """The same for a critic."""

    kind: Literal["advantage", "value", "regression"] | None = None
    normalisation: Literal["turn_mean", "dialogue_mean", "none"] | None = None
    """Of an advantage critic."""
    no_reference: bool = False
    """Do not show it the reference (ablation)."""
    plain_reference: bool = False
    """Rank against the reference model without the reference in its prompt, as the published code does."""
    prompt: Name | None = None
    """What it is told of the reference: a file with the field {hidden_information}, or a prompt that ships."""


class CriticSettings(CriticNumbers, frozen=True, kw_only=True):
    """One training run of a critic."""

    model: Name
    """The seed model, as for a policy."""


class RankedDrawSettings(DrawSettings, frozen=True, kw_only=True):
    """How candidates are drawn and ranked."""

    rank_concurrency: RankConcurrency = RANK_CONCURRENCY


class CandidateSettings(RankedDrawSettings, frozen=True, kw_only=True):
    """How candidates are drawn, and who ranks them."""

    critic: Name | None = None
    """A critic as `sweetrl rank` takes it, in place of one that the recipe trains."""
    critic_prompt: CriticPrompt = None
    judge_prompt: JudgePrompt = None
    judge_rounds: JudgeRounds = None


class EvaluationSettings(Section, frozen=True, kw_only=True):
    """How the policy is evaluated."""

    agent: Name | None = None
    """Where the policy is served; without it, it runs in the command's process."""
    attempts: Positive = 1
    single_turn: bool = False
    """Without a dialogue: the first message is the answer."""


class ServerSettings(Section, frozen=True, kw_only=True):
    """A program that must be running during some stages, such as `vllm serve`."""

    command: Name
    """Started in a shell of its own; `{output}` is the recipe's folder."""
    ready: Name
    """An address that answers once it is ready."""
    stages: tuple[Name, ...]
    timeout: Positive = 1800
    """Seconds that it may take to become ready."""


class EstimateSettings(Section, frozen=True, kw_only=True):
    """What `--dry-run` assumes."""

    turns: Rate = 6.0
    """Of a dialogue."""
    output_tokens: Positive = 120
    """Of one turn of the agent."""
    reply_tokens: Positive = 60
    prompt_tokens: Positive = 500
    """Of the prompt and the request."""
    parameters: Rate | None = None
    """Of the model that is trained."""
    gpu_tflops: Rate | None = None
    """What one GPU sustains, in 10^12 floating-point operations a second."""


class Recipe(Section, frozen=True, kw_only=True):
    """A whole experiment."""

    output: Name
    """The folder that everything is written in."""
    algorithm: Name = "sweet"
    """How the policy is trained, as `sweetrl train` calls it; `none` evaluates the agent as it is."""
    kind: Literal["backend", "frontend"] = "backend"
    seed: int = 0
    tasks: TaskFiles
    episodes: Name | None = None
    """Dialogues that were held already, ours or published; they are scored, not held again."""
    agent: AgentSettings
    collaborator: CollaboratorSettings
    rollout: RolloutSettings = RolloutSettings()
    scoring: ScoringSettings = ScoringSettings()
    pairs: PairSettings = PairSettings()
    critic: CriticSettings | None = None
    candidates: CandidateSettings = CandidateSettings()
    turn_pairs: TurnPairSettings = TurnPairSettings()
    policy: TrainSettings | None = None
    evaluation: EvaluationSettings = EvaluationSettings()
    servers: tuple[ServerSettings, ...] = ()
    estimate: EstimateSettings = EstimateSettings()

    def __post_init__(self) -> None:
        if self.algorithm != "none" and self.policy is None:
            raise ValueError(
                f"algorithm '{self.algorithm}' trains a policy; add a section [policy] with its model"
            )
