"""Servers that do what they are asked, and servers that quietly do not."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from models.hostile_server import HostileServer, Trouble, in_thread
from sweetrl.errors import ModelError
from sweetrl.models.probe import Probe, probe

HONEST = Probe(varies=True, distinct=True, at_once=True, greedy=True, seeded=True, logprobs=True)


def honest(request: dict[str, Any], index: int) -> str:
    """What a server says that honours temperature and seed."""
    return f"words {request['seed']} {index}" if request["temperature"] else "the likeliest words"


def deaf(_: dict[str, Any], __: int) -> str:
    """`transformers serve` does so: greedy, whatever it is told."""
    return "always the same words"


def forgetful() -> Callable[[dict[str, Any], int], str]:
    """A server that draws anew each time, whatever the seed."""
    drawn = iter(range(100))
    return lambda request, _: f"words {next(drawn)}"


def hot(request: dict[str, Any], index: int) -> str:
    """A server with a temperature of its own."""
    return f"words {request['seed']} {index}"


def sure(request: dict[str, Any], index: int) -> str:
    """A server that samples, and a model that is sure of its words at any usual temperature."""
    return f"words {request['seed']} {index}" if request["temperature"] > 1 else "the only words"


def thinking(request: dict[str, Any], index: int) -> str:
    """A model whose thoughts use up the first tokens."""
    return "" if request["max_tokens"] < 100 else honest(request, index)


def repeating(request: dict[str, Any], _: int) -> str:
    """A server that draws once and tells it `n` times."""
    return f"words {request['seed']}" if request["temperature"] else "the likeliest words"


def asked(server: HostileServer) -> Probe:
    async def ask() -> Probe:
        async with server:
            return await probe(f"openai:test@{server.url}")

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        (honest, set()),
        (deaf, {"varies", "distinct"}),
        (forgetful(), {"greedy", "seeded"}),
        (hot, {"greedy"}),
        (repeating, {"distinct"}),
        (sure, set()),
        (thinking, set()),
    ],
)
def test_it_tells_what_a_server_ignores(reply: Callable[[dict[str, Any], int], str], wrong: set[str]) -> None:
    found = asked(HostileServer(reply=reply))
    assert {
        name for name in HONEST.__struct_fields__ if getattr(found, name) != getattr(HONEST, name)
    } == wrong


def test_a_server_that_gives_one_sample_a_request_is_asked_more_often() -> None:
    found = asked(HostileServer(reply=honest, max_samples=1))
    assert (found.at_once, found.distinct) == (False, True)


def test_a_server_that_refuses_logprobs_has_none() -> None:
    refusing = HostileServer(
        reply=honest, objects=lambda request: Trouble.BAD_REQUEST if request.get("logprobs") else None
    )
    assert asked(refusing) == msgspec.structs.replace(HONEST, logprobs=False)


def test_a_server_that_refuses_high_temperatures_is_judged_by_what_it_said_at_1() -> None:
    refusing = HostileServer(
        reply=sure, objects=lambda request: Trouble.BAD_REQUEST if request["temperature"] > 1 else None
    )
    assert asked(refusing) == msgspec.structs.replace(HONEST, varies=False, distinct=False)


def test_a_model_that_says_nothing_is_not_taken_for_one_that_repeats_itself() -> None:
    with pytest.raises(ModelError, match="says nothing within 1024 tokens"):
        asked(HostileServer(reply=lambda *_: ""))


def test_doctor_ends_with_1_for_a_model_that_does_not_sample(sweetrl) -> None:
    with in_thread(HostileServer(reply=deaf)) as server:
        finished = sweetrl("doctor", "--json", "--model", f"openai:test@{server.url}")
    findings = {each["name"]: each for each in json.loads(finished.out)["findings"]}
    assert (finished.code, findings["sampling"]["status"], findings["seed"]["status"]) == (1, "missing", "ok")
