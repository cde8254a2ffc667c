"""Options of a run that do not affect what is learned, and their translation for `transformers`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from transformers import TrainingArguments

from sweetrl.learning.checkpoints import RunFolder
from sweetrl.learning.settings import Precision, TrainingSettings

NEVER = 1 << 40
"""More steps than any run has."""
TRACKERS = ("tensorboard", "wandb", "mlflow", "trackio")
"""Supported trackers beside our own log: the names of options, of packages, and of callbacks of `transformers`."""
PROJECT = "sweetrl"
"""The project name of the runs in trackers, unless their own variables say otherwise."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run, after each optimiser step."""

    step: int
    steps: int
    loss: float


@dataclass(frozen=True)
class RunOptions:
    """Options that do not affect what is learned; they change no result."""

    save_every: int = 100
    """Steps between checkpoints."""
    save_minutes: int | None = None
    """Minutes between checkpoints; None to go by steps alone."""
    keep: int = 2
    """Checkpoints that are kept."""
    log_every: int = 1
    """Steps between lines of the log."""
    reports: tuple[str, ...] = ()
    """Some of `TRACKERS`."""
    monitor: int = 8
    """Moments at which KL to the base model, turn length and held-out loss are measured; 0 for none."""
    shard: bool = False
    """Whether the processes of the run share one copy of the model (FSDP2) instead of having one each."""
    observe: Callable[[Progress], None] = lambda _: None
    """Told after each step."""


def training_arguments(
    settings: TrainingSettings, folder: RunFolder, run_options: RunOptions
) -> TrainingArguments:
    """The settings in the library's words."""
    return TrainingArguments(
        output_dir=str(folder.checkpoints),
        # One item of the data is one optimiser step, and all epochs are one to the library.
        per_device_train_batch_size=1,
        num_train_epochs=1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": settings.floor},
        warmup_steps=settings.warmup,
        adam_beta1=settings.adam_betas[0],
        adam_beta2=settings.adam_betas[1],
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_gradient_norm,
        gradient_checkpointing=settings.gradient_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        bf16=settings.precision is Precision.BFLOAT16,
        use_cpu=not torch.cuda.is_available(),
        seed=settings.seed,
        save_strategy="steps",
        save_steps=run_options.save_every,
        save_only_model=run_options.shard,
        logging_steps=run_options.log_every,
        logging_nan_inf_filter=False,
        report_to=list(run_options.reports) or "none",
        project=PROJECT,
        run_name=folder.path.resolve().name,
        disable_tqdm=True,
        log_level="error",
        log_level_replica="error",
        # Vision towers have layers that nothing reads.
        ddp_find_unused_parameters=settings.vision,
        remove_unused_columns=False,
    )
