"""Names of models on the command line: `openai:MODEL@URL`, `hf:PATH_OR_ID`, `scripted:NAME`, `mini`."""

import base64
import difflib
import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from sweetrl.errors import UsageError
from sweetrl.models import shipped

OFFICIAL_URL = "https://api.openai.com/v1"
KINDS = {
    "openai": "openai:MODEL@http://HOST:PORT/v1 or openai:MODEL",
    "hf": "hf:PATH_OR_ID",
    "scripted": "scripted:NAME",
}


_DOMAINS = (
    "ai|arpa|cloud|com|corp|de|dev|edu|eu|home|internal|intranet|io|lan|local|localhost|net|org|svc|uk|us"
)
_OFFICIAL_MODEL = re.compile(
    rf"(?!.*:\d{{1,5}}\Z)(?!(?:\d{{1,3}}\.){{3}}\d{{1,3}}\Z)(?!(?i:(?:.*\.)?(?:{_DOMAINS}))\Z)[A-Za-z0-9][A-Za-z0-9_.:-]*"
)
"""A name that a model of OpenAI's own service can have. Addresses and names on the hub look different."""


@dataclass(frozen=True)
class EndpointUrl:
    """The address of an OpenAI-compatible server. Its representation holds no secret."""

    base: str = field(repr=False)
    """Without a user, a password or a trailing slash."""
    user: str | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The address without a query, which may hold a key."""
        return self.base.partition("?")[0]

    @property
    def official(self) -> bool:
        """Whether this is OpenAI's own service."""
        return self.base == OFFICIAL_URL

    @property
    def key_variable(self) -> str:
        """The environment variable that holds the key. OpenAI's is never sent to anyone else."""
        return "OPENAI_API_KEY" if self.official else "SWEETRL_API_KEY"

    def key(self) -> str | None:
        """The key from the environment; None if there is none and none is required."""
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.official:
            raise UsageError(f"OpenAI's service needs a key: set {self.key_variable} in the environment")
        if not key.isascii() or not key.isprintable():
            raise UsageError(f"{self.key_variable} holds characters that a key cannot have")
        return key or None

    @property
    def login(self) -> str | None:
        """The credentials of HTTP's basic authentication, where the address has a user."""
        if self.user is None:
            return None
        return base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def secrets(self) -> set[str]:
        """Everything that no message may repeat."""
        query = self.base.partition("?")[2]
        given = {self.key(), self.password, quote(self.password), self.login, query}
        given.update(value for _, value in parse_qsl(query))
        return {secret for secret in given if secret}

    def at(self, path: str) -> str:
        """The address of a resource of the server."""
        address, mark, query = self.base.partition("?")
        return address + path + mark + query


@dataclass(frozen=True)
class ModelSpec:
    """A model as named on the command line."""

    kind: str
    """One of `KINDS`, or `shipped`."""
    model: str
    url: EndpointUrl | None = None
    """The address of an `openai` model."""

    @property
    def name(self) -> str:
        """The specification without secrets."""
        if self.kind == "shipped":
            return self.model
        at = "" if self.url is None or self.url.official else f"@{self.url.shown}"
        return f"{self.kind}:{self.model}{at}"


def parse_spec(text: str) -> ModelSpec:
    """Read a specification; a wrong one is a `UsageError` with a suggestion."""
    if not text.isprintable():
        raise UsageError("the name of a model holds characters that cannot be printed")
    if text.strip() in shipped.NAMES:
        return ModelSpec("shipped", text.strip())
    kind, colon, rest = text.strip().partition(":")
    if kind not in KINDS or not colon:
        raise UsageError(_complaint(text))
    if not rest.strip():
        raise UsageError(f"'{kind}:' lacks its model; write {KINDS[kind]}")
    if kind != "openai":
        return ModelSpec(kind, rest.removeprefix("//"))
    model, at, address = _split_address(rest.removeprefix("//"))
    if not model or (at and not address):
        raise UsageError(f"cannot read '{kind}:{model}{at}'; write {KINDS[kind]}")
    if not at and not _OFFICIAL_MODEL.fullmatch(model):
        raise UsageError(_no_scheme(model))
    return ModelSpec(kind, model, parse_url(address) if at else EndpointUrl(OFFICIAL_URL))


def trainable(name: str) -> str:
    """A model to train, as a folder or a name on the hub: `hf:` in front of it changes nothing."""
    kind, colon, rest = name.partition(":")
    if colon and kind in KINDS and kind != "hf":
        raise UsageError(f"{ModelSpec(kind, '...').name} cannot be trained here; write hf:PATH_OR_ID or mini")
    return rest.removeprefix("//") if colon and kind == "hf" else name


def _split_address(rest: str) -> tuple[str, str, str]:
    """A model's name may hold an `@`; the address begins at the first one before a scheme."""
    matched = re.search(r"@(?=[A-Za-z][A-Za-z0-9+.-]*://)", rest)
    if matched is None:
        return rest, "", ""
    return rest[: matched.start()], "@", rest[matched.end() :]


def _no_scheme(rest: str) -> str:
    """The error for an address without `http://`, or without its `@`; no password and no query is repeated.

    If it were taken for the name of a model, prompts and references would go to OpenAI's service.
    """
    model, at, host = rest.partition("@")
    if not at or "//" in model:
        return (
            "'openai:MODEL' alone is a model of OpenAI's own service, and none has such a name; "
            "write openai:MODEL@http://HOST:PORT/v1 for another server"
        )
    host = host.rpartition("@")[2].partition("?")[0].strip()
    host = re.sub(r"^(https?(?=[:/]))?:?/*", "", host, flags=re.IGNORECASE)
    path = "" if "/" in host else "/v1"
    return f"the model's address lacks its scheme; write openai:{model}@http://{host or 'HOST:PORT'}{path}, or https"


def parse_url(text: str) -> EndpointUrl:
    """Read the address of a server; complaints do not repeat it, since it may hold a password."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(
            f"the model's address has a malformed host or port; write {KINDS['openai']}"
        ) from error
    if parts.scheme not in ("http", "https"):
        raise UsageError(
            f"the model's address begins with '{parts.scheme}://'; write {KINDS['openai']}, or https"
        )
    if not parts.hostname or re.search(r"\s", text):
        raise UsageError(f"the model's address has no proper host; write {KINDS['openai']}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    base = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), parts.query, ""))
    user = None if parts.username is None else unquote(parts.username)
    return EndpointUrl(base, user, unquote(parts.password or ""))


def _complaint(text: str) -> str:
    kind, colon, _ = text.partition(":")
    shown = kind if colon else re.sub(r"//\S*@", "//***@", text)
    if text == "human":
        return "no model is called 'human'; to take part yourself, use `sweetrl play`"
    close = difflib.get_close_matches(kind.lower(), KINDS, n=1)
    if close:
        return f"there is no kind of model '{shown}'; did you mean {KINDS[close[0]]}?"
    return f"there is no kind of model '{shown}'; write {', '.join((*KINDS.values(), *shipped.NAMES))}"
