"""Whether models are on this machine and how large they are, without loading them."""

import json
import math
import re
import struct
from functools import cache
from pathlib import Path
from typing import Any

from sweetrl.models import shipped

CONFIG, WEIGHTS = "config.json", "model.safetensors"


def is_hub_name(name: str) -> bool:
    """Whether a name can be one on the Hugging Face hub: `NAME` or `OWNER/NAME`, and no path."""
    return re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", name) is not None


def path_of(name: str) -> Path:
    """The folder of a model that ships, or the path that a name may be."""
    return shipped.folder(name) if name in shipped.NAMES else Path(name).expanduser()


def is_on_this_machine(name: str) -> bool:
    """Whether the hub's cache has a model; True if the hub's library is missing, which is said elsewhere."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return True
    return is_hub_name(name) and isinstance(try_to_load_from_cache(name, CONFIG), str)


@cache
def configuration_of(name: str) -> dict[str, Any]:
    """The content of a model's config.json; empty if it is not on this machine."""
    folder = path_of(name)
    path = folder / CONFIG if folder.is_dir() else next(iter(_cached(name, CONFIG)), None)
    try:
        return {} if path is None else dict(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return {}


@cache
def parameters_of(name: str) -> int | None:
    """How many parameters a model has, by the headers of its files; None if they are not here."""
    folder = path_of(name)
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else _cached(name)
    try:
        return sum(map(_parameters_in, files)) or None
    except (OSError, ValueError, struct.error):
        return None


def _cached(name: str, file: str = WEIGHTS) -> list[Path]:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return []
    found = try_to_load_from_cache(name, file) if is_hub_name(name) else None
    return [Path(found)] if isinstance(found, str) else []


def _parameters_in(path: Path) -> int:
    """The sizes of all tensors that the header of a safetensors file lists."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(min(length, 100_000_000)))
    return sum(math.prod(each["shape"]) for name, each in header.items() if name != "__metadata__")
