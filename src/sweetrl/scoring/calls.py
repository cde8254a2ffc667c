"""Hidden tests as data: which function they are about, and what of them may run beside the answer.

Most tests are plain calls. Some say `f(...) == 3`: evaluated beside the answer, its own `__eq__` would decide,
so such a test is split, and only the side with the call is left to the answer's process.
"""

import ast
import builtins
import functools
import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeGuard

from msgspec import Struct

from sweetrl.syntax import parse_expression

_SIGNATURE = re.compile(r"\bdef\s+([A-Za-z_]\w*)\s*\(")


class HiddenCall(Struct, frozen=True):
    """One hidden test."""

    name: str
    subject: str
    """The expression that the answer's process evaluates."""
    other: str | None = None
    """The other side of a comparison, which the reference's process evaluates; None for a plain call."""
    plain: bool = True
    """Whether the subject is a call of a named function and nothing around it."""


def split_calls(tests: Mapping[str, str]) -> tuple[HiddenCall, ...]:
    """The hidden tests, in order."""
    return tuple(_split(name, expression) for name, expression in tests.items())


@functools.lru_cache(maxsize=1 << 14)
def _split(name: str, expression: str) -> HiddenCall:
    tree = parse_expression(expression)
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], (ast.Eq, ast.NotEq)):
        left, right = tree.left, tree.comparators[0]
        if not _has_call(left):
            left, right = right, left
        return HiddenCall(name, ast.unparse(left), ast.unparse(right), _is_plain(left))
    return HiddenCall(name, expression.strip(), None, _is_plain(tree))


def main_function(request: str, tests: Mapping[str, str]) -> str:
    """The function that the task is about: the one in the request's signature, else the one most tests call."""
    counts = called_names(tests)
    named = [name for name in _SIGNATURE.findall(request) if name in counts]
    if named:
        return str(named[-1])
    return counts.most_common(1)[0][0] if counts else ""


def called_names(tests: Mapping[str, str]) -> Counter[str]:
    """How many tests are about each function name (the innermost call of each, `print(f(x))` is about f)."""
    return Counter(name for expression in tests.values() for name in _subjects(expression))


@functools.lru_cache(maxsize=1 << 14)
def _subjects(expression: str) -> frozenset[str]:
    tree = parse_expression(expression)
    names = {node.func.id for node in ast.walk(tree) if _is_named_call(node)} if tree else set()
    return frozenset(names - _BUILTINS or names)


_BUILTINS = frozenset(dir(builtins))


def _is_plain(tree: ast.AST | None) -> bool:
    return tree is not None and _is_named_call(tree) and tree.func.id not in _BUILTINS


class _NamedCall(ast.Call):
    """A call of a function by its name; for the type checker only."""

    func: ast.Name


def _is_named_call(tree: ast.AST) -> TypeGuard[_NamedCall]:
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)


def _has_call(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(tree))
