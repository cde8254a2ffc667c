"""Plain values from the JSON that `encoding` writes. Runs in the parent, and in processes that are given values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_DEPTH = 210
"""Twice the levels that `encoding` writes at most, plus some: a tuple takes two."""


class BadValue(ValueError):  # noqa: N818
    """The bytes are not a value that `encoding` could have written."""


def decode_again(encoded: bytes) -> Any:
    """The value of JSON that the parent has decoded before, and so knows to be sound."""
    return plain(_library("json").loads(encoded))


def plain(tree: Any, depth: int = 0) -> Any:
    """The value that a tree of JSON stands for; `BadValue` and other errors for anything else."""
    if depth > _MAX_DEPTH:
        raise BadValue("nested too deep")
    if isinstance(tree, list):
        return [plain(item, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise BadValue("an object must have one key")
    ((name, content),) = tree.items()
    if name not in _TYPES:
        raise BadValue(f"unknown type {name[:40]!r}")
    return _TYPES[name](content, depth + 1)


def _items(content: Any, depth: int) -> list[Any]:
    if not isinstance(content, list):
        raise BadValue("a list was expected")
    return [plain(item, depth + 1) for item in content]


def _pairs(content: Any, depth: int) -> dict[Any, Any]:
    return {key: value for key, value in _items(content, depth)}  # noqa: C416  a pair of another length must fail


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise BadValue("text was expected")
    return content


def _integers(content: Any, depth: int) -> list[int]:
    numbers = _items(content, depth)
    if not all(type(number) is int for number in numbers):
        raise BadValue("whole numbers were expected")
    return numbers


def _floats(content: Any, depth: int) -> list[float]:
    return [float(number) for number in _items(content, depth)]


def _library(module: str) -> Any:
    """A module that is loaded when first needed: every fork pays for what the zygote has loaded."""
    return __import__(module)


_TYPES: dict[str, Callable[[Any, int], Any]] = {
    "tuple": lambda content, depth: tuple(_items(content, depth)),
    "set": lambda content, depth: set(_items(content, depth)),
    "frozenset": lambda content, depth: frozenset(_items(content, depth)),
    "dict": _pairs,
    "lazy iterator": lambda content, depth: iter(_items(content, depth)),
    "lazy keys": lambda content, depth: dict.fromkeys(_items(content, depth)).keys(),
    "lazy values": lambda content, depth: dict(enumerate(_items(content, depth))).values(),
    "lazy items": lambda content, depth: dict(_items(content, depth)).items(),
    "int": lambda content, _: int(_text(content), 16),
    "float": lambda content, _: float(_text(content)),
    "text": lambda content, _: bytes.fromhex(_text(content)).decode("utf-32-le", "surrogatepass"),
    "bytes": lambda content, _: bytes.fromhex(_text(content)),
    "complex": lambda content, depth: complex(*_floats(content, depth)),
    "decimal": lambda content, _: _library("decimal").Decimal(_text(content)),
    "fraction": lambda content, depth: _library("fractions").Fraction(*_integers(content, depth)),
    "range": lambda content, depth: range(*_integers(content, depth)),
    "datetime": lambda content, _: _library("datetime").datetime.fromisoformat(_text(content)),
    "date": lambda content, _: _library("datetime").date.fromisoformat(_text(content)),
    "time": lambda content, _: _library("datetime").time.fromisoformat(_text(content)),
    "timedelta": lambda content, depth: _library("datetime").timedelta(*_integers(content, depth)),
}
