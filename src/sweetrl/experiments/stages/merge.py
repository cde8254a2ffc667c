"""`merge`: the shards of a stage as one file, with the records in the order of its input."""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace as changed

from sweetrl.errors import ConfigError, DataError, UsageError
from sweetrl.experiments.stages.filling import Tally
from sweetrl.experiments.stages.reporting import SILENT, Reporter
from sweetrl.records import (
    IdSet,
    LineDecoder,
    RunCard,
    Shard,
    card_path,
    getting_its_name,
    open_locked,
    read_card,
    read_lines,
    refuse_existing,
    unreadable,
    write_card,
)
from sweetrl.types import CandidateSet, Episode, TurnCredit, TurnValues, Verdict

RECORDS: Mapping[str, type[Struct]] = {
    "rollout": Episode,
    "score": Verdict,
    "candidates": CandidateSet,
    "rank": CandidateSet,
    "credit": TurnCredit,
    "values": TurnValues,
}
"""Types of the records of stages that take `--shard`."""


class _File(NamedTuple):
    """A file that holds a shard."""

    path: Path
    card: RunCard
    shard: Shard


def merge_shards(
    paths: Sequence[Path], output: Path, *, replace: bool = False, reporter: Reporter = SILENT
) -> Tally:
    """Write `output` from all shards of one run; it gets its name when it is whole.

    An output that is there and holds the same run is left as it is.
    """
    files = _all_of_one_run([_opened(path) for path in paths])
    tally = Tally(output, "records", extra={"shards": len(files)})
    if _is_merged(output, files[0]):
        tally.before = files[0].shard.total
        return tally
    refuse_existing(output, replace=replace)
    digest = hashlib.sha256()
    with reporter.progress("records", files[0].shard.total) as advance, _published(output) as file:
        for line in _lines(files, tally):
            digest.update(line)
            file.write(line)
            advance(1)
        # Before the file has its name: a merge that is killed in between is done again.
        write_card(output, _card(files, digest.hexdigest()))
    return tally


def _card(files: Sequence[_File], digest: str) -> RunCard:
    """The run card of all; unfinished if a shard is, because records of it failed."""
    ends = [each.card.finished for each in files if each.card.finished is not None]
    return changed(
        files[0].card,
        started=min(each.card.started for each in files),
        finished=max(ends) if len(ends) == len(files) else None,
        records=files[0].shard.total,
        sha256=digest,
        shard=UNSET,
    )


@contextlib.contextmanager
def _published(path: Path) -> Iterator[Any]:
    """A file to write, which gets the name `path` at the end; one writer at a time."""
    temporary = path.with_name(f".{path.name}.merging")
    descriptor = open_locked(temporary)
    try:
        with getting_its_name(temporary, path):
            os.ftruncate(descriptor, 0)
            with open(descriptor, "wb", closefd=False) as file:
                yield file
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_merged(output: Path, first: _File) -> bool:
    """Whether the output holds all records of the run already."""
    try:
        card = read_card(output)
        with output.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (DataError, OSError):
        return False
    same = (card.command, card.config, card.records) == (
        first.card.command,
        first.card.config,
        first.shard.total,
    )
    return same and card.shard is UNSET and card.sha256 == digest


# ---------------------------------------------------------------- what belongs together


def _opened(path: Path) -> _File:
    if not path.exists():
        raise unreadable(path, FileNotFoundError())
    if not card_path(path).exists():
        raise UsageError(
            f"{path}: is not a shard, it has no run card beside it; give files that --shard wrote"
        )
    card = read_card(path)
    if not isinstance(card.shard, Shard) or card.command not in RECORDS:
        raise UsageError(f"{path}: is not a shard, its run card names none; give files that --shard wrote")
    if card.sha256 is None:
        raise UsageError(f"{path}: shard {card.shard} is not complete; rerun its command, then merge")
    return _File(path, card, card.shard)


def _all_of_one_run(files: list[_File]) -> list[_File]:
    """The files in the order of their shards, none of them twice and none missing."""
    first = files[0]
    by_index: dict[int, _File] = {}
    for file in files:
        if difference := _difference(first, file):
            raise ConfigError(f"{file.path}: belongs to another run than {first.path}: {difference}")
        if (other := by_index.setdefault(file.shard.index, file)) is not file:
            raise UsageError(f"shard {file.shard} is there twice: {other.path} and {file.path}")
    missing = [f"{index}/{first.shard.of}" for index in range(1, first.shard.of + 1) if index not in by_index]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise UsageError(f"shards are missing: {', '.join(missing[:5])}{more}; give all {first.shard.of}")
    return [by_index[index] for index in sorted(by_index)]


def _difference(one: _File, other: _File) -> str:
    """Why two shards are of different runs; empty if they are of the same."""
    said = [
        {"command": file.card.command, "shards": file.shard.of, "records": file.shard.total}
        | file.card.config
        for file in (one, other)
    ]
    for key in {**said[0], **said[1]}:
        if said[0].get(key) != said[1].get(key):
            return f"{key} is {said[1].get(key)!r}, not {said[0].get(key)!r}"
    return ""


# ---------------------------------------------------------------- lines


def _lines(files: Sequence[_File], tally: Tally) -> Iterator[bytes]:
    """The lines of all shards, each file as its card has it; they are counted in the tally, and how many failed."""
    seen = IdSet()
    for path, card, shard in files:
        decode, digest, before = LineDecoder(RECORDS[card.command], path), hashlib.sha256(), len(seen)
        for number, line in read_lines(path):
            record: Any = decode(number, line)
            identity = record.episode_id if isinstance(record, Verdict) else record.id
            if not seen.add(identity):
                raise DataError(f"a second record for {identity}", path=path, line=number)
            tally.made += 1
            if record.failure is not None:
                tally.extra["failed_records"] = tally.extra.get("failed_records", 0) + 1
            digest.update(line)
            yield line
        if digest.hexdigest() != card.sha256 or len(seen) - before != len(shard.places):
            raise DataError("is not what its run card says; rerun the command of this shard", path=path)
