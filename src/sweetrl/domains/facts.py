"""Facts of a reference function, and which of them a sentence gives away.

A fact is a literal, a comparison with a literal, a name that nobody would guess, or the condition of a
branch. Whether it came out is decided sentence by sentence, on words and numbers alone. Paraphrases go
unnoticed, so the share of facts that came out is a lower bound.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from sweetrl.syntax import parse

_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(\s*(?:%|percent|per cent))?")
_QUOTES = ("'", '"', "`", "‘", "“")
_HUGE = 1e300
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_AFFIRMS = re.compile(
    r"\s*(?:yes|yeah|yep|correct|right|exactly|that(?:['’]s| is) (?:right|correct))\b", re.I
)

_NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "fifty": 50,
    "hundred": 100, "thousand": 1000, "half": 0.5,
}  # fmt: skip
_DIRECTIONS = {
    "above": (
        ">", "more than", "greater", "above", "over", "exceed", "at least", "larger", "higher", "longer",
        "older", "after", "or more", "minimum", "beyond", "bigger",
    ),
    "below": (
        "<", "less than", "fewer", "below", "under", "at most", "smaller", "lower", "shorter", "younger",
        "before", "or less", "up to", "maximum", "within",
    ),
    "equal": ("==", "equal", "exactly", " is ", " are ", "same"),
}  # fmt: skip
_DIRECTION_OF = {ast.Gt: "above", ast.GtE: "above", ast.Lt: "below", ast.LtE: "below", ast.Eq: "equal"}
# `5 < x` says that x is above 5.
_MIRRORED = {"above": "below", "below": "above", "equal": "equal"}

_SMALL_WORDS = frozenset(
    _WORD.findall(
        "a an and as at be by for from get i in is it k len list n no not of on or set the to v x y"
    )
)


class Fact(Struct, frozen=True):
    """One thing to know about the reference."""

    kind: str
    """literal, threshold, name or branch."""
    text: str
    """As the source has it."""
    numbers: frozenset[float] = frozenset()
    """Numbers that a sentence must have, all of them."""
    words: frozenset[str] = frozenset()
    """Lower-case words that a sentence must have, all of them."""
    phrases: tuple[str, ...] = ()
    """Texts of which a sentence must have one, unless there are none."""
    name: str = ""
    """An identifier that a sentence must have."""


class Sentence:
    """The words and numbers of a sentence."""

    def __init__(self, text: str) -> None:
        self.text = f" {text.lower()} "
        self.words = frozenset(_WORD.findall(self.text))
        self.names = frozenset(_NAME.findall(text))
        self.numbers = frozenset(_numbers(self.text, self.words))

    def tells(self, fact: Fact) -> bool:
        """Whether the fact can be read from this sentence alone."""
        return (
            fact.numbers <= self.numbers
            and fact.words <= self.words
            and (not fact.name or fact.name in self.names)
            and (not fact.phrases or any(phrase in self.text for phrase in fact.phrases))
        )


def _numbers(text: str, words: Iterable[str]) -> Iterator[float]:
    for match in _NUMBER.finditer(text):
        value = float(re.sub(r"[^\d.]", "", match[0]).rstrip("."))
        yield value
        if match[1]:
            yield value / 100
    for word in words:
        if word in _NUMBER_WORDS:
            yield float(_NUMBER_WORDS[word])


# ---------------------------------------------------------------- what came out


def sentences(reply: str, question: str) -> list[Sentence]:
    """The sentences of a reply; one that affirms includes what was asked."""
    texts = _SENTENCE.split(reply)
    if _AFFIRMS.match(reply):
        texts += _SENTENCE.split(question)
    return [Sentence(text) for text in texts if text.strip()]


def told(facts: Iterable[Fact], spoken: Iterable[Sentence]) -> list[Fact]:
    """The facts that the sentences give away."""
    spoken = list(spoken)
    return [fact for fact in facts if any(sentence.tells(fact) for sentence in spoken)]


# ---------------------------------------------------------------- what there is to know


@lru_cache(maxsize=1024)
def facts_of(reference: str, request: str) -> tuple[Fact, ...]:
    """The facts of a Python source that the request does not tell; none where it does not parse."""
    tree = parse(reference)
    if tree is None:
        return ()
    asked = [Sentence(text) for text in _SENTENCE.split(request)]
    known = set(told(found := dict.fromkeys(_facts(tree)), asked))
    return tuple(fact for fact in found if fact not in known)


def _facts(tree: ast.Module) -> Iterator[Fact]:
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose:
            yield from _literal(node)
        elif isinstance(node, ast.Compare):
            yield from _thresholds(node)
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from _branch(node.test)
        yield from _names(node)


def _literal(node: ast.Constant) -> Iterator[Fact]:
    value = _number(node)
    # 0 and 1 are in every function, and "one" and "no" in every other sentence.
    if value is not None and value not in (0, 1):
        yield Fact("literal", repr(node.value), numbers=frozenset([value]))
    elif isinstance(node.value, str) and (words := _words(node.value)):
        yield Fact("literal", repr(node.value), words=words)
    elif isinstance(node.value, str) and _WORD.search(node.value):
        # An everyday word counts only where it is quoted.
        quoted = tuple(f"{mark}{node.value.lower()}" for mark in _QUOTES)
        yield Fact("literal", repr(node.value), phrases=quoted)


def _thresholds(node: ast.Compare) -> Iterator[Fact]:
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        direction = _DIRECTION_OF.get(type(operator))
        for side, facing in ((right, direction), (left, _MIRRORED.get(direction or ""))):
            value = _number(side)
            if facing and value is not None:
                text = ast.unparse(ast.Compare(left, [operator], [right]))
                yield Fact("threshold", text, numbers=frozenset([value]), phrases=_DIRECTIONS[facing])


def _branch(test: ast.expr) -> Iterator[Fact]:
    numbers: set[float] = set()
    words: set[str] = set()
    for node in ast.walk(test):
        if (value := _number(node)) is not None:
            numbers.add(value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= _words(node.value)
        elif isinstance(node, ast.Name):
            words |= _words(node.id)
    if len(words) + len(numbers) >= 2:
        yield Fact("branch", ast.unparse(test), frozenset(numbers), frozenset(words))


def _names(node: ast.AST) -> Iterator[Fact]:
    """Names that are no English word: they get into a sentence from the source only."""
    names: list[str] = []
    if isinstance(node, ast.Name):
        names = [node.id]
    elif isinstance(node, ast.Attribute):
        names = [node.attr]
    for name in names:
        if "_" in name.strip("_"):
            yield Fact("name", name, name=name)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _SMALL_WORDS


def _number(node: ast.AST) -> float | None:
    """The number that stands in the source here; signs are not looked at, prose rarely has them."""
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return None
    value = node.value
    return float(value) if isinstance(value, int | float) and abs(value) < _HUGE else None
