"""Results as JSON: plain values of Python, told apart by type, within a budget of bytes.

Numbers, text, true, false, null and lists are themselves; everything else is an object with one key that names
the type: `{"tuple": [...]}`. Subclasses of plain types count as their base. `sweetrl.sandbox.values` decodes.
This runs beside untrusted code and promises nothing: what it sends is a claim that the parent checks.
"""

import json
import math
import sys
from typing import Any

MAX_DEPTH = 100
_EXACT_INT = 1 << 63

Json = object

# Built once; `json.dumps` with options builds an encoder per call.
_dump = json.JSONEncoder(separators=(",", ":")).encode


class Unusable(Exception):  # noqa: N818  not an error of ours: the result has no plain form
    """The value cannot be sent, for the reason given."""


def encode(value: object, budget: int) -> bytes:
    """The JSON form of `value`, at most `budget` bytes of it."""
    if type(value) is int and -_EXACT_INT <= value < _EXACT_INT:  # the most frequent results first
        return b"%d" % value
    if type(value) is bool:
        return b"true" if value else b"false"
    text = _dump(_Walk(budget).tree(value, 0))
    if len(text) > budget:
        raise Unusable(f"result is larger than {budget} bytes")
    return text.encode("ascii")


class _Walk:
    """One descent into a value; shares a budget so that wide, deep and self-containing values end early."""

    def __init__(self, budget: int) -> None:
        self._budget = self._left = budget

    def tree(self, value: object, depth: int) -> Json:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if depth > MAX_DEPTH:
            raise Unusable(f"result is nested more than {MAX_DEPTH} levels deep, or contains itself")
        self._spend(1)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return self._float(float.__add__(value, 0.0))
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, list):
            return [self.tree(item, depth + 1) for item in list.__iter__(value)]
        if isinstance(value, tuple):
            return {"tuple": [self.tree(item, depth + 1) for item in tuple.__iter__(value)]}
        if isinstance(value, dict):
            pairs = dict.items(value)
            return {"dict": [[self.tree(k, depth + 1), self.tree(v, depth + 1)] for k, v in pairs]}
        return self._rare(value, depth)

    def _rare(self, value: object, depth: int) -> Json:
        if isinstance(value, set):
            return {"set": [self.tree(item, depth + 1) for item in set.__iter__(value)]}
        if isinstance(value, frozenset):
            return {"frozenset": [self.tree(item, depth + 1) for item in frozenset.__iter__(value)]}
        if isinstance(value, (bytes, bytearray)):
            self._spend(2 * len(value))
            return {"bytes": bytes(value).hex()}
        if isinstance(value, complex):
            return {"complex": [self._float(value.real), self._float(value.imag)]}
        if isinstance(value, range):
            return {"range": [self._integer(part) for part in (value.start, value.stop, value.step)]}
        return self._library(value, depth)

    def _library(self, value: object, depth: int) -> Json:
        """Values of library types. A type whose module is not loaded cannot be the value's."""
        if isinstance(value, _loaded("decimal", "Decimal")):
            return {"decimal": self._text(str(value))}
        if isinstance(value, _loaded("fractions", "Fraction")):
            return {"fraction": [self._integer(value.numerator), self._integer(value.denominator)]}
        for name in ("datetime", "date", "time"):
            if isinstance(value, _loaded("datetime", name)):
                return {name: self._text(value.isoformat())}
        if isinstance(value, _loaded("datetime", "timedelta")):
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        if isinstance(value, _loaded("numpy", "generic")):
            return self.tree(value.item(), depth + 1)
        raise Unusable(f"result of type {type(value).__name__[:80]} has no plain form")

    def _integer(self, value: int) -> Json:
        value = int.__add__(value, 0)
        if -_EXACT_INT <= value < _EXACT_INT:
            return value
        self._spend(value.bit_length() // 4)
        return {"int": hex(value)}

    def _float(self, value: float) -> Json:
        return value if math.isfinite(value) else {"float": repr(value)}

    def _text(self, value: str) -> Json:
        self._spend(len(value))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            return {"text": value.encode("utf-32-le", "surrogatepass").hex()}
        return value

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Unusable(f"result is larger than {self._budget} bytes")


def _loaded(module: str, name: str) -> Any:
    return getattr(sys.modules.get(module), name, ())
