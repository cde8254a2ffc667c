"""The data of a run: for each optimiser step, the batches that one process computes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch.utils.data import Dataset

from sweetrl.learning.batches import BatchSampler, Example, Pass, Step, TokenBatch, collate
from sweetrl.learning.pictures import PictureReader
from sweetrl.learning.settings import TrainingSettings
from sweetrl.learning.vision import collate_vision

Collate = Callable[[Sequence[Example]], TokenBatch]


class StepsOfRun(Dataset[list[TokenBatch]]):
    """The batches of one process for each optimiser step of a run, all epochs in a row."""

    def __init__(
        self,
        examples: list[Example],
        settings: TrainingSettings,
        collate: Collate,
        *,
        processes: int,
        process: int,
    ) -> None:
        self.examples = examples
        self._collate = collate
        self._process = process
        self._sampler = BatchSampler(
            examples,
            batch_size=settings.batch_size,
            budget=settings.tokens_per_pass,
            processes=processes,
            seed=settings.seed,
        )
        self.steps_per_epoch = self._sampler.steps_per_epoch
        self._length = settings.max_steps or settings.epochs * self.steps_per_epoch
        self._epoch: tuple[int, list[Step]] = (-1, [])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> list[TokenBatch]:
        step = self._step(number)
        counted = [index for passes in step for each in passes if each.counted for index in each.indices]
        total = sum(self.examples[index].weight for index in counted)
        return [self._batch(each, len(step) / total) for each in step[self._process]]

    def _step(self, number: int) -> Step:
        epoch, within = divmod(number, self.steps_per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = epoch, list(self._sampler.epoch(epoch))
        return self._epoch[1][within]

    def _batch(self, each: Pass, scale: float) -> TokenBatch:
        """Weights make a sum over passes, and then a mean over processes, the mean over the step."""
        batch = self._collate([self.examples[index] for index in each.indices])
        return replace(batch, weights=batch.weights * (scale if each.counted else 0.0))


def collator(tokenizer: Any, settings: TrainingSettings) -> Collate:
    """Turns examples into batches; vision-language models have a processor in place of a tokenizer."""
    if settings.vision:
        return partial(collate_vision, pictures=PictureReader(tokenizer))
    return partial(collate, pad=tokenizer.pad_token_id or 0)
