"""The tiny model that ships with the package: a Hugging Face folder like any other, known by a short name."""

from importlib import resources
from pathlib import Path

NAMES = ("mini",)


def located(model: str) -> str:
    """The folder of a model that ships; every other name or path as it is."""
    return str(folder(model)) if model in NAMES else model


def folder(name: str) -> Path:
    """Where a model that ships is."""
    return Path(str(resources.files(__package__).joinpath("shipped_models", name)))
