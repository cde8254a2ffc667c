"""The one trainer: `transformers.Trainer` with our batches, objectives and checkpoints.

An item of its data is everything that this process does in one optimiser step: a few forward passes whose
losses, weighted, add up to the mean over the step's examples. So neither the number of passes nor that of
processes changes what is learned, and a resumed run goes on with the very next step.
"""

import contextlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import torch
from accelerate.utils import broadcast_object_list  # type: ignore[import-untyped]
from msgspec.structs import replace as changed
from torch import Tensor
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.utils.data import DataLoader, SequentialSampler
from transformers import PrinterCallback, Trainer, TrainerCallback

from sweetrl.learning.algorithms import algorithm_of, objective
from sweetrl.learning.batches import TokenBatch
from sweetrl.learning.checkpoints import (
    ADAPTER,
    LOG,
    STAGING,
    RunFolder,
    TrainingCard,
    check_architecture,
    diverged,
    flush,
    readable_save_errors,
    write_training_card,
)
from sweetrl.learning.datasets import Dataset
from sweetrl.learning.heads import SCORE_HEAD, save_score_head
from sweetrl.learning.loading import load_model, merge_adapter, read_weights, save_plain
from sweetrl.learning.monitoring import MEASURED, Monitor, MonitorCallback, hold_out
from sweetrl.learning.objectives import Objective, Outcome, StepObjective
from sweetrl.learning.reference import with_reference
from sweetrl.learning.run_options import Progress, RunOptions, training_arguments
from sweetrl.learning.sharding import free_gathered_weights, load_progress, save_progress, save_whole
from sweetrl.learning.steps import StepsOfRun, collator
from sweetrl.records import now

_WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


class _LogCutBack(TrainerCallback):
    """Cuts the log of an interrupted run back to the step from which it resumes."""

    def __init__(self, write: Callable[..., None]) -> None:
        self._write = write

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Called by the library before the first step."""
        if state.is_world_process_zero:
            self._write(state.log_history, mode="w")


class SaveByTime(TrainerCallback):
    """Asks for a checkpoint when the last one is some minutes old; the clock of the main process decides."""

    def __init__(self, minutes: float) -> None:
        self._seconds = 60 * minutes
        self._saved = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002  the library's
        """Called by the library after each step."""
        [due] = broadcast_object_list([time.monotonic() - self._saved >= self._seconds])
        control.should_save |= due

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002  the library's
        """Called by the library after each checkpoint."""
        self._saved = time.monotonic()


class TurnTrainer(Trainer):
    """Trains one model by one objective into one folder.

    The private methods of `Trainer` that it overrides are listed, with their signatures, in
    `tests/learning/test_trainer_hooks.py`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        data: Dataset,
        card: TrainingCard,
        folder: RunFolder,
        run_options: RunOptions,
    ) -> None:
        self._tokenizer = tokenizer
        self._card = card
        self._settings = card.settings
        self._folder = folder
        self._run_options = run_options
        self._algorithm = algorithm_of(card.settings)
        self._objective = objective(card.settings)
        self._has_head = self._algorithm.has_head(card.settings)
        self._sums: dict[str, Tensor] = {}
        self._tokens = 0
        self._clock = time.perf_counter()
        self._weights: int = sum(parameter.numel() for parameter in model.parameters())
        super().__init__(
            model=model,
            args=training_arguments(card.settings, folder, run_options),
            processing_class=tokenizer,
        )
        self.remove_callback(PrinterCallback)
        self.add_callback(_LogCutBack(self._write_log))
        if run_options.save_minutes is not None:
            self.add_callback(SaveByTime(run_options.save_minutes))
        self._steps = StepsOfRun(
            data.examples,
            card.settings,
            collator(tokenizer, card.settings),
            processes=self.args.world_size,
            process=self.args.process_index,
        )
        self.train_dataset = self._steps

    # -------- data

    def get_train_dataloader(self) -> DataLoader[list[TokenBatch]]:
        """Not sharded by accelerate: the data are this process's own."""
        order = SequentialSampler(self._steps)
        return DataLoader(self._steps, batch_size=1, sampler=order, collate_fn=itemgetter(0))

    # -------- one step

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: object = None) -> Tensor:  # noqa: ARG002
        """All passes of one optimiser step; the loss, such that its mean over processes is the step's."""
        model.train()
        total = torch.zeros((), device=self.args.device)
        loss_of = self._objective_of_step(model, inputs)
        for number, batch in enumerate(inputs, start=1):
            last = number == len(inputs)
            self.accelerator.gradient_state._set_sync_gradients(last)
            self._tokens += batch.tokens
            with self._gradients_stay_here(model, last=last):
                total += self._learn(model, batch.to(self.args.device), loss_of)
        if not torch.isfinite(total):
            raise diverged(self._folder, self.state.global_step + 1, "the loss")
        return total

    def _gradients_stay_here(self, model: Any, *, last: bool) -> contextlib.AbstractContextManager[None]:
        """Before the last pass, processes need not exchange gradients."""
        if last or self.is_deepspeed_enabled or self.is_distributed_loading_by_transformers:
            return contextlib.nullcontext()
        context: contextlib.AbstractContextManager[None] = self.accelerator.no_sync(model=model)
        return context

    @torch.no_grad()
    def _objective_of_step(self, model: Any, batches: Sequence[TokenBatch]) -> Objective:
        """The loss, with the mean over the whole step that it may need."""
        if not isinstance(self._objective, StepObjective):
            return self._objective
        mean = torch.zeros((), device=self.args.device)
        for batch in (each.to(self.args.device) for each in batches):
            mean += (self._objective.measure(model, batch) * batch.weights).sum()
        return self._objective.given(self.accelerator.reduce(mean, reduction="mean"))

    def _learn(self, model: Any, batch: TokenBatch, loss_of: Objective) -> Tensor:
        outcome = loss_of(model, batch)
        loss = (outcome.losses * batch.weights).sum()
        options = {"scale_wrt_gas": False} if self.is_deepspeed_enabled else {}
        self.accelerator.backward(loss, **options)
        self._count(batch, outcome)
        return loss.detach()

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)  # type: ignore[no-untyped-call]
        if norm is not None and not math.isfinite(float(norm)):
            raise diverged(self._folder, self.state.global_step + 1, "the gradient")
        return norm

    def floating_point_ops(self, inputs: Any) -> int:
        """Two for each weight and token forward, four backward."""
        tokens: int = sum(batch.tokens for batch in inputs)
        return 6 * self._weights * tokens

    # -------- log

    def _count(self, batch: TokenBatch, outcome: Outcome) -> None:
        for name, values in {**outcome.metrics, "weight": torch.ones_like(outcome.losses)}.items():
            self._sums[name] = self._sums.get(name, 0.0) + (values * batch.weights).sum()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the means of the objective's metrics since the last time, over all processes."""
        if self._sums and MEASURED.isdisjoint(logs):
            names = [*self._sums, "tokens"]
            values = torch.stack(
                [*self._sums.values(), torch.tensor(float(self._tokens)).to(self.args.device)]
            )
            totals = dict(zip(names, self.accelerator.reduce(values).tolist(), strict=True))
            logs |= self._means(totals)
            self._sums, self._tokens, self._clock = {}, 0, time.perf_counter()
        self.state.epoch = self.state.global_step / self._steps.steps_per_epoch
        super().log(logs, start_time)
        if self.is_world_process_zero():
            self._write_log([self.state.log_history[-1]], mode="a")
            if "loss" in logs:
                done = Progress(self.state.global_step, self.state.max_steps, logs["loss"])
                self._run_options.observe(done)

    def _write_log(self, lines: Sequence[dict[str, Any]], *, mode: str) -> None:
        with readable_save_errors(self._folder.path), (self._folder.path / LOG).open(mode) as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def _means(self, totals: dict[str, float]) -> dict[str, float]:
        weight, tokens = totals.pop("weight"), totals.pop("tokens")
        speed = tokens / max(time.perf_counter() - self._clock, 1e-9)
        return {**{name: value / weight for name, value in totals.items()}, "tokens_per_second": speed}

    # -------- checkpoints

    def _save_checkpoint(self, model: Any, trial: object) -> None:
        """As always, but aside; it gets its name when every process has written its part."""
        name = f"checkpoint-{self.state.global_step}"
        if self.is_world_process_zero():
            self._folder.make_room(self._checkpoint_bytes)
        with self._staged() as aside:
            self.args.output_dir = str(aside)
            try:
                super()._save_checkpoint(model, trial)
            finally:
                self.args.output_dir = str(self._folder.checkpoints)
            if self.is_distributed_loading_by_transformers:
                self._save_shards(aside / name)
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                write_training_card(aside / name, self._card_now())
                flush(aside)
                self._folder.checkpoints.mkdir(exist_ok=True)
                (aside / name).replace(self._folder.checkpoints / name)
                self._folder.prune(self._run_options.keep)

    @cached_property
    def _checkpoint_bytes(self) -> int:
        """Trained weights in single precision and two moments of each; the frozen ones are not written in shards."""
        whole = self._settings.lora is None and not self.is_distributed_loading_by_transformers
        trained: int = sum(
            each.numel() for each in cast("Any", self.model).parameters() if each.requires_grad
        )
        return 8 * trained + 4 * (self._weights if whole else trained)

    @contextlib.contextmanager
    def _staged(self) -> Any:
        """The folder aside, for all processes."""
        if self.is_world_process_zero():
            with self._folder.staging() as aside:
                self.accelerator.wait_for_everyone()
                yield aside
        else:
            self.accelerator.wait_for_everyone()
            with readable_save_errors(self._folder.path):
                yield self._folder.path / STAGING
        self.accelerator.wait_for_everyone()

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        made = Path(output_dir or str(self.args.output_dir))
        if self.is_distributed_loading_by_transformers and self._settings.lora is None:
            self._save_split(made)
            return
        super()._save(output_dir, state_dict)
        # A pickle of the library's own arguments: nobody needs it, and only one version can read it.
        (made / "training_args.bin").unlink(missing_ok=True)
        if self._has_head and self._settings.lora is None and self._card.finished:
            save_plain(self.accelerator.unwrap_model(self.model), made, state_dict)

    def _save_split(self, made: Path) -> None:
        """The files of a model that is split over processes: a checkpoint has shards in place of them."""
        made.mkdir(parents=True, exist_ok=True)
        if not self._card.finished:
            return
        model, main = cast("Any", self.model), self.is_world_process_zero()
        save_whole(model, made, without=SCORE_HEAD, main=main)
        if main:
            self._tokenizer.save_pretrained(made)
            if self._has_head:
                save_score_head(model, made)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self.is_distributed_loading_by_transformers:
            return  # read with the optimiser
        own: Any = self.model if model is None else model
        whole = self._settings.lora is None
        vision = self._settings.vision
        if whole and not vision and not self.is_fsdp_enabled:
            shapes = {name: tuple(value.shape) for name, value in own.state_dict().items()}
            check_architecture(Path(resume_from_checkpoint), shapes)
        if whole and vision:
            weights: dict[str, Any] = read_weights(Path(resume_from_checkpoint), vision=True)
            set_model_state_dict(own, weights, options=_WHOLE)
        else:
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    # The library writes no optimiser of a model that was sharded when it was loaded.

    def _save_shards(self, folder: Path) -> None:
        save_progress(self.model, self._plain_optimiser, folder)
        if self.is_world_process_zero():
            torch.save(cast("Any", self.lr_scheduler).state_dict(), folder / "scheduler.pt")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or not self.is_distributed_loading_by_transformers:
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        load_progress(self.model, self._plain_optimiser, Path(checkpoint))
        schedule = torch.load(Path(checkpoint) / "scheduler.pt", weights_only=True)
        cast("Any", self.lr_scheduler).load_state_dict(schedule)

    @property
    def _plain_optimiser(self) -> Any:
        return getattr(self.optimizer, "optimizer", self.optimizer)

    def publish(self) -> TrainingCard:
        """Write the trained model as a plain folder, with its card."""
        with self._staged() as aside:
            made = aside / "final"
            adapted = self._settings.lora is not None
            self._card = changed(self._card_now(), finished=now())
            self.save_model(str(made / ADAPTER if adapted else made))
            self.accelerator.wait_for_everyone()
            if self.is_world_process_zero():
                if adapted:
                    merge_adapter(self._card.model, made / ADAPTER, self._settings, made)
                    self._tokenizer.save_pretrained(made)
                self._algorithm.finish(made, self._card)
                self._folder.publish(made, self._card)
        return self._card

    def _card_now(self) -> TrainingCard:
        logged = next((line for line in reversed(self.state.log_history) if "loss" in line), {})
        return changed(self._card, metrics={name: float(value) for name, value in logged.items()})


def train(
    data: Dataset,
    tokenizer: Any,
    card: TrainingCard,
    folder: RunFolder,
    run_options: RunOptions | None = None,
) -> TrainingCard:
    """Train to the end, from the last checkpoint if there is one, and leave the finished model in the folder.

    The main process must have claimed the folder. All processes of a run call this.
    """
    run_options = run_options or RunOptions()
    arguments = training_arguments(card.settings, folder, run_options)
    processes = arguments.world_size  # joins the other processes
    run_options = replace(run_options, shard=run_options.shard and processes > 1)
    model = load_model(card.model, card.settings, shard=processes if run_options.shard else 1)
    if algorithm_of(card.settings).compares(card.settings):
        known = with_reference(
            data.examples, model, card.settings, folder.path / "reference", arguments.device
        )
        data = replace(data, examples=known)
    data, held_out = hold_out(data, card.settings)
    card = changed(card, examples=len(data.examples))
    monitor = Monitor(
        data.examples, held_out, card.settings, objective(card.settings), collator(tokenizer, card.settings)
    )
    last = folder.last_checkpoint()
    if run_options.monitor and last is not None:
        monitor.start(model.to(arguments.device))
        free_gathered_weights(model)
    trainer = TurnTrainer(model, tokenizer, data, card, folder, run_options)
    if run_options.monitor:
        trainer.add_callback(MonitorCallback(monitor, run_options.monitor, trainer.log))
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    return trainer.publish()
