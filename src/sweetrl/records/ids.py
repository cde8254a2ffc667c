"""Which records are there, without holding them."""

import hashlib
from array import array
from bisect import bisect_left


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
