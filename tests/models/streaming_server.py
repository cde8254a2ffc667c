"""A real HTTP server on loopback that sends its replies piece by piece, as OpenAI's protocol does."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class StreamingServer(ThreadingHTTPServer):
    """Says `pieces`. Before the last one it waits for `released`; it breaks off in the first `broken` replies."""

    daemon_threads = True

    def __init__(self, pieces: Sequence[str], *, refuses: bool = False, broken: int = 0) -> None:
        """`refuses`: streams are answered with 400."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pieces = list(pieces)
        self.refuses, self.broken = refuses, broken
        self.released = threading.Event()
        self.released.set()
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: StreamingServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(request)
        if not request.get("stream"):
            said = {"message": {"content": "".join(self.server.pieces)}, "finish_reason": "stop"}
            self._answer(200, "application/json", json.dumps({"choices": [said]}).encode())
        elif self.server.refuses:
            self._answer(400, "application/json", b'{"error": {"message": "no streams here"}}')
        else:
            self._answer(200, "text/event-stream", b"")
            self._stream()

    def _stream(self) -> None:
        *first, last = self.server.pieces
        self._event({"choices": [{"delta": {"role": "assistant"}}]})
        for piece in first:
            self._event({"choices": [{"delta": {"content": piece}, "finish_reason": None}]})
        if self.server.broken:
            self.server.broken -= 1
            return
        self.server.released.wait(60)
        self._event({"choices": [{"delta": {"content": last}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, content: dict[str, Any]) -> None:
        self.wfile.write(b"data: %b\r\n\r\n" % json.dumps(content).encode())
        self.wfile.flush()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if body:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@contextmanager
def streaming(pieces: Sequence[str], **settings: Any) -> Iterator[StreamingServer]:
    """The server, for as long as the block lasts."""
    with StreamingServer(pieces, **settings) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
