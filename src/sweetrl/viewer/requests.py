"""From the address of a request to what it asks for. Whatever is wrong with it is a `UsageError` of one line."""

from collections.abc import Sequence

from starlette.datastructures import QueryParams

from sweetrl.errors import UsageError
from sweetrl.viewer.queries import Query

_LARGEST = 10**9


def list_query(fields: QueryParams) -> Query:
    """The list that an address names."""
    return Query(
        runs=tuple(each for each in fields.getlist("run") if each),
        outcome=fields.get("outcome", ""),
        ending=fields.get("ending", ""),
        defect=fields.get("defect", ""),
        task=fields.get("task", ""),
        text=fields.get("q", ""),
        least_turns=whole_number(fields, "min"),
        most_turns=whole_number(fields, "max"),
        sort=fields.get("sort") or "file",
        critic=fields.get("by", ""),
        page=whole_number(fields, "page") or 0,
    )


def whole_number(fields: QueryParams, name: str) -> int | None:
    """A number from 0 on; None if it is not given."""
    value = fields.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit()) or int(value[:12]) > _LARGEST:
        raise UsageError(f"{name} must be a whole number from 0 on, not {value[:40]!r}")
    return int(value)


def is_on(fields: QueryParams, name: str) -> bool:
    """Whether a switch is on."""
    return fields.get(name) == "1"


def required(fields: QueryParams, names: Sequence[str]) -> list[str]:
    """Fields that must be there."""
    missing = [name for name in names if not fields.get(name)]
    if missing:
        raise UsageError(f"the address lacks {' and '.join(missing)}")
    return [fields[name] for name in names]
