"""Results of untrusted code, decoded into plain values and compared by us.

What arrives is JSON written by a process that may lie: it is decoded into plain types only, so no code of the
answer's (an `__eq__`, a `__reduce__`) ever runs here, and any junk ends in `BadValue`.
"""

from typing import Any

import msgspec

from sweetrl.sandbox.inside.decoding import BadValue, plain

__all__ = ["BadValue", "decode", "same"]


def decode(encoded: bytes) -> Any:
    """The value that was encoded; `BadValue` for anything else."""
    try:
        return plain(msgspec.json.decode(encoded))
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
