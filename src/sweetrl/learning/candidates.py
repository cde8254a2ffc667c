"""A network's outputs on the candidates of several turns, in two passes over all of them.

The first run reads the histories, and of those that begin one another, as in the turns of a dialogue, only the
longest. The second reads the candidates, each once however often it was drawn, several in a row: each sees the
keys and values of its own history, and itself. The result is that of a run over `prefix + continuation` for
each, at a fraction of the cost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from sweetrl.learning.logprobs import LanguageHead, run_body
from sweetrl.learning.rows import can_branch
from sweetrl.learning.tokens import EncodedCandidates

TOKENS_AT_ONCE = 1 << 13
"""Turns share a run up to this many tokens; a longer one has a run of its own."""
CACHED_TOKENS_AT_ONCE = 1 << 16
"""Bound on the tokens whose keys and values rows of candidates are given."""
ROW_TOKENS = 64
"""Candidates of a turn share a row up to this length: the history is copied for fewer rows, and short ones are
not padded to the length of a long one. More would cost attention, which is quadratic in the row."""


@dataclass(frozen=True)
class CandidateStates:
    """Hidden states over one history and over each of its continuations."""

    prefix: Tensor
    """(tokens of the prefix, size)."""
    continuations: list[Tensor]
    """For each continuation (its tokens, size)."""


@torch.no_grad()
def candidate_logprobs(model: Any, turns: Sequence[EncodedCandidates]) -> list[list[Tensor]]:
    """The log-probability of each token of each continuation of each turn."""
    different = [list(dict.fromkeys(map(tuple, turn.continuations))) for turn in turns]
    # After the last token of a continuation nothing is predicted.
    read = [
        EncodedCandidates(turn.prefix, [list(each[:-1]) for each in own])
        for turn, own in zip(turns, different, strict=True)
    ]
    predictors = [
        state
        for states, own in zip(candidate_states(model, read), different, strict=True)
        for before, each in zip(states.continuations, own, strict=True)
        for state in (states.prefix[-1:], before)
        if each
    ]
    wanted = [(at, each) for at, own in enumerate(different) for each in own]
    targets = torch.tensor([token for _, each in wanted for token in each], device=model.device)
    logprobs = LanguageHead(model).token_logprobs(torch.cat(predictors), targets)
    found = dict(zip(wanted, torch.split(logprobs, [len(each) for _, each in wanted]), strict=True))
    return [[found[at, tuple(each)] for each in turn.continuations] for at, turn in enumerate(turns)]


@torch.no_grad()
def candidate_states(
    model: Any, turns: Sequence[EncodedCandidates], vision: Mapping[str, Tensor] | None = None
) -> list[CandidateStates]:
    """The hidden states that the head reads, for each history and each continuation.

    A network whose cache has more than keys and values reads each continuation with its whole history.
    `vision` has further inputs of a vision-language model, for a single prefix.
    """
    seen = {name: value.to(model.device) for name, value in (vision or {}).items()}
    layers = DynamicCache(config=model.config).layers
    if not all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers):
        return [_states_of_whole(model, turn, seen) for turn in turns]
    return [states for some in _portions(turns) for states in _states(model, some, seen)]


def _portions(turns: Sequence[EncodedCandidates]) -> Iterator[list[EncodedCandidates]]:
    """The turns in their order, as many at a time as may share a run."""
    portion: list[EncodedCandidates] = []
    tokens = 0
    for turn in turns:
        own = len(turn.prefix) + sum(map(len, set(map(tuple, turn.continuations))))
        if portion and tokens + own > TOKENS_AT_ONCE:
            yield portion
            portion, tokens = [], 0
        portion.append(turn)
        tokens += own
    if portion:
        yield portion


def _states(
    model: Any, turns: Sequence[EncodedCandidates], seen: Mapping[str, Tensor]
) -> list[CandidateStates]:
    histories = _Histories(model, [turn.prefix for turn in turns], seen)
    # Vision-language models have position schemes of their own.
    rows = list(_rows(turns, share=can_branch(model.config) and not seen))
    found: dict[tuple[int, tuple[int, ...]], Tensor] = {}
    for some in _fitting(rows, [len(turn.prefix) for turn in turns]):
        for row, hidden in zip(some, _read_rows(model, histories, some), strict=True):
            for piece, start in zip(row.pieces, row.starts, strict=True):
                found[row.turn, piece] = hidden[start : start + len(piece)]
    return [
        CandidateStates(histories.states(at), [found[at, tuple(each)] for each in turn.continuations])
        for at, turn in enumerate(turns)
    ]


def _states_of_whole(model: Any, turn: EncodedCandidates, seen: Mapping[str, Tensor]) -> CandidateStates:
    runs = [
        run_body(model, input_ids=_padded([[*turn.prefix, *each]], model.device), use_cache=False, **seen)[0]
        for each in turn.continuations
    ]
    length = len(turn.prefix)
    return CandidateStates(runs[0][:length], [run[length:] for run in runs])


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    width = max(1, *map(len, rows))
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)


# ---------------------------------------------------------------- histories


class _Histories:
    """Keys, values and hidden states of several prefixes, those within a longer one read with it."""

    def __init__(self, model: Any, prefixes: Sequence[Sequence[int]], seen: Mapping[str, Tensor]) -> None:
        ids = list(map(tuple, prefixes))
        trunks, within = _trunks(ids)
        # Layers of every kind keep all: a shorter prefix than the one that was read needs what came earlier.
        cache = DynamicCache()
        # Padding stands on the right, where no token sees it.
        self._hidden = run_body(
            model, input_ids=_padded(trunks, model.device), past_key_values=cache, use_cache=True, **seen
        )
        self.layers: list[Any] = cache.layers
        self.trunk = [within[each] for each in ids]
        self.length = [len(each) for each in ids]

    def states(self, at: int) -> Tensor:
        """Hidden states over the prefix with this number."""
        return self._hidden[self.trunk[at], : self.length[at]]


def _trunks(
    prefixes: Sequence[tuple[int, ...]],
) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], int]]:
    """The prefixes that begin no other one, and of each prefix which of them it begins."""
    # In this order, a text that is a prefix of another one is a prefix of the next.
    ordered = sorted(set(prefixes))
    trunks: list[tuple[int, ...]] = ordered[-1:]
    within = {trunks[0]: 0}
    for longer, prefix in pairwise(reversed(ordered)):
        if longer[: len(prefix)] != prefix:
            trunks.append(prefix)
        within[prefix] = len(trunks) - 1
    return trunks, within


# ---------------------------------------------------------------- continuations


@dataclass(frozen=True)
class _Row:
    """Some continuations of one turn, one behind the other."""

    turn: int
    pieces: list[tuple[int, ...]]

    @property
    def length(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def starts(self) -> list[int]:
        """Where in the row each piece begins."""
        ends = [0]
        for piece in self.pieces:
            ends.append(ends[-1] + len(piece))
        return ends[:-1]


def _rows(turns: Sequence[EncodedCandidates], *, share: bool) -> Iterator[_Row]:
    """All continuations, equal ones of a turn once; long ones first, each into the first row with room for it."""
    width = max([len(each) for turn in turns for each in turn.continuations], default=0)
    room = max(width, ROW_TOKENS) if share else 0
    for at, turn in enumerate(turns):
        rows: list[_Row] = []
        for piece in sorted(set(map(tuple, turn.continuations)), key=lambda piece: (-len(piece), piece)):
            fitting = (row for row in rows if row.length + len(piece) <= room)
            if (row := next(fitting, None)) is None:
                rows.append(_Row(at, [piece]))
            else:
                row.pieces.append(piece)
        yield from rows


def _fitting(rows: Sequence[_Row], histories: Sequence[int]) -> Iterator[Sequence[_Row]]:
    """As many rows at a time as there may be keys and values for."""
    if not rows:
        return
    widest = max(histories) + max(row.length for row in rows)
    at_once = max(1, CACHED_TOKENS_AT_ONCE // max(1, widest))
    for start in range(0, len(rows), at_once):
        yield rows[start : start + at_once]


def _read_rows(model: Any, histories: _Histories, rows: Sequence[_Row]) -> Tensor:
    """Hidden states over each row: (rows, length, size)."""
    ids = _padded([[token for piece in row.pieces for token in piece] for row in rows], model.device)
    known = _Known(histories, [row.turn for row in rows], model.device)
    return run_body(model, input_ids=ids, past_key_values=known, use_cache=True, **_sight(known, rows, ids))


def _sight(known: "_Known", rows: Sequence[_Row], ids: Tensor) -> dict[str, Tensor]:
    """The attention mask and positions for packed or uneven rows; empty if plain causal attention is right."""
    packed = any(len(row.pieces) > 1 for row in rows)
    if not packed and known.even:
        return {}
    place = torch.arange(ids.shape[1], device=ids.device)
    # Padding is a piece for each token, at a position that every network has.
    starts = place.repeat(len(rows), 1)
    for at, row in enumerate(rows):
        for piece, start in zip(row.pieces, row.starts, strict=True):
            starts[at, start : start + len(piece)] = start
    return {
        "attention_mask": known.mask_of_pieces(starts) if packed else known.mask(ids.shape[1]),
        "position_ids": known.lengths[:, None] + place - starts,
    }


class _Known(DynamicCache):
    """Keys and values of its own history for each of several rows, which read them and leave nothing behind.

    All histories end at one column; shorter ones begin further to the right, so that the distance between two
    columns is that between two tokens, as masks of sliding windows need it. They are copied for each row when a
    layer attends, and forgotten before the next one does.
    """

    def __init__(self, histories: _Histories, turns: Sequence[int], device: torch.device) -> None:
        super().__init__()
        self.layers = histories.layers
        self.lengths = torch.tensor([histories.length[turn] for turn in turns], device=device)
        self._trunks = torch.tensor([histories.trunk[turn] for turn in turns], device=device)
        width = int(self.lengths.max())
        # Position of each column within its trunk; negative before the row begins.
        self._columns = torch.arange(width, device=device) - (width - self.lengths[:, None])

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """The keys and values that a layer attends to."""
        layer: Any = self.layers[layer_idx]
        return (
            torch.cat([self._copied(layer.keys), key_states], dim=2),
            torch.cat([self._copied(layer.values), value_states], dim=2),
        )

    def _copied(self, known: Tensor) -> Tensor:
        """(trunks, heads, length, size) -> (rows, heads, width, size)."""
        return known[self._trunks[:, None], :, self._columns.clamp(min=0)].transpose(1, 2)

    def get_seq_length(self, layer_idx: int = 0) -> int:  # noqa: ARG002  theirs
        """Columns that are known."""
        return self._columns.shape[1]

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:  # noqa: ARG002
        """How many columns are attended to, and the first of them."""
        return self.get_seq_length() + query_length, 0

    @property
    def even(self) -> bool:
        """Whether all histories have the same length."""
        return bool((self._columns >= 0).all())

    def mask(self, block: int) -> Tensor:
        """(rows, columns): 1 where there is something to see; causality apart."""
        real = (self._columns >= 0).long()
        return torch.cat([real, real.new_ones(len(real), block)], dim=1)

    def mask_of_pieces(self, starts: Tensor) -> Tensor:
        """(rows, 1, block, columns): each token sees its history, and its piece up to itself."""
        place = torch.arange(starts.shape[1], device=starts.device)
        own = (place <= place[:, None]) & (place >= starts[:, :, None])
        history = (self._columns >= 0)[:, None].expand(-1, starts.shape[1], -1)
        return torch.cat([history, own], dim=2)[:, None]
