"""Classifies failures of a request, and whether a retry may help."""

import errno
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec

from sweetrl.models.transport import Reply, ReplyTooLarge

_CONTEXT_LENGTH = re.compile(
    r"context.{0,12}(length|window|size)|maximum.{0,12}(model )?(context|length|tokens)|prompt is too long"
    r"|too many tokens|exceeds?.{0,40}tokens|(input|inputs|request|string)\W.{0,12}too (large|long)"
    r"|must have less than .{0,30}tokens|tokens \+ `?max_new_tokens"
    r"|max_tokens must be at least 1, got -",
    re.IGNORECASE,
)
"""Messages of vLLM, SGLang, llama.cpp, TGI, Ollama and hosted services about a chat that is too long."""
_REQUEST_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)
"""The same message of services that send it with the status of a rate limit."""
_CONTENT_FILTER = re.compile(
    r"content.{0,3}(filter|polic|management|exists risk)|responsible ?ai|moderation|inappropriate content"
    r"|prohibited.content|data.?inspection|safety (system|filter|settings)",
    re.IGNORECASE,
)
_WORDS = frozenset({"context_length", "content_filter", "reply_filtered", "reply_too_large", "no_content"})
_OVERLOAD = frozenset({429, 503, 504, 529})


class Fault(Exception):  # noqa: N818  not an error yet: most are overcome by asking again
    """One request failed, or its answer cannot be used."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        final: bool = False,
        costly: bool = False,
        overload: bool = False,
        unreachable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        """`final`: asking again is pointless. `costly`: worth a few tries only. `overload`: send less.

        `unreachable`: nobody is there to answer, as opposed to a connection that broke.
        """
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.final = final
        self.costly = costly
        self.overload = overload
        self.unreachable = unreachable
        self.retry_after = retry_after

    @property
    def by_words(self) -> bool:
        """Whether the server objects to the words of the chat or of the reply."""
        return self.kind in _WORDS


def unusable(detail: str) -> Fault:
    """A reply that has the wrong form."""
    return Fault("bad_reply", detail)


def fault_of(error: Exception) -> Fault:
    """The meaning of an exception of the connection, or of our own deadline."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, TimeoutError):
        return Fault("timeout", "no complete reply in time", costly=True, overload=True)
    if isinstance(error, ReplyTooLarge):
        return Fault("reply_too_large", str(error))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Fault("certificate", f"no connection: {error.certificate_error}", final=True)
    if isinstance(error, aiohttp.ClientConnectorError):
        return _no_connection(error.os_error)
    return Fault("connection", str(error) or type(error).__name__)


def _no_connection(error: OSError) -> Fault:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Fault("connection", "no connection: too many are open; raise `ulimit -n`", overload=True)
    return Fault("connection", f"no connection: {error}", unreachable=True)


def fault_of_status(reply: Reply) -> Fault:
    """The meaning of an error reply."""
    status = reply.status
    said, code = _explanation(reply.body)
    detail = f"HTTP {status}" + (f": {said}" if said else "")
    if code == "insufficient_quota":
        return Fault("quota", detail, final=True)
    if objection := _objection(status, said, code):
        # Still retried a few times: behind a gateway the next replica may have a longer context,
        # and such a refusal costs nothing.
        return Fault(objection, detail, costly=True)
    if status in (401, 403):
        return Fault("auth", detail, final=True)
    if status == 404:
        return Fault("not_found", detail, final=True)
    if status in (408, 409, 429) or status >= 500:
        kind = "rate_limit" if status == 429 else "server"
        wait = seconds_to_wait(reply.headers)
        return Fault(kind, detail, overload=status in _OVERLOAD, retry_after=wait)
    return Fault("bad_request", detail, final=True)


def _objection(status: int, said: str, code: str) -> str | None:
    """A server's objection to the words of a chat; None if it complains about something else."""
    if status in (400, 403, 422, 451) and _CONTENT_FILTER.search(f"{code} {said}"):
        return "content_filter"
    if status == 413 or (status == 429 and _REQUEST_TOO_LARGE.search(said)):
        return "context_length"
    too_long = code == "context_length_exceeded" or _CONTEXT_LENGTH.search(said)
    return "context_length" if status in (400, 422, 500) and too_long else None


def _explanation(body: bytes) -> tuple[str, str]:
    """The server's own words and its error code; what cannot be read is shown as it came."""
    try:
        return _error_fields(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body[:300].decode("utf-8", "replace"), ""


def _error_fields(data: Any) -> tuple[str, str]:
    """Message and code of an error, in any of the shapes that servers use."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, dict):
        return "", ""
    error = data.get("error", data)
    if not isinstance(error, dict):
        return str(error), ""
    said = error.get("message") or error.get("detail") or ""
    return said if isinstance(said, str) else str(said), str(error.get("code") or "")


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """The delay in `Retry-After`, given as seconds or as a date; None where it is absent or makes no sense."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", value):
            return float(value) / unit
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
