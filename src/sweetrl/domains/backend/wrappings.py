"""Code that comes inside of something else: a notebook, the JSON of a tool call, text with escapes.

Text in, texts out; whether one of them is the answer is for the readings to find out. Time is linear in the length.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from sweetrl.outputs import fenced_blocks

_MOST_TEXTS = 32
_DEEPEST = 8
_JSON_FENCE = re.compile(r"[`~]\s*+json", re.IGNORECASE)
_JSON_START = re.compile(r"\s*+[\[{\"]")
_MAGIC = re.compile(r"^[ \t]*[%!][^\n]*+$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([nt\"'\\])")
_CHARACTERS = {"n": "\n", "t": "\t"}
_MARKDOWN_ESCAPE = re.compile(r"\\([_*`\[\]#<>])")
_QUOTED = re.compile(r"\s*+([\"'])(.*)\1\s*", re.DOTALL)
_BARE_SIGNATURE = re.compile(
    r"^(?:async +)?def +\w++ *\([^()\n]{0,1000}\)(?: *-> *[^:\n]{1,200})?[ \t]*+\n(?![ \t])", re.MULTILINE
)


def texts_in_json(text: str) -> list[str]:
    """The texts of a message, or of its blocks, that is JSON; of a notebook, its code."""
    blocks = fenced_blocks(text, most=_MOST_TEXTS) if _JSON_FENCE.search(text) else []
    sources = [text, *(block.text for block in blocks if block.language == "json")]
    found = (each for source in sources if (tree := _parsed(source)) is not None for each in _texts(tree, 0))
    return [each for _, each in zip(range(_MOST_TEXTS), found, strict=False)]


def _parsed(text: str) -> Any:
    if not _JSON_START.match(text):
        return None
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError, UnicodeEncodeError):
        return None


def _texts(tree: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(tree, str):
        inner = _parsed(tree)  # the arguments of a tool call
        yield from [tree] if inner is None else _texts(inner, depth + 1)
    elif isinstance(tree, list):
        for each in tree:
            yield from _texts(each, depth + 1)
    elif isinstance(tree, dict):
        cells = tree.get("cells")
        if isinstance(cells, list):
            yield _code_of(cells)
        for each in tree.values():
            yield from _texts(each, depth + 1)


def _code_of(cells: list[Any]) -> str:
    """The code of a notebook's cells, without commands for the notebook."""
    codes = [
        cell.get("source", "") for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    texts = ["".join(filter(_is_text, code)) if isinstance(code, list) else str(code) for code in codes]
    return _MAGIC.sub("", "\n".join(texts))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def with_real_lines(source: str) -> str:
    """Code on one line whose line breaks are written as escapes; perhaps in quotes."""
    if "\\n" not in source or "\n" in source.strip():
        return source
    quoted = _QUOTED.fullmatch(source)
    inner = quoted[2] if quoted else source
    return _ESCAPED.sub(lambda match: _CHARACTERS.get(match[1], match[1]), inner)


def without_markdown_escapes(source: str) -> str:
    """Code in which what Markdown would take for markup is escaped: `word\\_lengths`."""
    return _MARKDOWN_ESCAPE.sub(r"\1", source) if "\\_" in source else source


def without_bare_signatures(source: str) -> str:
    """Code without the lines that only repeat how a function is called: `def f(x)`, with no colon and no body."""
    return _BARE_SIGNATURE.sub("", source)
