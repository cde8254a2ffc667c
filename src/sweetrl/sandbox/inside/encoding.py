"""Results as JSON: plain values of Python, told apart by type, within a budget of bytes.

Numbers, text, true, false, null and lists are themselves; everything else is an object with one key that names
the type: `{"tuple": [...]}`. Subclasses of plain types count as their base. Iterators and views of dicts are sent with
what they yield, under names that begin with `lazy`: they equal nothing, but can be used up. `decoding` decodes.
This runs beside untrusted code and promises nothing: what it sends is a claim that the parent checks.
"""

from __future__ import annotations

import sys
from _json import encode_basestring_ascii as _quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_DEPTH = 100
_EXACT_INT = 1 << 63


_VIEWS: dict[type, str] = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}
LAZY = b'{"lazy '
"""What marks such a value: text cannot contain it, because its quotation marks are escaped."""


class Unusable(Exception):  # noqa: N818  not an error of ours: the result has no plain form
    """The value cannot be sent, for the reason given."""


def encode(value: object, budget: int) -> bytes:
    """The JSON form of `value`, at most `budget` bytes of it."""
    if type(value) is int and -_EXACT_INT <= value < _EXACT_INT:  # the most frequent results first
        return b"%d" % value
    if type(value) is bool:
        return b"true" if value else b"false"
    text = _Walk(budget).text(value, 0)
    if len(text) > budget:
        raise Unusable(f"result is larger than {budget} bytes")
    return text.encode("ascii")


class _Walk:
    """One descent into a value; shares a budget so that wide, deep and self-containing values end early."""

    def __init__(self, budget: int) -> None:
        self._budget = self._left = budget

    def text(self, value: object, depth: int) -> str:
        if value is None:
            return "null"
        if type(value) is bool:
            return "true" if value else "false"
        if depth > MAX_DEPTH:
            raise Unusable(f"result is nested more than {MAX_DEPTH} levels deep, or contains itself")
        self._spend(1)
        if isinstance(value, str):
            return self._string(str.__str__(value))
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._float(float.__add__(value, 0.0))
        if isinstance(value, list):
            return self._array(list.__iter__(value), depth)
        if isinstance(value, tuple):
            return f'{{"tuple":{self._array(tuple.__iter__(value), depth)}}}'
        if isinstance(value, dict):
            pairs = [
                f"[{self.text(key, depth + 1)},{self.text(item, depth + 1)}]"
                for key, item in dict.items(value)
            ]
            return f'{{"dict":[{",".join(pairs)}]}}'
        return self._rare(value, depth)

    def _array(self, items: Iterable[object], depth: int) -> str:
        return f"[{','.join([self.text(item, depth + 1) for item in items])}]"

    def _rare(self, value: Any, depth: int) -> str:
        if isinstance(value, set):
            return f'{{"set":{self._array(set.__iter__(value), depth)}}}'
        if isinstance(value, frozenset):
            return f'{{"frozenset":{self._array(frozenset.__iter__(value), depth)}}}'
        if isinstance(value, (bytes, bytearray)):
            self._spend(2 * len(value))
            return f'{{"bytes":"{bytes(value).hex()}"}}'
        if isinstance(value, complex):
            return f'{{"complex":[{self._float(value.real)},{self._float(value.imag)}]}}'
        if isinstance(value, range):
            return f'{{"range":[{",".join(map(self._integer, (value.start, value.stop, value.step)))}]}}'
        if (view := _VIEWS.get(type(value))) is not None:
            return f'{{"lazy {view}":{self._array(value, depth)}}}'
        if hasattr(type(value), "__next__"):
            return f'{{"lazy iterator":{self._array(value, depth)}}}'
        return self._library(value, depth)

    def _library(self, value: object, depth: int) -> str:
        """Values of library types. A type whose module is not loaded cannot be the value's."""
        if isinstance(value, _loaded("decimal", "Decimal")):
            return f'{{"decimal":{self._string(str(value))}}}'
        if isinstance(value, _loaded("fractions", "Fraction")):
            return f'{{"fraction":[{self._integer(value.numerator)},{self._integer(value.denominator)}]}}'
        for name in ("datetime", "date", "time"):
            if isinstance(value, _loaded("datetime", name)):
                return f'{{"{name}":{self._string(value.isoformat())}}}'
        if isinstance(value, _loaded("datetime", "timedelta")):
            parts = (value.days, value.seconds, value.microseconds)
            return f'{{"timedelta":[{",".join(map(self._integer, parts))}]}}'
        if isinstance(value, _loaded("numpy", "generic")):
            return self.text(value.item(), depth + 1)
        raise Unusable(f"result of type {type(value).__name__[:80]} has no plain form")

    def _integer(self, value: int) -> str:
        value = int.__add__(value, 0)
        if -_EXACT_INT <= value < _EXACT_INT:
            return int.__repr__(value)
        self._spend(value.bit_length() // 4)
        return f'{{"int":"{hex(value)}"}}'

    def _float(self, value: float) -> str:
        text = float.__repr__(value)
        return text if value - value == 0 else f'{{"float":"{text}"}}'  # not so for infinities and NaN

    def _string(self, value: str) -> str:
        self._spend(len(value))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return f'{{"text":"{value.encode("utf-32-le", "surrogatepass").hex()}"}}'
        return _quoted(value)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Unusable(f"result is larger than {self._budget} bytes")


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, ())
