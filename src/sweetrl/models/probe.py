"""Checks with a few short requests whether a server honours their options.

Some servers silently ignore the temperature, the seed or the number of samples. Sixteen candidates of a turn
would then be one text sixteen times, and nothing could be learned from them.
"""

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
SAMPLING = Sampling(temperature=1.0, max_tokens=24)
GREEDY = Sampling(temperature=0.0, max_tokens=24)


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


async def probe(spec: str, endpoints: Endpoints | None = None) -> Probe:
    """Ask the model that `spec` names; raises what asking it raises."""
    meter = Meter()
    endpoints = endpoints or Endpoints()
    model = open_model(spec, endpoints=endpoints, meter=meter)
    try:
        several = await model.complete(QUESTION, n=SAMPLES, sampling=SAMPLING, seed=0)
        requests = meter.requests
        alone = [await _text(model, seed) for seed in (1, 2, 3, 1)]
        greedy = [await _text(model, seed, GREEDY) for seed in (1, 2)]
        logprobs = await _tells_logprobs(spec, endpoints)
    finally:
        await model.close()
    return Probe(
        varies=len(set(alone[:3])) > 1,
        distinct=len({each.text for each in several}) > 1,
        at_once=requests == 1,
        greedy=greedy[0] == greedy[1],
        seeded=alone[0] == alone[3],
        logprobs=logprobs,
    )


async def _text(model: ChatModel, seed: int, sampling: Sampling = SAMPLING) -> str:
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
