"""What one forward pass is given, and how the examples of an epoch are dealt out to passes and processes.

An optimiser step always learns from `batch_size` examples, each with its weight. How many passes and processes
share the work changes nothing but the time: a pass takes as many examples as its token budget holds, examples
of similar length go together, and all processes make the same number of passes, as sharded models need.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from sweetrl.learning.rows import Row, lay_out
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.seeds import derive_seed

CHOSEN, REJECTED = 0, 1
STEPS_SORTED_TOGETHER = 32
"""Examples of this many steps are sorted by length before they are cut into steps: little padding, and still
a random order over the epoch."""


@dataclass(frozen=True)
class Example:
    """One thing to learn from: a dialogue or a turn, or a pair of them."""

    id: str
    chosen: tuple[EncodedSequence, ...]
    rejected: tuple[EncodedSequence, ...] = ()
    weight: float = 1.0
    """Its share in the mean over an optimiser step."""
    branch: bool = False
    """Whether its sequences may share rows."""
    reference: tuple[float, ...] = ()
    """Log-probability of each of its `spans` under the seed model, where a loss needs it."""

    @property
    def sequences(self) -> tuple[EncodedSequence, ...]:
        """The chosen ones, then the rejected ones."""
        return self.chosen + self.rejected

    @cached_property
    def rows(self) -> list[Row]:
        """How its sequences are laid out."""
        return lay_out(self.sequences, branch=self.branch)

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """(sequence, turn) of each learnt turn: the order in which batches number them."""
        return [
            (index, turn)
            for index, sequence in enumerate(self.sequences)
            for turn in sorted({turn for turn in sequence.turns if turn >= 0})
        ]

    @cached_property
    def length(self) -> int:
        """Tokens in its longest row."""
        return max(row.length for row in self.rows)


# ---------------------------------------------------------------- one forward pass


@dataclass(frozen=True)
class TokenBatch:
    """The tensors of one forward pass. A span is one learnt turn of one sequence."""

    ids: Tensor
    """(rows, length), padded on the right."""
    attention: Tensor
    """(rows, length), 1 for tokens, or (rows, 1, length, length) booleans where rows branch."""
    positions: Tensor
    """(rows, length)."""
    lengths: Tensor
    """(rows,): tokens that are no padding."""
    predictors: Tensor
    """(learnt tokens,): where in the flattened rows the prediction of each stands."""
    targets: Tensor
    """(learnt tokens,): the tokens themselves."""
    spans: Tensor
    """(learnt tokens,): the span that each belongs to."""
    ends: Tensor
    """(spans,): where in the flattened rows the last token of each span stands."""
    owners: Tensor
    """(spans,): the example that each span belongs to, counted in this batch."""
    sides: Tensor
    """(spans,): CHOSEN or REJECTED."""
    reference: Tensor
    """(spans,): summed log-probability under the seed model; zeros where no loss needs it."""
    weights: Tensor
    """(examples,): shares in the mean over the optimiser step."""
    vision: dict[str, Tensor] = field(default_factory=dict)
    """What a model that sees is given beside the rows, in its own words."""

    @property
    def span_count(self) -> int:
        """How many turns are learnt from."""
        return len(self.owners)

    @property
    def tokens(self) -> int:
        """Tokens that are no padding."""
        return int(self.lengths.sum())

    @property
    def branches(self) -> bool:
        """Whether rows hold more than one sequence."""
        return self.attention.dim() == 4

    def to(self, device: torch.device) -> Self:
        """The same batch on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if name != "vision"}
        return replace(self, **moved, vision={name: value.to(device) for name, value in self.vision.items()})


def collate(examples: Sequence[Example], *, pad: int) -> TokenBatch:
    """One batch of all rows of the examples."""
    rows = [(owner, row) for owner, example in enumerate(examples) for row in example.rows]
    width = max(row.length for _, row in rows)
    canvas = _Canvas(examples, len(rows), width, pad)
    for at, (owner, row) in enumerate(rows):
        canvas.draw(at, owner, row)
    return canvas.batch(torch.tensor([example.weight for example in examples], dtype=torch.float32))


class _Canvas:
    """Tensors that rows are drawn on."""

    def __init__(self, examples: Sequence[Example], rows: int, width: int, pad: int) -> None:
        self._width = width
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._owners: list[int] = []
        self._sides: list[int] = []
        self._reference: list[float] = []
        for owner, example in enumerate(examples):
            self._reference += example.reference or [0.0] * len(example.spans)
            for sequence, turn in example.spans:
                self._numbers[owner, sequence, turn] = len(self._owners)
                self._owners.append(owner)
                self._sides.append(CHOSEN if sequence < len(example.chosen) else REJECTED)
        self._ends = [0] * len(self._owners)
        self._ids = torch.full((rows, width), pad)
        self._real = torch.zeros((rows, width), dtype=torch.long)
        self._positions = torch.zeros((rows, width), dtype=torch.long)
        # Of each token: where its piece begins in the row, and how much of the trunk it sees.
        self._starts = torch.zeros((rows, width), dtype=torch.long)
        self._leaves = torch.zeros((rows, width), dtype=torch.long)
        self._learnt: list[tuple[int, int, int]] = []
        self._branches = False

    def draw(self, at: int, owner: int, row: Row) -> None:
        """Put a row in its place."""
        start = 0
        for piece in row.pieces:
            end = start + len(piece.ids)
            self._ids[at, start:end] = torch.tensor(piece.ids)
            self._real[at, start:end] = 1
            self._positions[at, start:end] = torch.arange(piece.leaves, piece.leaves + len(piece.ids))
            self._starts[at, start:end] = start
            self._leaves[at, start:end] = piece.leaves
            self._branches |= start > 0
            for offset, turn in enumerate(piece.turns):
                if turn >= 0:
                    before = start + offset - 1 if offset else piece.leaves - 1
                    span = self._numbers[owner, piece.sequence, turn]
                    here = at * self._width + start + offset
                    self._learnt.append((at * self._width + before, piece.ids[offset], span))
                    self._ends[span] = here
            start = end

    def batch(self, weights: Tensor) -> TokenBatch:
        """What was drawn."""
        predictors, targets, spans = torch.tensor(self._learnt, dtype=torch.long).reshape(-1, 3).unbind(1)
        return TokenBatch(
            ids=self._ids,
            attention=self._mask() if self._branches else self._real,
            positions=self._positions,
            lengths=self._real.sum(1),
            predictors=predictors,
            targets=targets,
            spans=spans,
            ends=torch.tensor(self._ends, dtype=torch.long),
            owners=torch.tensor(self._owners, dtype=torch.long),
            sides=torch.tensor(self._sides, dtype=torch.long),
            reference=torch.tensor(self._reference, dtype=torch.float32),
            weights=weights,
        )

    def _mask(self) -> Tensor:
        """Each token sees its own piece up to itself, and the trunk up to where its piece leaves it."""
        place = torch.arange(self._width)
        earlier = place[None, :] <= place[:, None]
        own = place >= self._starts[:, :, None]
        trunk = place < self._leaves[:, :, None]
        seen = earlier & (own | trunk) & (self._real[:, None, :] > 0)
        # A row of padding that sees nothing would be a softmax over nothing.
        padding = (self._real == 0)[:, :, None] & torch.eye(self._width, dtype=torch.bool)
        return (seen & (self._real[:, :, None] > 0) | padding)[:, None]


# ---------------------------------------------------------------- one epoch


@dataclass(frozen=True)
class Pass:
    """The examples of one forward pass, by index."""

    indices: tuple[int, ...]
    counted: bool = True
    """False for a pass that a process makes only because the others make one: its weights are zero."""


Step = list[list[Pass]]
"""The passes of each process in one optimiser step."""


@dataclass(frozen=True)
class Dealer:
    """Deals examples out to optimiser steps, processes and passes; the same way for the same seed."""

    sizes: Sequence[tuple[int, int]]
    """(rows, length of the longest row) of each example."""
    batch_size: int
    """Examples in one optimiser step, over all processes."""
    budget: int
    """Tokens in one pass, padding included; a single larger example has a pass of its own."""
    processes: int = 1
    seed: int = 0

    def epoch(self, number: int) -> Iterator[Step]:
        """The steps of an epoch: every example once."""
        chance = random.Random(derive_seed(self.seed, "epoch", number))  # noqa: S311  not a secret
        order = list(range(len(self.sizes)))
        chance.shuffle(order)
        steps = [step for block in _cut(order, self._block) for step in self._steps(block)]
        chance.shuffle(steps)
        return map(self._deal, steps)

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in an epoch; the last one of an epoch may have fewer examples."""
        return -(-len(self.sizes) // self.batch_size)

    @property
    def _block(self) -> int:
        return self.batch_size * STEPS_SORTED_TOGETHER

    def _steps(self, block: list[int]) -> list[list[int]]:
        by_length = sorted(block, key=lambda index: self.sizes[index][1])
        return list(_cut(by_length, self.batch_size))

    def _deal(self, indices: list[int]) -> Step:
        passes = self._passes(indices)
        while len(passes) % self.processes:
            widest = max(range(len(passes)), key=lambda at: len(passes[at].indices))
            passes[widest : widest + 1] = _halves(passes[widest])
        passes.sort(key=lambda each: -self._padded(each.indices))
        return [passes[process :: self.processes] for process in range(self.processes)]

    def _passes(self, indices: list[int]) -> list[Pass]:
        """As few passes as greedy filling gives, of neighbours in length."""
        passes: list[tuple[int, ...]] = []
        for index in indices:
            if passes and self._padded((*passes[-1], index)) <= self.budget:
                passes[-1] += (index,)
            else:
                passes.append((index,))
        return [Pass(each) for each in passes]

    def _padded(self, indices: Sequence[int]) -> int:
        rows = sum(self.sizes[index][0] for index in indices)
        return rows * max(self.sizes[index][1] for index in indices)


def _cut(items: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _halves(whole: Pass) -> list[Pass]:
    """Two passes for one: half of the examples each, or the same one once more for nothing."""
    middle = len(whole.indices) // 2
    if middle == 0:
        return [whole, Pass(whole.indices, counted=False)]
    return [Pass(whole.indices[:middle]), Pass(whole.indices[middle:])]
