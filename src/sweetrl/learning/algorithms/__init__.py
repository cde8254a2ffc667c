"""The training algorithms: each file of this folder is one, and installed packages may bring more.

A package announces an `Algorithm` in the entry point group `sweetrl.algorithms`.
"""

import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import NODEFAULT

from sweetrl.errors import ConfigError, UsageError, suggestion
from sweetrl.learning.algorithm import Algorithm
from sweetrl.learning.settings import TRAINING_NAMES, TrainingSettings
from sweetrl.settings import CriticNumbers, TrainNumbers, settings_fields
from sweetrl.settings.schema import Field
from sweetrl.settings.training import CHOSEN_BY_ALGORITHM

if TYPE_CHECKING:
    from sweetrl.learning.objectives import Objective, StepObjective

GROUP = "sweetrl.algorithms"


@cache
def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name; of two with one name, the one in this folder."""
    ours = [import_module(f"{__name__}.{each.name}").ALGORITHM for each in pkgutil.iter_modules(__path__)]
    installed = [each.load() for each in entry_points(group=GROUP)]
    return {each.name: each for each in (*installed, *ours)}


def algorithm_named(name: str) -> Algorithm:
    """The algorithm that commands or recipes call so."""
    known = algorithms()
    names = {alias: each for each in known.values() for alias in (*each.aliases, each.name)}
    if name in names:
        return names[name]
    raise UsageError(f"there is no algorithm '{name}'; {suggestion(name, sorted(names))}")


def algorithm_of(settings: TrainingSettings) -> Algorithm:
    """The algorithm of a run."""
    return algorithm_named(settings.algorithm)


def objective(settings: TrainingSettings) -> "Objective | StepObjective":
    """The objective that a run with these settings minimises."""
    return algorithm_of(settings).objective(settings)


def options_of(algorithm: Algorithm) -> Iterator[Field]:
    """The settings of recipes that an algorithm takes, each with the default that the algorithm has for it."""
    shared = [field.name for field in settings_fields(TrainNumbers) if field.name not in CHOSEN_BY_ALGORITHM]
    taken = {*algorithm.takes, *shared, *(["prompt"] if algorithm.privileged else [])}
    for field in settings_fields(CriticNumbers):
        if field.path[0] in taken:
            yield _with_default(field, algorithm)


def default_options(algorithm: Algorithm) -> dict[str, Any]:
    """All options of an algorithm's own at their defaults; `NODEFAULT` where one must be given."""
    return {
        **{name: NODEFAULT if read.required else None for name, read in algorithm.reads.items()},
        "domain": None,
        **{name: own.default for name, own in algorithm.hyperparameters.items()},
        **{field.path[0]: field.default for field in options_of(algorithm)},
    }


def _with_default(field: Field, algorithm: Algorithm) -> Field:
    value = getattr(default_settings(algorithm.name), TRAINING_NAMES.get(field.name, field.name), None)
    if field.default is not None or field.setting.default or value is None:
        return field
    return replace(field, setting=replace(field.setting, default=str(value)))


def default_settings(algorithm: str, **changes: object) -> TrainingSettings:
    """The default settings of an algorithm, the paper's where it has some, with `changes`; None leaves a default."""
    found = algorithm_named(algorithm)
    chosen = {name: value for name, value in changes.items() if value is not None}
    options = {key: chosen.pop(key, own.default) for key, own in found.hyperparameters.items()}
    fields = {"method": found.name, **found.defaults, **chosen, "options": options}
    try:
        return msgspec.convert(msgspec.to_builtins(fields), TrainingSettings)
    except msgspec.ValidationError as error:
        reason, _, field = str(error).partition(" - at `$.")
        raise ConfigError(f"{field.rstrip('`') or 'training'}: {reason}; give another value") from None
