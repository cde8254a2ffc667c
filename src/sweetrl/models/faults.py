"""What can go wrong with one request, and whether asking again may help."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec

from sweetrl.models.http1 import NoSocketLeft, ReplyTooLarge, Untrusted

_CONTEXT_LENGTH = re.compile(
    r"context.{0,12}(length|window|size)|maximum.{0,12}(context|length|tokens)|prompt is too long"
    r"|too many tokens|exceeds?.{0,30}tokens",
    re.IGNORECASE,
)
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
        retry_after: float | None = None,
    ) -> None:
        """`final`: asking again is pointless. `costly`: worth a few tries only. `overload`: send less."""
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.final = final
        self.costly = costly
        self.overload = overload
        self.retry_after = retry_after


def unusable(detail: str) -> Fault:
    """A reply that has the wrong form."""
    return Fault("bad_reply", detail)


def fault_of(error: Exception) -> Fault:
    """What an exception of the connection, or of our own deadline, means."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return Fault("timeout", "no complete reply in time", costly=True, overload=True)
    if isinstance(error, ReplyTooLarge):
        return Fault("reply_too_large", str(error))
    if isinstance(error, Untrusted):
        return Fault("certificate", str(error), final=True)
    return Fault("connection", str(error) or type(error).__name__, overload=isinstance(error, NoSocketLeft))


def fault_of_status(response: httpx2.Response) -> Fault:
    """What a response that is no success means."""
    status = response.status_code
    said, code = _explanation(response.content)
    detail = f"HTTP {status}" + (f": {said}" if said else "")
    if status in (401, 403):
        return Fault("auth", detail, final=True)
    if status == 404:
        return Fault("not_found", detail, final=True)
    if code == "insufficient_quota":
        return Fault("quota", detail, final=True)
    if status in (400, 413, 422) and (code == "context_length_exceeded" or _CONTEXT_LENGTH.search(said)):
        # Asked again a few times all the same: behind a gateway the next replica may have a longer context,
        # and such a refusal costs nothing.
        return Fault("context_length", detail, costly=True)
    if status in (408, 409, 429) or status >= 500:
        kind = "rate_limit" if status == 429 else "server"
        wait = seconds_to_wait(response.headers)
        return Fault(kind, detail, overload=status in _OVERLOAD, retry_after=wait)
    return Fault("bad_request", detail, final=True)


def _explanation(body: bytes) -> tuple[str, str]:
    """The server's own words and its error code, in any of the shapes that servers use."""
    try:
        data: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body[:300].decode("utf-8", "replace"), ""
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
    """What `Retry-After` asks for, as seconds or as a date; None where it is absent or makes no sense."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", value):
            return float(value) / unit
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
