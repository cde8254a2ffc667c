"""The thread that owns the network and serves all open requests from one batch.

Between two tokens, finished and cancelled samples leave the batch and waiting ones join. The prompt of a
request is read once for all its samples, and not at all as far as it repeats a text that was read before,
such as the earlier turns of the same dialogue.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Condition, Thread
from typing import Literal

import torch
from torch import Tensor

from sweetrl.errors import ModelError
from sweetrl.models.local.chat import ChatTokenizer
from sweetrl.models.local.draw import draw
from sweetrl.models.local.network import Network
from sweetrl.models.local.prefixes import Prefix, PrefixStore
from sweetrl.models.local.samples import Request, Sample
from sweetrl.types import Completion, Usage

READ_AT_ONCE = 8192
"""Most tokens of several prompts that the network reads in one go; bounds the memory it needs."""


@dataclass
class Counters:
    """Statistics of an engine."""

    tokens_reused: int = 0
    """Prompt tokens whose keys and values were in the store."""
    tokens_read: int = 0
    """Prompt tokens that were not."""
    tokens_drawn: int = 0
    steps: int = 0
    """Runs of the network on the whole batch, one token each."""


@dataclass(frozen=True)
class _Reading:
    """A prompt that was read."""

    prompt: Prefix
    logits: Tensor
    """The network's prediction after it."""


class Engine:
    """Serves requests until it is closed."""

    def __init__(
        self, network: Network, tokenizer: ChatTokenizer, *, max_batch: int, prefix_bytes: int
    ) -> None:
        self.counters = Counters()
        self.await_requests: Callable[[], None] = lambda: None
        """Waits until whoever was answered has asked again, if that takes no time. What is in a batch, and with it
        the last bits of every logit, then depends on no clock."""
        self._network = network
        self._tokenizer = tokenizer
        self._ends = network.end_tokens | tokenizer.end_tokens()
        self._max_batch = max_batch
        self._store = PrefixStore(prefix_bytes)
        self._cache = network.empty_cache(max_batch)
        self._batch: list[Sample] = []
        """Samples under way; the i-th is row i of the cache."""
        self._waiting: deque[Request] = deque()
        """Requests with samples that have not begun, and perhaps the first one without."""
        self._readings: dict[Request, _Reading] = {}
        """Prompts that were read for samples of which some have not begun."""
        self._changed = Condition()
        self._arrived: list[Request] = []
        """Requests that are not in the queue yet."""
        self._answered = False
        """Whether a request was answered since others were last awaited."""
        self._closed = False
        self._thread = Thread(target=self._serve, name="sweetrl-local-model", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Take in a request; its future will hold the samples. Cancel the future to drop it."""
        with self._changed:
            if self._closed:
                raise ModelError("the local model is closed")
            self._arrived.append(request)
            self._changed.notify()

    def close(self) -> None:
        """Stop after the token under way; open requests fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    # ------------------------------------------------------------ the thread

    @torch.inference_mode()
    def _serve(self) -> None:
        while self._has_work():
            try:
                self._queue()
                self._admit()
                self._step()
            except Exception as error:  # a thread that dies leaves its callers waiting for ever
                self._fail_all(ModelError(f"the local model broke down: {type(error).__name__}: {error}"))
        self._fail_all(ModelError("the local model was closed"))

    def _has_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._arrived or self._waiting or self._batch)
            return not self._closed

    def _fail_all(self, error: ModelError) -> None:
        with self._changed:
            requests = [*self._arrived, *self._waiting, *(sample.request for sample in self._batch)]
            self._arrived = []
            self._waiting.clear()
        for request in requests:
            request.fail(error)
        self._batch = []
        self._readings = {}
        self._cache = self._network.empty_cache(self._max_batch)

    def _queue(self) -> None:
        """Line up what arrived, in an order that does not depend on who was faster."""
        if self._answered or self._arrived:
            self._answered = False
            self.await_requests()
        with self._changed:
            self._waiting.extend(sorted(self._arrived, key=lambda request: (request.seed, request.prompt)))
            self._arrived = []

    # ------------------------------------------------------------ joining

    def _admit(self) -> None:
        """Let waiting samples join, as many as there are free rows."""
        joining = list(self._next_samples(self._max_batch - len(self._batch)))
        if not joining:
            return
        self._batch += joining
        requests = list(dict.fromkeys(sample.request for sample in joining))
        self._read([request for request in requests if request not in self._readings])
        readings = [self._readings[sample.request] for sample in joining]
        for reading in readings:
            self._cache.join(reading.prompt)
        for request in requests:
            if not request.waiting:
                del self._readings[request]
        self._draw(joining, torch.stack([reading.logits for reading in readings]))

    def _next_samples(self, free: int) -> Iterator[Sample]:
        while free and self._waiting:
            request = self._waiting[0]
            if request.over:
                self._readings.pop(request, None)
            if request.over or not request.waiting:
                self._waiting.popleft()
            else:
                free -= 1
                yield request.waiting.popleft()

    def _read(self, requests: Sequence[Request]) -> None:
        """Read prompts, together where about the same number of tokens is new in them."""
        known = [self._store.longest(each.prompt, limit=len(each.prompt) - 1) for each in requests]
        unread = [(len(r.prompt) - k.length, r, k) for r, k in zip(requests, known, strict=True)]
        unread.sort(key=lambda item: item[0])
        for _, similar in groupby(unread, key=lambda item: item[0].bit_length()):
            for group in _chunks(list(similar)):
                self._read_together([request for _, request, _ in group], [prefix for _, _, prefix in group])

    def _read_together(self, requests: Sequence[Request], known: Sequence[Prefix]) -> None:
        logits, cache = self._network.read([request.prompt for request in requests], known)
        for row, (request, prefix) in enumerate(zip(requests, known, strict=True)):
            self._readings[request] = _Reading(cache.row(row), logits[row])
            self.counters.tokens_reused += prefix.length
            self.counters.tokens_read += len(request.prompt) - prefix.length

    # ------------------------------------------------------------ drawing

    def _step(self) -> None:
        """Draw the next token of every sample."""
        self._dismiss()
        if not self._batch:
            return
        self._cache.reserve()
        logits = self._network.extend(self._cache, [sample.tokens[-1:] for sample in self._batch])
        self.counters.steps += 1
        self._draw(self._batch, logits)
        self._dismiss()

    def _draw(self, samples: Sequence[Sample], logits: Tensor) -> None:
        tokens, logprobs = draw(
            logits, [each.request.sampling for each in samples], [each.uniform() for each in samples]
        )
        self.counters.tokens_drawn += len(samples)
        for sample, token, logprob in zip(samples, tokens, logprobs, strict=True):
            sample.tokens.append(token)
            sample.logprobs.append(logprob)
            sample.finish = self._finish(sample)
            if not math.isfinite(logprob):
                fault = "the local model gave logits that are not finite numbers"
                sample.request.fail(ModelError(fault))
            if sample.request.hear is not None and sample.index == 0:
                sample.request.hear(self._text(sample))

    def _finish(self, sample: Sample) -> Literal["stop", "length"] | None:
        if sample.tokens[-1] in self._ends or self._ends_with_stop(sample):
            return "stop"
        room = sample.request.sampling.max_tokens
        if self._network.window is not None:
            room = min(room, self._network.window - len(sample.request.prompt))
        return "length" if len(sample.tokens) >= room else None

    def _ends_with_stop(self, sample: Sample) -> bool:
        stops = sample.request.sampling.stop
        if not stops:
            return False
        # A character takes at most four tokens, so this tail holds any stop that the last token completed.
        tail = self._tokenizer.decode(sample.tokens[-4 * max(map(len, stops)) - 4 :])
        return any(stop in tail for stop in stops)

    # ------------------------------------------------------------ leaving

    def _dismiss(self) -> None:
        """Remove samples that are finished, and those whose request was cancelled."""
        for row in reversed(range(len(self._batch))):
            sample = self._batch[row]
            if sample.finish is None and not sample.request.over:
                continue
            if sample.index == 0 and not sample.request.over:
                self._keep(row)
            self._leave(row)
            self._answer(sample.request)

    def _keep(self, row: int) -> None:
        """Keep what was read and drawn: the next turn of the dialogue will repeat it."""
        sample, text = self._batch[row], self._cache.row(row)
        # The last token was drawn, but not read.
        self._store.keep([*sample.request.prompt, *sample.tokens[:-1]], text.layers)

    def _leave(self, row: int) -> None:
        self._cache.leave(row)
        self._batch[row] = self._batch[-1]
        self._batch.pop()

    def _answer(self, request: Request) -> None:
        if not request.over and all(sample.finish for sample in request.samples):
            request.answer([self._completion(sample) for sample in request.samples])
            self._answered = True

    def _text(self, sample: Sample) -> str:
        text = self._tokenizer.decode(sample.tokens)
        for stop in sample.request.sampling.stop:
            text = text.partition(stop)[0]
        return text

    def _completion(self, sample: Sample) -> Completion:
        assert sample.finish is not None
        prompt_tokens = len(sample.request.prompt) if sample.index == 0 else 0
        return Completion(
            text=self._text(sample),
            finish=sample.finish,
            usage=Usage(prompt_tokens=prompt_tokens, completion_tokens=len(sample.tokens)),
            logprobs=tuple(sample.logprobs),
        )


def _chunks(unread: list[tuple[int, Request, Prefix]]) -> Iterator[list[tuple[int, Request, Prefix]]]:
    """Parts of a list sorted by new tokens, each small enough to be read in one go."""
    rows = max(1, READ_AT_ONCE // unread[-1][0])
    for start in range(0, len(unread), rows):
        yield unread[start : start + rows]
