"""The optimiser Muon for matrices, in single precision.

The one in torch rounds to half precision inside, which CPUs without instructions for it do hundreds of times
more slowly than the training step itself.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim import Optimizer

_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Coefficients of the iteration that drives all singular values towards 1."""
_ITERATIONS = 5


class Muon(Optimizer):
    """Steps along the orthogonalised momentum of each matrix."""

    def __init__(self, matrices: Iterable[Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """One step for all matrices."""
        for group in self.param_groups:
            for matrix in group["params"]:
                momentum = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
                momentum.lerp_(matrix.grad, 1 - group["momentum"])
                direction = orthogonal(matrix.grad.lerp(momentum, group["momentum"]))
                rows, columns = matrix.shape
                matrix.add_(direction, alpha=-group["lr"] * max(1, rows / columns) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly the closest matrix whose singular values are all 1."""
    a, b, c = _QUINTIC
    found: Tensor = matrix / (matrix.norm() + 1e-7)
    tall = found.shape[0] > found.shape[1]
    found = found.T if tall else found
    for _ in range(_ITERATIONS):
        gram = found @ found.T
        found = a * found + (b * gram + c * gram @ gram) @ found
    return found.T if tall else found
