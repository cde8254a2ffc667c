"""Draw tokens for a batch, each row by its own temperature, nucleus and random number."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sweetrl.types import Sampling


def draw(
    logits: Tensor, samplings: Sequence[Sampling], uniforms: Sequence[float]
) -> tuple[list[int], list[float]]:
    """One token per row of `logits` (rows, vocabulary) and its log-probability under the model.

    A row is drawn by inverting its cumulative distribution at its own `uniforms[row]` in [0, 1), so it does
    not depend on the other rows. The log-probability is the model's own: before temperature and nucleus.
    """
    logits = logits.float()
    tokens = logits.argmax(dim=-1)
    warm = [row for row, sampling in enumerate(samplings) if sampling.temperature > 0]
    if warm:
        rows = torch.tensor(warm, device=logits.device)
        points = torch.tensor([uniforms[row] for row in warm], dtype=torch.float64)
        tokens[rows] = _invert(_distribution(logits[rows], [samplings[row] for row in warm]), points)
    chosen = logits.gather(1, tokens[:, None]).squeeze(1) - logits.logsumexp(dim=-1)
    return tokens.tolist(), chosen.tolist()


def _distribution(logits: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    temperatures = torch.tensor([each.temperature for each in samplings], device=logits.device)
    # Shifted first, so that a tiny temperature cannot overflow.
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    probabilities = (shifted / temperatures[:, None]).softmax(dim=-1)
    for row, sampling in enumerate(samplings):
        if sampling.top_p < 1:
            probabilities[row] = _nucleus(probabilities[row], sampling.top_p)
    return probabilities


def _nucleus(probabilities: Tensor, mass: float) -> Tensor:
    """The fewest likeliest tokens that together hold at least `mass`; the others at zero."""
    ordered, order = probabilities.sort(descending=True, stable=True)
    before = ordered.cumsum(dim=0) - ordered
    kept = torch.where(before < mass, ordered, 0.0)
    kept[0] = ordered[0]
    return torch.zeros_like(probabilities).scatter(0, order, kept)


def _invert(probabilities: Tensor, points: Tensor) -> Tensor:
    # In double precision, on the CPU because some devices have none: the sum of a large vocabulary in single
    # precision is off by more than its rare tokens are likely.
    cumulative = probabilities.cpu().double().cumsum(dim=-1)
    targets = points[:, None] * cumulative[:, -1:]
    found = torch.searchsorted(cumulative, targets, right=True).squeeze(1)
    return found.clamp(max=probabilities.shape[1] - 1).to(probabilities.device)
