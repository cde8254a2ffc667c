"""Keys and values of a batch of texts of different lengths, which join and leave at any time.

All rows end at one shared column, where the next token of every row is written; shorter rows begin further
to the right. So a step writes one column, and the distance between two columns is the distance between two
tokens, which is what masks of sliding windows are made from. Columns before a row's beginning hold zeros.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer

from sweetrl.models.local.prefixes import Prefix

HEADROOM = 128
"""Columns kept free when the buffers are laid out anew, so that this happens rarely."""


class _RaggedLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """The buffers of one layer. `DynamicLayer` would concatenate, that is copy everything, at each token."""

    keys: Tensor
    values: Tensor

    def __init__(self, batch: "RaggedCache") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch = batch

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        rows, end = len(self.batch.lengths), self.batch.end
        stop = end + key_states.shape[2]
        if not self.is_initialized:
            self.allocate(key_states[0], value_states[0])
        self.keys[:rows, :, end:stop] = key_states
        self.values[:rows, :, end:stop] = value_states
        window = slice(self.batch.start, stop)
        return self.keys[:rows, :, window], self.values[:rows, :, window]

    def get_seq_length(self) -> int:
        return self.batch.end - self.batch.start

    def allocate(self, key: Tensor, value: Tensor) -> None:
        """Buffers for keys and values shaped like these, each (heads, any, size of a head)."""
        capacity = (self.batch.max_rows, key.shape[0], self.batch.columns, key.shape[2])
        self.keys = key.new_zeros(capacity)
        self.values = value.new_zeros((*capacity[:3], value.shape[2]))
        self.is_initialized = True


class RaggedCache(Cache):
    """A `transformers` cache with rows of different lengths."""

    def __init__(self, layers: int, max_rows: int) -> None:
        self.max_rows = max_rows
        self.lengths: list[int] = []
        self.end = 0
        self.columns = 0
        self.buffers = [_RaggedLayer(self) for _ in range(layers)]
        super().__init__(layers=list(self.buffers))

    @classmethod
    def holding(cls, prefixes: Sequence[Prefix], *, layers: int, room: int) -> "RaggedCache":
        """A cache with one row per prefix and `room` free columns."""
        cache = cls(layers, len(prefixes))
        cache.end = max(prefix.length for prefix in prefixes)
        cache.columns = cache.end + room
        for prefix in prefixes:
            cache._append(prefix)
        return cache

    @property
    def start(self) -> int:
        """The first column that any row uses."""
        return self.end - max(self.lengths, default=0)

    def mask(self, new: Sequence[int]) -> Tensor:
        """Which columns each row may see once `new[row]` tokens have been added to it."""
        block = max(new)
        width = self.end - self.start + block
        filled = torch.tensor([length + added for length, added in zip(self.lengths, new, strict=True)])
        return torch.arange(width) >= width - filled[:, None]

    def advance(self, new: Sequence[int]) -> None:
        """Take note that the network has written `new[row]` tokens to each row."""
        self.lengths = [length + added for length, added in zip(self.lengths, new, strict=True)]
        self.end += max(new)

    def reserve(self, *, length: int = 0) -> None:
        """Make room for one more column, and for a row of `length`."""
        if self.end < self.columns and length <= self.end:
            return
        width = max([length, *self.lengths])
        old_start, old_end = self.start, self.end
        self.columns = width + max(HEADROOM, width // 2)
        moved = slice(width - (old_end - old_start), width)
        for layer in self.buffers:
            if not layer.is_initialized:
                continue
            keys, values = layer.keys, layer.values
            layer.allocate(keys[0], values[0])
            layer.keys[:, :, moved] = keys[:, :, old_start:old_end]
            layer.values[:, :, moved] = values[:, :, old_start:old_end]
        self.end = width

    def join(self, prefix: Prefix) -> None:
        """Add a row that continues `prefix`."""
        self.reserve(length=prefix.length)
        self._append(prefix)

    def _append(self, prefix: Prefix) -> None:
        row, begin = len(self.lengths), self.end - prefix.length
        for layer, (keys, values) in zip(self.buffers, prefix.layers, strict=prefix.length > 0):
            if not layer.is_initialized:
                layer.allocate(keys, values)
            # What an earlier row left behind is masked, but a number times not-a-number is not zero.
            layer.keys[row, :, :begin] = layer.values[row, :, :begin] = 0
            layer.keys[row, :, begin : self.end] = keys
            layer.values[row, :, begin : self.end] = values
        self.lengths.append(prefix.length)

    def row(self, row: int) -> Prefix:
        """The keys and values of one row; views, so use them before the cache changes."""
        length = self.lengths[row]
        columns = slice(self.end - length, self.end)
        layers = [(layer.keys[row, :, columns], layer.values[row, :, columns]) for layer in self.buffers]
        return Prefix(length, layers)

    def leave(self, row: int) -> None:
        """Remove a row; the last row takes its place."""
        last = len(self.lengths) - 1
        if row != last:
            for layer in self.buffers:
                layer.keys[row] = layer.keys[last]
                layer.values[row] = layer.values[last]
        self.lengths[row] = self.lengths[last]
        self.lengths.pop()
        if not self.lengths:
            self.end = 0
