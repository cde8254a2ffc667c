"""Reading TOML into sections: all faults at once, each named by its key, unknown keys with a suggestion.

A file that says `extends = "other.toml"` has all that the other one has, next to it, but for what it says itself.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from sweetrl.errors import ConfigError
from sweetrl.settings.recipes import Recipe
from sweetrl.settings.studies import Study, inherited, is_study
from sweetrl.settings.words import Notice, renamed

T = TypeVar("T", bound=Struct)
Completion = Callable[[dict[str, Any]], dict[str, Any]]
"""From what is written to all that holds."""

EXTENDS = "extends"
DEEPEST = 8
"""Files that may extend one another: more are a circle."""


def load_experiment(
    path: Path, changes: Sequence[str] = (), notice: Notice = lambda _: None
) -> Recipe | Study:
    """What a file holds, with `key=value` changes; all its faults are one `ConfigError`.

    `notice` is told of each key that has another name now.
    """
    content = _changed(path, changes)
    if is_study(content):
        return _converted(path, content, Study, complete=inherited, notice=notice)
    return _converted(path, content, Recipe, notice=notice)


def load_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """The recipe in a file, with `key=value` changes; all its faults are one `ConfigError`."""
    return _converted(path, _changed(path, changes), Recipe)


def load_study(path: Path, changes: Sequence[str] = ()) -> Study:
    """The same for a study."""
    return _converted(path, _changed(path, changes), Study, complete=inherited)


def _converted(
    path: Path,
    content: dict[str, Any],
    record_type: type[T],
    complete: Completion = lambda content: content,
    notice: Notice = lambda _: None,
) -> T:
    content = _current(content, record_type, lambda line: notice(f"{path}: {line}"))
    found = list(faults(content, record_type))
    if not found:
        try:
            return msgspec.convert(complete(content), record_type)
        except msgspec.ValidationError as error:
            found = [str(error)]
    raise ConfigError(f"{path}: " + "; ".join(found))


# ---------------------------------------------------------------- files


def _changed(path: Path, changes: Sequence[str]) -> dict[str, Any]:
    content = _content(path)
    for change in changes:
        _apply(content, change)
    return content


def _content(path: Path, depth: int = 1) -> dict[str, Any]:
    """What a file says, and the files that it extends."""
    own = _parsed(path)
    other = own.pop(EXTENDS, None)
    if other is None:
        return own
    if not isinstance(other, str) or not other:
        raise ConfigError(f"{path}: {EXTENDS}: write the name of another recipe")
    if depth > DEEPEST:
        raise ConfigError(f"{path}: {EXTENDS}: the recipes extend one another in a circle")
    return _merged(_content(path.parent / other, depth + 1), own)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        reason = "no such recipe" if missing else str(error.strerror).lower()
        raise ConfigError(f"{path}: {reason}; give the path of a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}; fix it and try again") from None


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below` with what `above` says, section by section."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _apply(content: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    *sections, last = key.strip().split(".")
    if not (equals and last):
        raise ConfigError(f"--set {change}: write key=value, for example critic.epochs=2")
    for section in sections:
        content = content.setdefault(section, {})
        if not isinstance(content, dict):
            raise ConfigError(f"--set {change}: {section} is a value, not a section")
    if text.strip():
        content[last] = _value(text.strip())
    else:
        content.pop(last, None)


def _value(text: str) -> Any:
    """What TOML makes of the text; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


# ---------------------------------------------------------------- old names


def _current(value: Any, wanted: Any, notice: Notice, where: str = "") -> Any:
    """The same content with every key by its new name."""
    section = _section(wanted)
    if section is None or not isinstance(value, dict):
        return value
    if get_origin(wanted) is dict:
        return {name: _current(each, section, notice, f"{where}{name}.") for name, each in value.items()}
    known = {field.encode_name: field.type for field in fields(section)}
    content = {}
    for key, each in value.items():
        new = key if key in known or renamed(key) not in known else renamed(key)
        if new != key:
            notice(f"{where}{key} is called {new} now; the old name will go")
        content[new] = _current(each, known.get(new), notice, f"{where}{new}.")
    return content


# ---------------------------------------------------------------- faults


def faults(content: dict[str, Any], section: type[Struct], where: str = "") -> Iterator[str]:
    """Everything that is wrong with a section, each fault named by its key."""
    known = {field.encode_name: field for field in fields(section)}
    for key in content:
        if key not in known:
            yield f"{where}{key}: unknown{_suggestion(key, known)}"
    for key, field in known.items():
        if key in content:
            yield from _faults_of(content[key], field.type, f"{where}{key}")
        elif field.required:
            yield f"{where}{key}: missing"


def _faults_of(value: Any, wanted: Any, where: str) -> Iterator[str]:
    section, origin = _section(wanted), get_origin(wanted)
    if section is None:
        yield from _faults_of_value(value, wanted, where)
    elif origin is dict and isinstance(value, dict):
        for name, each in value.items():
            yield from _faults_of(each, section, f"{where}.{name}")
    elif origin is tuple and isinstance(value, list):
        for index, each in enumerate(value):
            yield from _faults_of(each, section, f"{where}[{index}]")
    elif origin not in (dict, tuple) and isinstance(value, dict):
        yield from faults(value, section, f"{where}.")
    else:
        yield from _faults_of_value(value, wanted, where)


def _faults_of_value(value: Any, wanted: Any, where: str) -> Iterator[str]:
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        yield f"{where}: {str(error).partition(' - at ')[0]}{_written(wanted)}"


def _parts(wanted: Any) -> Iterator[Any]:
    """The types that a value may have: a type, or the members of a union, without their constraints."""
    origin = get_origin(wanted)
    if origin is Annotated:
        yield from _parts(get_args(wanted)[0])
    elif origin in (Union, UnionType):
        for each in get_args(wanted):
            yield from _parts(each)
    else:
        yield wanted


def _written(wanted: Any) -> str:
    """How a value of a plain type is written in TOML."""
    plain = {
        int: "a number such as 12",
        float: "a number such as 0.1",
        bool: "true or false",
        str: "text in quotes",
    }
    parts = list(_parts(wanted))
    found = [" or ".join(each) for each in parts if isinstance(each, type) and issubclass(each, StrEnum)]
    found += [" or ".join(get_args(each)) for each in parts if get_origin(each) is Literal]
    found += [plain[each] for each in parts if each in plain]
    found += ["a list in brackets" for each in parts if get_origin(each) in (list, tuple)]
    return f"; write {found[0]}" if found else ""


def _section(wanted: Any) -> type[Struct] | None:
    """The struct that a type is, may be, or is a tuple or table of; None for plain values."""
    for each in (wanted, *get_args(wanted)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None


def _suggestion(key: str, known: Mapping[str, Any]) -> str:
    close = get_close_matches(key, known, n=1)
    return f", did you mean {close[0]}?" if close else f" (there are {', '.join(known)})"
