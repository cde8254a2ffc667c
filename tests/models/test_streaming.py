"""A reply that somebody listens to is heard as it comes, and is the same as one that nobody listens to."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from models.streaming_server import StreamingServer, streaming
from models.tiny_llama import save_tiny_llama
from sweetrl.models import EndpointOptions, Endpoints, open_model
from sweetrl.models.streaming import Stream, heard_by
from sweetrl.protocols import ChatModel
from sweetrl.types import Completion, Message, Role, Sampling

CHAT = [Message(Role.USER, "Say something.")]
FAST = EndpointOptions(timeout=60, first_backoff=0.002, max_backoff=0.01)
PIECES = ["Twice", " the", " num", "ber ❤."]


async def asked(model: ChatModel, heard: list[str] | None = None) -> list[Completion]:
    try:
        if heard is None:
            return await model.complete(CHAT, n=1, sampling=Sampling(max_tokens=12), seed=1)
        with heard_by(heard.append):
            return await model.complete(CHAT, n=1, sampling=Sampling(max_tokens=12), seed=1)
    finally:
        await model.close()


def ask(server: StreamingServer, heard: list[str] | None) -> list[Completion]:
    async def run() -> list[Completion]:
        return await asked(open_model(f"openai:test@{server.url}", endpoints=Endpoints(FAST)), heard)

    return asyncio.run(run())


def test_a_reply_is_heard_as_it_comes_and_is_whole_in_the_end() -> None:
    heard: list[str] = []
    with streaming(PIECES) as server:
        [completion] = ask(server, heard)
    assert (completion.text, completion.finish) == ("".join(PIECES), "stop")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (7, 3)
    assert heard[-1] == completion.text
    assert all(later.startswith(before) for before, later in pairwise(heard))


def test_nobody_is_streamed_to_who_does_not_listen() -> None:
    with streaming(PIECES) as server:
        [completion] = ask(server, None)
    assert completion.text == "".join(PIECES)
    assert not any("stream" in request for request in server.asked)


def test_a_server_that_refuses_streams_is_asked_without() -> None:
    heard: list[str] = []
    with streaming(PIECES, refuses=True) as server:
        [completion] = ask(server, heard)
    assert (completion.text, heard) == ("".join(PIECES), [])


def test_a_stream_that_breaks_off_is_asked_for_again_from_its_start() -> None:
    heard: list[str] = []
    with streaming(PIECES, broken=1) as server:
        [completion] = ask(server, heard)
    assert completion.text == "".join(PIECES)
    assert len(server.asked) == 2
    assert heard[-1] == completion.text


def test_an_error_in_a_stream_is_an_error_with_its_reason() -> None:
    stream = Stream(lambda _: None)
    stream.feed(b'data: {"error": {"message": "out of memory"}}\n\n')
    assert b"out of memory" in stream.whole()
    assert b'"choices":[]' in stream.whole()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    heard: list[str] = []
    stream = Stream(heard.append)
    content = 'data: {"choices": [{"delta": {"content": "é"}, "finish_reason": "stop"}]}'.encode()
    for start in range(0, len(content), size):
        stream.feed(content[start : start + size])
    assert '"content":"é"' in stream.whole().decode()
    assert heard == ["é"]


def test_a_local_model_is_heard_token_by_token(tmp_path: Path) -> None:
    tiny_llama = save_tiny_llama(tmp_path)

    async def run() -> tuple[list[str], str, str]:
        heard: list[str] = []
        [completion] = await asked(open_model(f"hf:{tiny_llama}"), heard)
        await asyncio.sleep(0)
        [unheard] = await asked(open_model(f"hf:{tiny_llama}"))
        return heard, completion.text, unheard.text

    heard, text, unheard = asyncio.run(run())
    assert text == unheard
    assert len(heard) > 1
    assert heard[-1] == text
