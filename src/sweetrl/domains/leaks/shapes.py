"""Two ways to recognise code that was copied and altered: by its letters alone, and by its shape alone.

Letters: without spaces, so that code is found that was spelt out or spaced anew. Shape: with numbers in place of
names, so that code is found whose variables were renamed.
"""

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sweetrl.domains.leaks.code_tokens import MIN_WEIGHT, Token, weight

LETTERS = 12
"""Characters in a row that must agree, spaces apart."""
SHAPE = 14
"""Tokens in a row that must agree, names apart."""

Shape = tuple[str | int, ...]

_OPERATORS = re.compile(r"[=<>+*%&|^@\[\]{}]")
_MIN_SYMBOLS = 5
_MOST_STARTS = 8
"""Places in a reference that repeats itself which are tried: hostile ones would take time without end."""
_KNOWN = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins)))
_KNOWN |= {name.lower() for name in _KNOWN}


def letters(text: str) -> str:
    """The text without spaces."""
    return "".join(text.split())


class Spelling:
    """The letters of a reference's code, indexed."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        # Honest people quote literals, too; a null byte separates the text before and after one.
        texts = ["\0" if token.text.startswith('"') else letters(token.text) for token in tokens]
        self._tokens = tokens
        self._text = "".join(texts)
        self._owner = [position for position, text in enumerate(texts) for _ in text]
        self._length = [len(text) for text in texts]
        self._starts: dict[str, list[int]] = {}
        for at in range(len(self._text) - LETTERS + 1):
            self._starts.setdefault(self._text[at : at + LETTERS], []).append(at)

    def find(self, text: str, known: str) -> Iterator[tuple[str, set[int]]]:
        """Pieces of the text with what they cover of the reference, unless they are `known`."""
        at = 0 if _OPERATORS.search(text) else len(text)
        while at <= len(text) - LETTERS:
            starts = self._starts.get(text[at : at + LETTERS])
            if starts is None:
                at += 1
                continue
            size, start = max((self._agreement(text, at, each), each) for each in starts[:_MOST_STARTS])
            piece, covered = text[at : at + size], self._covered(start, start + size)
            heavy = weight([self._tokens[each] for each in covered]) >= MIN_WEIGHT
            if heavy and _OPERATORS.search(piece) and piece not in known:
                yield piece, covered
            at += size

    def _agreement(self, text: str, at: int, start: int) -> int:
        size = LETTERS
        while (
            at + size < len(text)
            and start + size < len(self._text)
            and text[at + size] == self._text[start + size]
        ):
            size += 1
        return size

    def _covered(self, start: int, end: int) -> set[int]:
        """The tokens that lie entirely within the piece."""
        owners = Counter(self._owner[start:end])
        return {owner for owner, count in owners.items() if count == self._length[owner]}


def shapes(tokens: Sequence[Token]) -> Iterator[tuple[int, Shape]]:
    """The shape of every run of tokens that is long enough and has enough symbols, with where it starts."""
    for start in range(len(tokens) - SHAPE + 1):
        run = tokens[start : start + SHAPE]
        if sum(not token.word for token in run) >= _MIN_SYMBOLS and any(token.symbolic for token in run):
            yield start, _shape(run)


def _shape(run: Sequence[Token]) -> Shape:
    numbers: dict[str, int] = {}
    shape: list[str | int] = []
    before = ""
    for token in run:
        renamed = token.text.isidentifier() and token.text not in _KNOWN and before != "."
        shape.append(numbers.setdefault(token.text, len(numbers)) if renamed else token.text)
        before = token.text
    return tuple(shape)
