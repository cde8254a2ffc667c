"""Finds code of the reference in a collaborator's replies.

Detectors mark tokens of the reference that a reply reveals. Token n-grams find copied text, whatever its
layout. Parsed code finds expressions and statements that are too short for n-grams, or differ in quotes,
spaces and brackets. Letters and shapes find code that was spelt out or renamed. All look at the reply and at
what is left of it without disguises, in lower case. None counts what was in the request or what the agent said
first, nor English: a match without any symbol of code is an accident of language.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from sweetrl.domains.leaks.code_tokens import (
    GRAM,
    MIN_WEIGHT,
    Token,
    grams,
    tokenize,
    tokenize_source,
    weight,
)
from sweetrl.domains.leaks.disguises import normal, undisguised
from sweetrl.domains.leaks.shapes import SHAPE, Shape, Spelling, letters, shapes
from sweetrl.domains.registry import domain_of, reference_text
from sweetrl.syntax import parse
from sweetrl.types import Message, Role, Task

LONG_RUN = 10
"""Tokens in a row that are no accident even without a symbol of code."""

MAX_RUN = 40
"""Longest run of known tokens in plain prose that is parsed; a longer one is a copy, which n-grams find."""
_TRIM = 3
"""Words of prose that may cling to either end of unmarked code."""

_PAGE_TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
_FENCE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_CODE_LIKE = re.compile(r"[=<>+*%_\[\]{}]|\w[.(]\w")
_LINE = re.compile(r"\S(?:[^\n]*\S)?")
_INLINE = re.compile(r"(?<!`)`[ \t]*([^`\n]+?)[ \t]*`(?!`)")
_COMPOUND = re.compile(r"(if|elif|else|for|while|with|try|except|finally|def|class)\b.*:\s*$", re.DOTALL)


class Leak(NamedTuple):
    """The parts of the reference in one reply."""

    fragments: tuple[str, ...]
    """The pieces of the reply in question."""
    carried: frozenset[int]
    """Positions of the reference's tokens."""


# ---------------------------------------------------------------- the reference


class _Span(NamedTuple):
    start: int
    end: int
    weight: int
    symbolic: bool


class Reference:
    """The code that must not be revealed, indexed for search."""

    def __init__(self, source: str, *, is_page: bool = False) -> None:
        """The tags of a page are its code, and the text between them is not."""
        source = _folded(source)
        tree = None if is_page else parse(source)
        prose = [match.span() for match in _PAGE_TEXT.finditer(source)] if is_page else []
        if tree is not None:
            prose = list(_docstrings(tree, source))
        found = tokenize_source(source)
        self.tokens = [token for token in found if not any(a <= token.start < b for a, b in prose)]
        self.texts = [token.text for token in self.tokens]
        self.vocabulary = frozenset(self.texts)
        self.grams: dict[tuple[str, ...], list[int]] = {}
        for position, gram in enumerate(grams(self.texts)):
            self.grams.setdefault(gram, []).append(position)
        self.spelling = Spelling(self.tokens)
        self.shapes: dict[Shape, list[int]] = {}
        for position, shape in shapes(self.tokens) if tree is not None else ():
            self.shapes.setdefault(shape, []).append(position)
        self.nodes: dict[int, list[_Span]] = {}
        if tree is not None:
            self._index(tree, source)

    def _index(self, tree: ast.AST, source: str) -> None:
        position_of = _Positions(source)
        starts = {token.start: position for position, token in enumerate(self.tokens)}
        ends = {token.end: position + 1 for position, token in enumerate(self.tokens)}
        for node, key in _keyed(tree):
            if isinstance(node, ast.stmt | ast.expr) and node.end_lineno and node.end_col_offset is not None:
                start = starts.get(position_of(node.lineno, node.col_offset))
                end = ends.get(position_of(node.end_lineno, node.end_col_offset))
                if start is not None and end is not None:
                    self._add(key, start, end)

    def _add(self, key: int, start: int, end: int) -> None:
        span = self.tokens[start:end]
        heavy = weight(span)
        # A hyphen or a slash is an operator once it stands in code that was parsed.
        symbolic = any(token.symbolic or token.text in ("-", "/") for token in span)
        if heavy >= MIN_WEIGHT:
            self.nodes.setdefault(key, []).append(_Span(start, end, heavy, symbolic))


def reference_of(task: Task) -> Reference:
    """The index of a task's reference; kept, because a task has many replies."""
    return _indexed(domain_of(task).leak_index or Reference, reference_text(task))


def page_reference(page: str) -> Reference:
    """The index of a page, of which the tags alone are code."""
    return Reference(page, is_page=True)


@lru_cache(maxsize=1024)
def _indexed(index: Callable[[str], Reference], text: str) -> Reference:
    return index(text)


def _docstrings(tree: ast.Module, source: str) -> Iterator[tuple[int, int]]:
    """The places of strings used as statements: prose disguised as code."""
    position_of = _Positions(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            yield position_of(node.lineno, node.col_offset), position_of(node.end_lineno, node.end_col_offset)


class _Positions:
    """Turns the line and UTF-8 column of `ast` into a position in the text."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def __call__(self, line: int, column: int) -> int:
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        inside = column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))
        return self._starts[line - 1] + inside


def _keyed(tree: ast.AST) -> list[tuple[ast.AST, int]]:
    """Every node with a key that equal code shares, children before parents. Valid in this process only."""
    found: list[tuple[ast.AST, int]] = []

    def key_of(value: object) -> object:
        if isinstance(value, ast.expr_context):
            return None
        if isinstance(value, ast.AST):
            key = hash(
                (type(value).__name__, *(key_of(getattr(value, name, None)) for name in value._fields))
            )
            found.append((value, key))
            return key
        if isinstance(value, list):
            return tuple(key_of(item) for item in value)
        return f"{type(value).__name__}:{value}"

    key_of(tree)
    return found


# ---------------------------------------------------------------- what was said before


class Said:
    """What the agent knew already: the request and its own words."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._grams: set[tuple[str, ...]] = set()
        self._shapes: set[Shape] = set()
        self._stream = "\x00"
        self.letters = ""
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """One more message."""
        for version in dict.fromkeys((_folded(text), _folded(normal(text)))):
            tokens = tokenize(version)
            texts = [token.text for token in tokens]
            self._grams.update(grams(texts))
            self._shapes.update(shape for _, shape in shapes(tokens))
            self._stream += "\x00".join(texts) + "\x00"
            self.letters += letters(version) + "\x00"

    def has_gram(self, gram: tuple[str, ...]) -> bool:
        """Whether these tokens occurred in a row."""
        return gram in self._grams

    def has_shape(self, shape: Shape) -> bool:
        """Whether code of this shape occurred."""
        return shape in self._shapes

    def has(self, tokens: Sequence[str]) -> bool:
        """Whether these tokens occurred in a row, however many."""
        return "\x00".join(("", *tokens, "")) in self._stream


# ---------------------------------------------------------------- the search


def find_leak(reference: Reference, text: str, said: Said) -> Leak:
    """The parts of the reference in the reply `text`, beyond those already `said`."""
    fragments: dict[str, None] = {}
    carried: set[int] = set()
    for number, version in enumerate(undisguised(text, reference.vocabulary)):
        if number and not _CODE_LIKE.search(version):
            continue  # most replies are prose, and prose is prose in any order
        for fragment, positions in _pieces(reference, version, said):
            if not positions <= carried:
                fragments[fragment] = None
                carried |= positions
    return Leak(tuple(fragments), frozenset(carried))


def _pieces(reference: Reference, text: str, said: Said) -> Iterator[tuple[str, set[int]]]:
    """Pieces of the text with what they carry of the reference."""
    shown, text = text, _folded(text)
    tokens = _spoken_tokens(reference, text)
    for start, end, positions in _copied_runs(reference, tokens, said):
        yield shown[tokens[start].start : tokens[end - 1].end], positions
    for start, end, marked in _candidates(reference, text, tokens) if reference.nodes else ():
        for span in _known_code(reference, text[start:end], said, marked=marked):
            yield shown[start:end], set(range(span.start, span.end))
    for start, positions in _renamed_runs(reference, tokens, said):
        yield shown[tokens[start].start : tokens[start + SHAPE - 1].end], positions
    yield from reference.spelling.find(letters(text), said.letters)


def leaks_code(task: Task, history: Sequence[Message], text: str) -> bool:
    """Whether the reply `text` to `history` contains code of the task's reference."""
    said = Said(message.text for message in history if message.role is Role.ASSISTANT)
    said.add(task.request)
    return bool(find_leak(reference_of(task), text, said).carried)


def secret_positions(reference: Reference, request: str) -> frozenset[int]:
    """The tokens of the reference that the request does not give away."""
    said = Said([request])
    known: set[int] = set()
    for gram, positions in reference.grams.items():
        if said.has_gram(gram):
            known.update(position + shift for position in positions for shift in range(GRAM))
    return frozenset(range(len(reference.tokens))) - known


def _folded(text: str) -> str:
    """The text in lower case, every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


def _spoken_tokens(reference: Reference, text: str) -> list[Token]:
    """The tokens of a reply. A quotation that is no literal of the reference may hold code: look inside."""
    found: list[Token] = []
    for token in tokenize(text):
        if token.text[0] == '"' and len(token.text) > 1 and token.text not in reference.vocabulary:
            inside = text[token.start + 1 : token.end - 1]
            found += tokenize(inside, offset=token.start + 1)
        else:
            found.append(token)
    return found


def _copied_runs(
    reference: Reference, tokens: Sequence[Token], said: Said
) -> Iterator[tuple[int, int, set[int]]]:
    """Maximal runs of the reply, first and last token, with what they cover of the reference."""
    spoken = list(grams([token.text for token in tokens]))
    fresh = [at for at, gram in enumerate(spoken) if gram in reference.grams and not said.has_gram(gram)]
    for _, group in groupby(enumerate(fresh), key=lambda pair: pair[1] - pair[0]):
        run = [at for _, at in group]
        if _is_code(tokens[run[0] : run[-1] + GRAM]):
            hits = [hit for at in run for hit in reference.grams[spoken[at]]]
            yield run[0], run[-1] + GRAM, {hit + shift for hit in hits for shift in range(GRAM)}


def _renamed_runs(
    reference: Reference, tokens: Sequence[Token], said: Said
) -> Iterator[tuple[int, set[int]]]:
    """Runs of the reply that the reference has under other names. Those with the same names are copied runs."""
    for start, shape in shapes(tokens) if reference.shapes else ():
        texts = [token.text for token in tokens[start : start + SHAPE]]
        hits = () if said.has_shape(shape) else reference.shapes.get(shape, ())
        for hit in hits:
            if reference.texts[hit : hit + SHAPE] != texts:
                yield start, set(range(hit, hit + SHAPE))


def _is_code(run: Sequence[Token]) -> bool:
    if len(run) >= LONG_RUN:
        return True
    return any(token.symbolic for token in run) and weight(run) >= MIN_WEIGHT


# ---------------------------------------------------------------- parsed code


def _candidates(reference: Reference, text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, bool]]:
    """The places of a reply that may be code, and whether the speaker marked them as such."""
    for block in _FENCE.finditer(text):
        yield from ((*line.span(), True) for line in _LINE.finditer(text, *block.span(1)))
    for inline in _INLINE.finditer(text):
        yield *inline.span(1), True
    for start, end in _known_runs(reference, tokens):
        yield tokens[start].start, tokens[end - 1].end, False


def _known_runs(reference: Reference, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Runs of tokens that the reference has too, long enough to be code and with a symbol in them."""
    known = [token.text in reference.vocabulary for token in tokens]
    for is_known, group in groupby(range(len(tokens)), key=known.__getitem__):
        run = list(group)
        symbols = any(not tokens[at].word and tokens[at].text not in ".,:;!?" for at in run)
        if is_known and symbols and MIN_WEIGHT <= len(run) <= MAX_RUN:
            yield run[0], run[-1] + 1


def _known_code(reference: Reference, source: str, said: Said, *, marked: bool) -> Iterator[_Span]:
    """The places of the reference at which the code in `source` occurs."""
    tree = _parsed_piece(source, trim=0 if marked else _TRIM)
    if tree is None:
        return
    for _, key in _keyed(tree):
        for span in reference.nodes.get(key, ()):
            texts = reference.texts[span.start : span.end]
            if (marked or span.symbolic) and not said.has(texts):
                yield span


def _parsed_piece(source: str, *, trim: int) -> ast.Module | None:
    """The piece as Python, without up to `trim` words of prose at either end."""
    words = source.split()
    for dropped in range(trim + 1):
        for front in range(dropped + 1):
            piece = " ".join(words[front : len(words) - (dropped - front)]) if dropped else source
            if piece and (tree := parse(_completed(piece))) is not None:
                return tree
    return None


def _completed(piece: str) -> str:
    """The head of a compound statement gets a body, so that it parses alone."""
    piece = piece.removeprefix("el") if piece.startswith("elif ") else piece
    return f"{piece} pass" if _COMPOUND.match(piece) else piece.rstrip(".,;!?")
