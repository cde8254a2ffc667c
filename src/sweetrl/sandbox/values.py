"""Results of untrusted code, decoded into plain values and compared by us.

What arrives is JSON written by a process that may lie: it is decoded into plain types only, so no code of the
answer's (an `__eq__`, a `__reduce__`) ever runs here, and any junk ends in `BadValue`.
"""

import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

import msgspec

_MAX_DEPTH = 210
"""Twice the levels that `inside.encoding` writes at most, plus some: a tuple takes two."""


class BadValue(ValueError):  # noqa: N818
    """The bytes are not a value that `inside.encoding` could have written."""


def decode(encoded: bytes) -> Any:
    """The value that was encoded; `BadValue` for anything else."""
    try:
        return _plain(msgspec.json.decode(encoded), 0)
    except BadValue:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise BadValue(" ".join(f"{type(error).__name__}: {error}".split())[:200]) from None


def same(left: Any, right: Any) -> bool:
    """Whether two decoded values are equal as Python's `==` has it; False where it cannot tell."""
    try:
        return bool(left == right)
    except (ArithmeticError, RecursionError, TypeError, ValueError):
        return False  # a signalling NaN, for example


def _plain(tree: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise BadValue("nested too deep")
    if isinstance(tree, list):
        return [_plain(item, depth + 1) for item in tree]
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
    return [_plain(item, depth + 1) for item in content]


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


_TYPES: dict[str, Callable[[Any, int], Any]] = {
    "tuple": lambda content, depth: tuple(_items(content, depth)),
    "set": lambda content, depth: set(_items(content, depth)),
    "frozenset": lambda content, depth: frozenset(_items(content, depth)),
    "dict": _pairs,
    "int": lambda content, _: int(_text(content), 16),
    "float": lambda content, _: float(_text(content)),
    "text": lambda content, _: bytes.fromhex(_text(content)).decode("utf-32-le", "surrogatepass"),
    "bytes": lambda content, _: bytes.fromhex(_text(content)),
    "complex": lambda content, depth: complex(*_floats(content, depth)),
    "decimal": lambda content, _: decimal.Decimal(_text(content)),
    "fraction": lambda content, depth: fractions.Fraction(*_integers(content, depth)),
    "range": lambda content, depth: range(*_integers(content, depth)),
    "datetime": lambda content, _: datetime.datetime.fromisoformat(_text(content)),
    "date": lambda content, _: datetime.date.fromisoformat(_text(content)),
    "time": lambda content, _: datetime.time.fromisoformat(_text(content)),
    "timedelta": lambda content, depth: datetime.timedelta(*_integers(content, depth)),
}
