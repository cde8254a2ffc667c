"""`--tasks SOURCE`: the one place that knows what a source of tasks can be.

A source is a file of JSON lines, ours or published by ColBench, told apart line by line; or the name of a
built-in generator with a split, a size and perhaps a seed: `mini-frontend:test:500:7`.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.domains import colbench
from sweetrl.domains.backend import mini_backend
from sweetrl.domains.frontend import mini_frontend
from sweetrl.errors import DataError, UsageError
from sweetrl.records import LineDecoder, read_lines
from sweetrl.types import Task

SPLITS = ("train", "validation", "test")

GENERATORS: dict[str, Callable[[str, int, int], Iterator[Task]]] = {
    mini_backend.NAME: mini_backend.make_tasks,
    mini_frontend.NAME: mini_frontend.make_tasks,
}
"""Built-in tasks by name: (split, count, seed) -> tasks."""

_GENERATED = re.compile(r"(?P<split>[a-z]+):(?P<count>[1-9]\d{0,8})(?::(?P<seed>\d{1,18}))?")


def read_tasks(source: str | Path) -> Iterator[Task]:
    """The tasks of a source, one at a time, each id once."""
    name, colon, rest = str(source).partition(":")
    if colon and name in GENERATORS:
        return _generate(name, rest)
    return _read_file(Path(source))


def load_tasks(source: str | Path) -> dict[str, Task]:
    """The tasks of a source by id."""
    return {task.id: task for task in read_tasks(source)}


def count_tasks(source: str | Path) -> int:
    """How many tasks a source has. Those of a generator are not made: its name says how many."""
    name, colon, rest = str(source).partition(":")
    if colon and name in GENERATORS:
        return int(_asked(name, rest)["count"])
    return sum(1 for _ in _read_file(Path(source)))


def _generate(name: str, rest: str) -> Iterator[Task]:
    asked = _asked(name, rest)
    return GENERATORS[name](asked["split"], int(asked["count"]), int(asked["seed"] or 0))


def _asked(name: str, rest: str) -> re.Match[str]:
    asked = _GENERATED.fullmatch(rest)
    if asked is None:
        raise UsageError(f"{name}:{rest}: write {name}:SPLIT:N or {name}:SPLIT:N:SEED")
    return asked


def _read_file(path: Path) -> Iterator[Task]:
    decode = LineDecoder(dict[str, Any], path)
    lines_by_id: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            task = _parse(decode(number, line), path, number, ascii_only=line.isascii())
        except msgspec.ValidationError as error:
            raise DataError(str(error), path=path, line=number) from None
        first = lines_by_id.setdefault(task.id, number)
        if first != number:
            raise DataError(
                f"the id {task.id!r} was used before, in line {first}; ids must differ",
                path=path,
                line=number,
            )
        yield task
    if not lines_by_id:
        raise DataError("has no tasks", path=path)


def _parse(fields: dict[str, Any], path: Path, number: int, *, ascii_only: bool) -> Task:
    if colbench.is_published(fields):
        return colbench.parse_task(
            fields,
            position_id=f"{path.stem}-{number - 1}",
            split=_split_of(path.stem),
            ascii_only=ascii_only,
        )
    if fields.keys() & {"schema", "request", "secret"}:
        return msgspec.convert(fields, Task)
    names = ", ".join(list(fields)[:5]) or "none"
    raise DataError(
        f"neither a sweetrl task nor a published ColBench task (its fields: {names})", path=path, line=number
    )


def _split_of(stem: str) -> str:
    last = stem.rpartition("_")[2]
    return last if last in SPLITS else ""
