import asyncio
import json
import shutil
import ssl
import subprocess
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.hostile_server import Asked, HostileServer, Trouble
from sweetrl.models.http1 import (
    CappedTransport,
    KeepAliveTransport,
    ReplyTooLarge,
    ResponseReader,
    Untrusted,
    transport_for,
)

HEAD = b"HTTP/1.1 200 OK\r\n"
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def read(*parts: bytes, max_body: int = 1000) -> ResponseReader:
    reader = ResponseReader(max_body)
    for part in parts:
        reader.feed(part)
    return reader


def chunked(*chunks: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    framed = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks if chunk)
    return HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n" + trailers + b"\r\n"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(marks)]


@given(st.binary(max_size=300), st.lists(st.integers(0, 10_000)))
def test_a_body_with_a_length_is_read_however_it_is_cut(body: bytes, places: list[int]) -> None:
    reader = read(*cut(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body), places))
    assert reader.done
    assert reader.reusable
    assert bytes(reader.body) == body


@given(st.lists(st.binary(max_size=100)), st.lists(st.integers(0, 10_000)))
def test_a_chunked_body_is_read_however_it_is_cut(chunks: list[bytes], places: list[int]) -> None:
    whole = b"".join(chunks)
    reader = read(*cut(chunked(*chunks, extension=b";a=b", trailers=b"X: y\r\n"), places), max_body=10_000)
    assert reader.done
    assert reader.reusable
    assert bytes(reader.body) == whole


@given(st.binary(max_size=400))
def test_no_bytes_bring_the_reader_down(data: bytes) -> None:
    reader = ResponseReader(100)
    for prefix in (b"", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"):
        reader = ResponseReader(100)
        try:
            reader.feed(prefix + data)
            reader.end()
        except httpx2.RemoteProtocolError:
            continue
        assert len(reader.body) <= 100


def test_a_body_without_a_length_lasts_until_the_connection_closes() -> None:
    reader = read(HEAD + b"\r\nabc", b"def")
    assert not reader.done
    reader.end()
    assert reader.done
    assert bytes(reader.body) == b"abcdef"
    assert not reader.reusable


def test_interim_responses_are_skipped() -> None:
    reader = read(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 2\r\n\r\nok")
    assert (reader.status, bytes(reader.body), reader.done) == (200, b"ok", True)


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + b"Content-Length: 1001\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n",
        HEAD + b"\r\n" + b"x" * 1001,
        HEAD + b"X: " + b"y" * 70_000,
        HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_too_large_is_refused_as_soon_as_that_is_known(reply: bytes) -> None:
    with pytest.raises(ReplyTooLarge):
        read(reply)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1_0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 2000,
    ],
)
def test_what_is_not_proper_http_is_refused(reply: bytes) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        read(reply)


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 200", HEAD + b"Content-Length: 3\r\n\r\nab", chunked(b"abc")[:-4]]
)
def test_a_reply_that_breaks_off_is_refused(reply: bytes) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        read(reply).end()


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + b"Connection: Close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Content-Length: 0\r\n\r\nmore than was announced",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_connection_in_doubt_is_not_used_again(reply: bytes) -> None:
    reader = read(reply)
    assert reader.done
    assert not reader.reusable


async def post(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    return await client.post(f"{url}/chat/completions", content=CHAT)


def client_for(url: str, max_body: int = 100_000) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=transport_for(httpx2.URL(url), max_body=max_body, connect_timeout=5), timeout=None
    )


def test_requests_one_after_the_other_share_a_connection() -> None:
    async def run() -> int:
        async with HostileServer() as server, client_for(server.url) as client:
            for _ in range(5):
                assert (await post(client, server.url)).status_code == 200
            return server.connections

    assert asyncio.run(run()) == 1


def test_a_stray_reply_is_never_taken_for_the_next_one() -> None:
    async def run() -> None:
        async with HostileServer(script=[Trouble.STRAY] * 3) as server, client_for(server.url) as client:
            texts = {(await post(client, server.url)).text for _ in range(6)}
            assert len(texts) == 1
            assert "FAULT" not in texts.pop()
            assert server.connections == 4

    asyncio.run(run())


def test_a_stray_reply_that_comes_late_costs_the_idle_connection() -> None:
    class Late(HostileServer):
        async def _misbehave(self, trouble: Trouble, asked: Asked, writer: asyncio.StreamWriter) -> bool:
            self.writer = writer
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
            return True

    async def run() -> None:
        async with Late(script=[Trouble.STRAY]) as server, client_for(server.url) as client:
            assert (await post(client, server.url)).text == "first"
            server.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nFAULT-TEXT")
            async with asyncio.timeout(10):
                await server.writer.wait_closed()
            assert "FAULT" not in (await post(client, server.url)).text
            assert server.connections == 2

    asyncio.run(run())


def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    async def run() -> None:
        transport = KeepAliveTransport(httpx2.URL("http://127.0.0.1:1"), max_body=1000, connect_timeout=5)
        async with HostileServer() as server:
            transport._port = server.port
            client = httpx2.AsyncClient(transport=transport)
            await post(client, server.url)
        async with HostileServer() as server:
            transport._port = server.port
            assert (await post(client, server.url)).status_code == 200
            await client.aclose()

    asyncio.run(run())


def test_nobody_listening_is_a_connect_error() -> None:
    async def run() -> None:
        async with HostileServer() as server:
            url = server.url
        async with client_for(url) as client:
            with pytest.raises(httpx2.ConnectError):
                await post(client, url)

    asyncio.run(run())


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A fresh certificate for 127.0.0.1 that signs itself, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the openssl command")
    key, made = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", key, "-out", made], check=True, capture_output=True)
    made.write_text(made.read_text() + key.read_text())
    return made


def tls_server(certificate: Path) -> HostileServer:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return HostileServer(tls=context)


def test_a_trusted_server_is_reached_by_tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def run() -> None:
        async with tls_server(certificate) as server, client_for(server.url) as client:
            for _ in range(3):
                assert (await post(client, server.url)).status_code == 200
            assert server.connections == 1

    asyncio.run(run())


def test_a_server_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async def run() -> None:
        async with tls_server(certificate) as server, client_for(server.url) as client:
            with pytest.raises(Untrusted, match="certificate"):
                await post(client, server.url)
            assert not server.asked

    asyncio.run(run())


@pytest.mark.parametrize("trouble", [None, Trouble.HUGE, Trouble.HUGE_CHUNKED])
def test_the_proxy_of_the_environment_is_used_and_its_replies_are_capped(
    monkeypatch: pytest.MonkeyPatch, trouble: Trouble | None
) -> None:
    async def run() -> None:
        async with HostileServer(script=[trouble]) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("no_proxy", "elsewhere.invalid")
            async with client_for("http://model.invalid/v1") as client:
                assert isinstance(client._transport, CappedTransport)
                if trouble is None:
                    assert (await post(client, "http://model.invalid/v1")).status_code == 200
                else:
                    with pytest.raises(ReplyTooLarge):
                        await post(client, "http://model.invalid/v1")
            assert proxy.asked[0].target == "http://model.invalid/v1/chat/completions"

    asyncio.run(run())


def test_hosts_that_the_environment_exempts_get_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    transport = transport_for(httpx2.URL("http://127.0.0.1/v1"), max_body=10, connect_timeout=1)
    assert isinstance(transport, KeepAliveTransport)
