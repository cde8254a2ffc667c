"""Tests that look at what a call has changed: `f(x := [3, 1]) is None and x == [1, 3]`.

Calls and variables are evaluated together, in the order of the test, beside the answer; what the test makes of their
values is evaluated elsewhere. Objects such as the `x` of `(x := F(), x.add(1), x.size == 1)[-1]` have no plain form and
stay beside the answer; only what the test asks them for, here `x.size`, leaves it.
"""

import ast
import copy

_QUESTIONS = frozenset("bool dict float int len list repr set sorted str sum tuple".split())  # noqa: SIM905
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def calls_and_variables(
    tree: ast.expr, functions: frozenset[str], answer: str, *, objects: bool
) -> tuple[ast.expr, ast.expr] | None:
    """All calls and variables of a test as one tuple, and the test with the items of `answer` in their places.

    Of `objects` it is what the test asks them for, such as `x.size`, instead of themselves.
    None for a test that has no variables besides its calls, or has calls in loops.
    """
    if not any(isinstance(node, (ast.NamedExpr, ast.Lambda)) for node in ast.walk(tree)):
        return None  # most tests: the copy below would cost them as much as all else
    flat = _WithoutLambdas().visit(copy.deepcopy(tree))
    variables = {node.target.id for node in ast.walk(flat) if isinstance(node, ast.NamedExpr)}
    if not variables or any(_may_repeat(node, functions, variables) for node in _scopes(flat)):
        return None
    taken = (_TakenFromObjects if objects else _Taken)(functions, variables, answer)
    rest = taken.visit(copy.deepcopy(flat))
    if not taken.calls or not taken.reads or _mentions(rest, functions | variables):
        return None
    return ast.Tuple(taken.nodes, ast.Load()), rest


def _scopes(tree: ast.expr) -> list[ast.AST]:
    return [node for node in ast.walk(tree) if isinstance(node, _SCOPES)]


def _may_repeat(scope: ast.AST, functions: frozenset[str], variables: set[str]) -> bool:
    """Whether a loop or a lambda has calls or bindings in it: how often, and of what, is not known before."""
    inside = list(ast.walk(scope))
    bound = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in inside if isinstance(node, ast.arg)}
    return _mentions(scope, functions) or not bound.isdisjoint(variables)


def _mentions(tree: ast.AST, names: frozenset[str] | set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(tree))


class _WithoutLambdas(ast.NodeTransformer):
    """Writes `(lambda x: y)(z)` as `((x := z), y)[-1]`."""

    def visit_Call(self, call: ast.Call) -> ast.AST:
        self.generic_visit(call)
        made = call.func
        if not isinstance(made, ast.Lambda) or call.keywords or len(made.args.args) != len(call.args):
            return call
        given = made.args
        if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or given.defaults:
            return call
        bound = [
            ast.NamedExpr(ast.Name(each.arg, ast.Store()), value)
            for each, value in zip(given.args, call.args, strict=True)
        ]
        return ast.Subscript(ast.Tuple([*bound, made.body], ast.Load()), ast.Constant(-1), ast.Load())


class _Taken(ast.NodeTransformer):
    """Takes the outermost calls, bindings and variables out of a test."""

    def __init__(self, functions: frozenset[str], variables: set[str], answer: str) -> None:
        self._functions = functions
        self._variables = variables
        self._answer = answer
        self.nodes: list[ast.expr] = []
        self.calls = self.reads = 0

    def visit_Call(self, call: ast.Call) -> ast.AST:
        if not isinstance(call.func, ast.Name) or call.func.id not in self._functions:
            return self.generic_visit(call)
        self.calls += 1
        return self._take(call)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        self.calls += _mentions(node, self._functions)
        return self._take(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._variables:
            return node
        self.reads += 1
        return self._take(node)

    def _take(self, node: ast.expr) -> ast.AST:
        self.nodes.append(node)
        place = f"{self._answer}[{len(self.nodes) - 1}]"
        return ast.parse(place, mode="eval").body


class _TakenFromObjects(_Taken):
    """Takes what is asked of the objects, and no object."""

    def __init__(self, functions: frozenset[str], variables: set[str], answer: str) -> None:
        super().__init__(functions, variables, answer)
        self._unused: set[int] = set()
        self._conditions: set[int] = set()

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.expr) or not _mentions(node, self._functions | self._variables):
            return node
        nothing = ast.Subscript(
            ast.Tuple([node, ast.Constant(None)], ast.Load()), ast.Constant(-1), ast.Load()
        )
        taken: ast.expr = node
        if id(node) in self._unused:
            taken = nothing
        elif not self._is_asked(node):
            found: ast.AST = super().visit(node)
            return found
        elif id(node) in self._conditions:
            taken = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node))
        elif isinstance(node, ast.NamedExpr):
            taken = nothing
        self.calls += _mentions(node, self._functions)
        self.reads += _mentions(node, self._variables)
        return self._take(taken)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """All items of `(a, b)[-1]` are evaluated, and one is used."""
        at = _constant(node.slice)
        if isinstance(node.value, (ast.Tuple, ast.List)) and isinstance(at, int):
            items = node.value.elts
            if -len(items) <= at < len(items):
                self._unused.update(id(each) for each in items if each is not items[at])
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self._conditions.update(map(id, node.values[:-1]))
        return self.generic_visit(node)

    def _is_asked(self, node: ast.expr) -> bool:
        """Whether it is a binding, or what a call or a variable is asked for: `len(x)`, `x.size`, `f(1).add(2)[0]`."""
        match node:
            case ast.Call(func=ast.Name(name), args=[ast.Name(variable)]) if name in _QUESTIONS:
                return variable in self._variables
        root = _root(node)
        names = self._functions | self._variables
        return isinstance(root, ast.NamedExpr) or (isinstance(root, ast.Name) and root.id in names)


def _constant(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _root(node: ast.AST) -> ast.AST:
    """What attributes, items and calls are taken of."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node
