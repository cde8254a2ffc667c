"""The tiny model that ships with the package: a Hugging Face folder like any other, known by a short name."""

from importlib import resources
from pathlib import Path

from sweetrl.errors import UsageError

NAMES = ("mini",)


def located(model: str) -> str:
    """The folder of a model that ships; every other name or path as it is. A path to nowhere is a `UsageError`."""
    if model in NAMES:
        return str(folder(model))
    if model.startswith(("/", "./", "../", "~")) and not Path(model).expanduser().is_dir():
        raise UsageError(f"{model}: no such folder; give the folder of a model, or its name on the hub")
    return model


def folder(name: str) -> Path:
    """The folder of a model that ships with the package."""
    return Path(str(resources.files(__package__).joinpath("shipped_models", name)))
