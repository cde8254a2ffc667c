"""What a reference offers its tests besides the functions that they are about: imports and helpers.

A test such as `close(f(1), 2)` or `f(datetime(2024, 1, 1))` uses names that an answer need not have. What they
mean is what they mean in the reference.
"""

import ast
import functools
import re
from collections.abc import Iterator

from sweetrl.domains.backend.splits import HARMLESS_MODULES
from sweetrl.syntax import parse, parse_expression

# What can turn a text into code, into a name or into a file.
_RISKY = frozenset(
    """__builtins__ __import__ __loader__ breakpoint compile delattr eval exec getattr globals input locals open
    setattr vars""".split()  # noqa: SIM905
)
_MODULES_OF_HELPERS = HARMLESS_MODULES | frozenset(
    "__future__ abc bisect contextlib copy dataclasses enum heapq textwrap typing".split()  # noqa: SIM905
)


@functools.lru_cache(maxsize=1 << 10)
def harmless_helpers(source: str) -> frozenset[str]:
    """The functions and classes of a source that can be given an answer's values; none if any of it is risky."""
    tree = parse(source)
    if tree is None or not _is_harmless(tree):
        return frozenset()
    return frozenset(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))


def _is_harmless(tree: ast.Module) -> bool:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = {
        module.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or "."]
        )
    }
    return not names & _RISKY and modules <= _MODULES_OF_HELPERS


def mentions(expression: str, names: frozenset[str]) -> bool:
    """Whether any of the names may be in an expression."""
    return not names.isdisjoint(re.findall(r"\w+", expression))


@functools.lru_cache(maxsize=1 << 14)
def with_imports(expression: str, source: str) -> str:
    """The expression with the names that a source imports spelled out: it then needs no imports of an answer."""
    tree = parse_expression(expression)
    imports = _import_expressions(source)
    if tree is None or not mentions(expression, frozenset(imports)):
        return expression
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    free = {name: text for name, text in imports.items() if name not in bound}
    try:
        return ast.unparse(_SpelledOut(free).visit(tree))
    except (ValueError, RecursionError):
        return expression  # some f-strings cannot be written down again; some trees are too deep


class _SpelledOut(ast.NodeTransformer):
    def __init__(self, imports: dict[str, str]) -> None:
        self._imports = imports

    def visit_Name(self, node: ast.Name) -> ast.AST:
        written = self._imports.get(node.id)
        return node if written is None else ast.parse(written, mode="eval").body


@functools.lru_cache(maxsize=1 << 10)
def _import_expressions(source: str) -> dict[str, str]:
    """By name, for everything that a source imports at its top level."""
    tree = parse(source)
    return dict(found for node in (tree.body if tree else ()) for found in _imported(node))


def _imported(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = ", None, None, ['']" if alias.asname else ""
            yield alias.asname or alias.name.split(".")[0], f"__import__({alias.name!r}{whole})"
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            if alias.name != "*":
                written = f"__import__({node.module!r}, None, None, [{alias.name!r}]).{alias.name}"
                yield alias.asname or alias.name, written
