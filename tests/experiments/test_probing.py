"""Endpoints of agents that do not do what they are told, noticed before the first stage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models.hostile_server import HostileServer, in_thread
from sweetrl.errors import UsageError
from sweetrl.experiments.events import EndpointLimited, Event
from sweetrl.experiments.pipeline import Stage
from sweetrl.experiments.probing import Probes


def deaf(_: dict[str, Any], __: int) -> str:
    return "always the same words"


def forgetful() -> Callable[[dict[str, Any], int], str]:
    """A server that draws anew each time, whatever the seed and the temperature."""
    drawn = iter(range(1000))
    return lambda *_: f"words {next(drawn)}"


def stage(command: str, agent: str, *words: str) -> Stage:
    return Stage(command, (command, "--agent", agent, *words), (), Path(command))


def warned(planned: list[Stage]) -> list[Event]:
    """What is reported while the stages start one after the other."""
    heard: list[Event] = []
    probes = Probes(planned)
    for each in planned:
        probes.ask(each, heard.append)
    return heard


def test_an_agent_that_does_not_sample_is_refused_before_anything_is_trained() -> None:
    with in_thread(HostileServer(reply=deaf)) as server:
        agent = f"openai:test@{server.url}"
        planned = [stage("evaluate", agent), stage("candidates", agent)]
        with pytest.raises(
            UsageError, match=r"the same text again and again .* `temperature`, `seed` and `n`"
        ):
            Probes(planned).ask(planned[0], lambda _: None)


def test_where_no_candidates_are_drawn_it_is_a_warning() -> None:
    with in_thread(HostileServer(reply=deaf)) as server:
        [warning] = warned([stage("rollout", f"openai:test@{server.url}")])
    assert isinstance(warning, EndpointLimited)
    assert warning.what == "sampling"


def test_each_agent_is_asked_once_and_what_it_ignores_is_said() -> None:
    with in_thread(HostileServer(reply=forgetful())) as server:
        agent = f"openai:test@{server.url}"
        heard = warned([stage("rollout", agent), stage("candidates", agent), stage("evaluate", agent)])
    assert [each.what for each in heard if isinstance(each, EndpointLimited)] == ["temperature 0", "seed"]


def honest(request: dict[str, Any], index: int) -> str:
    return f"words {request['seed']} {index}" if request["temperature"] else "the likeliest words"


def test_an_agent_that_is_to_rank_as_the_reference_model_is_asked_for_logprobs_of_prompts() -> None:
    with in_thread(HostileServer(reply=honest)) as server:
        agent = f"openai:test@{server.url}"
        critic = f"served:critic,openai:critic@{server.url},{agent}"
        ranking = Stage("rank", ("rank", "--critic", critic), (), Path("ranked"))
        assert warned([stage("candidates", agent)]) == []
        with pytest.raises(UsageError, match=r"no log-probabilities of prompts .* serve it with vLLM"):
            warned([stage("candidates", agent), ranking])


@pytest.mark.parametrize("agent", ["mini", "openai:nobody@http://127.0.0.1:9/v1"])
def test_other_models_and_endpoints_that_do_not_answer_are_left_to_their_stages(agent: str) -> None:
    assert warned([stage("rollout", agent)]) == []


def test_an_agent_that_is_only_evaluated_is_not_asked() -> None:
    with in_thread(HostileServer(reply=deaf)) as server:
        assert warned([stage("evaluate", f"openai:test@{server.url}")]) == []
        assert not server.asked
