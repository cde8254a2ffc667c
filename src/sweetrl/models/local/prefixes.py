"""Cached keys and values of past texts, found again by their first tokens."""

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


BLOCK = 8
"""Tokens by which texts are indexed: fewer make the index larger, more leave more texts to compare."""

_Chain = tuple[int, ...]
"""A number for the first 0, 1, 2... blocks of a text; texts that begin with the same blocks have them in common."""


@dataclass(frozen=True)
class _Entry:
    tokens: NDArray[np.int64]
    layers: Layers
    size: int
    chain: _Chain


class PrefixStore:
    """Texts with their keys and values, the least recently used dropped when `budget` bytes are exceeded.

    Thousands of dialogues may be open: texts are found by their blocks, so that only those are compared that
    begin like the wanted one.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._next_key = 0
        self._begin_with: dict[int, OrderedDict[int, None]] = {}
        """Link of a chain -> the texts that have it, the least recently used first."""
        self._end_with: dict[int, set[int]] = {}
        """Link of a chain -> the texts whose last it is."""

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
        for key in reversed(self._alike(wanted)):
            # Most of these differ from the wanted one early: one comparison rules them out.
            held = self._entries[key].tokens
            if len(held) > best and len(wanted) > best and held[best] == wanted[best]:
                common = _common_length(held, wanted)
                if common > best:
                    best_key, best = key, common
        if best == 0:
            return Prefix(0, [])
        self._touch(best_key)
        return Prefix(best, [(k[:, :best], v[:, :best]) for k, v in self._entries[best_key].layers])

    def keep(self, tokens: Sequence[int], layers: Layers) -> None:
        """Store a copy of a text. Stored texts that it begins with are dropped: it serves for them."""
        size = sum(k.nbytes + v.nbytes for k, v in layers)
        if size > self._budget:
            return
        text = np.asarray(tokens, dtype=np.int64)
        chain = _chain(text)
        ending = [key for link in chain for key in self._end_with.get(link, ())]
        for key in [key for key in ending if _begins_with(text, self._entries[key].tokens)]:
            self._drop(key)
        self._add(_Entry(text, [(k.clone(), v.clone()) for k, v in layers], size, chain))
        while self._size > self._budget:
            self._drop(next(iter(self._entries)))

    def _alike(self, text: NDArray[np.int64]) -> OrderedDict[int, None]:
        """The stored texts that have most blocks in common with this one, the least recently used first."""
        found: OrderedDict[int, None] = OrderedDict()
        for link in _chain(text):
            if link not in self._begin_with:
                break
            found = self._begin_with[link]
        return found

    def _add(self, entry: _Entry) -> None:
        key, self._next_key = self._next_key, self._next_key + 1
        self._entries[key] = entry
        self._size += entry.size
        for link in entry.chain:
            self._begin_with.setdefault(link, OrderedDict())[key] = None
        self._end_with.setdefault(entry.chain[-1], set()).add(key)

    def _touch(self, key: int) -> None:
        self._entries.move_to_end(key)
        for link in self._entries[key].chain:
            self._begin_with[link].move_to_end(key)

    def _drop(self, key: int) -> None:
        entry = self._entries.pop(key)
        self._size -= entry.size
        for link in entry.chain:
            del self._begin_with[link][key]
            if not self._begin_with[link]:
                del self._begin_with[link]
        self._end_with[entry.chain[-1]].discard(key)
        if not self._end_with[entry.chain[-1]]:
            del self._end_with[entry.chain[-1]]


def _chain(text: NDArray[np.int64]) -> _Chain:
    links = [0]
    for end in range(BLOCK, len(text) + 1, BLOCK):
        links.append(hash((links[-1], text[end - BLOCK : end].tobytes())))
    return tuple(links)


def _common_length(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    shorter = min(len(one), len(other))
    differs = one[:shorter] != other[:shorter]
    return int(differs.argmax()) if differs.any() else shorter


def _begins_with(text: NDArray[np.int64], start: NDArray[np.int64]) -> bool:
    size = len(start)
    return size <= len(text) and text[size - 1] == start[-1] and _common_length(text, start) == size
