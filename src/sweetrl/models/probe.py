"""Checks with a few short requests whether a server honours their options.

Some servers silently ignore the temperature, the seed or the number of samples. Sixteen candidates of a turn
would then be one text sixteen times, and nothing could be learned from them.
"""

from typing import NamedTuple

import msgspec
from msgspec import Struct

from sweetrl.errors import ModelError
from sweetrl.models import open_model
from sweetrl.models.endpoints import Endpoints
from sweetrl.models.meter import Meter
from sweetrl.protocols import ChatModel
from sweetrl.types import Message, Role, Sampling

QUESTION = (Message(Role.USER, "Write eight words at random, in no order, about anything."),)
SAMPLES = 4
"""Enough samples that an honest server hardly ever repeats the same eight words each time."""
WORD_TOKENS = 24
THOUGHT_TOKENS = 1024
"""For a model that thinks before its first word."""
SAMPLING = Sampling(temperature=1.0, max_tokens=WORD_TOKENS)
HOT = Sampling(temperature=2.0)
"""For a model that is sure of all that it says, such as one that was trained for a single task."""
GREEDY = Sampling(temperature=0.0, max_tokens=WORD_TOKENS)


class Probe(Struct, frozen=True, kw_only=True):
    """The results of the test requests."""

    varies: bool
    """Different seeds give different texts."""
    distinct: bool
    """The samples of one call are not all the same."""
    at_once: bool
    """All samples of a call came with one request."""
    greedy: bool
    """At temperature 0 the seed makes no difference."""
    seeded: bool
    """The same seed gives the same text again."""
    logprobs: bool
    """It reports the log-probabilities of sampled tokens."""


class _Drawn(NamedTuple):
    """What a model said at one temperature."""

    together: list[str]
    """To one call."""
    alone: list[str]
    """To calls with the seeds 1, 2, 3 and again 1."""

    @property
    def varies(self) -> bool:
        return len(set(self.alone[:3])) > 1

    @property
    def distinct(self) -> bool:
        return len(set(self.together)) > 1


async def probe(spec: str, endpoints: Endpoints | None = None) -> Probe:
    """Ask the model that `spec` names; raises what asking it raises."""
    meter = Meter()
    endpoints = endpoints or Endpoints()
    model = open_model(spec, endpoints=endpoints, meter=meter)
    try:
        room = WORD_TOKENS if any(await _together(model, SAMPLING)) else THOUGHT_TOKENS
        requests = meter.requests
        drawn = await _draw(model, _within(SAMPLING, room))
        if not any(drawn.together):
            raise ModelError(f"{spec}: says nothing within {room} tokens", kind="no_content")
        sure = not (drawn.varies and drawn.distinct)
        hot = await _draw_hot(model, _within(HOT, room)) if sure else None
        greedy = [await _text(model, seed, _within(GREEDY, room)) for seed in (1, 2)]
        logprobs = await _tells_logprobs(spec, endpoints)
    finally:
        await model.close()
    return Probe(
        varies=drawn.varies or (hot is not None and hot.varies),
        distinct=drawn.distinct or (hot is not None and hot.distinct),
        at_once=requests == 1,
        greedy=greedy[0] == greedy[1],
        seeded=drawn.alone[0] == drawn.alone[3],
        logprobs=logprobs,
    )


def _within(sampling: Sampling, tokens: int) -> Sampling:
    return msgspec.structs.replace(sampling, max_tokens=tokens)


async def _draw(model: ChatModel, sampling: Sampling) -> _Drawn:
    together = await _together(model, sampling)
    return _Drawn(together, [await _text(model, seed, sampling) for seed in (1, 2, 3, 1)])


async def _draw_hot(model: ChatModel, sampling: Sampling) -> _Drawn | None:
    """The same at a high temperature, which some servers refuse."""
    try:
        return await _draw(model, sampling)
    except ModelError as error:
        if error.kind != "bad_request":
            raise
        return None


async def _together(model: ChatModel, sampling: Sampling) -> list[str]:
    return [each.text for each in await model.complete(QUESTION, n=SAMPLES, sampling=sampling, seed=0)]


async def _text(model: ChatModel, seed: int, sampling: Sampling) -> str:
    [completion] = await model.complete(QUESTION, n=1, sampling=sampling, seed=seed)
    return completion.text


async def _tells_logprobs(spec: str, endpoints: Endpoints) -> bool:
    model = open_model(spec, endpoints=endpoints, logprobs=True)
    try:
        [completion] = await model.complete(QUESTION, n=1, sampling=GREEDY, seed=1)
    except ModelError as error:
        if error.kind != "bad_request":
            raise
        return False
    finally:
        await model.close()
    return completion.logprobs is not None
