"""Networks that a process keeps for its next command, if told to: shards of one stage load the same ones.

Only weights are kept. What a command has read or drawn, such as the keys and values of past texts, ends with it.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Loaded = TypeVar("Loaded")


class _Kept:
    def __init__(self) -> None:
        self.found: dict[Hashable, Any] | None = None


_kept = _Kept()


def keep_networks() -> None:
    """From now on, what is loaded stays in memory; for a process whose commands all load the same files."""
    _kept.found = _kept.found or {}


def kept(key: Hashable, load: Callable[[], Loaded]) -> Loaded:
    """What was loaded under this key before, if networks are kept; otherwise what `load` returns."""
    if _kept.found is None:
        return load()
    if key not in _kept.found:
        _kept.found[key] = load()
    found: Loaded = _kept.found[key]
    return found
