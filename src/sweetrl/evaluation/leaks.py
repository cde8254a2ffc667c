"""Finds code of the reference in what a collaborator says.

Two detectors mark tokens of the reference as carried by a reply. Token n-grams find copied text, whatever its
layout. Parsed code finds expressions and statements that are too short for n-grams, or differ in quotes,
spaces and brackets. Neither counts what was in the request or what the agent said first, nor English: a match
without any symbol of code is an accident of language.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from sweetrl.syntax import parse
from sweetrl.types import BackendSecret, Message, Role, Task

GRAM = 4
"""Tokens that must agree in a row. Shorter copies are left to the parser."""
LONG_RUN = 10
"""Tokens in a row that are no accident even without a symbol of code."""
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

MAX_RUN = 40
"""Longest run of known tokens in plain prose that is parsed; a longer one is a copy, which n-grams find."""
_TRIM = 3
"""Words of prose that may cling to either end of unmarked code."""

_PUNCTUATION = frozenset(".,:;!?'\"()-/…’“”")
"""Symbols that prose has too. Between two words without a space, `.` and `(` are code all the same."""
_LAYOUT = frozenset("()[]{},.:")
_PAGE_TEXT = re.compile(r"(?<=>)[^<>]+(?=<)")
_FENCE = re.compile(r"```[\w+-]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_COMPOUND = re.compile(r"(if|elif|else|for|while|with|try|except|finally|def|class)\b.*:\s*$", re.DOTALL)


class Token(NamedTuple):
    """One token of code or speech."""

    text: str
    start: int
    end: int
    word: bool
    """A name or a literal."""
    symbolic: bool
    """Something that prose does not have."""


class Leak(NamedTuple):
    """What one reply carries of the reference."""

    fragments: tuple[str, ...]
    """The pieces of the reply in question."""
    carried: frozenset[int]
    """Positions of the reference's tokens."""


# ---------------------------------------------------------------- tokens


def tokenize(text: str) -> list[Token]:
    """The tokens of speech."""
    return list(_tokens(_SPOKEN, text))


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


def _grams(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[shift:] for shift in range(GRAM)), strict=False)


# ---------------------------------------------------------------- the reference


class _Span(NamedTuple):
    start: int
    end: int
    weight: int
    symbolic: bool


class Reference:
    """The code that must not be told, indexed for search."""

    def __init__(self, source: str, *, is_page: bool = False) -> None:
        """The tags of a page are its code, and the text between them is not."""
        tree = None if is_page else parse(source)
        prose = [match.span() for match in _PAGE_TEXT.finditer(source)] if is_page else []
        if tree is not None:
            prose = list(_docstrings(tree, source))
        found = _tokens(_SOURCE, source)
        self.tokens = [token for token in found if not any(a <= token.start < b for a, b in prose)]
        self.texts = [token.text for token in self.tokens]
        self.vocabulary = frozenset(self.texts)
        self.grams: dict[tuple[str, ...], list[int]] = {}
        for position, gram in enumerate(_grams(self.texts)):
            self.grams.setdefault(gram, []).append(position)
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
        weight = _weight(span)
        # A hyphen or a slash is an operator once it stands in code that was parsed.
        symbolic = any(token.symbolic or token.text in ("-", "/") for token in span)
        if weight >= MIN_WEIGHT:
            self.nodes.setdefault(key, []).append(_Span(start, end, weight, symbolic))


def reference_of(task: Task) -> Reference:
    """The index of a task's reference; kept, because a task has many replies."""
    if isinstance(task.secret, BackendSecret):
        return _reference(task.secret.reference, is_page=False)
    return _reference(task.secret.page, is_page=True)


@lru_cache(maxsize=1024)
def _reference(source: str, *, is_page: bool) -> Reference:
    return Reference(source, is_page=is_page)


def _docstrings(tree: ast.Module, source: str) -> Iterator[tuple[int, int]]:
    """Where strings stand as statements: prose in the clothes of code."""
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
    """What the agent knew already: the request, and its own words."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._grams: set[tuple[str, ...]] = set()
        self._stream = "\x00"
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """One more message."""
        tokens = [token.text for token in tokenize(text)]
        self._grams.update(_grams(tokens))
        self._stream += "\x00".join(tokens) + "\x00"

    def has_gram(self, gram: tuple[str, ...]) -> bool:
        """Whether these tokens occurred in a row."""
        return gram in self._grams

    def has(self, tokens: Sequence[str]) -> bool:
        """Whether these tokens occurred in a row, however many."""
        return "\x00".join(("", *tokens, "")) in self._stream


# ---------------------------------------------------------------- the search


def find_leak(reference: Reference, text: str, said: Said) -> Leak:
    """What the reply `text` carries of the reference beyond what was `said`."""
    tokens = _spoken_tokens(reference, text)
    fragments: dict[str, None] = {}
    carried: set[int] = set()
    for start, end, positions in _copied_runs(reference, tokens, said):
        fragments[text[tokens[start].start : tokens[end - 1].end]] = None
        carried |= positions
    for source, marked in _candidates(reference, text, tokens):
        for span in _known_code(reference, source, said, marked=marked):
            fragments[source] = None
            carried |= set(range(span.start, span.end))
    return Leak(tuple(fragments), frozenset(carried))


def leaks_code(task: Task, history: Sequence[Message], text: str) -> bool:
    """Whether the reply `text` to `history` carries code of the task's reference."""
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


def _spoken_tokens(reference: Reference, text: str) -> list[Token]:
    """The tokens of a reply. A quotation that is no literal of the reference may hold code: look inside."""
    found: list[Token] = []
    for token in tokenize(text):
        if token.text[0] == '"' and len(token.text) > 1 and token.text not in reference.vocabulary:
            inside = text[token.start + 1 : token.end - 1]
            found += _tokens(_SPOKEN, inside, offset=token.start + 1)
        else:
            found.append(token)
    return found


def _copied_runs(
    reference: Reference, tokens: Sequence[Token], said: Said
) -> Iterator[tuple[int, int, set[int]]]:
    """Maximal runs of the reply, first and last token, with what they cover of the reference."""
    grams = list(_grams([token.text for token in tokens]))
    fresh = [at for at, gram in enumerate(grams) if gram in reference.grams and not said.has_gram(gram)]
    for _, group in groupby(enumerate(fresh), key=lambda pair: pair[1] - pair[0]):
        run = [at for _, at in group]
        if _is_code(tokens[run[0] : run[-1] + GRAM]):
            hits = [hit for at in run for hit in reference.grams[grams[at]]]
            yield run[0], run[-1] + GRAM, {hit + shift for hit in hits for shift in range(GRAM)}


def _is_code(run: Sequence[Token]) -> bool:
    if len(run) >= LONG_RUN:
        return True
    return any(token.symbolic for token in run) and _weight(run) >= MIN_WEIGHT


def _weight(tokens: Sequence[Token]) -> int:
    return sum(token.word or token.text not in _LAYOUT for token in tokens)


# ---------------------------------------------------------------- parsed code


def _candidates(reference: Reference, text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, bool]]:
    """Pieces of a reply that may be code, and whether the speaker marked them as such."""
    for match in _FENCE.finditer(text):
        yield from ((line.strip(), True) for line in match[1].splitlines() if line.strip())
    for match in _INLINE.finditer(text):
        yield match[1].strip(), True
    for start, end in _known_runs(reference, tokens):
        yield text[tokens[start].start : tokens[end - 1].end], False


def _known_runs(reference: Reference, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Runs of tokens that the reference has too, long enough to be code and with a symbol in them."""
    known = [token.text in reference.vocabulary for token in tokens]
    for is_known, group in groupby(range(len(tokens)), key=known.__getitem__):
        run = list(group)
        symbols = any(not tokens[at].word and tokens[at].text not in ".,:;!?" for at in run)
        if is_known and symbols and MIN_WEIGHT <= len(run) <= MAX_RUN:
            yield run[0], run[-1] + 1


def _known_code(reference: Reference, source: str, said: Said, *, marked: bool) -> Iterator[_Span]:
    """Where the code in `source` stands in the reference."""
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
