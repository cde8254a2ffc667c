"""Log-probabilities of the agent's messages, without ever keeping a row of logits for each token.

The network's body runs once over a batch; its head is applied only where an agent's token is predicted, a few
tokens at a time, and again in the backward pass instead of keeping its output.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sweetrl.errors import UsageError
from sweetrl.learning.batches import TokenBatch
from sweetrl.learning.losses import sum_by

LOGITS_AT_ONCE = 1 << 25
"""Bound on the logits that exist at one time: 128 MB in single precision."""
NEAR_LOGITS = 1 << 19
"""As many logits as stay in the caches of a CPU, which reads each of them three times: 2 MB."""
FEWEST_ROWS = 128
"""The fewest rows per pass: with fewer, reading the head's weights costs more than computing with them."""


@dataclass(frozen=True)
class TurnLogprobs:
    """Log-probabilities of the turns of a batch, in the order of its spans."""

    sums: Tensor
    """Summed over the tokens of the turn, the end-of-turn token included."""
    counts: Tensor
    """How many tokens those are."""

    @property
    def means(self) -> Tensor:
        """Per token."""
        return self.sums / self.counts.clamp(min=1)


def turn_logprobs(model: Any, batch: TokenBatch) -> TurnLogprobs:
    """The model's log-probability of each turn of a batch, log pi(turn | everything before it), with gradients."""
    head = LanguageHead(model)

    def read(hidden: Tensor) -> Tensor:
        return head.token_logprobs(hidden.flatten(0, 1)[batch.predictors], batch.targets)

    logprobs = _run(model, read, **_inputs(batch))
    sums = sum_by(batch.spans, logprobs, batch.span_count)
    counts = sum_by(batch.spans, torch.ones_like(batch.spans), batch.span_count)
    return TurnLogprobs(sums[batch.computed_as], counts[batch.computed_as])


def token_distributions(model: Any, batch: TokenBatch, *, every: int = 1) -> Tensor:
    """Log-probabilities of the whole vocabulary where the agent's tokens are predicted, or at every n-th of them."""
    head = LanguageHead(model)

    def read(hidden: Tensor) -> Tensor:
        return head.distributions(hidden.flatten(0, 1)[batch.predictors[::every]])

    return _run(model, read, **_inputs(batch))


def hidden_states(model: Any, batch: TokenBatch) -> Tensor:
    """The hidden states before the head: (rows * length, size), with gradients."""
    return run_body(model, **_inputs(batch)).flatten(0, 1)


def _inputs(batch: TokenBatch) -> dict[str, Any]:
    if batch.branches:
        return {
            "input_ids": batch.ids,
            "attention_mask": batch.attention,
            "position_ids": batch.positions,
            "use_cache": False,
        }
    if batch.vision:
        return {
            "input_ids": batch.ids,
            "attention_mask": batch.attention,
            "use_cache": False,
            **batch.vision,
        }
    # Padding stands on the right, where no token of a causal model sees it: no mask is quicker.
    return {"input_ids": batch.ids, "use_cache": False}


class LanguageHead:
    """The last layer of a language model, with what its architecture does to logits afterwards."""

    def __init__(self, model: Any) -> None:
        plain = unwrapped(model)
        self.layer = plain.get_output_embeddings()
        if self.layer is None:
            raise UsageError(
                f"{plain.config.model_type}: the model has no language-model head; use a causal one"
            )
        self._forward: Callable[[Tensor], Tensor] = self.layer.forward
        config = plain.config.get_text_config(decoder=True)
        self.vocabulary: int = config.vocab_size
        self._model_type: str = config.model_type
        self._cap = getattr(config, "final_logit_softcapping", None)
        self._scale = getattr(config, "logit_scale", None)
        self._divisor = getattr(config, "logits_scaling", None)

    def token_logprobs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The log-probability of a target after each hidden state: (tokens, size), (tokens,) -> (tokens,)."""
        at_once = self._rows_at_once(hidden.device)
        parts = []
        for states, wanted in zip(torch.split(hidden, at_once), torch.split(targets, at_once), strict=True):
            if torch.is_grad_enabled():
                parts.append(
                    checkpoint(self._logprobs, states, wanted, use_reentrant=False, preserve_rng_state=False)
                )
            else:
                parts.append(self._logprobs(states, wanted))
        return torch.cat(parts)

    def distributions(self, hidden: Tensor) -> Tensor:
        """Log-probabilities after each hidden state: (tokens, size) -> (tokens, vocabulary)."""
        return self.finish(self._forward(hidden)).float().log_softmax(-1)

    def _rows_at_once(self, device: torch.device) -> int:
        fitting = max(1, LOGITS_AT_ONCE // self.vocabulary)
        if device.type != "cpu" or torch.is_grad_enabled():
            return fitting
        return min(fitting, max(FEWEST_ROWS, NEAR_LOGITS // self.vocabulary))

    def _logprobs(self, hidden: Tensor, targets: Tensor) -> Tensor:
        logits = self.finish(self._forward(hidden)).float()
        return logits.gather(-1, targets[:, None]).squeeze(-1) - logits.logsumexp(-1)

    def finish(self, logits: Tensor) -> Tensor:
        """Logits as the model gives them out."""
        if self._scale is not None:
            logits = logits * self._scale
        if self._divisor is not None:
            logits = logits / self._divisor
        if self._cap is not None:
            logits = self._cap * torch.tanh(logits / self._cap)
        return logits

    def check(self, raw: Tensor, given_out: Tensor) -> None:
        """Refuse an architecture that does to its logits what `finish` does not know."""
        if not torch.allclose(self.finish(raw).float(), given_out.float(), rtol=0.02, atol=0.02):
            raise UsageError(
                f"{self._model_type}: the architecture changes its logits in a way that sweetrl does not know; "
                f"use another model"
            )


def run_body(model: Any, **inputs: Any) -> Tensor:
    """Hidden states before the head: (rows, length, size)."""
    return _run(model, lambda hidden: hidden, **inputs)


def _run(model: Any, read: Callable[[Tensor], Tensor], **inputs: Any) -> Tensor:
    """The result of `read` on the hidden states before the head.

    The call goes through the model as it is wrapped, and `read` is called in place of the head, because
    data-parallel and sharded models do their work in hooks around both. The head itself sees one token only,
    whose logits reveal any operation that comes after the head.
    """
    head = LanguageHead(model)
    with _replaced_head(head.layer, read) as seen:
        output = model(**inputs)
    found, raw = seen
    head.check(raw.detach(), output.logits.detach())
    tied: Tensor = _Tied.apply(found, output.logits)  # type: ignore[no-untyped-call]
    return tied


@contextmanager
def _replaced_head(layer: torch.nn.Module, read: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Let a layer see only the first token; collects what `read` makes of all, and the layer of that one."""
    seen: list[Tensor] = []
    forward = layer.forward

    def replacement(hidden: Tensor) -> Tensor:
        seen.extend([read(hidden), forward(hidden[:1, :1])])
        return seen[1]

    own = vars(layer).get("forward")
    layer.forward = replacement
    try:
        yield seen
    finally:
        if own is None:
            del layer.forward
        else:
            layer.forward = own


class _Tied(torch.autograd.Function):
    """The first argument unchanged; the backward pass also goes through the second, with zeros.

    Sharded models gather their weights for the backward pass when it reaches their output.
    """

    @staticmethod
    def forward(context: Any, value: Tensor, output: Tensor) -> Tensor:
        context.save_for_backward(output)
        return value.view_as(value)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        return gradient, torch.zeros_like(context.saved_tensors[0])


def unwrapped(model: Any) -> Any:
    """The model inside a data-parallel wrapper."""
    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model
