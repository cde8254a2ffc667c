"""Recipes: one TOML file says a whole experiment, and `--set key=value` changes it.

Reading finds all faults at once and names each by its key, unknown keys with a suggestion.
"""

import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from sweetrl.errors import ConfigError

T = TypeVar("T", bound=Struct)
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=0)]
Name = Annotated[str, Meta(min_length=1)]


# ---------------------------------------------------------------- what a recipe says


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a recipe. None leaves a value to the command's own default."""


class TaskFiles(Section, frozen=True, kw_only=True):
    """Where tasks come from, as `--tasks` takes them."""

    train: Name
    test: Name | None = None
    """Tasks to evaluate the policy on; without them it is not evaluated."""


class PlayerSettings(Section, frozen=True, kw_only=True):
    """One side of the dialogues."""

    model: Name
    temperature: NotNegative | None = None
    max_tokens: Positive | None = None
    """New tokens in one message."""
    prompt: Name | None = None
    """A file in place of the prompt that ships."""


class RolloutSettings(Section, frozen=True, kw_only=True):
    """How dialogues are held."""

    attempts: Positive = 1
    """Dialogues on each task."""
    concurrency: Positive | None = None
    turn_limit: Positive | None = None
    guard: bool = False
    """Ask the collaborator again when a reply gives code away."""


class PairSettings(Section, frozen=True, kw_only=True):
    """How dialogues are paired."""

    rule: Literal["backend", "frontend", "all"] = "backend"
    margin: NotNegative | None = None


class TrainSettings(Section, frozen=True, kw_only=True):
    """The numbers of one training run; the paper's (table 5) are the command's defaults."""

    model: Name
    """The seed model: a folder, or a name on the hub."""
    epochs: Positive | None = None
    batch_size: Positive | None = None
    learning_rate: Rate | None = None
    beta: Rate | None = None
    nll: NotNegative | None = None
    """Weight of the negative log-likelihood of what was chosen."""
    warmup: NotNegative | None = None
    floor: NotNegative | None = None
    max_tokens: Positive | None = None
    """Context."""
    tokens_per_pass: Positive | None = None
    max_steps: Positive | None = None
    lora_rank: Positive | None = None
    precision: Literal["float32", "bfloat16"] | None = None
    gradient_checkpointing: bool = False
    shard: bool = False
    """Split the model over the launcher's processes."""
    save_every: Positive | None = None
    """Steps between checkpoints."""
    launcher: tuple[Name, ...] = ()
    """Words in front of `-m sweetrl`, such as those of torchrun or accelerate; empty for this Python."""


class CriticSettings(TrainSettings, frozen=True, kw_only=True):
    """The same for a critic."""

    kind: Literal["advantage", "value", "regression"] | None = None
    normalisation: Literal["turn_mean", "dialogue_mean", "none"] | None = None
    """Of an advantage critic."""
    blind: bool = False
    """Do not show it the reference (ablation)."""


class CandidateSettings(Section, frozen=True, kw_only=True):
    """How candidates are drawn, and who ranks them."""

    n: Positive = 16
    """Candidates for each turn (paper, section 4.2)."""
    concurrency: Positive | None = None
    critic: Name | None = None
    """A critic as `sweetrl rank` takes it, in place of one that the recipe trains."""
    judge_prompt: Name | None = None
    """A file that asks a judge among the critics."""
    judge_rounds: Positive | None = None
    rank_concurrency: Positive | None = None


class TurnPairSettings(Section, frozen=True, kw_only=True):
    """How candidates are paired."""

    rule: Literal["halves", "extremes"] = "halves"
    pairs: Positive = 4
    margin: NotNegative = 0.0


class EvaluationSettings(Section, frozen=True, kw_only=True):
    """How the policy is evaluated."""

    agent: Name | None = None
    """Where the policy is served; without it, it runs in the command's process."""
    attempts: Positive = 1


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
    method: Literal["sweet", "dpo", "rft", "none"] = "sweet"
    """How the policy is trained; `none` evaluates the agent as it is."""
    kind: Literal["backend", "frontend"] = "backend"
    seed: int = 0
    tasks: TaskFiles
    episodes: Name | None = None
    """Dialogues that were held already, ours or published; they are scored, not held again."""
    agent: PlayerSettings
    collaborator: PlayerSettings
    rollout: RolloutSettings = RolloutSettings()
    pairs: PairSettings = PairSettings()
    critic: CriticSettings | None = None
    candidates: CandidateSettings = CandidateSettings()
    turn_pairs: TurnPairSettings = TurnPairSettings()
    policy: TrainSettings | None = None
    evaluation: EvaluationSettings = EvaluationSettings()
    servers: tuple[ServerSettings, ...] = ()
    estimate: EstimateSettings = EstimateSettings()

    def __post_init__(self) -> None:
        if self.method != "none" and self.policy is None:
            raise ValueError(f"method '{self.method}' trains a policy; add a section [policy] with its model")
        if self.method == "sweet" and (self.critic is None) == (self.candidates.critic is None):
            raise ValueError("method 'sweet' needs a critic: either a section [critic] or candidates.critic")


# ---------------------------------------------------------------- reading


def load_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `key=value` changes; all its faults are one `ConfigError`."""
    return load(path, Recipe, changes)


def load(path: Path, record_type: type[T], changes: Sequence[str] = ()) -> T:
    """The settings in a TOML file, with `key=value` changes."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = "no such recipe" if isinstance(error, FileNotFoundError) else error.strerror
        raise ConfigError(f"{path}: {reason}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    for change in changes:
        _apply(content, change)
    found = list(faults(content, record_type))
    if not found:
        try:
            return msgspec.convert(content, record_type)
        except msgspec.ValidationError as error:
            found = [str(error)]
    raise ConfigError(f"{path}: " + "; ".join(found))


def _apply(content: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    *sections, last = key.strip().split(".")
    if not (equals and last):
        raise ConfigError(f"--set {change}: write key=value, for example critic.epochs=2")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise ConfigError(f"--set {change}: {section} is a value, not a section")
    if text.strip():
        content[last] = _value(text.strip())
    else:
        content.pop(last, None)


def _value(text: str) -> Any:
    """What TOML makes of the text; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def faults(content: dict[str, Any], section: type[Struct], where: str = "") -> Iterator[str]:
    """Everything that is wrong with a section, each fault named by its key."""
    known = {field.encode_name: field for field in fields(section)}
    for key in content:
        if key not in known:
            yield f"{where}{key}: unknown{_suggestion(key, known)}"
    for key, field in known.items():
        if key in content:
            yield from _faults_of(content[key], field.type, f"{where}{key}")
        elif field.required:
            yield f"{where}{key}: missing"


def _faults_of(value: Any, wanted: Any, where: str) -> Iterator[str]:
    section = _section(wanted)
    if section is not None and isinstance(value, dict):
        yield from faults(value, section, f"{where}.")
    elif section is not None and isinstance(value, list) and _is_tuple(wanted):
        for index, each in enumerate(value):
            yield from _faults_of(each, section, f"{where}[{index}]")
    else:
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError as error:
            yield f"{where}: {str(error).partition(' - at ')[0]}"


def _section(wanted: Any) -> type[Struct] | None:
    """The struct that a type is, may be, or is a tuple of; None for plain values."""
    for each in (wanted, *get_args(wanted)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None


def _is_tuple(wanted: Any) -> bool:
    return getattr(wanted, "__origin__", None) is tuple


def _suggestion(key: str, known: dict[str, Any]) -> str:
    close = get_close_matches(key, known, n=1)
    return f", did you mean {close[0]}?" if close else f" (there are {', '.join(known)})"
