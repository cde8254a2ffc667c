"""The inputs of one forward pass, and the division of an epoch's examples into steps, passes and processes.

An optimiser step learns from `batch_size` examples drawn at random from the whole epoch, each with its weight.
Nothing else decides which examples meet in a step: neither their length nor what they have in common. Pairs of one
task or turn in one step would make its gradient one of few tasks, at the expense of methods that learn from pairs.
How many passes and processes share the work of a step changes nothing but the time: a pass takes as many examples
as its token budget holds, examples of similar length go together, and all processes make the same number of
passes, as sharded models need. Where examples of one group (the pairs of a turn, the pairs of dialogues on a task)
happen to be in one step, they go to one pass, and what they have in common is computed once.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, count
from typing import Self

import torch
from torch import Tensor

from sweetrl.learning.rows import Piece, Row, lay_out
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.seeds import derive_seed

CHOSEN, REJECTED = 0, 1


@dataclass(frozen=True)
class Example:
    """One thing to learn from: a dialogue or a turn, or a pair of them."""

    id: str
    chosen: tuple[EncodedSequence, ...]
    rejected: tuple[EncodedSequence, ...] = ()
    weight: float = 1.0
    """Its share in the mean over an optimiser step."""
    group: str = ""
    """Examples of one group share sequences or histories; those without one stand alone."""
    task: str = ""
    """Id of the task that it is about."""
    branch: bool = False
    """Whether its sequences may share rows, with each other and with those of its group."""
    reference: tuple[float, ...] = ()
    """Log-probability of each of its `spans` under the seed model, where a loss needs it."""

    @property
    def sequences(self) -> tuple[EncodedSequence, ...]:
        """The chosen ones, then the rejected ones."""
        return self.chosen + self.rejected

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """(sequence, turn) of each learned turn: the order in which batches number them."""
        return [
            (index, turn)
            for index, sequence in enumerate(self.sequences)
            for turn in sorted({turn for turn in sequence.turns if turn >= 0})
        ]


def rows_of(examples: Sequence[Example]) -> list[Row]:
    """The rows that hold the numbered sequences of all examples: those of each group together."""
    groups: dict[tuple[str, bool], dict[int, EncodedSequence]] = {}
    numbers = count()
    for example in examples:
        group = groups.setdefault((example.group or example.id, example.branch), {})
        group.update({next(numbers): sequence for sequence in example.sequences})
    return [row for (_, branch), group in groups.items() for row in lay_out(group, branch=branch)]


# ---------------------------------------------------------------- one forward pass


@dataclass(frozen=True)
class TokenBatch:
    """The tensors of one forward pass. A span is one learned turn of one sequence."""

    ids: Tensor
    """(rows, length), padded on the right."""
    attention: Tensor
    """(rows, length), 1 for tokens, or (rows, 1, length, length) booleans where rows branch."""
    positions: Tensor
    """(rows, length)."""
    lengths: Tensor
    """(rows,): tokens that are no padding."""
    predictors: Tensor
    """(learned tokens,): position of the prediction of each in the flattened rows."""
    targets: Tensor
    """(learned tokens,): the tokens themselves."""
    spans: Tensor
    """(learned tokens,): the span that each was computed for."""
    computed_as: Tensor
    """(spans,): the span that each was computed as: itself, or an equal one of an equal sequence."""
    ends: Tensor
    """(spans,): position of the last token of each span in the flattened rows."""
    owners: Tensor
    """(spans,): the example that each span belongs to, counted in this batch."""
    sides: Tensor
    """(spans,): CHOSEN or REJECTED."""
    reference: Tensor
    """(spans,): summed log-probability under the seed model; zeros where no loss needs it."""
    weights: Tensor
    """(examples,): shares in the mean over the optimiser step."""
    vision: dict[str, Tensor] = field(default_factory=dict)
    """Further inputs of vision-language models, under the model's own names."""

    @property
    def span_count(self) -> int:
        """How many turns contribute to the loss."""
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
        """A copy of the batch on a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if name != "vision"}
        return replace(self, **moved, vision={name: value.to(device) for name, value in self.vision.items()})


def collate(examples: Sequence[Example], *, pad: int) -> TokenBatch:
    """One batch of all rows of the examples."""
    rows = rows_of(examples)
    width = max(row.length for row in rows)
    canvas = _Canvas(examples, len(rows), width, pad)
    for at, row in enumerate(rows):
        canvas.draw(at, row)
    return canvas.batch(torch.tensor([example.weight for example in examples], dtype=torch.float32))


class _Canvas:
    """Tensors that rows are drawn on."""

    def __init__(self, examples: Sequence[Example], rows: int, width: int, pad: int) -> None:
        self._width = width
        self._numbers: dict[tuple[int, int], int] = {}
        self._owners: list[int] = []
        self._sides: list[int] = []
        self._reference: list[float] = []
        before = 0
        for owner, example in enumerate(examples):
            self._reference += example.reference or [0.0] * len(example.spans)
            for sequence, turn in example.spans:
                self._numbers[before + sequence, turn] = len(self._owners)
                self._owners.append(owner)
                self._sides.append(CHOSEN if sequence < len(example.chosen) else REJECTED)
            before += len(example.sequences)
        self._ends = [0] * len(self._owners)
        self._computed_as = [0] * len(self._owners)
        self._ids = torch.full((rows, width), pad)
        self._real = torch.zeros((rows, width), dtype=torch.long)
        self._positions = torch.zeros((rows, width), dtype=torch.long)
        # For each token: the start of its piece in the row, and how much of the trunk it sees.
        self._starts = torch.zeros((rows, width), dtype=torch.long)
        self._leaves = torch.zeros((rows, width), dtype=torch.long)
        self._learned: list[tuple[int, int, int]] = []
        self._branches = False

    def draw(self, at: int, row: Row) -> None:
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
                    span = self._numbers[piece.sequences[0], turn]
                    self._learned.append((at * self._width + before, piece.ids[offset], span))
                    self._ends[span] = at * self._width + start + offset
            self._share(piece)
            start = end

    def _share(self, piece: Piece) -> None:
        """Give the turns of a piece to all sequences that it was drawn for."""
        for turn in {turn for turn in piece.turns if turn >= 0}:
            drawn, *_ = spans = [self._numbers[sequence, turn] for sequence in piece.sequences]
            for span in spans:
                self._computed_as[span] = drawn
                self._ends[span] = self._ends[drawn]

    def batch(self, weights: Tensor) -> TokenBatch:
        """The batch of everything that was drawn."""
        predictors, targets, spans = torch.tensor(self._learned, dtype=torch.long).reshape(-1, 3).unbind(1)
        return TokenBatch(
            ids=self._ids,
            attention=self._mask() if self._branches else self._real,
            positions=self._positions,
            lengths=self._real.sum(1),
            predictors=predictors,
            targets=targets,
            spans=spans,
            computed_as=torch.tensor(self._computed_as, dtype=torch.long),
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


Bundle = tuple[int, ...]
"""Examples of one group, by index, that are laid out together."""
_SIZES_KEPT = 1 << 16


@dataclass(frozen=True)
class Pass:
    """The examples of one forward pass."""

    bundles: tuple[Bundle, ...]
    counted: bool = True
    """False for a pass that a process makes only because the others make one: its weights are zero."""

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices of all its examples."""
        return tuple(chain.from_iterable(self.bundles))


Step = list[list[Pass]]
"""The passes of each process in one optimiser step."""


@dataclass(frozen=True)
class BatchSampler:
    """Divides examples into optimiser steps, processes and passes; the same way for the same seed."""

    examples: Sequence[Example]
    batch_size: int
    """Examples in one optimiser step, over all processes."""
    budget: int
    """Tokens in one pass, padding included; a single larger example has a pass of its own."""
    processes: int = 1
    seed: int = 0

    def epoch(self, number: int) -> Iterator[Step]:
        """The steps of an epoch: every example once, in random order."""
        order = list(range(len(self.examples)))
        random.Random(derive_seed(self.seed, "epoch", number)).shuffle(order)  # noqa: S311  not a secret
        for start in range(0, len(order), self.batch_size):
            yield self._divided(order[start : start + self.batch_size])

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in an epoch; the last one of an epoch may have fewer examples."""
        return -(-len(self.examples) // self.batch_size)

    def _divided(self, indices: Sequence[int]) -> Step:
        passes = self._passes(sorted(self._bundles(indices), key=self._length))
        while len(passes) % self.processes:
            widest = max(range(len(passes)), key=lambda at: len(passes[at].indices))
            passes[widest : widest + 1] = _halves(passes[widest])
        passes.sort(key=lambda each: -self._padded(each.bundles))
        return [passes[process :: self.processes] for process in range(self.processes)]

    def _bundles(self, indices: Sequence[int]) -> Iterable[Bundle]:
        """The examples of a step, those of one group together."""
        groups: dict[str, list[int]] = {}
        for index in sorted(indices):
            example = self.examples[index]
            groups.setdefault(example.group or example.id, []).append(index)
        return map(tuple, groups.values())

    def _passes(self, bundles: list[Bundle]) -> list[Pass]:
        """As few passes as greedy filling gives, of neighbours in length."""
        passes: list[tuple[Bundle, ...]] = []
        for bundle in chain.from_iterable(map(self._fitting, bundles)):
            if passes and self._padded((*passes[-1], bundle)) <= self.budget:
                passes[-1] += (bundle,)
            else:
                passes.append((bundle,))
        return [Pass(each) for each in passes]

    def _fitting(self, bundle: Bundle) -> Iterator[Bundle]:
        """The bundle, in parts if it is too large for a pass."""
        if len(bundle) == 1 or self._padded((bundle,)) <= self.budget:
            yield bundle
        else:
            for half in _cut(bundle):
                yield from self._fitting(half)

    def _padded(self, bundles: Iterable[Bundle]) -> int:
        sizes = [self._size(bundle) for bundle in bundles]
        return sum(rows for rows, _ in sizes) * max(length for _, length in sizes)

    def _length(self, bundle: Bundle) -> int:
        return self._size(bundle)[1]

    @cached_property
    def _size(self) -> Callable[[Bundle], tuple[int, int]]:
        """Rows of a bundle, and the length of the longest."""

        @lru_cache(_SIZES_KEPT)  # most bundles are single examples, asked for again in every epoch
        def size(bundle: Bundle) -> tuple[int, int]:
            rows = rows_of([self.examples[index] for index in bundle])
            return len(rows), max(row.length for row in rows)

        return size


def _halves(whole: Pass) -> list[Pass]:
    """Two passes for one: half of the bundles or of the only one each, or the same once more for nothing."""
    if len(whole.indices) == 1:
        return [whole, Pass(whole.bundles, counted=False)]
    bundles = whole.bundles if len(whole.bundles) > 1 else _cut(whole.bundles[0])
    middle = len(bundles) // 2
    return [Pass(bundles[:middle]), Pass(bundles[middle:])]


def _cut(bundle: Bundle) -> tuple[Bundle, Bundle]:
    middle = len(bundle) // 2
    return bundle[:middle], bundle[middle:]
