"""One whole dialogue, read from the record files through the index: what was said, and all that is known about it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec

from sweetrl.domains.chat.logs import LOG, name_in_log
from sweetrl.experiments.layout import SCREENSHOTS
from sweetrl.experiments.run_folder import read_picture
from sweetrl.records import decode_json
from sweetrl.types import (
    Annotation,
    CandidateSet,
    Episode,
    TurnCredit,
    TurnValues,
    Verdict,
)
from sweetrl.viewer.annotations import ANNOTATIONS, read_annotations
from sweetrl.viewer.queries import Reader

_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "episode": msgspec.json.Decoder(Episode),
    "verdict": msgspec.json.Decoder(Verdict),
    "credit": msgspec.json.Decoder(TurnCredit),
    "candidates": msgspec.json.Decoder(CandidateSet),
    "values": msgspec.json.Decoder(TurnValues),
}


@dataclass(frozen=True)
class Dialogue:
    """A dialogue and everything that the record files say about it."""

    run: str
    folder: Path
    """Where the dialogues of the run are."""
    episode: Episode
    verdict: Verdict | None
    credit: tuple[TurnCredit, ...]
    candidates: tuple[CandidateSet, ...]
    """Ranked ones first."""
    values: tuple[TurnValues, ...]
    annotations: tuple[Annotation, ...]

    @property
    def title(self) -> str:
        """What people call it: the id that a chat log gives it, or its own."""
        return name_in_log(self.episode.extra.get(LOG)) or self.episode.id

    @property
    def player(self) -> str:
        """The name that a person gave who took part; empty for none."""
        about = self.episode.extra.get("play")
        return str(about.get("player") or "") if isinstance(about, dict) else ""

    @property
    def critics(self) -> list[str]:
        """Those that judged its turns, in the order of their files."""
        return list(dict.fromkeys(each.critic for each in self.credit))

    def judged_by(self, critic: str) -> Self:
        """The dialogue with the credit of one critic alone: the first one if it is not among them."""
        known = self.critics
        chosen = critic if critic in known else next(iter(known), "")
        return replace(self, credit=tuple(each for each in self.credit if each.critic == chosen))

    def picture(self, name: str) -> bytes | None:
        """The PNG file of a content hash, where it was kept."""
        return read_picture(self.folder / SCREENSHOTS, name)


def find_dialogue(reader: Reader, run: str, name: str) -> Dialogue | None:
    """The dialogue of a run and id; None if the index has none, or its line has changed since."""
    known = reader.run_id(run)
    if known is None:
        return None
    number, folder = known
    records = list(_records(reader, number, name))
    episode = next((each for each in records if isinstance(each, Episode)), None)
    if episode is None:
        return None
    candidates = [each for each in records if isinstance(each, CandidateSet) and each.outputs]
    marks = [each for each in read_annotations(folder / ANNOTATIONS) if each.episode_id == name]
    return Dialogue(
        run=run,
        folder=folder,
        episode=episode,
        verdict=next((each for each in records if isinstance(each, Verdict)), None),
        credit=tuple(_in_order(records, TurnCredit)),
        candidates=tuple(sorted(candidates, key=lambda each: (each.turn, each.advantages is None))),
        values=tuple(_in_order(records, TurnValues)),
        annotations=tuple(marks),
    )


def _in_order(records: list[Any], kind: type[Any]) -> list[Any]:
    return sorted((each for each in records if isinstance(each, kind)), key=lambda each: each.turn)


def _records(reader: Reader, run: int, name: str) -> Iterator[Any]:
    for kind, path, position, length in reader.places(run, name):
        for line in _read(path, position, length).split(b"\n"):
            try:
                record = decode_json(_DECODERS[kind], line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue  # a line of another kind, or one that was rewritten since
            if (record.id if kind == "episode" else record.episode_id) == name:
                yield record


def _read(path: Path, position: int, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), length, position)
    except OSError:
        return b""
