"""The settings of each stage. What several stages share is a section of its own, or a type with its sentence."""

from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from sweetrl.settings.schema import PREFIXED, Name, NotNegative, Positive, Record, Section, Setting, Share

RANK_CONCURRENCY = 8
"""Turns that a critic is given at a time."""

# By what a run card keeps: something made from the setting, or nothing because it does not change results.
derived = partial(Setting, record=Record.DERIVED)
harmless = partial(Setting, record=Record.NOTHING)
a_model = partial(derived, metavar="MODEL", option="")
a_prompt = partial(derived, metavar="FILE", default="the prompt that ships")

Replays = Annotated[int, Meta(ge=2)]
CriticPrompt = Annotated[
    Name | None, a_prompt("Text around {hidden_information}, for a critic zero:hf:PATH.")
]
JudgePrompt = Annotated[Name | None, a_prompt("Prompt for a judge that compares {first} and {second}.")]
JudgeRounds = Annotated[
    Positive | None,
    derived("Rounds of a judge: each candidate is compared with twice as many others.", default="2"),
]
CriticPrecision = Annotated[
    Literal["float32", "bfloat16"] | None,
    derived(
        "Number format in which a trained critic and its reference model compute.",
        default="float32 on a CPU, that of the files on a GPU",
    ),
]
RankConcurrency = Annotated[Positive, harmless("The most turns that a critic is given at a time.")]
Seed = Annotated[int, Setting("The same seed gives the same records.")]
ShardOption = Annotated[
    Name | None,
    harmless(
        "Make only the I-th of N parts, in a file of its own; `merge` joins them.",
        metavar="I/N",
        default="all records",
    ),
]
Show = Annotated[
    Literal["pictures", "source"],
    derived("How a model that plays the collaborator sees pages: rendered, or as HTML."),
]


class PlayerSettings(Section, frozen=True, kw_only=True):
    """One side of the dialogues."""

    model: Name
    temperature: NotNegative
    max_tokens: Positive
    prompt: Annotated[Name | None, a_prompt("A file with another prompt.")] = None


class AgentSettings(PlayerSettings, frozen=True, kw_only=True):
    """The agent, which is evaluated or trained."""

    model: Annotated[Name, a_model("openai:MODEL@URL, hf:PATH_OR_ID, mini or scripted:NAME.")]
    temperature: Annotated[NotNegative, derived("Sampling temperature of the agent.")] = 1.0
    max_tokens: Annotated[Positive, derived("New tokens in one turn of the agent.")] = 1024


class CollaboratorSettings(PlayerSettings, frozen=True, kw_only=True):
    """The collaborator, who knows what is wanted."""

    model: Annotated[Name, a_model("As --agent; colleague; designer[:quote]; replay:EPISODES.jsonl.")]
    temperature: Annotated[NotNegative, derived("Sampling temperature of the collaborator.")] = 0.0
    max_tokens: Annotated[Positive, derived("New tokens in one reply.")] = 512


class TurnLimitSettings(Section, frozen=True, kw_only=True):
    """The turn limit in the agent's prompt, wherever there is an agent."""

    turn_limit: Annotated[Positive, Setting("The most messages that the agent may send.")] = 10


class PlaySettings(TurnLimitSettings, frozen=True, kw_only=True):
    """Settings of every stage that plays dialogues."""

    concurrency: Annotated[Positive, harmless("The most dialogues that are open at a time.")] = 64


class RolloutSettings(PlaySettings, frozen=True, kw_only=True):
    """How dialogues are rolled out."""

    attempts: Annotated[Positive, harmless("Dialogues on each task.")] = 1
    guard: Annotated[bool, derived("Ask the collaborator again when a reply gives code away.")] = False


class DialogueSettings(Section, frozen=True, kw_only=True):
    """The two sides of dialogues and their sampling: of `rollout` and of `evaluate`."""

    agent: Annotated[AgentSettings, PREFIXED]
    collaborator: Annotated[CollaboratorSettings | None, PREFIXED] = None
    rollout: RolloutSettings = RolloutSettings()
    seed: Seed = 0
    single_turn: Annotated[bool, Setting("The agent has one message, which is the answer.")] = False
    best_of: Annotated[Positive, derived("Drafts of each turn, of which a critic chooses one.")] = 1
    critic: Annotated[
        Name | None,
        derived(
            "The critic that chooses among the drafts, as in `sweetrl rank`; it sees the task.",
            metavar="CRITIC",
            default="nobody",
        ),
    ] = None
    critic_prompt: CriticPrompt = None
    show: Show = "pictures"
    limit: Annotated[Positive | None, derived("Only the first N tasks.", metavar="N", default="all")] = None
    shard: ShardOption = None
    request_timeout: Annotated[
        float, Meta(ge=0.1), harmless("Time that an endpoint has for one reply.", metavar="SECONDS")
    ] = 300.0
    request_attempts: Annotated[Positive, harmless("Attempts for a failing request.")] = 12
    patience: Annotated[
        float,
        Meta(ge=0.1),
        harmless(
            "Time without a connection to an endpoint after which the run stops, to be resumed.",
            metavar="SECONDS",
        ),
    ] = 10.0


class BudgetSettings(Section, frozen=True, kw_only=True):
    """When `rollout` stops even if dialogues are left."""

    price_agent: Annotated[
        Name | None,
        harmless("Per million tokens read and written: 0.5/1.5.", metavar="IN/OUT", default="free"),
    ] = None
    price_collaborator: Annotated[
        Name | None, harmless("As --price-agent.", metavar="IN/OUT", default="free")
    ] = None
    max_tokens_total: Annotated[
        Positive | None, harmless("Stop after this many tokens, both sides together.", default="no limit")
    ] = None
    max_cost: Annotated[
        NotNegative | None, harmless("Stop after this cost, in the prices' currency.", default="no limit")
    ] = None
    time_limit: Annotated[
        Name | None,
        harmless("Stop after this time: 90, 45m or 2h.", metavar="TIME", default="no limit"),
    ] = None


class SandboxSettings(Section, frozen=True, kw_only=True):
    """How untrusted answers are run."""

    workers: Annotated[int, Meta(ge=0), harmless("Answers scored at a time; 0 for one per core.")] = 0
    mode: Annotated[
        Literal["module", "official"],
        derived("Run answers as modules, or as the paper's scorer does, with its word filters."),
    ] = "module"
    isolation: Annotated[
        Literal["landlock", "bubblewrap", "unsafe"] | None,
        harmless("How answers are confined.", default="the best that this machine offers"),
    ] = None


class ScorerSettings(SandboxSettings, frozen=True, kw_only=True):
    """How answers are run or rendered, and compared."""

    similarity: Annotated[
        Name, derived("How pages are compared: layout, or clip:PATH_OR_ID of a CLIP model.", metavar="NAME")
    ] = "layout"


class ScoringSettings(Section, frozen=True, kw_only=True):
    """The reward of a dialogue."""

    turn_cost: Annotated[
        Share, Setting("Taken off the reward for each turn before the answer.", Record.UNLESS_DEFAULT)
    ] = 0.0


class ShardSettings(Section, frozen=True, kw_only=True):
    """Which part of the records is made: of `score`."""

    shard: ShardOption = None


class PairSettings(Section, frozen=True, kw_only=True):
    """How dialogues are paired."""

    rule: Annotated[
        Literal["backend", "successes", "frontend", "all"],
        Setting(
            "backend: the first success against all that earned less; successes: each of them; "
            "frontend, all: any two."
        ),
    ] = "backend"
    margin: Annotated[
        NotNegative | None,
        derived("Rewards of a pair differ by more than this.", default="0.1 for frontend, 0 for all"),
    ] = None


class DrawSettings(Section, frozen=True, kw_only=True):
    """How candidates are drawn."""

    n: Annotated[Positive, Setting("Candidates for each turn.")] = 16
    attempts: Annotated[
        Positive | None,
        Setting("Only for the first N dialogues on each task.", Record.UNLESS_DEFAULT, default="all"),
    ] = None
    fraction: Annotated[
        Share | None,
        Setting(
            "Only for this fraction of the dialogues, chosen by the seed.",
            Record.UNLESS_DEFAULT,
            default="all",
        ),
    ] = None
    concurrency: Annotated[Positive, harmless("The most turns that are under way at a time.")] = 64


class SamplingSettings(TurnLimitSettings, frozen=True, kw_only=True):
    """Settings of `candidates`: whose candidates are drawn, and how many."""

    agent: Annotated[AgentSettings, PREFIXED]
    draw: DrawSettings = DrawSettings()
    seed: Seed = 0
    shard: ShardOption = None


class RankSettings(Section, frozen=True, kw_only=True):
    """The critic that ranks candidates, and the options of a judge: of `rank`."""

    critic: Annotated[
        Name,
        derived(
            "The folder of a trained critic, served:DIR,... for one that vLLM serves, zero:hf:PATH, value:DIR, "
            "judge:MODEL, scripted:NAME or length.",
            metavar="CRITIC",
        ),
    ]
    critic_prompt: CriticPrompt = None
    precision: CriticPrecision = None
    concurrency: RankConcurrency = RANK_CONCURRENCY
    judge_prompt: JudgePrompt = None
    judge_rounds: JudgeRounds = None
    shard: ShardOption = None


class CreditSettings(Section, frozen=True, kw_only=True):
    """The critic that gives credit to the turns of dialogues: of `credit`."""

    critic: Annotated[
        Name | None,
        derived(
            "judge:MODEL, the folder of a trained critic, zero:hf:PATH, value:DIR, scripted:NAME or length.",
            metavar="CRITIC",
            default="one that is learned from the outcomes",
        ),
    ] = None
    model: Annotated[
        Name,
        derived(
            "Source of a learned critic's features: mini, hf:PATH_OR_ID, or words alone.", metavar="MODEL"
        ),
    ] = "mini"
    outcome_field: Annotated[
        Name | None,
        derived(
            "Field of a chat with its outcome; metadata.rating names a nested one.",
            metavar="NAME",
            default="outcome, reward or success",
        ),
    ] = None
    success_at: Annotated[float, derived("The lowest outcome that counts as a success.")] = 1.0
    critic_prompt: CriticPrompt = None
    precision: CriticPrecision = None
    concurrency: RankConcurrency = RANK_CONCURRENCY
    seed: Annotated[int, derived("Seed of the folds in which a critic is learned.")] = 0
    shard: ShardOption = None


class TurnPairSettings(Section, frozen=True, kw_only=True):
    """How candidates are paired."""

    rule: Annotated[
        Literal["halves", "extremes"],
        Setting("Top half against bottom half, or the best against the worst."),
    ] = "halves"
    pairs: Annotated[Positive, Setting("Pairs of each turn, at most.")] = 4
    margin: Annotated[NotNegative, Setting("Advantages of a pair differ by more than this.")] = 0.0
    min_gap_std: Annotated[
        NotNegative,
        Setting(
            "The same in standard deviations of the critic's advantages within a turn.",
            Record.UNLESS_DEFAULT,
            card="spreads",
        ),
    ] = 0.0


class SeededTurnPairSettings(TurnPairSettings, frozen=True, kw_only=True):
    """How candidates are paired, and drawn for it: of `turn-pairs`."""

    seed: Seed = 0


class ValueSettings(Section, frozen=True, kw_only=True):
    """How candidates are replayed to the end: of `values`."""

    agent: Annotated[AgentSettings, PREFIXED]
    collaborator: Annotated[CollaboratorSettings, PREFIXED]
    replays: Annotated[Replays, Setting("Dialogues played from each candidate.")] = 16
    turns: Annotated[Positive | None, harmless("Only this many turns, drawn by the seed.", default="all")] = (
        None
    )
    seed: Seed = 0
    play: PlaySettings = PlaySettings()
    show: Show = "pictures"
    shard: ShardOption = None
