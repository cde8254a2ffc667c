"""The settings of a training run, with the paper's hyperparameters as defaults (paper, table 5). Free of torch."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

TRAINING_NAMES = {"nll_weight": "nll", "sft_weight": "imitation", "min_lr_ratio": "floor"}
"""Names in cards and `TrainingSettings` of settings that commands and recipes call otherwise."""

MODEL_FILE_BYTES = 5 << 30
"""Size of the files of a finished model that was split, and of the part in the main process's memory at a time."""

Positive = Annotated[int, Meta(gt=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Normalisation(StrEnum):
    """The effect of a turn's length on its advantage."""

    TURN_MEAN = "turn_mean"
    """The mean over the tokens of a turn, then the sum over turns: the paper's formula."""
    DIALOGUE_MEAN = "dialogue_mean"
    """One mean over all tokens of the agent in the dialogue, as in the code that came with the paper."""
    NONE = "none"
    """The sum over tokens: the paper's ablation, under which replies grow shorter and shorter."""


class CriticKind(StrEnum):
    """The kinds of critics."""

    ADVANTAGE = "advantage"
    """The model's own log-probabilities against those of the seed model (the paper's)."""
    VALUE = "value"
    """A head that predicts, at each turn, whether the dialogue succeeds."""
    REGRESSION = "regression"
    """A head on the mean of the hidden states, trained on pairs."""


class Precision(StrEnum):
    """In what numbers the model computes."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    """Matrix products in bfloat16, weights and optimiser in float32."""


class LoraSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Low-rank adapters on every linear layer in place of training all weights."""

    rank: Positive = 16
    alpha: Positive = 32


class TrainingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one run. `algorithms.default_settings` fills in the defaults of an algorithm."""

    algorithm: str = msgspec.field(name="method")
    """Its name in the registry; cards call it `method`."""
    kind: CriticKind = CriticKind.ADVANTAGE
    """The kind of critic; for critics only."""
    normalisation: Normalisation = Normalisation.TURN_MEAN
    """Length normalisation of advantages; for advantage critics only."""
    privileged: bool = True
    """Whether a critic sees the reference; False is an ablation."""
    plain_reference: bool = False
    """Whether the reference model reads turns without the solution when a critic ranks them, as in the published
    code; it is trained the same way."""
    vision: bool = False
    """Whether a critic sees the reference as a picture, for frontend tasks; needs a vision-language model."""
    epochs: Positive = 4
    """Passes over the data."""
    batch_size: Positive = 8
    """Examples in one optimiser step, over all processes."""
    learning_rate: Annotated[float, Meta(gt=0)] = 2e-7
    """At the peak of the schedule."""
    warmup: Share = 0.03
    """Share of the steps during which the learning rate rises."""
    floor: Share = 0.1
    """The final learning rate of the cosine schedule, as a share of the peak."""
    adam_betas: tuple[Share, Share] = (0.9, 0.95)
    weight_decay: Annotated[float, Meta(ge=0)] = 0.0
    max_gradient_norm: Annotated[float, Meta(gt=0)] = 1.0
    beta: Annotated[float, Meta(gt=0)] = 0.1
    """Beta of the preference losses."""
    nll: Annotated[float, Meta(ge=0)] = 0.01
    """Weight of the negative log-likelihood of what was chosen, per token, in the preference losses."""
    imitation: Annotated[float, Meta(ge=0)] = 0.0
    """Weight of the negative log-likelihood of answers that succeeded, each an example beside the pairs."""
    max_tokens: Positive = 16384
    """Context: longer histories lose their oldest turns."""
    tokens_per_pass: Positive = 16384
    """Memory: tokens in one forward pass of one process, padding included. Changes no result."""
    max_steps: Positive | None = None
    """End the run early, with the schedule of these steps."""
    lora: LoraSettings | None = None
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them."""
    precision: Precision = Precision.FLOAT32
    held_out: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of the tasks that are held out, to measure the loss on them."""
    seed: int = 0
    options: dict[str, bool | int | float | str] = {}
    """Hyperparameters that only this algorithm has."""
