"""Tasks and their secrets. A secret is a type of its own, so that an `Episode` can hold none."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

NonEmpty = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]


class Secret(Struct, frozen=True, forbid_unknown_fields=True):
    """The part of a task that only the collaborator, the scorer and the critic may see. Each domain has its own."""


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One problem to collaborate on."""

    schema: Literal["task/2"] = "task/2"
    id: NonEmpty
    domain: NonEmpty
    """The name of its domain, for example `backend`."""
    split: str = ""
    """train, validation, test, or empty where the source does not name it."""
    request: NonEmpty
    """The agent's first message from the collaborator."""
    secret: Secret
    """The secret, of the type that the domain defines."""
    extra: dict[str, Any] = {}
    """Fields of the file that the task came from which sweetrl does not use; kept for a lossless export."""
