"""The published ColBench task format, read and written back without loss.

A line is `{"problem_description", "ground_truth", "test_cases"}` for backend tasks and has no `test_cases`
for frontend ones. What else a line carries, and the order of its keys, is kept in `Task.extra["colbench"]`,
so that a file written by `json.dumps` comes back byte for byte.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sweetrl.domains.backend.secret import BackendSecret, backend_secret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import DataError
from sweetrl.types import NonEmpty, Secret, Task

LAYOUT = "colbench"
"""The key of `Task.extra` under which the layout of the published line is kept."""


class PublishedLine(Struct):
    """The fields that sweetrl uses of a published line."""

    problem_description: NonEmpty
    ground_truth: NonEmpty
    test_cases: Annotated[dict[str, NonEmpty], Meta(min_length=1)] | UnsetType = UNSET
    id: NonEmpty | UnsetType = UNSET


class Layout(Struct, frozen=True, omit_defaults=True):
    """How a published line was laid out."""

    keys: list[str]
    """All keys of the line, in order."""
    fields: dict[str, Any] = {}
    """The values that are in no other field of the task."""
    ascii: bool = True
    """Whether other characters are escaped."""


def is_published(fields: Mapping[str, Any]) -> bool:
    """Whether a decoded line is in the published format."""
    return "problem_description" in fields or "ground_truth" in fields


def parse_task(fields: Mapping[str, Any], *, position_id: str, split: str, ascii_only: bool) -> Task:
    """The task of a decoded published line; `position_id` names it if the line has no `id` of its own.

    Raises `msgspec.ValidationError`, which says the path of the wrong field.
    """
    line = msgspec.convert(fields, PublishedLine)
    secret: Secret = (
        FrontendSecret(page=line.ground_truth)
        if line.test_cases is UNSET
        else BackendSecret(reference=line.ground_truth, tests=line.test_cases)
    )
    task = Task(
        id=position_id if line.id is UNSET else line.id,
        domain="frontend" if line.test_cases is UNSET else "backend",
        split=split,
        request=line.problem_description,
        secret=secret,
    )
    derived = published_fields(task)
    unused = {key: value for key, value in fields.items() if key not in derived or derived[key] != value}
    layout = Layout(keys=list(fields), fields=unused, ascii=ascii_only)
    return msgspec.structs.replace(task, extra={LAYOUT: msgspec.to_builtins(layout)})


def published_fields(task: Task) -> dict[str, Any]:
    """Every field of the published format that follows from the task itself."""
    if isinstance(task.secret, FrontendSecret):
        return {"id": task.id, "problem_description": task.request, "ground_truth": task.secret.page}
    secret = backend_secret(task)
    return {
        "id": task.id,
        "problem_description": task.request,
        "ground_truth": secret.reference,
        "test_cases": secret.tests,
        # Test files carry the reference twice.
        "hidden_information": secret.reference,
    }


def published_line(task: Task) -> bytes:
    """The task as a line of a published file, newline included."""
    values = published_fields(task)
    layout = _layout(task)
    try:
        line = {key: {**values, **layout.fields}[key] for key in layout.keys}
    except KeyError as error:
        raise DataError(f"task {task.id}: extra.{LAYOUT} lists the field {error} but has no value") from None
    return json.dumps(line, ensure_ascii=layout.ascii).encode() + b"\n"


def _layout(task: Task) -> Layout:
    if LAYOUT not in task.extra:
        # The format has no ids of its own, but a line may have one.
        return Layout(keys=[key for key in published_fields(task) if key != "hidden_information"])
    try:
        return msgspec.convert(task.extra[LAYOUT], Layout)
    except msgspec.ValidationError as error:
        raise DataError(f"task {task.id}: extra.{LAYOUT} is not a layout: {error}") from None


def is_escaped(line: bytes) -> bool:
    """Whether `json.dumps` wrote the line with all but printable ASCII escaped; it counts DEL among the others."""
    return line.isascii() and b"\x7f" not in line
