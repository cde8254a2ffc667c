"""Code in colour: just enough to find one's way, in one pass over the text."""

import re
from collections.abc import Iterator
from typing import Literal

from sweetrl.report.markup import Markup, element, join

Language = Literal["python", "html", "text"]

_KEYWORDS = (
    "and as assert async await break class continue def del elif else except finally for from global if import in "
    "is lambda nonlocal not or pass raise return try while with yield None True False"
)
_PYTHON = re.compile(
    r"(?P<comment>#[^\n]*)"
    r"|(?P<string>[rbfuRBFU]{0,2}(?:"
    r'"""(?s:.*?)(?:"""|\Z)|' r"'''(?s:.*?)(?:'''|\Z)|"
    r'"(?:\\.|[^"\\\n])*"?|' r"'(?:\\.|[^'\\\n])*'?))"
    r"|(?P<number>\b\d[\d_.]*(?:[eE][+-]?\d+)?\b)"
    rf"|(?P<keyword>\b(?:{_KEYWORDS.replace(' ', '|')})\b)"
    r"|(?P<name>(?<=\bdef )\w+|(?<=\bclass )\w+)"
)  # fmt: skip
_HTML = re.compile(
    r"(?P<comment><!--(?s:.*?)(?:-->|\Z))"
    r"|(?P<keyword></?[A-Za-z!][\w:-]*|/?>)"
    r"|(?P<string>(?<==)\"[^\"]*\"?|(?<==)'[^']*'?)"
)
_PATTERNS: dict[Language, re.Pattern[str]] = {"python": _PYTHON, "html": _HTML}
_LOOKS_LIKE_HTML = re.compile(
    r"<(?:!doctype|html|head|body|div|p|h[1-6]|section|style|script)\b", re.IGNORECASE
)


def language_of(code: str) -> Language:
    """What a piece of code is written in, by its look."""
    return "html" if _LOOKS_LIKE_HTML.search(code) else "python"


def highlight(code: str, language: Language) -> Markup:
    """The code with its words in classes: comment, string, number, keyword, name."""
    pattern = _PATTERNS.get(language)
    return join([code]) if pattern is None else join(_pieces(code, pattern))


def _pieces(code: str, pattern: re.Pattern[str]) -> Iterator[str]:
    position = 0
    for found in pattern.finditer(code):
        yield code[position : found.start()]
        yield element("span", found[0], class_=f"code-{found.lastgroup}")
        position = found.end()
    yield code[position:]
