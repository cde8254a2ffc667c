"""One message of a dialogue as HTML: its prose as prose, its code as code, cut where it is too long."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sweetrl.report.highlight import Language, highlight, language_of
from sweetrl.report.markup import CUT, Markup, cut, element, join

FOLDED_LINES = 30
"""Longer code is folded away."""
FOLDED_PAGE_LINES = 8
"""Longer pages are folded away: the picture says more."""

_FENCE = re.compile(r"```[ \t]*(?P<label>[\w+-]*)[^\n]*\n(?P<code>(?s:.*?))(?:\n[ \t]*```|\Z)")
_PAGE = re.compile(r"(?:<!doctype\s[^<>]{0,200}>\s*)?<html\b(?s:.*</html\s*>|.*)", re.IGNORECASE)
_CODE = re.compile(r"^(?:def|class|import|from|async def|@\w+)\b", re.MULTILINE)
_LANGUAGES: dict[str, Language] = {"python": "python", "py": "python", "html": "html"}


@dataclass(frozen=True)
class Piece:
    """A stretch of a message."""

    content: str
    language: Language | None = None
    """None for prose."""


def message(content: str, *, limit: int = CUT) -> Markup:
    """The message, at most `limit` characters of it."""
    shown, left_out = cut(content, limit)
    parts = [_shown(piece) for piece in pieces(shown)]
    if left_out:
        parts.append(cut_note(left_out))
    return join(parts)


def cut_note(characters: int) -> Markup:
    """Says that something is not shown."""
    return element("p", f"… {characters:,} more characters are left out", class_="cut")


def pieces(content: str) -> list[Piece]:
    """Prose and code in turn: fenced code, a page, or the function that an answer ends with."""
    if _FENCE.search(content):
        found = list(_fenced(content))
    elif page := _PAGE.search(content):
        found = [
            Piece(content[: page.start()]),
            Piece(page[0], "html"),
            Piece(content[page.end() :]),
        ]
    elif code := _CODE.search(content):
        found = [Piece(content[: code.start()]), Piece(content[code.start() :], "python")]
    else:
        found = [Piece(content)]
    return [piece for piece in found if piece.content.strip()]


def is_prose(content: str) -> bool:
    """Whether a message has no code."""
    return all(piece.language is None for piece in pieces(content))


def _fenced(content: str) -> Iterator[Piece]:
    position = 0
    for fence in _FENCE.finditer(content):
        yield Piece(content[position : fence.start()])
        language = _LANGUAGES.get(fence["label"].lower()) or language_of(fence["code"])
        yield Piece(fence["code"], language)
        position = fence.end()
    yield Piece(content[position:])


def _shown(piece: Piece) -> Markup:
    if piece.language is None:
        return element("p", piece.content.strip())
    return code_block(piece.content, piece.language)


def code_block(content: str, language: Language | None = None) -> Markup:
    """Code, folded away if it is long."""
    content = content.strip("\n")
    language = language or language_of(content)
    block = element("pre", element("code", highlight(content, language)), tabindex=0)
    lines = content.count("\n") + 1
    if lines <= (FOLDED_PAGE_LINES if language == "html" else FOLDED_LINES):
        return block
    what = "HTML page" if language == "html" else "code"
    return element("details", element("summary", f"{what}, {lines} lines"), block, class_="folded")
