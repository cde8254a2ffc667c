"""JavaScript object literals that are plain data, read without running them."""

import json
import re
from typing import Any

from sweetrl.records import without_surrogates

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.)*`)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<mark>[{}\[\]:,]))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\.|[\"\n]", re.DOTALL)
_COLON = re.compile(r"\s*:")
_DEEPEST = 50


def read_object(source: str, start: int = 0) -> dict[str, Any] | None:
    """The object literal that begins at `start`; None if it is more than strings, numbers, lists and objects."""
    tokens = _tokens(source, start)
    if tokens is None or tokens[0] != "{":
        return None
    try:
        # Numbers are what they are in JavaScript: an integer of a hundred digits is no integer there.
        found = json.loads("".join(tokens), parse_constant=_refuse, parse_int=float)
        return dict(without_surrogates(found))
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not data")


def _tokens(source: str, start: int) -> list[str] | None:
    """The literal as JSON tokens, up to the bracket that closes it."""
    tokens: list[str] = []
    depth, position = 0, start
    while match := _TOKEN.match(source, position):
        position = match.end()
        if match.lastgroup == "comment":
            continue
        piece = match[match.lastgroup or 0]
        depth += (piece in "{[") - (piece in "}]")
        if piece in "}]" and tokens and tokens[-1] == ",":
            tokens.pop()
        tokens.append(
            _as_json(match.lastgroup or "", piece, is_key=_COLON.match(source, position) is not None)
        )
        if depth == 0:
            return tokens
        if depth > _DEEPEST:
            return None
    return None


def _escaped_as_json(match: re.Match[str]) -> str:
    """One escape, quote or line break inside a string: JSON has no escaped ' or `, and no bare \" or line break."""
    piece = match[0].removeprefix("\\") if match[0][1:] in ("'", "`", "\n") else match[0]
    return {'"': '\\"', "\n": "\\n"}.get(piece, piece)


def _as_json(group: str, piece: str, *, is_key: bool) -> str:
    if group == "string":
        return f'"{_ESCAPED.sub(_escaped_as_json, piece[1:-1])}"'
    if is_key and group in {"word", "number"}:
        return json.dumps(piece)
    # A variable stays as it is, which is not JSON, so the whole literal is refused.
    return piece
