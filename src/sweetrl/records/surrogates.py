"""Lone surrogates: halves of a character that JSON can spell and UTF-8 cannot hold.

Models emit them, and `json.dumps` writes them as `"\\ud800"`. Wherever text comes in or goes out, each becomes
U+FFFD, as in a browser, so that one such answer never makes a file unreadable for all the others.
"""

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|.)",
    re.DOTALL,
)


def without_surrogates(value: Any) -> Any:
    """A copy of a plain value with U+FFFD for every lone surrogate; two halves that meet are joined."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


def decode_json(decoder: msgspec.json.Decoder[T], content: bytes) -> T:
    """Decode JSON that may spell lone surrogates, which msgspec refuses."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape["lone"] else escape[0], content)
        if mended == content:
            raise
        return decoder.decode(mended)
