"""Backend tasks in the words of a language model: what it must reply with, and when two of them are the same."""

import ast
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sweetrl.domains.backend.calls import called_names
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.leaks.detection import leaks_code
from sweetrl.syntax import parse, parse_expression
from sweetrl.types import NonEmpty, Secret, Task

CALLS = 10
"""As many as a ColBench task has; further calls that a model writes are ignored."""
FEWEST_CALLS = 5


class _Written(Struct):
    function: NonEmpty
    request: NonEmpty
    calls: Annotated[list[NonEmpty], Meta(min_length=FEWEST_CALLS)]


def read_draft(text: str) -> tuple[str, Secret]:
    """Request and secret from a model's reply; a `ValueError` explains in a few words why there are none."""
    written = _decoded(text)
    main = _main_function(written)
    tests = {f"test{number}": call for number, call in enumerate(written.calls[:CALLS], start=1)}
    secret = BackendSecret(reference=ast.unparse(_without_docstrings(written.function)), tests=tests)
    request = f"{written.request.strip()}\n\nThe function should be called as {_signature(main)}"
    _refuse_giveaway(written.request, secret)
    return request, secret


def normal_form(secret: BackendSecret) -> str:
    """The reference without names, layout and docstrings: the same for tasks that differ in nothing else."""
    tree = parse(secret.reference)
    if tree is None:
        return secret.reference
    return ast.dump(_Anonymous().visit(tree))


def _decoded(text: str) -> _Written:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("no JSON")
    try:
        return msgspec.json.decode(text[start : end + 1], type=_Written)
    except msgspec.ValidationError as error:
        raise ValueError(f"wrong JSON: {error}") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise ValueError("no JSON") from None


def _main_function(written: _Written) -> ast.FunctionDef:
    tree = parse(written.function)
    if tree is None:
        raise ValueError("the function is not Python")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = written.calls[:CALLS]
    if not all(parse_expression(call) for call in calls):
        raise ValueError("a call is not an expression")
    called = called_names({str(number): call for number, call in enumerate(calls)})
    name = next((name for name, count in called.most_common() if name in functions), None)
    if name is None or called[name] < len(calls):
        raise ValueError("not every call calls the function")
    return functions[name]


def _signature(function: ast.FunctionDef) -> str:
    """`name(a, b=1)`, without the types, which tell too much."""
    arguments = ast.parse(f"def f({ast.unparse(function.args)}): ...").body[0]
    assert isinstance(arguments, ast.FunctionDef)
    for argument in ast.walk(arguments.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"`{function.name}({ast.unparse(arguments.args)})`."


def _without_docstrings(source: str) -> ast.Module:
    """They would hand the decisions to whoever sees a single line of the reference."""
    tree = parse(source)
    assert tree is not None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _refuse_giveaway(request: str, secret: BackendSecret) -> None:
    task = Task(id="draft", domain="backend", request="-", secret=secret)
    if leaks_code(task, [], request):
        raise ValueError("the request gives code away")


class _Anonymous(ast.NodeTransformer):
    """Names by the order in which they first appear."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._anonymous(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg, node.annotation = self._anonymous(node.arg), None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name, node.returns = self._anonymous(node.name), None
        return self.generic_visit(node)

    def _anonymous(self, name: str) -> str:
        return self._names.setdefault(name, f"name{len(self._names)}")
