"""Hidden tests as data: which functions they are about."""

import ast
import functools
import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeGuard

from sweetrl.domains.backend.splits import BUILTINS
from sweetrl.syntax import parse, parse_expression

_SIGNATURE = re.compile(r"\bdef\s+([A-Za-z_]\w*)\s*\(")


def main_function(request: str, tests: Mapping[str, str]) -> str:
    """The function that the task is about: the last one whose signature is in the request, else the most called."""
    functions = task_functions(request, tests)
    return functions[-1] if functions else ""


def task_functions(request: str, tests: Mapping[str, str]) -> list[str]:
    """The functions that an answer must have: those in the request that tests call or pass on, else the most called."""
    counts = called_names(tests)
    signatures = [str(name) for name in _SIGNATURE.findall(request)]
    mentioned = {name for expression in tests.values() for name in _names(expression)}
    return (
        [name for name in signatures if name in counts]
        or [name for name in signatures if name in mentioned]
        or [name for name, _ in counts.most_common(1)]
    )


@functools.lru_cache(maxsize=1 << 14)
def as_expression(test: str) -> str:
    """A test as an expression: `assert f(1) == 2, "why"` asks for the truth of `f(1) == 2`."""
    tree = parse(test.strip()) if test.lstrip().startswith("assert") else None
    try:
        claims = (
            [ast.unparse(node.test) for node in tree.body if isinstance(node, ast.Assert)] if tree else []
        )
    except (ValueError, RecursionError):
        return test  # some f-strings of a tree cannot be written down again; some trees are too deep
    if tree is None or len(claims) != len(tree.body):
        return test
    return " and ".join(f"bool({claim})" for claim in claims)


def functions_of(expression: str, wanted: frozenset[str]) -> frozenset[str]:
    """The functions that a test asks the answer for: those wanted that it mentions, else all that it calls."""
    return wanted & _names(expression) or _subjects(expression)


def called_names(tests: Mapping[str, str]) -> Counter[str]:
    """How many tests are about each function name (the innermost call of each, `print(f(x))` is about f)."""
    return Counter(name for expression in tests.values() for name in _subjects(expression))


@functools.lru_cache(maxsize=1 << 14)
def _subjects(expression: str) -> frozenset[str]:
    tree = parse_expression(as_expression(expression))
    names = {node.func.id for node in ast.walk(tree) if _is_named_call(node)} if tree else set()
    return frozenset(names - BUILTINS or names)


@functools.lru_cache(maxsize=1 << 14)
def _names(expression: str) -> frozenset[str]:
    tree = parse_expression(as_expression(expression))
    return (
        frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) if tree else frozenset()
    )


class _NamedCall(ast.Call):
    """A call of a function by its name; for the type checker only."""

    func: ast.Name


def _is_named_call(tree: ast.AST) -> TypeGuard[_NamedCall]:
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
