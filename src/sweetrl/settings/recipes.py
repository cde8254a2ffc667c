"""The fields of a recipe: one experiment, section by section."""

from typing import Literal

import msgspec

from sweetrl.settings.schema import Name, Positive, Rate, Section
from sweetrl.settings.stages import (
    RANK_CONCURRENCY,
    AgentSettings,
    CollaboratorSettings,
    CriticPrecision,
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
from sweetrl.settings.training import CriticSettings, TrainSettings


class TaskFiles(Section, frozen=True, kw_only=True):
    """Sources of tasks, as `--tasks` takes them."""

    train: Name
    test: Name | None = None
    """Tasks to evaluate the policy on; without them it is not evaluated."""


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
    precision: CriticPrecision = None
    critic_at: Name | None = None
    """The vLLM server of the critic that the recipe trains, to rank through it: openai:MODEL@URL."""
    reference_at: Name | None = None
    """The server of the model that the critic's training began with."""

    def __post_init__(self) -> None:
        if (self.critic_at is None) != (self.reference_at is None):
            raise ValueError("ranking through servers needs both critic_at and reference_at")
        if self.critic_at is not None and self.precision is not None:
            raise ValueError("the precision of critic_at is that of its server; leave out precision")
        if self.critic_at is not None and self.critic is not None:
            raise ValueError("critic_at serves the critic that the recipe trains; leave out critic")


class EvaluationSettings(Section, frozen=True, kw_only=True):
    """How the policy is evaluated."""

    agent: Name | None = None
    """The server of the policy; without it, it runs in the command's process."""
    attempts: Positive = 1
    single_turn: bool = False
    """Without a dialogue: the first message is the answer."""
    untrained: bool = True
    """Also evaluate the agent as it was before training."""


class ServerSettings(Section, frozen=True, kw_only=True):
    """A program that must be running during some stages, such as `vllm serve`."""

    command: Name
    """Started in a shell of its own; `{output}` is the recipe's folder."""
    ready: Name
    """An address that answers once it is ready."""
    serves: Name | None = None
    """The model that the list at `ready` must name; without it, the one that the recipe asks that address for."""
    stages: tuple[Name, ...]
    timeout: Positive = 1800
    """Seconds that it may take to become ready."""
    keep: bool = False
    """Start it once and keep it until the run ends, instead of restarting it for each stage."""
    adapters: dict[Name, Name] = msgspec.field(default_factory=dict)
    """LoRA adapters by the names that vLLM offers them under; each is loaded once its folder is complete."""


class EstimateSettings(Section, frozen=True, kw_only=True):
    """Assumptions of `--dry-run`."""

    turns: Rate = 6.0
    """Turns of a dialogue."""
    output_tokens: Positive = 120
    """Tokens of one turn of the agent."""
    reply_tokens: Positive = 60
    prompt_tokens: Positive = 500
    """Tokens of the prompt and the request."""
    parameters: Rate | None = None
    """Parameters of the model that is trained."""
    gpu: Name | None = None
    """The GPUs of the run, such as `h100-80gb`: their memory is checked against a simulated training step."""
    gpu_tflops: Rate | None = None
    """Throughput of one GPU in 10^12 floating-point operations a second; if not given, the usual value for `gpu`."""
    model: dict[str, str | int | float | bool] | None = None
    """config.json of the model to train, if the model is not on this machine."""


ShardedCommand = Literal["candidates", "evaluate", "rank", "rollout", "score", "values"]
"""Commands that map records to records, and take `--shard`."""


class ExecutionSettings(Section, frozen=True, kw_only=True):
    """The place where stages run; changes no record."""

    executor: Literal["local", "ray"] = "local"
    """This machine, or the Ray cluster that it is a part of."""
    shards: dict[ShardedCommand, Positive] = msgspec.field(default_factory=dict)
    """In how many parts the stages of a command are run, such as `rank = 8` for 8 GPUs."""


class Recipe(ExecutionSettings, frozen=True, kw_only=True):
    """A whole experiment."""

    output: Name
    """The folder that everything is written in."""
    algorithm: Name = "sweet"
    """The training algorithm, as `sweetrl train` calls it; `none` evaluates the agent as it is."""
    domain: Name = "backend"
    """The domain of the tasks."""
    seed: int = 0
    tasks: TaskFiles
    episodes: Name | None = None
    """Existing dialogues, ours or published; they are scored, and no new ones are rolled out."""
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
