"""Measurements during training beside the loss: KL to the base model, length of turns, held-out loss.

A few examples are measured at a few moments of a run, so that collapse and reward hacking show while they happen.
Measuring changes no weight: it takes no gradients and draws from random numbers of its own. All processes of a run
measure the same, because a sharded model computes only if all of them take part.
"""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from sweetrl.errors import DataError
from sweetrl.learning.algorithms import algorithm_of
from sweetrl.learning.batches import BatchSampler, Example, TokenBatch
from sweetrl.learning.datasets import Dataset
from sweetrl.learning.logprobs import LanguageHead, token_distributions
from sweetrl.learning.objectives import Objective, StepObjective
from sweetrl.learning.settings import Precision, TrainingSettings
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.seeds import derive_seed

SHARE_MEASURED = 0.005
"""Examples measured at a moment, as a share of all that the run learns from, epoch by epoch. With forward passes alone,
eight moments then take about three per cent of the time of training."""
FEWEST, MOST = 8, 64
"""Bounds on the examples measured at a moment."""
DISTRIBUTIONS_KEPT = 1 << 25
"""Upper bound on the stored probabilities of the base model: 128 MB."""
TURNS_SAMPLED = 16
LONGEST_TURN = 512
"""Tokens after which a sampled turn is cut off; twice the longest turn of the sample, if that is less."""

KL, TURN_TOKENS, HELD_OUT_LOSS = "kl", "turn_tokens", "held_out_loss"
CHOSEN_TOKENS, REJECTED_TOKENS = "chosen_turn_tokens", "rejected_turn_tokens"
MEASURED = frozenset({KL, TURN_TOKENS, HELD_OUT_LOSS, CHOSEN_TOKENS, REJECTED_TOKENS})

Collate = Callable[[Sequence[Example]], TokenBatch]


# ---------------------------------------------------------------- what is measured


def hold_out(data: Dataset, settings: TrainingSettings) -> tuple[Dataset, list[Example]]:
    """The data without the examples of a share of its tasks, and those examples; the seed decides which tasks."""
    if not settings.held_out:
        return data, []
    tasks = sorted({example.task for example in data.examples})
    if len(tasks) < 2:
        raise DataError("all examples are about one task, so none can be held out; leave out --held-out")
    tasks.sort(key=lambda task: derive_seed(settings.seed, "held out", task))
    number = min(max(1, round(settings.held_out * len(tasks))), len(tasks) - 1)
    chosen = set(tasks[:number])
    kept = [example for example in data.examples if example.task not in chosen]
    return replace(data, examples=kept), [example for example in data.examples if example.task in chosen]


def token_kl(logprobs: Tensor, base: Tensor) -> Tensor:
    """KL(model || base) of each row of log-probabilities over the vocabulary, in nats."""
    return (logprobs.exp() * (logprobs - base)).sum(-1)


def mean_turn_tokens(sequences: Iterable[EncodedSequence]) -> float | None:
    """Mean number of tokens of the agent's turns, end-of-turn tokens included; None if there are no turns."""
    lengths = _turn_lengths(sequences)
    return sum(lengths) / len(lengths) if lengths else None


def _turn_lengths(sequences: Iterable[EncodedSequence]) -> list[int]:
    counted = (Counter(turn for turn in each.turns if turn >= 0) for each in sequences)
    return [length for lengths in counted for length in lengths.values()]


@dataclass
class Monitor:
    """Measures a model on a fixed sample of examples."""

    examples: Sequence[Example]
    """The examples that the run learns from."""
    held_out: Sequence[Example]
    """Examples of tasks that it does not learn from; measured in place of the others if there are any."""
    settings: TrainingSettings
    objective: Objective | StepObjective
    collate: Collate
    _base: list[Tensor] | None = field(default=None, init=False)

    def start(self, model: Any) -> None:
        """Remember what the base model predicts; `model` must be untrained."""
        if self._base is None and not algorithm_of(self.settings).has_head(self.settings):
            with self._measuring(model):
                self._base = self._distributions(model)

    def measure(self, model: Any) -> dict[str, float]:
        """The metrics of the model as it is now."""
        found = dict(self._lengths)
        with self._measuring(model):
            if self._base is not None:
                found |= {KL: self._kl(model, self._base)}
            if self.held_out:
                found |= {HELD_OUT_LOSS: self._loss(model)}
            if not algorithm_of(self.settings).privileged:
                found |= {TURN_TOKENS: self._sampled_tokens(model)}
        return found

    @cached_property
    def _sample(self) -> list[Example]:
        settings = self.settings
        learned = (settings.max_steps or 0) * settings.batch_size or settings.epochs * len(self.examples)
        number = min(max(FEWEST, round(SHARE_MEASURED * learned)), MOST)
        pool = self.held_out or self.examples
        rng = random.Random(derive_seed(settings.seed, "monitored"))  # noqa: S311  not a secret
        return rng.sample(list(pool), min(number, len(pool)))

    @cached_property
    def _batches(self) -> list[TokenBatch]:
        sample = self._sample
        sampler = BatchSampler(sample, batch_size=len(sample), budget=self.settings.tokens_per_pass)
        return [
            self.collate([sample[index] for index in each.indices])
            for [passes] in sampler.epoch(0)
            for each in passes
        ]

    @cached_property
    def _lengths(self) -> dict[str, float]:
        """Mean lengths of the turns that the run learns from."""
        sides = {
            CHOSEN_TOKENS: [each for example in self.examples for each in example.chosen],
            REJECTED_TOKENS: [each for example in self.examples for each in example.rejected],
        }
        means = {name: mean_turn_tokens(sequences) for name, sequences in sides.items()}
        return {name: mean for name, mean in means.items() if mean is not None}

    # -------- KL and loss

    def _kl(self, model: Any, base: list[Tensor]) -> float:
        """Mean over the agent's tokens, each after the stored tokens before it; exact over the vocabulary."""
        found = zip(self._distributions(model), base, strict=True)
        divergences = torch.cat([token_kl(now, before) for now, before in found])
        return float(divergences.mean())

    def _distributions(self, model: Any) -> list[Tensor]:
        """Log-probabilities over the vocabulary at the agent's tokens, or at every n-th if they are too many."""
        rows = max(1, DISTRIBUTIONS_KEPT // LanguageHead(model).vocabulary)
        every = -(-sum(len(batch.targets) for batch in self._batches) // rows)
        return [
            token_distributions(model, batch.to(model.device), every=every).cpu() for batch in self._batches
        ]

    def _loss(self, model: Any) -> float:
        """The mean loss of the sample."""
        loss_of = self.objective
        if isinstance(loss_of, StepObjective):
            loss_of = loss_of.given(torch.tensor(self._mean(model, loss_of.measure), device=model.device))
        return self._mean(model, lambda *given: loss_of(*given).losses)

    def _mean(self, model: Any, of_examples: Callable[[Any, TokenBatch], Tensor]) -> float:
        """The weighted mean over the examples of the sample."""
        total = weight = 0.0
        for batch in self._batches:
            found = of_examples(model, batch.to(model.device)).cpu()
            total += float((found * batch.weights).sum())
            weight += float(batch.weights.sum())
        return total / weight

    # -------- turns of its own

    @cached_property
    def _prompts(self) -> list[list[int]]:
        """The histories of turns of the sample, one of each example."""
        return [
            _history(
                example.chosen or example.rejected,
                derive_seed(self.settings.seed, "monitored turn", example.id),
            )
            for example in self._sample[:TURNS_SAMPLED]
        ]

    @cached_property
    def _ends(self) -> int:
        """The token that ends a turn: the last one of most turns."""
        last = Counter(
            sequence.ids[max(index for index, turn in enumerate(sequence.turns) if turn >= 0)]
            for example in self._sample
            for sequence in example.chosen or example.rejected
        )
        return last.most_common(1)[0][0]

    @cached_property
    def _room(self) -> int:
        """Tokens that a sampled turn may have."""
        longest = max(_turn_lengths(each for example in self._sample for each in example.sequences))
        context = self.settings.max_tokens - max(map(len, self._prompts))
        return max(1, min(LONGEST_TURN, 2 * longest, context))

    def _sampled_tokens(self, model: Any) -> float:
        """The mean length of turns that the model writes itself, with the same random numbers each time."""
        torch.manual_seed(derive_seed(self.settings.seed, "sampled turns"))
        width = max(map(len, self._prompts))
        padded = [[self._ends] * (width - len(prompt)) + prompt for prompt in self._prompts]
        seen = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in self._prompts]
        written = model.generate(
            torch.tensor(padded, device=model.device),
            attention_mask=torch.tensor(seen, device=model.device),
            max_new_tokens=self._room,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            eos_token_id=self._ends,
            pad_token_id=self._ends,
        )[:, width:]
        ended = (written == self._ends).cumsum(1)
        # What follows the first end of turn is padding.
        lengths = ((ended == 0).sum(1) + (ended[:, -1] > 0)).float()
        return float(lengths.mean())

    @contextlib.contextmanager
    def _measuring(self, model: Any) -> Iterator[None]:
        """Without gradients, dropout, or a trace in the random numbers that training draws."""
        device = model.device
        devices = [device] if device.type == "cuda" else []
        half = self.settings.precision is Precision.BFLOAT16
        training = model.training
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices),
            torch.autocast(device.type, torch.bfloat16, enabled=half),
        ):
            model.eval()
            try:
                yield
            finally:
                model.train(training)


def _history(sequences: Sequence[EncodedSequence], number: int) -> list[int]:
    """The tokens before one of the turns."""
    starts = [
        (sequence, sequence.turns.index(turn))
        for sequence in sequences
        for turn in sorted({turn for turn in sequence.turns if turn >= 0})
    ]
    sequence, start = starts[number % len(starts)]
    return sequence.ids[:start]


# ---------------------------------------------------------------- when


class MonitorCallback(TrainerCallback):
    """Measures before the first step and after equal parts of the run."""

    def __init__(self, monitor: Monitor, moments: int, log: Callable[[dict[str, float]], None]) -> None:
        self._monitor = monitor
        self._moments = moments
        self._log = log

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ARG002
        """Measure the base model; a resumed run has done so."""
        if state.global_step == 0:
            self._monitor.start(given["model"])
            self._log(self._monitor.measure(given["model"]))

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:  # noqa: ARG002  the library's
        """Measure if it is time."""
        step, steps = state.global_step, state.max_steps
        if step * self._moments // steps > (step - 1) * self._moments // steps:
            due = control.should_log
            self._log(self._monitor.measure(given["model"]))
            # The library takes any line of the log for the one of this step.
            control.should_log = due
