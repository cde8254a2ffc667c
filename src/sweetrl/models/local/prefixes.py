"""What the network has already read: keys and values of past texts, found again by their first tokens."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of one text, layer by layer, each (heads, tokens, size of a head)."""


@dataclass(frozen=True)
class Prefix:
    """Keys and values of a text's first `length` tokens."""

    length: int
    layers: Layers


@dataclass(frozen=True)
class _Entry:
    tokens: NDArray[np.int64]
    layers: Layers
    size: int


class PrefixStore:
    """Texts with their keys and values, the least recently used dropped when `budget` bytes are exceeded."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._next_key = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    def longest(self, tokens: Sequence[int], *, limit: int) -> Prefix:
        """The longest stored beginning of `tokens`, at most `limit` tokens; of length 0 if there is none."""
        wanted = np.asarray(tokens[:limit], dtype=np.int64)
        best_key, best = -1, 0
        for key in reversed(self._entries):
            # Most stored texts part from the wanted one early: one comparison rules them out.
            held = self._entries[key].tokens
            if len(held) > best and len(wanted) > best and held[best] == wanted[best]:
                common = _common_length(held, wanted)
                if common > best:
                    best_key, best = key, common
        if best == 0:
            return Prefix(0, [])
        self._entries.move_to_end(best_key)
        return Prefix(best, [(k[:, :best], v[:, :best]) for k, v in self._entries[best_key].layers])

    def keep(self, tokens: Sequence[int], layers: Layers) -> None:
        """Store a copy of a text. Stored texts that it begins with are dropped: it serves for them."""
        size = sum(k.nbytes + v.nbytes for k, v in layers)
        if size > self._budget:
            return
        text = np.asarray(tokens, dtype=np.int64)
        for key in [key for key, held in self._entries.items() if _begins_with(text, held.tokens)]:
            self._drop(key)
        self._entries[self._next_key] = _Entry(text, [(k.clone(), v.clone()) for k, v in layers], size)
        self._next_key += 1
        self._size += size
        while self._size > self._budget:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: int) -> None:
        self._size -= self._entries.pop(key).size


def _common_length(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    shorter = min(len(one), len(other))
    differs = one[:shorter] != other[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


def _begins_with(text: NDArray[np.int64], start: NDArray[np.int64]) -> bool:
    size = len(start)
    return size <= len(text) and text[size - 1] == start[-1] and _common_length(text, start) == size
