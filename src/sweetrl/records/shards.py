"""Shards: the records of a stage split over machines, one file each.

A shard is a run of neighbours in the order of the input, and its finished file has them in that order. Shards one
after the other are therefore the whole, whoever wrote them and when.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from sweetrl.errors import UsageError


class Shard(Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a run that a file holds."""

    index: int
    """Counted from 1."""
    of: int
    """How many shards there are."""
    total: int
    """The records of all of them."""

    @property
    def places(self) -> range:
        """Where its records are among all, counted from 0."""
        return range(self.total * (self.index - 1) // self.of, self.total * self.index // self.of)

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


@dataclass(frozen=True)
class Part:
    """The records that a command makes: all, or those of a shard."""

    total: int
    """The number of its records."""
    shard: Shard | None = None
    ids: Sequence[str] = ()
    """Ids of the records of a shard, in the order of the input."""

    def file(self, path: Path) -> Path:
        """Where they are written, given the file of all."""
        return path if self.shard is None else shard_path(path, str(self.shard))

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset(self.ids)

    def has(self, identity: str) -> bool:
        """Whether a record belongs to it."""
        return self.shard is None or identity in self._own


ALL = Part(0)
"""All records of a run, however many."""


def shard_path(path: Path, shard: str | None) -> Path:
    """The file of a shard: `verdicts.3-of-8.jsonl` for `3/8` of `verdicts.jsonl`; without a shard, `path`."""
    if shard is None:
        return path
    index, of = _parsed(shard)
    return path.with_name(f"{path.stem}.{index}-of-{of}{path.suffix}")


def is_merged_shard(path: Path) -> bool:
    """Whether a file is a shard of another one beside it, which has its records too."""
    whole = re.sub(r"\.\d+-of-\d+(\.\w+)$", r"\1", path.name)
    return whole != path.name and path.with_name(whole).exists()


def part_of(ids: Iterable[str], shard: str | None) -> Part:
    """The part that `--shard I/N` asks for; `ids` are those of all records, in the order of the input."""
    if shard is None:
        return Part(sum(1 for _ in ids))
    index, of = _parsed(shard)
    known = list(ids)
    if of > len(known):
        raise UsageError(f"--shard {shard}: there are only {len(known)} records; use fewer shards")
    asked = Shard(index, of, len(known))
    return Part(len(asked.places), asked, [known[place] for place in asked.places])


def _parsed(shard: str) -> tuple[int, int]:
    matched = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", shard.strip())
    if matched is None or int(matched[1]) > int(matched[2]):
        raise UsageError(f"--shard {shard}: write I/N, for example 1/8 for the first of 8 shards")
    return int(matched[1]), int(matched[2])
