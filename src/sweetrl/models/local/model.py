"""`hf:PATH`: a chat model that runs in this process."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from safetensors import SafetensorError

from sweetrl.errors import NoReplyError, unloadable
from sweetrl.models.local.chat import ChatTokenizer
from sweetrl.models.local.engine import Counters, Engine
from sweetrl.models.local.network import Network
from sweetrl.models.local.samples import Request
from sweetrl.models.streaming import Hear, listener
from sweetrl.types import Completion, Message, Sampling

PREFIX_BYTES = 2 << 30
"""Default memory for keys and values of past texts."""
TINY, TINY_BATCH, BATCH = 10_000_000, 64, 16
"""Networks with fewer weights take larger batches: more is gained by them, and little memory needed."""
LOOP_TURNS = 16
"""Turns of an event loop after which a dialogue that was answered has asked again, or another one has begun."""
PATIENCE = 1.0
"""Seconds that this may take in a loop that is busy with other things."""


class LocalModel:
    """A Hugging Face causal language model with a chat template; on the GPU if there is one.

    Only `Sampling` decides how tokens are drawn: temperatures and penalties in the checkpoint's generation
    settings are not used. Log-probabilities are the model's own, before temperature and nucleus, one for each
    token drawn, the one that ends the reply included.

    The same seed gives the same sample whatever else is in the batch, and a temperature of 0 gives the tokens
    of `model.generate`, as far as arithmetic allows: the size of a batch changes the last bits of a logit, so
    in single precision a token may, very rarely, fall on the other side of a tie or of a random number. In
    half precision, as on GPUs, ties are common and the promise is weaker. Where all that happens between two
    requests happens at once, as with scripted collaborators, the batches are the same too, and so is every bit.
    """

    def __init__(
        self, path: str, *, name: str, max_batch: int | None = None, prefix_bytes: int = PREFIX_BYTES
    ) -> None:
        """Load the folder or hub model `path`; at most `max_batch` samples are drawn at the same time."""
        self.name = name
        try:
            self._tokenizer = ChatTokenizer(path)
            self._network = Network(path)
        except (OSError, ValueError, SafetensorError) as error:
            raise unloadable(f"hf:{path}", "a language model", error) from error
        rows = max_batch or (TINY_BATCH if self._network.weights < TINY else BATCH)
        self._engine = Engine(self._network, self._tokenizer, max_batch=rows, prefix_bytes=prefix_bytes)

    @property
    def counters(self) -> Counters:
        """Statistics: tokens read, reused and drawn."""
        return self._engine.counters

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """`n` samples of the assistant's next message."""
        prompt = self._tokenizer.encode(messages)
        self._check_fits(prompt)
        request = Request(prompt, n=n, sampling=sampling, seed=seed)
        loop, hear = asyncio.get_running_loop(), listener()
        if hear is not None:
            request.hear = partial(_tell, loop, hear)
        self._engine.await_requests = _Quiet(loop)
        self._engine.submit(request)
        return await asyncio.wrap_future(request.future)

    async def close(self) -> None:
        """Stop the thread; open requests fail."""
        await asyncio.to_thread(self._engine.close)

    def _check_fits(self, prompt: Sequence[int]) -> None:
        window = self._network.window
        if window is not None and len(prompt) >= window:
            raise NoReplyError(
                f"{self.name}: the prompt has {len(prompt)} tokens, which leaves no room for a reply in the "
                f"context window of {window}; shorten the dialogue or use a model with a longer context",
                kind="context_length",
            )


def _tell(loop: asyncio.AbstractEventLoop, hear: Hear, text: str) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody listens any more
        loop.call_soon_threadsafe(hear, text)


class _Quiet:
    """Waits until an event loop has done all that it can do at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self) -> None:
        done = threading.Event()

        def turn(left: int) -> None:
            if left:
                self._loop.call_soon(turn, left - 1)
            else:
                done.set()

        try:
            self._loop.call_soon_threadsafe(turn, LOOP_TURNS)
        except RuntimeError:
            return  # the loop is closed: nobody will ask again
        done.wait(PATIENCE)
