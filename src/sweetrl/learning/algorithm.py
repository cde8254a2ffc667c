"""The interface of training algorithms: one object, in one file of `learning/algorithms/`.

The command line, recipes, estimates and model cards read these objects. So neither this module nor the files of the
algorithms import torch at the top; what computes imports it when it is called.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sweetrl.errors import UsageError
from sweetrl.types import Episode, EpisodePair, Task, TurnPair, Verdict

if TYPE_CHECKING:
    from sweetrl.learning.checkpoints import TrainingCard
    from sweetrl.learning.datasets import Dataset, Encoding
    from sweetrl.learning.objectives import Objective, StepObjective
    from sweetrl.learning.settings import TrainingSettings

InputName = Literal["pairs", "turn_pairs", "episodes", "verdicts", "tasks"]


@dataclass(frozen=True)
class Input:
    """A file of records that an algorithm reads: an option of its command."""

    help: str
    required: bool = True


@dataclass(frozen=True)
class Hyperparameter:
    """A setting that only one algorithm has; its type is that of its default."""

    default: bool | int | float | str
    help: str


@dataclass(frozen=True, kw_only=True)
class Records:
    """The records of the files that were given; `verdicts` and pairs can be read once."""

    episodes: Mapping[str, Episode] = field(default_factory=dict)
    tasks: Mapping[str, Task] | None = None
    verdicts: Iterable[Verdict] | None = None
    pairs: Iterable[EpisodePair] = ()
    turn_pairs: Iterable[TurnPair] = ()


def _accept(_settings: Mapping[str, Any], _given: Mapping[str, Any]) -> None:
    return


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A training algorithm: its data, its loss and its settings."""

    name: str
    """`sweetrl train NAME`."""
    help: str
    """One sentence for `--help`."""
    label: str
    """Title of a trained model's card; may name settings in braces."""
    reads: Mapping[InputName, Input]
    """The records that it learns from. A recipe plans the stages that write them."""
    examples: "Callable[[Records, Encoding], Dataset]"
    """Makes examples of records."""
    objective: "Callable[[TrainingSettings], Objective | StepObjective]"
    """Makes the function that computes the loss and the metrics of a batch."""
    aliases: tuple[str, ...] = ()
    """Other names for it in recipes."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Settings whose default differs from that of `TrainingSettings`."""
    takes: tuple[str, ...] = ()
    """Settings of `settings.TrainNumbers` and `CriticNumbers` that not every algorithm takes, such as `beta`."""
    hyperparameters: Mapping[str, Hyperparameter] = field(default_factory=dict)
    """Settings of its own, by name; a loss finds their values in `settings.options`."""
    compares: "Callable[[TrainingSettings], bool]" = lambda _: True
    """Whether the loss needs log-probabilities of the seed model."""
    has_head: "Callable[[TrainingSettings], bool]" = lambda _: False
    """Whether it trains a score head in place of the language model's."""
    extra_forwards: int = 0
    """Forward passes over the data beside those of training, for estimates."""
    examples_per_pair: int = 1
    """Examples that a pair of turns makes, for estimates."""
    privileged: bool = False
    """Whether the model is shown the task's hidden information: then it is a critic, not a policy."""
    check: Callable[[Mapping[str, Any], Mapping[str, Any]], None] = _accept
    """Raises `UsageError` for settings and inputs that do not go together."""
    finish: "Callable[[Path, TrainingCard], None]" = lambda _folder, _card: None
    """Adds files to the folder of a finished model."""


def needs_successes(*names: InputName) -> Callable[[Mapping[str, Any], Mapping[str, Any]], None]:
    """A `check`: the files with answers to imitate are given if and only if imitation has a weight."""
    options = " and ".join(f"--{name}" for name in names)

    def check(settings: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        present = [name for name in names if name in given]
        if settings.get("sft_weight") and len(present) < len(names):
            raise UsageError(f"--sft-weight needs the dialogues and what they earned; give {options} too")
        if not settings.get("sft_weight") and present:
            raise UsageError(f"{options}: only for --sft-weight; give its weight too")

    return check
