"""Which records are there, without holding them; and the one of an id."""

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from sweetrl.errors import DataError
from sweetrl.types import Episode, Task

Record = TypeVar("Record", Episode, Task)


class IdSet:
    """A set of strings at 8 bytes each: 64-bit digests in sorted arrays.

    Resuming must know what is done without holding it: a million ids take 9 MB instead of 100. Two of a
    million ids share a digest with probability 3e-8.
    """

    def __init__(self) -> None:
        # By first byte, so that an insertion moves few of its neighbours.
        self._buckets = [array("Q") for _ in range(256)]
        self._count = 0

    def add(self, text: str) -> bool:
        """Add `text`; False if it was there."""
        key = self._key(text)
        bucket, at = self._place(key)
        if key in bucket[at : at + 1]:
            return False
        bucket.insert(at, key)
        self._count += 1
        return True

    def __contains__(self, text: str) -> bool:
        key = self._key(text)
        bucket, at = self._place(key)
        return key in bucket[at : at + 1]

    def __len__(self) -> int:
        return self._count

    def _place(self, key: int) -> tuple["array[int]", int]:
        bucket = self._buckets[key >> 56]
        return bucket, bisect_left(bucket, key)

    @staticmethod
    def _key(text: str) -> int:
        raw = text.encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big")


def find_by_id(records: Iterable[Record], wanted: str, noun: str, path: Path) -> Record:
    """The record of an id in the file `path`; `noun` is what such records are called."""
    seen: list[str] = []
    for record in records:
        if record.id == wanted:
            return record
        seen.append(record.id)
    close = get_close_matches(wanted, seen, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the first one is {seen[0]!r}"
    raise DataError(f"no {noun} has the id {wanted!r}; {hint}", path=path)
