"""Peak GPU memory of a training step, by simulation: the real model, loss and sharding on tensors without data.

`python -m sweetrl.learning.simulation` reads a `Simulated` as JSON and prints the peak in bytes. It is a process of its
own because it joins a process group that is not there. Layers are alike, so memory is linear in their number: two small
models are simulated, and the straight line through them is continued.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import torch
from msgspec import Struct
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.distributed.utils import initialize_distributed_mesh

from sweetrl.learning.algorithms import algorithm_of, objective
from sweetrl.learning.batches import Example, TokenBatch, collate
from sweetrl.learning.loading import prepared, sharding, weight_type
from sweetrl.learning.logprobs import LanguageHead
from sweetrl.learning.objectives import StepObjective
from sweetrl.learning.settings import Precision, TrainingSettings
from sweetrl.learning.tokens import EncodedSequence

FEW_LAYERS, MORE_LAYERS = 2, 4
LEARNT = 0.25
"""Share of a sequence that the agent said."""


class Simulated(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A training step on one of several GPUs."""

    model: dict[str, Any]
    """Configuration of the model, as in its config.json."""
    settings: TrainingSettings
    processes: int = 1
    shard: bool = False
    rows: int = 0
    """Sequences of `max_tokens`; 0 for the largest pass that training makes."""


def peak_bytes(step: Simulated) -> int:
    """Bytes of tensors on the GPU that has most of them, at the worst moment of an optimiser step."""
    layers: int = step.model["num_hidden_layers"]
    few, more = min(FEW_LAYERS, layers), min(MORE_LAYERS, layers)
    small = _simulate(step, few)
    if layers == few:
        return small
    slope = (_simulate(step, more) - small) / (more - few)
    return round(small + slope * (layers - few))


def _simulate(step: Simulated, layers: int) -> int:
    """The peak of the model with this number of layers."""
    batch, mesh = _batch(step), _mesh(step)
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        _unchecked_logits(),
        sdpa_kernel(SDPBackend.FLASH_ATTENTION),
    ):
        model = _model(step, layers, mesh)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        optimiser = torch.optim.AdamW(weights, fused=True)
        # The first step gives the optimiser its state, and shows how the operations of a split model are split: what
        # that takes would be counted too.
        _step(model, optimiser, weights, batch, step.settings)
        tracker = FSDPMemTracker(model, optimiser) if _is_split(step) else MemTracker()
        tracker.track_external(model, optimiser)
        with tracker:
            _step(model, optimiser, weights, batch, step.settings)
        [peak] = [each["Total"] for each in tracker.get_tracker_snapshot("peak").values()]
    return int(peak)


def _is_split(step: Simulated) -> bool:
    return step.shard and step.processes > 1


def _mesh(step: Simulated) -> Any:
    """The GPUs, as the library that splits the model knows them."""
    return (
        initialize_distributed_mesh(sharding(step.processes, step.settings))[1] if _is_split(step) else None
    )


def _model(step: Simulated, layers: int, mesh: Any) -> Any:
    given = {**step.model, "num_hidden_layers": layers, "layer_types": None}
    config = AutoConfig.for_model(given.pop("model_type"), **given)
    build: Any = AutoModelForCausalLM.from_config
    model = build(config, dtype=weight_type(step.settings), attn_implementation="sdpa")
    model = type(model).maybe_distribute_model(model, sharding(step.processes, step.settings), mesh)
    model = prepared(model, step.settings)
    if step.settings.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    return model.train()


def _batch(step: Simulated) -> TokenBatch:
    """The largest pass: a pair of the longest sequences, or as many of them as the budget holds."""
    settings = step.settings
    pairs = "pairs" in algorithm_of(settings).reads or "turn_pairs" in algorithm_of(settings).reads
    rows = step.rows or max(2 if pairs else 1, settings.tokens_per_pass // settings.max_tokens)
    learned = round(LEARNT * settings.max_tokens)
    turns = [-1] * (settings.max_tokens - learned) + [0] * learned
    sequences = [EncodedSequence([number] * settings.max_tokens, turns) for number in range(rows)]
    half = (rows + 1) // 2
    sides = zip(sequences[:half], sequences[half:] + [None] * (2 * half - rows), strict=True)
    examples = [
        Example(str(number), (chosen,), () if rejected is None else (rejected,))
        for number, (chosen, rejected) in enumerate(sides)
    ]
    return collate(examples, pad=0)


def _step(
    model: Any, optimiser: Any, weights: list[Any], batch: TokenBatch, settings: TrainingSettings
) -> None:
    half = settings.precision is Precision.BFLOAT16
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss_of = objective(settings)
        if isinstance(loss_of, StepObjective):
            with torch.no_grad():
                loss_of = loss_of.given(loss_of.measure(model, batch).mean())
        loss: Any = (loss_of(model, batch).losses * batch.weights).sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(weights, settings.max_gradient_norm, foreach=False)
    optimiser.step()
    optimiser.zero_grad()


@contextlib.contextmanager
def _unchecked_logits() -> Iterator[None]:
    """Without a comparison of logits, which have no values here."""
    with patch.object(LanguageHead, "check", lambda *_: None):
        yield


def main() -> None:
    """Simulate what standard input describes."""
    step = msgspec.json.decode(sys.stdin.buffer.read(), type=Simulated)
    if _is_split(step):
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=step.processes)
    sys.stdout.write(f"{peak_bytes(step)}\n")


if __name__ == "__main__":
    main()
