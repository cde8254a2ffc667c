"""Tokens of code and of speech, and which of them prose does not have."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

GRAM = 4
"""Tokens that must agree in a row. Shorter copies are left to the parser."""
MIN_WEIGHT = 3
"""Names, literals and operators that code must have: `weight > 2` has three, `len(items)` two."""

_STRING = r"""(?P<string>(?<![\w'"])(?:[rbfuRBFU]{1,2})?
    (?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'(?!\w)))"""
_REST = r"""|(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?)
    |(?P<name>[^\W\d]\w*)
    |(?P<symbol>\*\*=|//=|>>=|<<=|[-+*/%@&|^=<>!:]=|->|\*\*|//|<<|>>|[^\s\w`])"""
_SPOKEN = re.compile(_STRING + _REST, re.VERBOSE)
# In sources `#` starts a comment; in speech it may be a heading or a number.
_SOURCE = re.compile(r"(?P<comment>\#[^\n]*)|" + _STRING + _REST, re.VERBOSE)

_PUNCTUATION = frozenset(".,:;!?'\"()-/…’“”")
"""Symbols that prose has too. Between two words without a space, `.` and `(` are code all the same."""
_LAYOUT = frozenset("()[]{},.:")


class Token(NamedTuple):
    """One token of code or speech."""

    text: str
    start: int
    end: int
    word: bool
    """A name or a literal."""
    symbolic: bool
    """Something that prose does not have."""


def tokenize(text: str, offset: int = 0) -> list[Token]:
    """The tokens of speech; `offset` is where the text begins."""
    return list(_tokens(_SPOKEN, text, offset))


def tokenize_source(text: str) -> list[Token]:
    """The tokens of code, without comments."""
    return list(_tokens(_SOURCE, text))


def _tokens(pattern: re.Pattern[str], text: str, offset: int = 0) -> Iterator[Token]:
    for match in pattern.finditer(text):
        kind, found = match.lastgroup, match[0]
        if kind == "comment":
            continue
        start, end = match.start(), match.end()
        yield Token(
            _unquoted(found) if kind == "string" else found,
            start + offset,
            end + offset,
            word=kind != "symbol",
            symbolic=_is_symbolic(kind, found, text, start, end),
        )


def _unquoted(literal: str) -> str:
    """A string literal with its quotes made double, its prefix dropped."""
    body = literal.lstrip("rbfuRBFU")
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    return f'"{body[width:-width]}"'


def _is_symbolic(kind: str | None, found: str, text: str, start: int, end: int) -> bool:
    if kind == "name":
        return "_" in found.strip("_")
    if kind != "symbol":
        return False
    if found not in _PUNCTUATION:
        return True
    before = text[start - 1 : start]
    if found == "(":
        return before.isalnum() or before == "_"
    return found == "." and before.isidentifier() and text[end : end + 1].isidentifier()


def grams(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every run of `GRAM` tokens."""
    return zip(*(tokens[shift:] for shift in range(GRAM)), strict=False)


def weight(tokens: Sequence[Token]) -> int:
    """How many names, literals and operators there are."""
    return sum(token.word or token.text not in _LAYOUT for token in tokens)
