import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from models.hostile_server import Asked, HostileServer, Trouble
from sweetrl.models.transport import Reply, ReplyTooLarge, Transport, proxy_for

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
GOOD = HEAD + b"Content-Length: 4\r\n\r\ngood"


@asynccontextmanager
async def transport_to(url: str, max_body: int = 100_000) -> AsyncIterator[Transport]:
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    transport = Transport(f"{url}/chat/completions", headers, max_body=max_body, connect_timeout=5)
    try:
        yield transport
    finally:
        await transport.close()


# ---------------------------------------------------------------- replies, byte by byte


class ByteServer:
    """Answers its first request with the given pieces, each in a packet of its own, then with `GOOD`."""

    def __init__(self, *pieces: bytes, hangs_up: bool = False) -> None:
        self.pieces = pieces
        self.hangs_up = hangs_up
        self.connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(len(CHAT))
                pieces, self.pieces = self.pieces, (GOOD,)
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self.hangs_up:
                    self.hangs_up = False
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def exchange(self, use: Callable[[Transport], Awaitable[Reply]], max_body: int) -> Reply:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            async with asyncio.timeout(30), transport_to(url, max_body) as transport:
                return await use(transport)
        finally:
            server.close()


def reply_to(*pieces: bytes, hangs_up: bool = False, max_body: int = 1000) -> Reply:
    server = ByteServer(*pieces, hangs_up=hangs_up)
    return asyncio.run(server.exchange(lambda transport: transport.post(CHAT), max_body))


def chunked(*chunks: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    framed = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks if chunk)
    return CHUNKED + framed + b"0\r\n" + trailers + b"\r\n"


def cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(marks)]


PLACES = st.lists(st.integers(0, 10_000), max_size=8)


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=300), PLACES)
def test_a_body_with_a_length_is_read_however_it_is_cut(body: bytes, places: list[int]) -> None:
    reply = reply_to(*cut(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body), places))
    assert (reply.status, reply.body) == (200, body)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=100), max_size=9), PLACES)
def test_a_chunked_body_is_read_however_it_is_cut(chunks: list[bytes], places: list[int]) -> None:
    whole = chunked(*chunks, extension=b";a=b", trailers=b"X: y\r\n")
    assert reply_to(*cut(whole, places)).body == b"".join(chunks)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([b"", HEAD, CHUNKED]), st.binary(max_size=400))
def test_any_bytes_are_a_reply_within_the_limit_or_an_error_of_the_client(prefix: bytes, data: bytes) -> None:
    try:
        reply = reply_to(prefix + data, hangs_up=True, max_body=100)
    except aiohttp.ClientError:
        return
    assert len(reply.body) <= 100


def test_a_body_without_a_length_lasts_until_the_connection_closes() -> None:
    assert reply_to(HEAD + b"\r\nabc", b"def", hangs_up=True).body == b"abcdef"


def test_interim_responses_are_skipped() -> None:
    reply = reply_to(b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD)
    assert (reply.status, reply.body) == (200, b"good")


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + b"Content-Length: 1001\r\n\r\n",
        CHUNKED + b"3e9\r\n" + b"x" * 1001,
        HEAD + b"\r\n" + b"x" * 1001,
    ],
)
def test_a_reply_that_is_too_large_is_refused_before_it_ends(reply: bytes) -> None:
    with pytest.raises(ReplyTooLarge):
        reply_to(reply)


@pytest.mark.parametrize(
    "reply",
    [
        HEAD + b"X: " + b"y" * 70_000,
        HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
        HEAD + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1_0\r\n\r\n0123456789",
        HEAD + b"Content-Length: 0\r\n\r\nmore than was announced",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"2\r\nabc\r\n",
    ],
)
def test_a_reply_that_is_not_proper_http_is_refused(reply: bytes) -> None:
    with pytest.raises(aiohttp.ClientError):
        reply_to(reply)


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 200", HEAD + b"Content-Length: 3\r\n\r\nab", chunked(b"abc")[:-4]]
)
def test_a_reply_that_breaks_off_is_refused(reply: bytes) -> None:
    with pytest.raises(aiohttp.ClientError):
        reply_to(reply, hangs_up=True)


@pytest.mark.parametrize(
    ("reply", "connections"),
    [
        (GOOD, 1),
        (HEAD + b"Connection: Close\r\nContent-Length: 0\r\n\r\n", 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 2),
        (GOOD + GOOD.replace(b"good", b"evil"), 2),
    ],
)
def test_a_connection_in_doubt_is_not_used_again(reply: bytes, connections: int) -> None:
    async def twice(transport: Transport) -> Reply:
        await transport.post(CHAT)
        return await transport.post(CHAT)

    server = ByteServer(reply)
    assert asyncio.run(server.exchange(twice, 1000)).body == b"good"
    assert server.connections == connections


def test_a_request_of_several_megabytes_arrives_whole() -> None:
    async def run() -> int:
        said = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 3_000_000}]})
        async with HostileServer() as server, transport_to(server.url) as transport:
            assert (await transport.post(said.encode())).status == 200
            return len(server.asked[0].body["messages"][0]["content"])

    assert asyncio.run(run()) == 3_000_000


# ---------------------------------------------------------------- connections


async def let_the_loop_read() -> None:
    """What was sent on loopback has arrived; let the event loop notice."""
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_requests_one_after_the_other_share_a_connection() -> None:
    async def run() -> int:
        async with HostileServer() as server, transport_to(server.url) as transport:
            for _ in range(5):
                assert (await transport.post(CHAT)).status == 200
            return server.connections

    assert asyncio.run(run()) == 1


def test_a_stray_reply_is_never_taken_for_the_next_one() -> None:
    async def run() -> None:
        async with HostileServer(script=[Trouble.STRAY] * 3) as server, transport_to(server.url) as transport:
            texts = {(await transport.post(CHAT)).body for _ in range(6)}
            assert len(texts) == 1
            assert b"FAULT" not in texts.pop()
            assert server.connections == 4

    asyncio.run(run())


def test_a_stray_reply_that_comes_late_costs_the_idle_connection() -> None:
    class Late(HostileServer):
        async def _misbehave(self, trouble: Trouble, asked: Asked, writer: asyncio.StreamWriter) -> bool:
            self.writer = writer
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
            return True

    async def run() -> None:
        async with Late(script=[Trouble.STRAY]) as server, transport_to(server.url) as transport:
            assert (await transport.post(CHAT)).body == b"first"
            server.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nFAULT-TEXT")
            await let_the_loop_read()
            with pytest.raises(aiohttp.ClientConnectionError, match="not asked for"):
                await transport.post(CHAT)
            assert b"FAULT" not in (await transport.post(CHAT)).body
            assert server.connections == 2

    asyncio.run(run())


def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    async def twice(transport: Transport) -> Reply:
        await transport.post(CHAT)
        await let_the_loop_read()
        return await transport.post(CHAT)

    server = ByteServer(GOOD, hangs_up=True)
    assert asyncio.run(server.exchange(twice, 1000)).body == b"good"
    assert server.connections == 2


def test_nobody_listening_is_a_connection_error() -> None:
    async def run() -> None:
        async with HostileServer() as server:
            url = server.url
        async with transport_to(url) as transport:
            with pytest.raises(aiohttp.ClientConnectorError):
                await transport.post(CHAT)

    asyncio.run(run())


@pytest.mark.parametrize("host", ["x" * 70 + ".invalid", "nowhere.invalid"])
def test_a_host_that_does_not_exist_is_a_connection_error(host: str) -> None:
    async def run() -> None:
        async with transport_to(f"http://{host}/v1") as transport:
            with pytest.raises(aiohttp.ClientError):
                await transport.post(CHAT)

    asyncio.run(run())


# ---------------------------------------------------------------- TLS and proxies


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
        async with tls_server(certificate) as server, transport_to(server.url) as transport:
            for _ in range(3):
                assert (await transport.post(CHAT)).status == 200
            assert server.connections == 1

    asyncio.run(run())


def test_a_server_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async def run() -> None:
        async with tls_server(certificate) as server, transport_to(server.url) as transport:
            with pytest.raises(aiohttp.ClientConnectorCertificateError, match="certificate"):
                await transport.post(CHAT)
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
            async with transport_to("http://model.invalid/v1") as transport:
                if trouble is None:
                    assert (await transport.post(CHAT)).status == 200
                else:
                    with pytest.raises(ReplyTooLarge):
                        await transport.post(CHAT)
            assert proxy.asked[0].target == "http://model.invalid/v1/chat/completions"

    asyncio.run(run())


def test_hosts_that_the_environment_exempts_get_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert proxy_for(URL("http://127.0.0.1/v1")) is None
    assert proxy_for(URL("http://model.invalid/v1")) == "http://127.0.0.1:9"


def test_a_login_in_the_environment_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async def run() -> dict[str, str]:
        async with HostileServer() as server, transport_to(server.url) as transport:
            await transport.post(CHAT)
            return server.asked[0].headers

    assert "authorization" not in asyncio.run(run())
