"""Run cards: which run a record file belongs to, and how it was made."""

import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from sweetrl.records.files import write_json
from sweetrl.records.reading import read_json
from sweetrl.records.shards import Shard


class RunCard(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which run a record file belongs to, and how it was made."""

    schema: Literal["run/1"] = "run/1"
    command: str
    """The stage, for example `score`."""
    config: dict[str, Any]
    """Everything that shapes a record; a resumed run must have the same."""
    source: str | UnsetType = UNSET
    """Where the tasks came from, as given to the command; the same tasks may come from elsewhere."""
    versions: dict[str, str]
    started: str
    finished: str | None = None
    """None while the run is incomplete."""
    records: int | None = None
    sha256: str | None = None
    """Hash of the record file; None until every record is in, those of failures included."""
    shard: Shard | UnsetType = UNSET
    """The part of the run that the file holds; left out if it holds all."""


def card_path(path: Path) -> Path:
    """Where the run card of a record file lies."""
    return path.with_name(path.name.removesuffix(".jsonl") + ".run.json")


def read_card(path: Path) -> RunCard:
    """The run card of the record file `path`."""
    return read_json(card_path(path), RunCard, "a run card")


def write_card(path: Path, card: RunCard) -> None:
    """Put the card beside the record file `path`."""
    write_json(card_path(path), card)


def unfinish(path: Path, card: RunCard) -> None:
    """Take back that the run is complete, or that the file has this hash, before a change that makes it untrue."""
    if card.finished is not None or card.sha256 is not None:
        card.finished = card.records = card.sha256 = None
        write_card(path, card)


def installed_versions() -> dict[str, str]:
    """Versions of the packages that a result may depend on."""
    return {
        "sweetrl": metadata.version("sweetrl"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }


def now() -> str:
    """The time as run cards have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
