"""Parsing text that may be Python, or anything else."""

import ast
import warnings


def parse(source: str) -> ast.Module | None:
    """The syntax tree; None if the text is no Python."""
    with warnings.catch_warnings():
        # An odd escape in someone's string is neither our reader's business nor an error.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        # Text can also hold null bytes, or be nested too deeply.
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
