"""Syntax highlighting by Pygments, in the classes of the report's own stylesheet."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from sweetrl.report.markup import Markup, element, join, with_plain_newlines

Language = str
"""As Pygments and the labels of domains call it: `python`, `html`, `sql`, or `text` for none."""

_CLASSES = (
    (Token.Comment, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "name"),
)
_LOOKS_LIKE_HTML = re.compile(
    r"<(?:!doctype|html|head|body|div|p|h[1-6]|section|style|script)\b", re.IGNORECASE
)


def language_of(code: str) -> Language:
    """The language of a piece of code, by its look."""
    return "html" if _LOOKS_LIKE_HTML.search(code) else "python"


def highlight(code: str, language: Language) -> Markup:
    """The code with its tokens in classes: comment, string, number, keyword, name."""
    lexer = _lexer(language)
    return join([code] if lexer is None else _spans(with_plain_newlines(code), lexer))


@cache
def _lexer(language: Language) -> Any:
    if language == "text":
        return None
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


def _spans(code: str, lexer: Any) -> Iterator[str]:
    tokens = ((_class(kind), token) for _, kind, token in lexer.get_tokens_unprocessed(code))
    for name, group in groupby(tokens, key=itemgetter(0)):
        piece = "".join(token for _, token in group)
        yield piece if name is None else element("span", piece, class_=f"code-{name}")


def _class(kind: Any) -> str | None:
    return next((name for token, name in _CLASSES if kind in token), None)
