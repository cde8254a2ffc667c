"""Log-probabilities of given tokens, by a model that vLLM serves.

They are those of a prompt: `prompt_logprobs` of the completions endpoint, which takes token ids. For such a prompt
vLLM reads nothing from its prefix cache, because the cache holds no log-probabilities: each request costs its whole
prompt.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sweetrl.errors import UsageError
from sweetrl.models.faults import unusable
from sweetrl.models.meter import Meter
from sweetrl.models.server import Server
from sweetrl.records import decode_json
from sweetrl.types import Usage

COMPLETIONS_PATH = "/completions"


class PromptLogprobs:
    """The log-probabilities that a model behind an endpoint gives to existing tokens."""

    def __init__(self, model: str, server: Server, *, name: str, meter: Meter | None = None) -> None:
        self.name = name
        self._model = model
        self._meter = meter or Meter()
        self._server = server.join()

    async def of(self, prefix: Sequence[int], continuation: Sequence[int]) -> list[float]:
        """The log-probability of each token of the continuation, after all before it. The prefix has one at least."""
        tokens = [*prefix, *continuation]
        # One token is the fewest that a server writes.
        request = {
            "model": self._model,
            "prompt": tokens,
            "prompt_logprobs": 0,
            "max_tokens": 1,
            "temperature": 0,
        }

        def read(body: bytes) -> list[float]:
            self._meter.add(Usage(len(tokens), 1))
            return self._read(body, tokens)[-len(continuation) :]

        return await self._server.post(msgspec.json.encode(request), read, self._meter, path=COMPLETIONS_PATH)

    async def close(self) -> None:
        """Let go of the server, whose connections close with its last model."""
        await self._server.leave()

    def _read(self, body: bytes, tokens: Sequence[int]) -> list[float]:
        """The log-probability of each token but the first, for which servers give none."""
        reply = _decode(body)
        found = reply.choices[0].prompt_logprobs if reply.choices else None
        if found is None:
            raise UsageError(
                f"{self.name}: the server gives no log-probabilities of prompts (prompt_logprobs); serve it with vLLM"
            )
        try:
            return [
                (known or {})[str(token)].logprob for known, token in zip(found[1:], tokens[1:], strict=True)
            ]
        except (KeyError, ValueError):
            raise unusable(
                f"log-probabilities of other tokens than the {len(tokens)} that were sent"
            ) from None


class _Token(Struct):
    logprob: float


class _Choice(Struct):
    prompt_logprobs: list[dict[str, _Token] | None] | None = None


class _Reply(Struct):
    choices: list[_Choice] = []


_DECODER = msgspec.json.Decoder(_Reply)


def _decode(body: bytes) -> _Reply:
    try:
        return decode_json(_DECODER, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unusable(f"the reply cannot be read: {error}") from None
