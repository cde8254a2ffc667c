"""Parsing text that may be Python, or anything else."""

import ast
import warnings
from threading import Lock

_PARSING = Lock()
"""CPython 3.11 counts the depth of a tree under construction for all threads together, so that now and then one of two
that parse at a time fails with a `SystemError`. Which warnings are ignored is common to all threads, too."""


def parse(source: str) -> ast.Module | None:
    """The syntax tree; None if the text is no Python."""
    tree = _parsed(source, "exec")
    return tree if isinstance(tree, ast.Module) else None


def parse_expression(source: str) -> ast.expr | None:
    """The syntax tree of a single expression; None if the text is not one."""
    tree = _parsed(source.strip(), "eval")
    return tree.body if isinstance(tree, ast.Expression) else None


def _parsed(source: str, mode: str) -> ast.AST | None:
    with _PARSING, warnings.catch_warnings():
        # An invalid escape sequence in a string is not an error here.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source, mode=mode)
        # Text can also hold null bytes, or be nested too deeply.
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
