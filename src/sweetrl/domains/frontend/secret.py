"""The secret of a frontend task."""

from sweetrl.errors import DataError
from sweetrl.types import NonEmpty, Secret, Task


class FrontendSecret(Secret, frozen=True, tag_field="kind", tag="frontend", forbid_unknown_fields=True):
    """The part of a design task that only the collaborator, the scorer and the critic may see."""

    page: NonEmpty
    """HTML of the wanted page."""


def frontend_secret(task: Task) -> FrontendSecret:
    """The task's secret; an error that names the task if it is of another domain."""
    if not isinstance(task.secret, FrontendSecret):
        raise DataError(f"task {task.id} is a {task.domain} task; the frontend scorer cannot judge it")
    return task.secret
