"""Critics with a head of their own: one number for a turn, in place of the log-probabilities of its tokens.

The head is a submodule of the language model, so that whatever trains, shards or checkpoints the model takes
it along. In a finished folder it has a file of its own, beside a language model that loads as any other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sweetrl.errors import DataError, first_line
from sweetrl.learning.batches import TokenBatch
from sweetrl.learning.candidates import CandidateStates, candidate_states
from sweetrl.learning.logprobs import hidden_states, unwrapped
from sweetrl.learning.settings import CriticKind
from sweetrl.learning.tokens import EncodedCandidates

SCORE_HEAD = "score_head"
SCORE_HEAD_FILE = "score_head.safetensors"


def add_score_head(model: Any) -> None:
    """Give a language model a score head, zero at first, and freeze the head that it no longer needs."""
    size: int = model.config.get_text_config(decoder=True).hidden_size
    layer = torch.nn.Linear(size, 1).to(model.device, model.dtype)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    model.add_module(SCORE_HEAD, layer)
    output = model.get_output_embeddings().weight
    if output is not model.get_input_embeddings().weight:
        # Data-parallel training waits for a gradient of every weight that is not frozen.
        output.requires_grad_(requires_grad=False)


def turn_scores(model: Any, batch: TokenBatch, kind: CriticKind) -> Tensor:
    """The head's number for each turn of a batch, with gradients.

    A value is read off the end-of-turn token; a regression off the mean over all tokens up to there.
    """
    hidden = hidden_states(model, batch)
    return _score(model, hidden[batch.ends] if kind is CriticKind.VALUE else _pooled(hidden, batch))


@torch.no_grad()
def candidate_scores(
    model: Any,
    turns: Sequence[EncodedCandidates],
    kind: CriticKind,
    vision: Mapping[str, Tensor] | None = None,
) -> list[list[float]]:
    """The head's number for each continuation of each turn, equal to `turn_scores` on the whole sequences."""
    read = candidate_states(model, turns, vision)
    summaries = [summary for states in read for summary in _summaries(states, kind)]
    scores = iter(_score(model, torch.stack(summaries)).tolist())
    return [[next(scores) for _ in turn.continuations] for turn in turns]


def _summaries(states: CandidateStates, kind: CriticKind) -> list[Tensor]:
    """The input of the head for each continuation."""
    if kind is CriticKind.VALUE:
        return [(each if len(each) else states.prefix)[-1] for each in states.continuations]
    before, length = states.prefix.sum(0), len(states.prefix)
    return [(before + each.sum(0)) / (length + len(each)) for each in states.continuations]


def save_score_head(model: Any, folder: Path) -> None:
    """Write the head's own file."""
    weights = getattr(unwrapped(model), SCORE_HEAD).state_dict()
    save_file(
        {name: weight.detach().cpu().contiguous() for name, weight in weights.items()},
        folder / SCORE_HEAD_FILE,
    )


def load_score_head(model: Any, folder: Path) -> None:
    """Give a model the head that `save_score_head` wrote."""
    path = folder / SCORE_HEAD_FILE
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        reason = first_line(error)
        raise DataError(
            f"cannot read the critic's head: {reason}; train the critic anew", path=path
        ) from error
    add_score_head(model)
    layer = getattr(model, SCORE_HEAD)
    if {name: weight.shape for name, weight in weights.items()} != {
        name: weight.shape for name, weight in layer.state_dict().items()
    }:
        raise DataError(
            f"the head belongs to a model of another size than the {model.config.model_type} beside it",
            path=path,
        )
    layer.load_state_dict(weights)


def _score(model: Any, states: Tensor) -> Tensor:
    layer = getattr(unwrapped(model), SCORE_HEAD)
    scores: Tensor = layer(states.to(layer.weight.dtype)).squeeze(-1).float()
    return scores


def _pooled(hidden: Tensor, batch: TokenBatch) -> Tensor:
    """The mean hidden state over all that the last token of each span sees."""
    rows, length = batch.ids.shape
    by_row = hidden.view(rows, length, -1)
    row, place = batch.ends // length, batch.ends % length
    if batch.branches:
        seen = batch.attention[row, 0, place].to(hidden.dtype)
    else:
        seen = (torch.arange(length, device=hidden.device) <= place[:, None]).to(hidden.dtype)
    weights = seen / seen.sum(-1, keepdim=True)
    # Row by row: a copy of a row's states for each of its turns would not fit into memory.
    means = torch.zeros(len(row), hidden.shape[-1], dtype=hidden.dtype, device=hidden.device)
    for index in range(rows):
        own = (row == index).nonzero().squeeze(-1)
        means = means.index_add(0, own, weights[own] @ by_row[index])
    return means
