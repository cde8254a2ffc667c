"""Chat models behind an OpenAI-compatible endpoint (vLLM, SGLang, llama.cpp, Ollama, OpenAI...)."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from sweetrl.errors import ModelError
from sweetrl.models.concurrency import all_of
from sweetrl.models.faults import Fault, unusable
from sweetrl.models.meter import FREE, Meter, Price
from sweetrl.models.server import Server
from sweetrl.models.streaming import ASKED_FOR, Stream, listener
from sweetrl.records import decode_json
from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Message, Sampling, Usage

MAX_TOKENS_USED = 10_000_000
"""A server that reports more tokens per request than this, or a negative number, made the number up."""
CHARACTERS_PER_TOKEN = 256
"""No tokenizer has tokens this long on average: a longer reply did not keep to `max_tokens`."""


class OpenAIModel:
    """A `ChatModel` on a server that speaks OpenAI's chat protocol."""

    def __init__(
        self,
        model: str,
        server: Server,
        *,
        name: str,
        meter: Meter | None = None,
        price: Price = FREE,
        logprobs: bool = False,
    ) -> None:
        """`logprobs` asks for those of the sampled tokens; not all servers offer them."""
        self.meter = meter or Meter()
        self._model = model
        self.name = name
        self._price = price
        self._logprobs = logprobs
        self._server = server.join()
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r})"

    async def complete(
        self, messages: Sequence[Message], *, n: int, sampling: Sampling, seed: int
    ) -> list[Completion]:
        """`n` samples; if the server gives fewer at a time, the rest is requested with derived seeds."""
        if self._closed:
            raise ModelError(f"closed: {self.name} has been closed", kind="closed")
        request = self._request(messages, sampling)
        return await self._samples(request, n, seed)

    async def close(self) -> None:
        """Let go of the server, whose connections close with its last model."""
        if not self._closed:
            self._closed = True
            await self._server.leave()

    def _request(self, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
        # OpenAI has renamed this field; others know the old name only.
        limit = "max_completion_tokens" if self._server.url.official else "max_tokens"
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [_wire(message) for message in messages],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            limit: sampling.max_tokens,
        }
        if sampling.stop:
            request["stop"] = sampling.stop
        if self._logprobs:
            request["logprobs"] = True
        return request

    async def _samples(self, request: dict[str, Any], n: int, seed: int) -> list[Completion]:
        try:
            samples = await self._ask(request, n, seed)
        except ModelError as error:
            # Some servers refuse to draw several at once. If it is something else, one alone will say so.
            if n == 1 or error.kind != "bad_request":
                raise
            samples = await self._ask(request, 1, seed)
        missing = n - len(samples)
        if missing > 0:
            samples += await self._more_samples(request, missing, len(samples), seed)
        return samples

    async def _more_samples(
        self, request: dict[str, Any], missing: int, at_once: int, seed: int
    ) -> list[Completion]:
        sizes = [min(at_once, missing - start) for start in range(0, missing, at_once)]
        parts = await all_of(
            self._samples(request, size, derive_seed(seed, "more samples", index))
            for index, size in enumerate(sizes)
        )
        return [sample for part in parts for sample in part]

    async def _ask(self, request: dict[str, Any], n: int, seed: int) -> list[Completion]:
        """One request: between 1 and `n` samples. One that somebody listens to is streamed, where the server can."""
        hear = listener()
        if hear is None or n > 1 or self._logprobs:
            return await self._post(request, n, seed)
        try:
            return await self._post({**request, **ASKED_FOR}, n, seed, Stream(hear))
        except ModelError as error:
            if error.kind != "bad_request":
                raise
            return await self._post(request, n, seed)

    async def _post(
        self, request: dict[str, Any], n: int, seed: int, stream: Stream | None = None
    ) -> list[Completion]:
        several = {"n": n} if n > 1 else {}
        try:
            body = _ENCODER.encode({**request, **several, "seed": seed})
        except UnicodeEncodeError:
            raise ModelError(
                "bad_message: a message holds a lone surrogate, which is not text", kind="bad_message"
            ) from None
        limit = request.get("max_tokens") or request["max_completion_tokens"]

        def read(reply: bytes) -> list[Completion]:
            parsed = _decode(stream.whole() if stream is not None and stream.begun else reply)
            self.meter.add(_usage(parsed), self._price)
            return _completions(parsed, n, max_characters=limit * CHARACTERS_PER_TOKEN)

        return await self._server.post(body, read, self.meter, stream)


def _wire(message: Message) -> dict[str, Any]:
    if not message.images:
        return {"role": message.role, "content": message.text}
    pictures = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png).decode()}}
        for png in message.images
    ]
    return {"role": message.role, "content": [{"type": "text", "text": message.text}, *pictures]}


# ---------------------------------------------------------------- replies

# Only what is used, and lenient about the rest: servers differ. Decoding into these takes microseconds, where
# the client's own models take milliseconds.


class _Said(Struct):
    content: str | None = None
    refusal: str | None = None
    """The text in place of an answer when one of OpenAI's models refuses."""


class _Token(Struct):
    logprob: float


class _Logprobs(Struct):
    content: list[_Token] | None = None


class _Choice(Struct):
    message: _Said | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


_Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS_USED)]


class _Used(Struct):
    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None


class _Reply(Struct):
    choices: list[_Choice] | None = None
    usage: _Used | None = None
    error: Raw = Raw(b"null")


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Reply)


def _decode(reply: bytes) -> _Reply:
    try:
        return decode_json(_DECODER, reply)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unusable(f"the reply cannot be read: {error}") from None


def _usage(reply: _Reply) -> Usage:
    used = reply.usage or _Used()
    return Usage(used.prompt_tokens or 0, used.completion_tokens or 0)


def _completions(reply: _Reply, n: int, *, max_characters: int) -> list[Completion]:
    """The usable choices, at most `n`; a `Fault` if there are none."""
    choices = (reply.choices or [])[:n]
    if not choices:
        raise unusable(f"the reply has no choices: {bytes(reply.error).decode('utf-8', 'replace')}")
    whole = [choice for choice in choices if choice.finish_reason != "content_filter"]
    if not whole:
        raise Fault("reply_filtered", "the endpoint's content filter stopped the reply", costly=True)
    texts = [(choice, text) for choice in whole if (text := _text(choice)) is not None]
    if not texts:
        raise Fault("no_content", f"nothing is said (finish_reason {choices[0].finish_reason})", costly=True)
    if any(len(text) > max_characters for _, text in texts):
        raise Fault("reply_too_large", "the reply is far longer than max_tokens allows")
    usages = _shares(_usage(reply), [len(text) for _, text in texts])
    return [
        Completion(
            text=text,
            finish="length" if choice.finish_reason == "length" else "stop",
            usage=usage,
            logprobs=_logprobs(choice),
        )
        for (choice, text), usage in zip(texts, usages, strict=True)
    ]


def _text(choice: _Choice) -> str | None:
    """The text of a choice; None if there is none, unless a thought used up all tokens."""
    said = choice.message or _Said()
    nothing = "" if choice.finish_reason == "length" else None
    return next((text for text in (said.content, said.refusal) if text is not None), nothing)


def _logprobs(choice: _Choice) -> tuple[float, ...] | None:
    if choice.logprobs is None or choice.logprobs.content is None:
        return None
    return tuple(token.logprob for token in choice.logprobs.content)


def _shares(usage: Usage, lengths: list[int]) -> list[Usage]:
    """A request's tokens divided among its samples by their lengths; the sums are exact."""
    whole = sum(lengths) or 1
    marks = [usage.completion_tokens * sum(lengths[:end]) // whole for end in range(len(lengths))]
    marks.append(usage.completion_tokens)
    return [
        Usage(usage.prompt_tokens if index == 0 else 0, marks[index + 1] - marks[index])
        for index in range(len(lengths))
    ]
