"""The secret of a backend task."""

from typing import Annotated

from msgspec import Meta

from sweetrl.errors import DataError
from sweetrl.types import NonEmpty, Secret, Task


class BackendSecret(Secret, frozen=True, tag_field="kind", tag="backend", forbid_unknown_fields=True):
    """The part of a programming task that only the collaborator, the scorer and the critic may see."""

    reference: NonEmpty
    """Source of the wanted Python function."""
    tests: Annotated[dict[str, NonEmpty], Meta(min_length=1)]
    """Hidden calls by name, each one Python expression, or an `assert` of one."""


def backend_secret(task: Task) -> BackendSecret:
    """The task's secret; an error that names the task if it is of another domain."""
    if not isinstance(task.secret, BackendSecret):
        raise DataError(f"task {task.id} is a {task.domain} task; the backend scorer cannot judge it")
    return task.secret
