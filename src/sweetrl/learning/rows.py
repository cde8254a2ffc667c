"""Token sequences laid out in rows, so that what sequences have in common is computed once.

A row is a trunk, which is one whole sequence, and branches that leave it where their own tokens begin: the
replies to one history share it, the turns of a dialogue share all that was said before. Each branch sees the
trunk up to the point where it leaves it, and itself; positions count as if it stood alone. The result is that of
separate rows, as long as every layer attends by the mask that it is given (`can_branch`). Equal sequences are
one and the same, whether rows branch or not.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any

from sweetrl.learning.tokens import EncodedSequence
from sweetrl.models.local.network import GROUPED_ATTENTION

WORTH_SHARING = 0.5
"""A sequence joins a row if at least this share of it is there already: attention is quadratic in the row."""


@dataclass(frozen=True)
class Piece:
    """The tokens that a sequence adds to a row."""

    sequences: tuple[int, ...]
    """Which of the sequences that were laid out: several if they are equal."""
    ids: Sequence[int]
    turns: Sequence[int]
    leaves: int
    """Number of tokens before the branch leaves the trunk; 0 for the trunk itself."""


@dataclass(frozen=True)
class Row:
    """A trunk and its branches, in this order."""

    pieces: tuple[Piece, ...]

    @property
    def length(self) -> int:
        """Tokens, all pieces together."""
        return sum(len(piece.ids) for piece in self.pieces)


def lay_out(sequences: Mapping[int, EncodedSequence], *, branch: bool) -> list[Row]:
    """Rows that hold the sequences, each of which has a number; one for each content unless they may `branch`."""
    alike: dict[Hashable, list[int]] = {}
    for number, sequence in sequences.items():
        alike.setdefault(_content(sequence), []).append(number)
    rows: list[list[Piece]] = []
    for same in sorted(alike.values(), key=lambda same: -len(sequences[same[0]].ids)):
        sequence = sequences[same[0]]
        shared, row = max(
            ((_shared(row[0].ids, sequence), at) for at, row in enumerate(rows)), default=(0, 0)
        )
        if branch and shared >= WORTH_SHARING * len(sequence.ids):
            rows[row].append(Piece(tuple(same), sequence.ids[shared:], sequence.turns[shared:], shared))
        else:
            rows.append([Piece(tuple(same), sequence.ids, sequence.turns, 0)])
    return [Row(tuple(pieces)) for pieces in rows]


def _content(sequence: EncodedSequence) -> Hashable:
    """The inputs and targets of a sequence, for comparison."""
    return tuple(sequence.ids), tuple(sequence.turns), sequence.picture


def _shared(trunk: Sequence[int], sequence: EncodedSequence) -> int:
    """How many leading tokens are the same; the targets of the sequence are not shared."""
    learned = next((at for at, turn in enumerate(sequence.turns) if turn >= 0), len(sequence.ids))
    same = sum(1 for _ in takewhile(bool, map(eq, trunk, sequence.ids)))
    return min(same, learned)


def can_branch(config: Any) -> bool:
    """Whether every layer of a model with this configuration respects the attention mask."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    windowed = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    masked = config._attn_implementation in ("sdpa", GROUPED_ATTENTION)
    return masked and kinds == {"full_attention"} and not windowed
