import errno
import json
import ssl
import time
from email.utils import formatdate
from types import SimpleNamespace

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.models.faults import fault_of, fault_of_status, seconds_to_wait
from sweetrl.models.transport import Reply, ReplyTooLarge


def kind(status: int, body: object = None, **headers: str) -> str:
    return fault_of_status(Reply(status, headers, json.dumps(body).encode())).kind


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "the request exceeds the available context size, try increasing it",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Input is longer than the context window",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        "Input validation error: `inputs` must have less than 4096 `input` tokens. Given: 5000",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
        "Input tokens exceed the configured limit of 272000 tokens.",
        "max_tokens must be at least 1, got -904.",
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_in_many_words(message: str) -> None:
    assert kind(400, {"error": {"message": message}}) == "context_length"
    assert kind(400, {"object": "error", "message": message}) == "context_length"


def test_a_prompt_that_is_too_long_is_recognised_by_its_code() -> None:
    assert kind(400, {"error": {"message": "no", "code": "context_length_exceeded"}}) == "context_length"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (413, "Request Entity Too Large"),
        (429, "Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 40000"),
        (500, "input is too large to process. increase the physical batch size"),
    ],
)
def test_a_prompt_that_is_too_long_is_recognised_under_other_statuses(status: int, said: str) -> None:
    assert kind(status, {"error": {"message": said}}) == "context_length"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "The response was filtered", "code": "content_filter"}),
        (400, {"message": "The prompt triggered the content management policy.", "code": "400"}),
        (400, {"message": "Content Exists Risk", "code": "invalid_request_error"}),
        (400, {"message": "Input data may contain inappropriate content.", "code": "data_inspection_failed"}),
        (403, {"message": "blocked by the content policy"}),
    ],
)
def test_a_prompt_that_a_filter_stops_is_recognised(status: int, error: dict[str, str]) -> None:
    assert kind(status, {"error": error}) == "content_filter"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "Incorrect API key provided"),
        (404, "The model `x` does not exist"),
        (429, "Rate limit reached: limit 30000 tokens per minute exceeded"),
        (503, "no replica has a free context window"),
        (400, "temperature must be between 0 and 2"),
    ],
)
def test_other_complaints_are_not_about_the_words(status: int, said: str) -> None:
    reply = Reply(status, {}, json.dumps({"error": {"message": said}}).encode())
    assert not fault_of_status(reply).by_words


@pytest.mark.parametrize(
    ("status", "expected", "final"),
    [
        (307, "bad_request", True),
        (400, "bad_request", True),
        (401, "auth", True),
        (403, "auth", True),
        (404, "not_found", True),
        (408, "server", False),
        (409, "server", False),
        (422, "bad_request", True),
        (429, "rate_limit", False),
        (500, "server", False),
        (503, "server", False),
        (529, "server", False),
    ],
)
def test_a_status_says_whether_asking_again_may_help(status: int, expected: str, final: bool) -> None:
    fault = fault_of_status(Reply(status, {}, b""))
    assert (fault.kind, fault.final) == (expected, final)


def test_only_overload_makes_us_send_less() -> None:
    shrinking = [code for code in range(400, 600) if fault_of_status(Reply(code, {}, b"")).overload]
    assert shrinking == [429, 503, 504, 529]


def test_a_timeout_makes_us_send_less_and_is_not_repeated_often() -> None:
    for error in (TimeoutError(), aiohttp.ConnectionTimeoutError("late")):
        fault = fault_of(error)
        assert (fault.kind, fault.overload, fault.costly) == ("timeout", True, True)


def test_a_broken_connection_says_nothing_about_load_unless_sockets_run_out() -> None:
    host = SimpleNamespace(host="h", port=80, ssl=True)
    assert not fault_of(aiohttp.ServerDisconnectedError()).overload
    assert not fault_of(aiohttp.ClientConnectorError(host, OSError(errno.ECONNREFUSED, "refused"))).overload
    fault = fault_of(aiohttp.ClientConnectorError(host, OSError(errno.EMFILE, "too many")))
    assert (fault.kind, fault.overload, fault.final) == ("connection", True, False)


def test_a_server_that_nobody_vouches_for_is_not_asked_again() -> None:
    host = SimpleNamespace(host="h", port=443, is_ssl=True)
    refused = ssl.SSLCertVerificationError("self-signed certificate")
    fault = fault_of(aiohttp.ClientConnectorCertificateError(host, refused))
    assert (fault.kind, fault.final) == ("certificate", True)
    assert "self-signed" in fault.detail


def test_a_reply_that_is_too_large_has_a_kind_of_its_own() -> None:
    assert fault_of(ReplyTooLarge("too large")).kind == "reply_too_large"


def test_an_empty_account_is_not_asked_again() -> None:
    fault = fault_of_status(Reply(429, {}, b'{"error": {"code": "insufficient_quota"}}'))
    assert (fault.kind, fault.final) == ("quota", True)


@given(st.one_of(st.binary(max_size=200), st.sampled_from([b"[]", b"[1]", b"null", b'{"error": [1]}', b"3"])))
def test_any_body_of_an_error_is_survived(body: bytes) -> None:
    assert fault_of_status(Reply(500, {}, body)).kind == "server"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Thu, 99 Foo 2020"}, None),
    ],
)
def test_retry_after_is_read_as_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers) == seconds


def test_retry_after_is_read_as_a_date() -> None:
    wait = seconds_to_wait({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert wait is not None
    assert 50 < wait <= 100


@given(st.text(max_size=40))
def test_any_retry_after_is_survived(value: str) -> None:
    wait = seconds_to_wait({"retry-after": value})
    assert wait is None or wait >= 0
