"""Who may ask the viewer: requests of its own pages, on its own address, with the token where there is one.

A page in the same browser could otherwise reach a server on loopback: through a name that it lets point there (DNS
rebinding; the Host header gives it away), or by sending requests blindly (the Origin header does). Answers tell the
browser to run our one script, apply our one style and ask nobody else for anything.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

COOKIE = "sweetrl_token"
COOKIE_SECONDS = 30 * 86400
TOKEN = "sweetrl.token"  # noqa: S105
"""Where the scope of a request has it."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
_OTHERS = ("cross-site", "same-site")
"""Requests of other sites, and of other ports of this machine."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Lets requests through to the application that may see the runs; refuses the others."""

    def __init__(
        self, app: App, *, hosts: frozenset[str], tokens: Collection[str] = (), once: str | None = None
    ) -> None:
        """`hosts` are names that the server may be called by, beside loopback; with `tokens`, any address.

        `once` is good in the first address that has it, and stands for the first token.
        The application finds the token of a request in its scope, under `TOKEN`.
        """
        self._app = app
        self._hosts = hosts
        self._tokens = tuple(tokens)
        self._once = [once] if once else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            return PlainTextResponse("refused: unknown Host header\n", 421)
        if not {f"http://{host}", f"https://{host}"}.issuperset(headers.getlist("origin")):
            return PlainTextResponse("refused: request of another site\n", 403)
        if headers.get("sec-fetch-site") in _OTHERS and not _is_followed_link(scope, headers):
            return PlainTextResponse("refused: request of another site\n", 403)
        return self._ask_for_token(scope, headers) if self._tokens else None

    def _is_ours(self, host: str) -> bool:
        """Names can be made to point here, addresses cannot."""
        name, colon, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
        if colon and not port.isdecimal():
            return False
        if name in self._hosts:
            return True
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return address.is_loopback or bool(self._tokens)

    def _ask_for_token(self, scope: Scope, headers: Headers) -> Response | None:
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        if given is not None and _matches(given, self._once):
            self._once.clear()
            given = self._tokens[0]
        if given is None or not _matches(given, self._tokens):
            bearer = headers.get("authorization", "").removeprefix("Bearer ")
            known = next((each for each in (bearer, _cookie(headers)) if _matches(each, self._tokens)), None)
            if known is None:
                return PlainTextResponse(
                    "refused: open the whole address that sweetrl printed or that you were given, with its token\n",
                    401,
                )
            scope[TOKEN] = known
            return None
        # From now on a cookie has it, so that addresses can be copied without giving it away.
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        answer = RedirectResponse(_local(scope["path"]) + (f"?{rest}" if rest else ""), 303)
        # Lax: a link to a dialogue may be followed from anywhere. What changes something is refused by its Origin.
        answer.set_cookie(_cookie_name(headers), given, max_age=COOKIE_SECONDS, httponly=True, samesite="lax")
        return answer


def _matches(given: str, tokens: Iterable[str]) -> bool:
    """Whether it is one of the tokens; how long that takes does not tell how much of it is right."""
    raw = given.encode("utf-8", "replace")
    return any(hmac.compare_digest(raw, token.encode()) for token in tokens)


def _is_followed_link(scope: Scope, headers: Headers) -> bool:
    """A link on another page may lead here: the browser shows the answer to the person, not to that page."""
    wanted = (scope["method"], headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return wanted == ("GET", "navigate", "document")


def _cookie_name(headers: Headers) -> str:
    """Browsers send the cookies of one port to all: each server has its own."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdigit() else COOKIE


def _cookie(headers: Headers) -> str:
    """The token that the browser keeps, whatever other servers of this machine have put beside it."""
    return cookie_parser(headers.get("cookie", "")).get(_cookie_name(headers), "")


def _local(path: str) -> str:
    """A path of this server: two slashes at its start would name another one."""
    return "/" + path.lstrip("/\\")


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
