"""Which part of a hidden test runs beside the answer, and which part is evaluated out of its reach.

`len(f(x)) == 3` is split into its *subject* `f(x)`, evaluated in the answer's process, and its *rest*
`len(answer_value) == 3`, evaluated on the decoded value in a process that never runs the answer. An object with an
`__eq__` or `__len__` of its own therefore decides nothing. The part of a rest that calls the reference
(`== helper(2)`) is its *known* part, evaluated beside the reference.

A subject that has no plain form (a generator, an object) is widened by the operations around it, one at a time:
`list(f(x)) == [1]` becomes `answer_value == [1]`. `ways_to_split` lists all widths; the scorer takes the first one that
gives the reference the result of the whole test.
"""

import ast
import builtins
import copy
import functools
from collections.abc import Iterator

from msgspec import Struct

from sweetrl.domains.backend.changes import calls_and_variables
from sweetrl.syntax import parse, parse_expression

ANSWER, KNOWN = "answer_value", "known_value"
"""The names under which a rest finds the decoded values."""

_MOST_WIDTHS = 8
BUILTINS = frozenset(dir(builtins))
# No eval, getattr, open and the like: a rest must not turn the answer's text into code or into names.
_HARMLESS = frozenset(
    """abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float frozenset hash hex int
    isinstance issubclass iter len list map max min next object oct ord pow print range repr reversed round set slice
    sorted str sum tuple type zip""".split()  # noqa: SIM905
)
HARMLESS_MODULES = frozenset(
    """calendar collections datetime decimal fractions functools itertools json math numpy operator random re statistics
    string""".split()  # noqa: SIM905
)
_NOT_ALONE = (ast.Starred, ast.FormattedValue, ast.Slice)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Split(Struct, frozen=True):
    """One way to share a test between the answer's process and ours."""

    subject: str
    """The expression that the answer's process evaluates."""
    rest: str | None = None
    """The test with `answer_value` for its subject; None if the subject is the whole test."""
    known: str = ""
    """The expression for the values of the reference that the rest uses, as `known_value`; empty for none."""


@functools.lru_cache(maxsize=1 << 14)
def ways_to_split(
    expression: str,
    functions: frozenset[str],
    imported: frozenset[str],
    helpers: frozenset[str] = frozenset(),
) -> tuple[Split, ...]:
    """The smallest subject first; the whole expression last.

    Rests may use what is `imported`, and `helpers` of the reference where their values have no plain form.
    """
    whole = Split(expression.strip())
    tree = parse_expression(expression)
    if tree is None:
        return (whole,)
    plain = _with_plain_lambdas(tree, functions)
    tests = [_Test(plain, functions, names) for names in dict.fromkeys((imported, imported | helpers))]
    found = [test.split(width) for width in range(_MOST_WIDTHS) for test in tests]
    found[len(tests) : len(tests)] = map(tests[-1].split_by_variables, (False, True))
    return (*dict.fromkeys(split for split in found if split is not None), whole)


def harmless_imports(source: str) -> dict[str, str]:
    """The import statement of each name that the source imports from a harmless module of the standard library."""
    tree = parse(source)
    found = {}
    for node in tree.body if tree else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in HARMLESS_MODULES:
                    found[alias.asname or alias.name.split(".")[0]] = ast.unparse(ast.Import([alias]))
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                if node.module.split(".")[0] in HARMLESS_MODULES:
                    found[alias.asname or alias.name] = ast.unparse(ast.ImportFrom(node.module, [alias], 0))
    return found


class _Test:
    """The tree of a test, with the way up from each node."""

    def __init__(self, tree: ast.expr, functions: frozenset[str], imported: frozenset[str]) -> None:
        self._tree = tree
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._ours = imported | _HARMLESS | _bound_names(tree)
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self._anchors = [node for node in names if node.id in functions]
        self._bindings = [node for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)]
        self._foreign = _foreign(tree, self._ours | functions)

    def split(self, width: int) -> Split | None:
        """Split the test at subjects of `width` operations; None if that leaves nothing outside, or is impossible."""
        subjects = self._outermost([self._subject(anchor, width) for anchor in self._anchors])
        if not subjects or subjects == [self._tree]:
            return None
        inside = {node for subject in subjects for node in ast.walk(subject)}
        known = self._outermost([self._without_anchors(name) for name in self._foreign if name not in inside])
        places = self._places(ANSWER, subjects) | self._places(KNOWN, known)
        try:
            rest = copy.deepcopy(self._tree, dict(places))
            if self._has_anchor(*map(self._repeated, known)) or not self._harmless(rest):
                return None
            return Split(self._joined(subjects), ast.unparse(rest), self._joined(known))
        except (ValueError, RecursionError):
            return None  # some f-strings of a tree cannot be written down again; some trees are too deep

    def split_by_variables(self, objects: bool) -> Split | None:  # noqa: FBT001
        """The test split at all its calls and variables, for calls that change what they are given."""
        functions = frozenset(anchor.id for anchor in self._anchors)
        found = calls_and_variables(self._tree, functions, ANSWER, objects=objects)
        try:
            return Split(*map(ast.unparse, found)) if found and self._harmless(found[1]) else None
        except (ValueError, RecursionError):
            return None

    def _subject(self, anchor: ast.expr, width: int) -> ast.expr:
        node = anchor
        if not self._is_bare(anchor):
            node = next(self._ancestors(anchor))
            width -= any(map(self._is_bare, self._anchors))
        for parent in self._ancestors(node):
            if isinstance(parent, ast.Lambda) and self._calls_of(parent) is None:
                node = parent  # its body is no expression that has a value by itself
        for _, parent in zip(range(width), self._ancestors(node), strict=False):
            node = parent
        return node

    def _is_bare(self, anchor: ast.expr) -> bool:
        """Whether a function is not called, but handed on: it has no plain form, and is one operation ahead."""
        above = self._parents.get(anchor)
        return not (isinstance(above, ast.Call) and above.func is anchor)

    def _without_anchors(self, name: ast.expr) -> ast.expr:
        """The largest part of the test around a name that does not call the answer."""
        node = name
        for parent in self._ancestors(name):
            if self._has_anchor(parent):
                break
            node = parent
        return node

    def _ancestors(self, node: ast.AST) -> Iterator[ast.expr]:
        """The expressions around a node that have values by themselves, from the inside out."""
        at = self._parents.get(node)
        while at is not None:
            if isinstance(at, ast.expr) and not isinstance(at, _NOT_ALONE):
                yield at
            at = self._parents.get(at)

    def _outermost(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """The nodes that lie in no other one of them, in the order of the test."""
        distinct = sorted(dict.fromkeys(nodes), key=lambda node: (node.lineno, node.col_offset))
        return [node for node in distinct if not any(parent in distinct for parent in self._ancestors(node))]

    def _has_anchor(self, *trees: ast.expr) -> bool:
        names = {anchor.id for anchor in self._anchors}
        return any(
            isinstance(node, ast.Name) and node.id in names for tree in trees for node in ast.walk(tree)
        )

    def _harmless(self, rest: ast.expr) -> bool:
        return not _foreign(rest, self._ours | {ANSWER, KNOWN})

    def _places(self, name: str, nodes: list[ast.expr]) -> dict[int, ast.expr]:
        """The expression that stands for each node's value in the rest, by the identity of the node."""
        places: dict[int, ast.expr] = {}
        for index, node in enumerate(nodes):
            place = name if len(nodes) == 1 else f"{name}[{index}]"
            if self._generators(node):
                place += ".pop(0)"  # the value of this turn of the comprehension
            bound = [each for each in self._bindings if each in ast.walk(node)]
            places[id(node)] = _after(bound, ast.parse(place, mode="eval").body)
        return places

    def _joined(self, nodes: list[ast.expr]) -> str:
        texts = [ast.unparse(self._repeated(node)) for node in nodes]
        return f"({', '.join(texts)})" if len(texts) > 1 else "".join(texts)

    def _repeated(self, node: ast.expr) -> ast.expr:
        """The node, or the list of its values where a comprehension evaluates it more than once."""
        generators = self._generators(node)
        if generators:
            node = ast.ListComp(self._after_bindings(node, looped=True), generators)
        return self._after_bindings(node, looped=False)

    def _after_bindings(self, node: ast.expr, *, looped: bool) -> ast.expr:
        """The node after the `:=`, in a loop or not, whose names it uses."""
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return _after(
            [
                each
                for each in self._bindings
                if each.target.id in used and each not in ast.walk(node) and node not in ast.walk(each)
                if bool(self._generators(each)) is looped
            ],
            node,
        )

    def _generators(self, node: ast.expr) -> list[ast.comprehension]:
        """The loops of all comprehensions around a node, as far as they have come when it is evaluated."""
        found: list[ast.comprehension] = []
        below: ast.AST = node
        at = self._parents.get(node)
        while at is not None:
            if isinstance(at, _COMPREHENSIONS):
                found = _generators_before(at, below, node, self._parents) + found
            elif isinstance(at, ast.Lambda):
                found = (self._calls_of(at) or []) + found
            below, at = at, self._parents.get(at)
        return found

    def _calls_of(self, function: ast.Lambda) -> list[ast.comprehension] | None:
        """The loop whose turns are the calls of a lambda, in their order; None if it is not known."""
        above = self._parents.get(function)
        call = self._parents.get(above) if isinstance(above, ast.keyword) else above
        values = _called_with(function, call) if isinstance(call, ast.Call) else None
        given = function.args
        if values is None or given.defaults or given.kw_defaults or given.vararg or given.kwarg:
            return None
        names: list[ast.expr] = [
            ast.Name(each.arg, ast.Store()) for each in (*given.posonlyargs, *given.args)
        ]
        target = names[0] if len(names) == 1 else ast.Tuple(names, ast.Store())
        return [ast.comprehension(target, values, [], 0)]


def _foreign(tree: ast.expr, ours: frozenset[str]) -> list[ast.Name]:
    """The names that are not ours, but for the `__import__` of a harmless module."""
    imports = [
        call.func
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and not call.keywords
        for module in call.args[:1]
        if isinstance(module, ast.Constant) and module.value in HARMLESS_MODULES and len(call.args) == 1
    ]
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id not in ours]
    return [node for node in names if node.id != "__import__" or node not in imports]


def _after(bindings: list[ast.NamedExpr], node: ast.expr) -> ast.expr:
    """The value of the node, evaluated after the bindings."""
    if not bindings:
        return node
    return ast.Subscript(ast.Tuple([*bindings, node], ast.Load()), ast.Constant(-1), ast.Load())


def _with_plain_lambdas(tree: ast.expr, functions: frozenset[str]) -> ast.expr:
    """The test with its lambdas called with all arguments in order; arguments that are functions are put in."""
    if not any(isinstance(node, ast.Lambda) for node in ast.walk(tree)):
        return tree
    try:
        written = ast.unparse(_PlainLambdas(functions).visit(copy.deepcopy(tree)))
    except (ValueError, RecursionError):
        return tree
    return parse_expression(written) or tree


class _PlainLambdas(ast.NodeTransformer):
    def __init__(self, functions: frozenset[str]) -> None:
        self._functions = functions

    def visit_Call(self, call: ast.Call) -> ast.AST:
        if isinstance(call.func, ast.Lambda) and (values := _arguments(call.func, call)) is not None:
            functions = {
                name: value.id
                for name, value in values.items()
                if isinstance(value, ast.Name) and value.id in self._functions
            }
            if not functions.keys() & _bound_names(call.func.body):
                for node in ast.walk(call.func.body):
                    if isinstance(node, ast.Name):
                        node.id = functions.get(node.id, node.id)
                values = {name: value for name, value in values.items() if name not in functions}
            names = ast.arguments(
                [], [ast.arg(name) for name in values], kwonlyargs=[], kw_defaults=[], defaults=[]
            )
            call = ast.Call(ast.Lambda(names, call.func.body), list(values.values()), [])
        return self.generic_visit(call)


def _arguments(function: ast.Lambda, call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments of each parameter of a lambda; None if they are not known before the call."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args)]
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    if given.kwarg or starred or None in (keyword.arg for keyword in call.keywords):
        return None
    values = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
    values |= {
        each.arg: value for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value
    }
    values |= dict(zip(names, call.args))  # noqa: B905  more of them go to a starred parameter
    values |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    if given.vararg:
        values[given.vararg.arg] = ast.Tuple(call.args[len(names) :], ast.Load())
    wanted = [*names, *(each.arg for each in (*given.kwonlyargs, *filter(None, [given.vararg])))]
    return {name: values[name] for name in wanted} if values.keys() == set(wanted) else None


def _called_with(function: ast.Lambda, call: ast.Call) -> ast.expr | None:
    """The iterable whose elements are a lambda's arguments, if a call applies it to known values."""
    if any(isinstance(value, ast.Starred) for value in call.args):
        return None
    if call.func is function and not call.keywords:
        return ast.List(
            [call.args[0] if len(call.args) == 1 else ast.Tuple(call.args, ast.Load())], ast.Load()
        )
    match call:
        case ast.Call(func=ast.Name("map" | "filter"), args=[first, values]) if first is function:
            return values
        case ast.Call(func=ast.Name("map"), args=[first, *several]) if first is function:
            return ast.Call(ast.Name("zip", ast.Load()), several, [])
        case ast.Call(func=ast.Name("sorted" | "min" | "max"), args=[values]):
            return values
        case ast.Call(func=ast.Name("min" | "max"), args=several):
            return ast.List(several, ast.Load())
    return None


def _generators_before(
    whole: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
    below: ast.AST,
    node: ast.AST,
    parents: dict[ast.AST, ast.AST],
) -> list[ast.comprehension]:
    """The loops of one comprehension that run before its part `below`, in which `node` lies, is evaluated."""
    if not isinstance(below, ast.comprehension):
        return whole.generators
    path = {node}
    while parents[node] is not below:
        node = parents[node]
        path.add(node)
    before = whole.generators[: whole.generators.index(below)]
    if below.iter in path:
        return before
    conditions = below.ifs[: next(at for at, each in enumerate(below.ifs) if each in path)]
    return [*before, ast.comprehension(below.target, below.iter, conditions, below.is_async)]


def _bound_names(tree: ast.expr) -> frozenset[str]:
    """The names that a test binds itself: in comprehensions, lambdas, and by `:=`."""
    stored = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(stored | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)})
