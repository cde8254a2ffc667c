"""Replies that are heard while a model is still writing them.

    with heard_by(show):                              # called with all of the text so far
        await model.complete(messages, n=1, ...)      # the completion is the same as without

The caller that waits for the reply may be far above the model, behind an agent or a collaborator that knows nothing
of this; so the listener is a context variable and not an argument of every function in between.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec
from msgspec import Raw, Struct

from sweetrl.records import decode_json

Hear = Callable[[str], None]
_listener: ContextVar[Hear | None] = ContextVar("listener", default=None)

ASKED_FOR = {"stream": True, "stream_options": {"include_usage": True}}
"""Additional fields of a request whose reply is to be streamed."""


@contextmanager
def heard_by(hear: Hear) -> Iterator[None]:
    """Call `hear` with each piece of the replies of models in this block. A retried reply starts again."""
    token = _listener.set(hear)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Hear | None:
    """The listener of this context, if there is one."""
    return _listener.get()


class Delta(Struct):
    """The addition of a piece to the reply."""

    content: str | None = None
    refusal: str | None = None


class PieceChoice(Struct):
    """The reply in a piece; there is but one."""

    delta: Delta | None = None
    finish_reason: str | None = None


class Piece(Struct):
    """One event of a stream."""

    choices: list[PieceChoice] | None = None
    usage: Raw = Raw(b"null")
    error: Raw = Raw(b"null")


_DECODER = msgspec.json.Decoder(Piece)


class Stream:
    """A reply in server-sent events, put together as OpenAI's protocol sends it whole."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self.restart()

    def restart(self) -> None:
        """Forget what was heard: the request is sent again."""
        self._rest = b""
        self._text: str | None = None
        self._finish: str | None = None
        self._usage = self._error = Raw(b"null")
        self.begun = False
        """Whether events have come; a server that does not stream sends its reply as usual."""

    def feed(self, part: bytes) -> None:
        """Take in the bytes that have arrived."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        before = self._text
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line.removeprefix(b"data:").strip())
        if self._text and self._text != before:
            self._hear(self._text)

    def _take(self, data: bytes) -> None:
        self.begun = True
        try:
            piece = decode_json(_DECODER, data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # the end of the stream, or a comment
        self._error = piece.error
        if bytes(piece.usage) != b"null":
            self._usage = piece.usage
        for choice in (piece.choices or [])[:1]:
            delta = choice.delta or Delta()
            said = delta.refusal if delta.content is None else delta.content
            if said is not None:
                self._text = (self._text or "") + said
            self._finish = choice.finish_reason or self._finish

    def whole(self) -> bytes:
        """The whole reply in its unstreamed form; without choices if the stream broke off."""
        self.feed(b"\n")
        said = {"message": {"content": self._text}, "finish_reason": self._finish}
        choices = [said] if self._finish else []
        return msgspec.json.encode({"choices": choices, "usage": self._usage, "error": self._error})
