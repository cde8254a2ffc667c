import asyncio
import base64
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from models.hostile_server import FAULT_TEXT, TRANSIENT, HostileServer, Trouble, in_thread
from sweetrl.errors import EndpointDown, ModelError, NoReplyError
from sweetrl.models import EndpointOptions, Endpoints, Meter, Price, open_model
from sweetrl.models.openai import OpenAIModel, _shares
from sweetrl.models.server import headers_for
from sweetrl.models.specification import OFFICIAL_URL, parse_url
from sweetrl.seeds import derive_seed
from sweetrl.types import Completion, Message, Role, Sampling, Usage

CHAT = [Message(Role.USER, "Say something.")]
FAST = EndpointOptions(timeout=60, first_backoff=0.002, max_backoff=0.01, max_retry_after=0.05)
KEY = "sk-very-secret-key"


@asynccontextmanager
async def served(
    server: HostileServer, options: EndpointOptions = FAST, **opening: object
) -> AsyncIterator[OpenAIModel]:
    async with server:
        model = open_model(f"openai:test@{server.url}", endpoints=Endpoints(options), **opening)
        assert isinstance(model, OpenAIModel)
        try:
            yield model
        finally:
            await model.close()


async def ask(model: OpenAIModel, seed: int = 1, n: int = 1, **sampling: object) -> list[Completion]:
    return await model.complete(CHAT, n=n, sampling=Sampling(**sampling), seed=seed)


def run_with(
    server: HostileServer,
    use: Callable[[OpenAIModel], Awaitable[list[Completion]]] = ask,
    options: EndpointOptions = FAST,
    **opening: object,
) -> list[Completion]:
    async def run() -> list[Completion]:
        async with served(server, options, **opening) as model:
            return await use(model)

    return asyncio.run(run())


def friendly_text(seed: int = 1) -> str:
    [completion] = run_with(HostileServer(), lambda model: ask(model, seed))
    return completion.text


# ---------------------------------------------------------------- requests


def test_the_request_carries_the_chat_and_how_to_sample() -> None:
    server = HostileServer()
    run_with(server, lambda model: ask(model, 7, 2, temperature=0.5, top_p=0.9, max_tokens=5, stop=("X",)))
    assert server.asked[0].target == "/v1/chat/completions"
    assert server.asked[0].body == {
        "model": "test",
        "messages": [{"role": "user", "content": "Say something."}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 5,
        "stop": ["X"],
        "n": 2,
        "seed": 7,
    }


def test_images_travel_as_png_data_urls() -> None:
    server = HostileServer()
    chat = [Message(Role.USER, "Compare.", (b"\x89PNG one", b"\x89PNG two"))]
    run_with(server, lambda model: model.complete(chat, n=1, sampling=Sampling(), seed=1))
    text, *pictures = server.asked[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "Compare."}
    urls = [picture["image_url"]["url"] for picture in pictures]
    assert urls == [
        "data:image/png;base64," + base64.b64encode(png).decode() for png in (b"\x89PNG one", b"\x89PNG two")
    ]


def test_logprobs_come_when_asked_for() -> None:
    [without] = run_with(HostileServer())
    [with_them] = run_with(HostileServer(), logprobs=True)
    assert without.logprobs is None
    assert with_them.logprobs == (-0.5, -0.5, -0.5)


def test_a_message_that_is_not_text_is_a_model_error() -> None:
    chat = [Message(Role.USER, "\ud800")]
    with pytest.raises(ModelError, match="surrogate"):
        run_with(HostileServer(), lambda model: model.complete(chat, n=1, sampling=Sampling(), seed=1))


def test_half_a_surrogate_pair_in_a_reply_is_the_models_word_and_no_failure() -> None:
    [completion] = run_with(HostileServer(reply=lambda *_: "x\ud83dy"))
    assert completion.text == "x\ufffdy"


# ---------------------------------------------------------------- samples and counting


def test_samples_that_the_server_left_out_are_asked_for_with_derived_seeds() -> None:
    server = HostileServer(max_samples=2)
    completions = run_with(server, lambda model: ask(model, seed=5, n=5))
    assert len({completion.text for completion in completions}) == 5
    asked = [(asked.body.get("n", 1), asked.body["seed"]) for asked in server.asked]
    assert asked[0] == (5, 5)
    assert sorted(asked[1:]) == sorted(
        [(2, derive_seed(5, "more samples", 0)), (1, derive_seed(5, "more samples", 1))]
    )


def test_when_the_rest_of_the_samples_fails_the_request_fails_with_that_reason() -> None:
    server = HostileServer(max_samples=1, script=[None, Trouble.UNAUTHORIZED, None])
    with pytest.raises(ModelError) as caught:
        run_with(server, lambda model: ask(model, n=3))
    assert caught.value.kind == "auth"


def test_tokens_and_cost_are_counted_at_the_meter() -> None:
    meter = Meter()
    completions = run_with(
        HostileServer(), lambda model: ask(model, n=3), meter=meter, price=Price(prompt=1e6, completion=1e6)
    )
    assert (meter.prompt_tokens, meter.completion_tokens, meter.requests, meter.retries) == (2, 9, 1, 0)
    assert meter.cost == 11
    assert [each.usage.prompt_tokens for each in completions] == [2, 0, 0]
    assert sum(each.usage.completion_tokens for each in completions) == 9


@pytest.mark.parametrize("lengths", [[0], [0, 0], [5], [1, 1, 1], [10, 1, 0, 7]])
def test_the_shares_of_the_samples_add_up(lengths: list[int]) -> None:
    shares = _shares(Usage(11, 17), lengths)
    assert len(shares) == len(lengths)
    assert sum(share.completion_tokens for share in shares) == 17
    assert sum(share.prompt_tokens for share in shares) == 11
    assert all(share.completion_tokens >= 0 for share in shares)


# ---------------------------------------------------------------- troubles


class Deadlines:
    """Time limits that end when a server is stuck, not by the clock: on a busy machine any reply may be late."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests = 0
        self._last: asyncio.Timeout | None = None
        real = asyncio.timeout

        def timeout(seconds: float | None) -> asyncio.Timeout:
            made = real(seconds)
            if seconds == FAST.timeout:  # the HTTP client has others
                self.requests += 1
                self._last = made
            return made

        monkeypatch.setattr("sweetrl.models.server.asyncio.timeout", timeout)

    def end(self) -> None:
        """Let the time of the latest request be over."""
        assert self._last is not None
        self._last.reschedule(0)


@pytest.fixture
def deadlines(monkeypatch: pytest.MonkeyPatch) -> Deadlines:
    return Deadlines(monkeypatch)


@pytest.mark.parametrize("trouble", TRANSIENT)
def test_every_passing_trouble_is_overcome_and_leaves_no_trace(
    trouble: Trouble, deadlines: Deadlines
) -> None:
    server, meter = HostileServer(script=[trouble, trouble], while_stuck=deadlines.end), Meter()

    async def twice(model: OpenAIModel) -> list[Completion]:
        return await ask(model) + await ask(model, seed=2)

    completions = run_with(server, twice, meter=meter)
    assert [completion.text for completion in completions] == [friendly_text(1), friendly_text(2)]
    assert server.met[trouble] == 2
    # A stray reply is no trouble to the request before it: it only costs the connection.
    assert meter.retries == (0 if trouble is Trouble.STRAY else 2)


@pytest.mark.parametrize(
    ("trouble", "kind", "requests"),
    [
        (Trouble.SERVER_ERROR, "server", 6),
        (Trouble.RATE_LIMIT, "rate_limit", 6),
        (Trouble.RESET, "connection", 6),
        (Trouble.BAD_JSON, "bad_reply", 6),
        (Trouble.NO_CHOICES, "bad_reply", 6),
        (Trouble.DEEP_JSON, "bad_reply", 6),
        (Trouble.DEEP_ERROR, "server", 6),
        (Trouble.NEGATIVE_USAGE, "bad_reply", 6),
        (Trouble.GIANT_USAGE, "bad_reply", 6),
        (Trouble.WRONG_TYPES, "bad_reply", 6),
        (Trouble.NO_CONTENT, "no_content", 3),
        (Trouble.HUGE, "reply_too_large", 6),
        (Trouble.HUGE_CHUNKED, "reply_too_large", 6),
        (Trouble.HANG, "timeout", 3),
        (Trouble.DRIP, "timeout", 3),
        (Trouble.CONTENT_FILTER, "reply_filtered", 3),
        (Trouble.CONTEXT_LENGTH, "context_length", 3),
        (Trouble.UNAUTHORIZED, "auth", 1),
        (Trouble.NO_MODEL, "not_found", 1),
        (Trouble.NO_QUOTA, "quota", 1),
        (Trouble.BAD_REQUEST, "bad_request", 1),
    ],
)
def test_a_trouble_that_stays_is_an_error_of_its_kind(
    trouble: Trouble, kind: str, requests: int, deadlines: Deadlines
) -> None:
    options = msgspec.structs.replace(FAST, attempts=6, costly_attempts=3)
    server = HostileServer(rate=1.0, troubles=[trouble], while_stuck=deadlines.end)
    with pytest.raises(ModelError) as caught:
        run_with(server, options=options)
    assert caught.value.kind == kind
    assert str(caught.value).startswith(f"{kind}: {server.url}: ")
    assert len(str(caught.value).splitlines()) == 1
    assert len(server.asked) == requests
    assert deadlines.requests == requests


def test_the_clock_ends_a_request_that_hangs() -> None:
    options = EndpointOptions(timeout=0.05, attempts=1)
    with pytest.raises(ModelError, match=r"no complete reply in time \(0.05 s\)"):
        run_with(HostileServer(script=[Trouble.HANG]), options=options)


@pytest.mark.parametrize("trouble", [Trouble.CONTEXT_LENGTH, Trouble.CONTENT_FILTER, Trouble.NO_CONTENT])
def test_words_that_get_no_reply_are_told_apart_from_a_broken_server(trouble: Trouble) -> None:
    with pytest.raises(NoReplyError):
        run_with(HostileServer(rate=1.0, troubles=[trouble]))
    with pytest.raises(ModelError) as caught:
        run_with(HostileServer(rate=1.0, troubles=[Trouble.SERVER_ERROR]))
    assert not isinstance(caught.value, NoReplyError)


@pytest.mark.parametrize("trouble", [Trouble.NEGATIVE_USAGE, Trouble.GIANT_USAGE])
def test_made_up_numbers_of_tokens_are_never_added_up(trouble: Trouble) -> None:
    meter = Meter()
    run_with(HostileServer(script=[trouble, trouble]), meter=meter, price=Price(1.0, 1.0))
    assert 0 < meter.tokens < 100
    assert 0 < meter.cost < 1


def test_a_thought_that_uses_up_all_tokens_is_a_reply_cut_before_its_first_word() -> None:
    class Thinking(HostileServer):
        def _completion(self, body):
            completion = super()._completion(body)
            completion["choices"][0] |= {"message": {"content": None}, "finish_reason": "length"}
            return completion

    [completion] = run_with(Thinking())
    assert (completion.text, completion.finish) == ("", "length")


def test_a_refusal_is_what_was_said() -> None:
    class Refusing(HostileServer):
        def _completion(self, body):
            completion = super()._completion(body)
            completion["choices"][0]["message"] = {"content": None, "refusal": "I would rather not."}
            return completion

    [completion] = run_with(Refusing())
    assert completion.text == "I would rather not."


def test_a_server_that_is_not_there_is_a_connection_error() -> None:
    server = HostileServer()

    async def after_the_end(model: OpenAIModel) -> list[Completion]:
        await server.__aexit__()
        return await ask(model)

    options = EndpointOptions(first_backoff=0.001, attempts=3)
    with pytest.raises(ModelError, match=r"3 attempts") as caught:
        run_with(server, after_the_end, options)
    assert caught.value.kind == "connection"


def test_a_server_that_stays_away_is_down_and_says_how_to_go_on() -> None:
    server = HostileServer()

    async def after_the_end(model: OpenAIModel) -> list[Completion]:
        await server.__aexit__()
        return await ask(model)

    options = EndpointOptions(first_backoff=0.001, attempts=1_000_000, patience=0.2)
    with pytest.raises(
        EndpointDown, match=r"no connection: .* for 0\.2 s; start the server and rerun"
    ) as caught:
        run_with(server, after_the_end, options)
    assert server.url in str(caught.value)


def test_a_server_that_answers_with_errors_is_not_down() -> None:
    options = EndpointOptions(first_backoff=0.05, max_backoff=0.05, attempts=8, patience=0.1)
    server = HostileServer(rate=1.0, troubles=[Trouble.SERVER_ERROR, Trouble.RESET])
    with pytest.raises(ModelError, match="8 attempts"):
        run_with(server, ask, options)


def test_a_server_that_comes_back_is_used_again() -> None:
    async def run() -> list[Completion]:
        # Bound, but not listening yet: connections are refused, and nobody else can take the port.
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        model = open_model(
            f"openai:test@http://127.0.0.1:{bound.getsockname()[1]}/v1",
            endpoints=Endpoints(EndpointOptions(first_backoff=0.02)),
        )
        assert isinstance(model, OpenAIModel)
        waiting = asyncio.create_task(ask(model))
        while model.meter.retries == 0:  # noqa: ASYNC110  the meter has no event
            await asyncio.sleep(0)
        server = await asyncio.start_server(HostileServer()._serve, sock=bound)
        try:
            return await waiting
        finally:
            await model.close()
            server.close()

    assert asyncio.run(run())[0].text == friendly_text()


def test_a_filtered_sample_among_good_ones_is_drawn_again() -> None:
    class HalfFiltered(HostileServer):
        def _completion(self, body):
            completion = super()._completion(body)
            if body.get("n", 1) > 1:
                completion["choices"][0]["finish_reason"] = "content_filter"
                completion["choices"][0]["message"]["content"] = FAULT_TEXT
            return completion

    completions = run_with(HalfFiltered(), lambda model: ask(model, n=3))
    assert len(completions) == 3
    assert not any(FAULT_TEXT in completion.text for completion in completions)


def test_a_text_far_beyond_max_tokens_is_not_taken() -> None:
    server = HostileServer(reply=lambda body, sample: "x" * 100_000)
    with pytest.raises(ModelError) as caught:
        run_with(
            server, lambda model: ask(model, max_tokens=10), EndpointOptions(first_backoff=0.001, attempts=2)
        )
    assert caught.value.kind == "reply_too_large"


def test_retry_after_is_waited_for_but_not_longer_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await really_sleep(0)

    def answer_later(value: str) -> list[float]:
        class Later(HostileServer):
            async def _misbehave(self, trouble, asked, writer):
                writer.write(
                    b"HTTP/1.1 429 No\r\nContent-Length: 0\r\nRetry-After: %b\r\n\r\n" % value.encode()
                )
                return True

        pauses.clear()
        options = EndpointOptions(first_backoff=1.0, max_retry_after=60)
        run_with(Later(script=[Trouble.RATE_LIMIT]), options=options)
        return [pause for pause in pauses if pause > 0]

    monkeypatch.setattr("sweetrl.models.server.asyncio.sleep", sleep)
    [short] = answer_later("30")
    assert 30 <= short <= 31
    [capped] = answer_later("86400")
    assert 60 <= capped <= 61
    [by_date] = answer_later("Fri, 31 Dec 2999 23:59:59 GMT")
    assert 60 <= by_date <= 61


def test_pauses_grow_up_to_their_bound_and_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[float] = []

    def uniform(low: float, high: float) -> float:
        assert low == 0
        bounds.append(high)
        return 0.0

    monkeypatch.setattr("sweetrl.models.server.random.uniform", uniform)
    options = EndpointOptions(first_backoff=1.0, max_backoff=5.0, attempts=6)
    with pytest.raises(ModelError):
        run_with(HostileServer(rate=1, troubles=[Trouble.SERVER_ERROR]), options=options)
    assert bounds == [1, 2, 4, 5, 5]


# ---------------------------------------------------------------- many at once


def test_a_thousand_requests_at_a_third_of_faults_all_get_their_own_answer() -> None:
    async def texts(server: HostileServer) -> list[str]:
        # Requests that a busy machine makes late are only asked again.
        options = EndpointOptions(
            timeout=2.0,
            attempts=100,
            costly_attempts=100,
            first_backoff=0.002,
            max_backoff=0.01,
            start_concurrency=64,
        )
        async with served(server, options) as model:
            replies = await asyncio.gather(*(ask(model, seed) for seed in range(1000)))
        return [completion.text for [completion] in replies]

    hostile = HostileServer(rate=0.3, seed=3)
    assert asyncio.run(texts(hostile)) == asyncio.run(texts(HostileServer()))
    assert set(hostile.met) == set(TRANSIENT)


# Latencies that are long against the time that the machine needs for a request, however busy it is.


def test_concurrency_settles_near_what_the_server_can_take() -> None:
    async def run() -> tuple[int, int, int]:
        server = HostileServer(max_parallel=8, latency=lambda _: 0.1)
        options = EndpointOptions(attempts=100, first_backoff=0.1, max_backoff=0.5, start_concurrency=64)
        async with served(server, options) as model:
            await asyncio.gather(*(ask(model, seed) for seed in range(200)))
            return model._server.limiter.limit, model.meter.requests, model.meter.retries

    limit, requests, retries = asyncio.run(run())
    assert limit <= 16
    assert requests == 200
    assert retries < 400


def test_concurrency_grows_while_the_server_keeps_up() -> None:
    async def run() -> tuple[int, int]:
        server = HostileServer(latency=lambda _: 0.1)
        async with served(server, EndpointOptions(start_concurrency=2, max_concurrency=50)) as model:
            await asyncio.gather(*(ask(model, seed) for seed in range(200)))
            return model._server.limiter.limit, server.peak

    limit, peak = asyncio.run(run())
    assert limit == 50
    assert peak > 20


def test_running_out_of_sockets_slows_requests_down_but_loses_none() -> None:
    program = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
from sweetrl.models import EndpointOptions, Endpoints, open_model
from sweetrl.types import Message, Role, Sampling

async def run():
    options = EndpointOptions(start_concurrency=200, attempts=100, first_backoff=0.02, max_backoff=0.2)
    model = open_model("openai:m@" + sys.argv[1], endpoints=Endpoints(options))
    chat = [Message(Role.USER, "hi")]
    asked = (model.complete(chat, n=1, sampling=Sampling(), seed=seed) for seed in range(300))
    print(len(await asyncio.gather(*asked)))
    await model.close()

asyncio.run(run())
"""
    with in_thread(HostileServer(latency=lambda _: 0.005)) as server:
        done = subprocess.run([sys.executable, "-c", program, server.url], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("300\n", "")
    assert 1 < server.peak < 60


def test_models_on_one_endpoint_share_its_limit_and_outlive_each_other() -> None:
    async def run() -> None:
        async with HostileServer() as server:
            endpoints = Endpoints(FAST)
            agent, collaborator = (
                open_model(f"openai:{name}@{server.url}", endpoints=endpoints) for name in ("a", "b")
            )
            assert isinstance(agent, OpenAIModel)
            assert isinstance(collaborator, OpenAIModel)
            assert agent._server is collaborator._server
            await agent.close()
            await agent.close()
            assert (await ask(collaborator))[0].text
            await collaborator.close()
            assert collaborator._server.closed
            reopened = open_model(f"openai:a@{server.url}", endpoints=endpoints)
            assert (await reopened.complete(CHAT, n=1, sampling=Sampling(), seed=1))[0].text
            await reopened.close()

    asyncio.run(run())


# ---------------------------------------------------------------- stopping


def test_a_cancelled_request_gives_back_its_place_and_drops_its_connection() -> None:
    async def run() -> None:
        server = HostileServer(script=[Trouble.HANG])
        options = EndpointOptions(start_concurrency=1, max_concurrency=1)
        async with served(server, options) as model:
            hanging = asyncio.create_task(ask(model))
            await server.until_asked()
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            assert (await ask(model))[0].text
            assert server.connections == 2

    asyncio.run(run())


def test_the_callers_own_deadline_is_not_mistaken_for_ours() -> None:
    async def run() -> None:
        async with served(HostileServer(script=[Trouble.HANG]), EndpointOptions()) as model:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await ask(model)
            assert model.meter.retries == 0

    asyncio.run(run())


def test_closing_ends_requests_under_way_and_refuses_new_ones() -> None:
    async def run() -> None:
        server = HostileServer(script=[Trouble.HANG])
        async with served(server, EndpointOptions(first_backoff=0.001)) as model:
            hanging = asyncio.create_task(ask(model))
            await server.until_asked()
            await model.close()
            for request in (hanging, ask(model)):
                with pytest.raises(ModelError) as caught:
                    await request
                assert caught.value.kind == "closed"

    asyncio.run(run())


# ---------------------------------------------------------------- secrets


def test_what_is_meant_for_openai_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEETRL_API_KEY", raising=False)
    variables = ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET", "BASE_URL")
    for name in variables:
        monkeypatch.setenv(f"OPENAI_{name}", "only-for-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Only: only-for-openai")
    server = HostileServer()
    run_with(server)
    assert "only-for-openai" not in str(server.asked)
    assert "authorization" not in server.asked[0].headers
    official = headers_for(parse_url(OFFICIAL_URL))
    assert official["Authorization"] == "Bearer only-for-openai"
    assert official["OpenAI-Organization"] == official["OpenAI-Project"] == "only-for-openai"


def test_the_key_is_sent_and_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SWEETRL_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-openai")
    caplog.set_level(logging.DEBUG)
    server = HostileServer(rate=1, troubles=[Trouble.UNAUTHORIZED])
    shown: list[str] = []

    async def fail(model: OpenAIModel) -> list[Completion]:
        shown.extend([model.name, repr(model), repr(model._server), repr(vars(model))])
        return await ask(model)

    with pytest.raises(ModelError) as caught:
        run_with(server, fail)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "SWEETRL_API_KEY" in str(caught.value)
    assert "***" in str(caught.value)
    shown += [str(caught.value), repr(caught.value), caplog.text]
    assert KEY not in "\n".join(shown)
    assert "sk-only-for-openai" not in str(server.asked)


def test_a_password_in_the_address_logs_in_and_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def run() -> None:
        async with HostileServer(script=[Trouble.UNAUTHORIZED]) as server:
            address = server.url.replace("http://", "http://me:pa%21ss@") + "?token=t0ken"
            model = open_model(f"openai:test@{address}", endpoints=Endpoints(FAST))
            with pytest.raises(ModelError) as caught:
                await model.complete(CHAT, n=1, sampling=Sampling(), seed=1)
            await model.close()
            login = base64.b64encode(b"me:pa!ss").decode()
            assert server.asked[0].headers["authorization"] == f"Basic {login}"
            assert server.asked[0].target == "/v1/chat/completions?token=t0ken"
            shown = model.name + repr(model) + str(caught.value) + caplog.text
            for secret in ("pa!ss", "pa%21ss", "t0ken", login):
                assert secret not in shown

    asyncio.run(run())


def test_a_server_in_another_thread_serves_loops_that_come_and_go() -> None:
    with in_thread(HostileServer(rate=0.3, troubles=[Trouble.RESET, Trouble.SERVER_ERROR])) as server:

        async def once(seed: int) -> str:
            model = open_model(f"openai:test@{server.url}", endpoints=Endpoints(FAST))
            [completion] = await model.complete(CHAT, n=1, sampling=Sampling(), seed=seed)
            await model.close()
            return completion.text

        assert [asyncio.run(once(seed)) for seed in (1, 2)] == [friendly_text(1), friendly_text(2)]
