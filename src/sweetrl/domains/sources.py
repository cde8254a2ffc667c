"""`--tasks SOURCE`: the one place that knows what a source of tasks can be.

A source is a file of JSON lines, here or on the hub, ours or published by ColBench, told apart line by line; or the
name of a generator with a split, a size and a seed, as far as they matter: `mini-frontend:test:500:7`,
`mini-frontend:test`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.domains import colbench, registry
from sweetrl.domains.domain import Domain, Generator
from sweetrl.errors import DataError, UsageError
from sweetrl.records import FIX_LINE, LineDecoder, is_on_hub, read_lines, wrong_schema
from sweetrl.types import Secret, Task

SPLITS = ("train", "validation", "test")

USUAL_SPLIT, USUAL_COUNT = "test", 100
"""Defaults of a generator whose name gives no split or number."""

TASK_SCHEMA = "task/2"

NO_DOMAIN = (
    'the task has no field `domain`; add "domain": "backend", or the name of your domain, to each line, '
    "or give --domain to commands that take it"
)

_GENERATED = re.compile(r"(?:(?P<split>[a-z]+)(?::(?P<count>[1-9]\d{0,8})(?::(?P<seed>\d{1,18}))?)?)?")


def read_tasks(source: str | Path, limit: int | None = None) -> Iterator[Task]:
    """The tasks of a source, one at a time, each id once; at most `limit` of them."""
    name, _, rest = str(source).partition(":")
    if (generator := _generator(source)) is not None:
        asked = _asked(name, rest)
        count, seed = int(asked["count"] or USUAL_COUNT), int(asked["seed"] or 0)
        return islice(_distinct(name, generator(asked["split"] or USUAL_SPLIT, count, seed)), limit)
    return islice(_read_file(Path(source)), limit)


def load_tasks(source: str | Path, limit: int | None = None) -> dict[str, Task]:
    """The tasks of a source by id; at most `limit` of them."""
    return {task.id: task for task in read_tasks(source, limit)}


def tasks_or_none(source: str | Path | None) -> dict[str, Task] | None:
    """The tasks of a source by id; None where no source is given."""
    return None if source is None else load_tasks(source)


def fingerprint_of_tasks(tasks: Iterable[Task]) -> str:
    """A hash of the tasks' content, independent of file and order."""
    lines = sorted(msgspec.json.encode((task.id, task.domain, task.request, task.secret)) for task in tasks)
    content = hashlib.sha256(b"\n".join(lines)).hexdigest()
    return f"{len(lines)} tasks {content[:16]}"


def count_tasks(source: str | Path) -> int:
    """How many tasks a source has. Those of a generator are not made: its name says how many."""
    name, _, rest = str(source).partition(":")
    if _generator(source) is not None:
        return int(_asked(name, rest)["count"] or USUAL_COUNT)
    return sum(1 for _ in _read_file(Path(source)))


def _generator(source: str | Path) -> Generator | None:
    name = str(source).partition(":")[0]
    if is_on_hub(source) or Path(source).exists():
        return None
    found = registry.find_generator(name)
    if found is None and "://" in str(source):
        raise UsageError(f"{source}: tasks are not read from an address; download the file and give its path")
    if found is None and ":" in str(source):
        names = [each for domain in registry.all_domains() for each in domain.generators]
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"generators are {', '.join(names)}"
        raise UsageError(f"{source}: no such file, and no generator of tasks is called {name!r}; {hint}")
    return found


def _distinct(name: str, tasks: Iterable[Task]) -> Iterator[Task]:
    """The tasks of a generator, which may be anybody's; an id that was there before is an error."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise UsageError(f"{name}: made two tasks with the id {task.id!r}; ids must differ")
        seen.add(task.id)
        yield task


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
            task = _parse(decode(number, line), path, number, ascii_only=colbench.is_escaped(line))
        except DataError:
            raise
        except msgspec.ValidationError as error:
            raise DataError(f"{error}; {FIX_LINE}", path=path, line=number) from None
        except UsageError as error:
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
        raise DataError("has no tasks; give a file with one JSON object a line", path=path)


def _parse(fields: dict[str, Any], path: Path, number: int, *, ascii_only: bool) -> Task:
    name, split = f"{path.stem}-{number - 1}", _split_of(path.stem)
    if colbench.is_published(fields):
        return colbench.parse_task(fields, position_id=name, split=split, ascii_only=ascii_only)
    domain = registry.chosen()
    if domain is not None and not fields.keys() & {"schema", "domain", "kind"}:
        return parse_task({"id": name, "split": split, "domain": domain.name, **_own_fields(fields, domain)})
    if {"request", "secret"} <= fields.keys() and not fields.keys() & {"domain", "kind"}:
        raise DataError(NO_DOMAIN, path=path, line=number)
    if fields.keys() & {"schema", "request", "secret"}:
        return parse_task(fields)
    names = ", ".join(list(fields)[:5]) or "none"
    raise DataError(
        f"neither a sweetrl task nor a published ColBench task (its fields: {names}); "
        "if it is in a format of its domain, name that with --domain",
        path=path,
        line=number,
    )


def _own_fields(fields: dict[str, Any], domain: Domain) -> Mapping[str, Any]:
    if domain.parse_line is None:
        return fields
    try:
        return domain.parse_line(fields)
    except (LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"not a line of the domain {domain.name}: {reason}") from error


def parse_task(fields: Mapping[str, Any]) -> Task:
    """The task with these fields, its secret of the type of its domain.

    Raises `msgspec.ValidationError`, which says the path of the wrong field, and `UsageError` for a domain that is
    not there. In files of schema `task/1` the domain is called `kind`.
    """
    given = dict(fields)
    if given.get("schema") == "task/1":
        given["schema"] = TASK_SCHEMA
    if isinstance(found := given.get("schema"), str) and found != TASK_SCHEMA:
        raise UsageError(wrong_schema(found, TASK_SCHEMA))
    if "domain" not in given and "kind" in given:
        given["domain"] = given.pop("kind")
    # The secret is read in a second step, when its type is known.
    task = msgspec.convert({**given, **({"secret": {}} if "secret" in given else {})}, Task)
    domain = registry.domain_of(task)
    return msgspec.structs.replace(task, secret=_secret(given.get("secret"), domain))


def _secret(fields: Any, domain: Domain) -> Secret:
    tag = domain.secret.__struct_config__.tag
    field = domain.secret.__struct_config__.tag_field
    if isinstance(fields, dict) and field is not None:
        fields = {field: tag, **fields}
    try:
        return msgspec.convert(fields, domain.secret)
    except msgspec.ValidationError as error:
        message = str(error)
        at = message.replace("`$.", "`$.secret.") if "`$." in message else f"{message} - at `$.secret`"
        raise msgspec.ValidationError(at) from None


def _split_of(stem: str) -> str:
    last = stem.rpartition("_")[2]
    return last if last in SPLITS else ""
