"""Resources of a training: GPU memory by simulation, memory of the hosts and disk by counting."""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from sweetrl.errors import StageError
from sweetrl.experiments.model_size import configuration_of, parameters_of
from sweetrl.learning.algorithms import default_settings
from sweetrl.learning.settings import MODEL_FILE_BYTES, LoraSettings, Precision, TrainingSettings
from sweetrl.settings import CriticSettings, Recipe, TrainSettings

GIB = 1 << 30
USABLE = 0.9
"""Share of a GPU's memory that tensors may take; the rest is for CUDA, NCCL and fragmentation."""
PROCESS_BYTES = 3 * GIB
"""Memory of a process with Python, PyTorch and CUDA, before it loads a model."""
CHECKPOINTS = 3
"""Checkpoints on disk at once: two that are kept, and one that is being written."""
ADAPTED = 0.02
"""Adapters have at most about this share of the weights of their model."""


@dataclass(frozen=True)
class Gpu:
    """A kind of GPU."""

    gib: int
    tflops: float
    """About 40 % of its peak in bfloat16, without sparsity."""


GPUS = {
    "a100-40gb": Gpu(40, 125),
    "a100-80gb": Gpu(80, 125),
    "b200-180gb": Gpu(180, 900),
    "h100-80gb": Gpu(80, 400),
    "h200-141gb": Gpu(141, 400),
    "l40s-48gb": Gpu(48, 145),
    "rtx3090-24gb": Gpu(24, 28),
    "rtx4090-24gb": Gpu(24, 66),
}


@dataclass(frozen=True)
class Demand:
    """Upper bounds on the memory and disk of a training, in GiB; None is unknown."""

    gpu: float | None = None
    """On each GPU."""
    host: float | None = None
    """On each machine."""
    disk: float | None = None


@dataclass(frozen=True)
class TrainingPlan:
    """A training run of a recipe."""

    recipe: Recipe
    section: TrainSettings | CriticSettings
    algorithm: str

    def demand(self) -> Demand:
        """The resources that it needs."""
        size = self.parameters
        if size is None:
            return Demand()
        _, per_machine = processes_of(self.section.launcher)
        adapted, copies = self.section.lora_rank is not None, 1 if self.section.shard else per_machine
        # Without sharding every process reads the whole model; adapters are merged into a whole one at the end.
        loading = 0 if self.section.shard else copies * size * (2 if adapted else 4)
        writing = 4 * size if adapted else MODEL_FILE_BYTES if self.section.shard else 0
        host = per_machine * PROCESS_BYTES + max(loading, writing)
        peak = None
        with contextlib.suppress(StageError):  # which the checks tell
            peak = self.gpu_bytes()
        return Demand(None if peak is None else peak / GIB, host / GIB, self.disk_bytes / GIB)

    @property
    def disk_bytes(self) -> float:
        """Checkpoints and the finished model; 0 if the size of the model is not known."""
        size = self.parameters or 0
        # A checkpoint has each trained weight and its two moments of Adam.
        checkpoint = 12 * size * (1 if self.section.lora_rank is None else ADAPTED)
        return CHECKPOINTS * checkpoint + 4 * size

    @property
    def parameters(self) -> float | None:
        """Weights of the model."""
        return parameters_of(self.section.model.removeprefix("hf:")) or self.recipe.estimate.parameters

    def gpu_bytes(self) -> int | None:
        """The simulated peak on each GPU; None without a GPU or a model in the recipe, and for adapters and vision."""
        model = configuration_of(self.section.model.removeprefix("hf:")) or self.recipe.estimate.model
        special = self.section.lora_rank is not None or getattr(self.section, "vision", False)
        if self.recipe.estimate.gpu is None or not model or special:
            return None
        machines, per_machine = processes_of(self.section.launcher)
        step = {
            "model": model,
            "settings": self._settings(model),
            "processes": machines * per_machine,
            "shard": self.section.shard,
        }
        return _simulated(msgspec.json.encode(step))

    def _settings(self, model: dict[str, Any]) -> TrainingSettings:
        """As far as they decide about memory."""
        section, rank = self.section, self.section.lora_rank
        window = model.get("max_position_embeddings")
        found = default_settings(
            self.algorithm,
            kind=getattr(section, "kind", None),
            max_tokens=section.max_tokens,
            tokens_per_pass=section.tokens_per_pass,
            gradient_checkpointing=section.gradient_checkpointing,
            precision=Precision(section.precision or Precision.BFLOAT16),
            lora=None if rank is None else LoraSettings(rank=rank, alpha=2 * rank),
        )
        return msgspec.structs.replace(found, max_tokens=min(found.max_tokens, window or found.max_tokens))


def processes_of(launcher: tuple[str, ...]) -> tuple[int, int]:
    """Machines, and processes on each, of the words of torchrun."""
    words = [part for word in launcher for part in word.replace("_", "-").split("=")]
    options = dict(pairwise(words))
    found = (options.get(name, "1") for name in ("--nnodes", "--nproc-per-node"))
    machines, processes = (int(each) if each.isdigit() else 1 for each in found)
    return machines, processes


@cache
def _simulated(step: bytes) -> int:
    ran = subprocess.run(
        [sys.executable, "-m", "sweetrl.learning.simulation"],
        input=step,
        capture_output=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
        raise StageError(f"the memory of a training step could not be simulated: {said[-1]}")
    return int(json.loads(ran.stdout))
