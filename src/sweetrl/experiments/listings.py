"""The models that a server lists."""

import urllib.error
import urllib.request

import msgspec

MOST_READ = 1 << 20
"""Bytes of an answer that are read."""


def answer_of(address: str) -> bytes | None:
    """The body of the answer at an address, empty for an HTTP error; None if nothing answers."""
    try:
        with urllib.request.urlopen(address, timeout=5) as response:  # noqa: S310  the recipe's own address
            return bytes(response.read(MOST_READ))
    except urllib.error.HTTPError:
        return b""
    except (OSError, ValueError):
        return None


def models_in(answer: bytes) -> list[str]:
    """The models in the list of an OpenAI-compatible server; empty if the answer is no such list."""
    try:
        return [each.id for each in msgspec.json.decode(answer, type=_ModelList).data]
    except msgspec.DecodeError:
        return []


class _Model(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Model]
