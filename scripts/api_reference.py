"""The reference of the public API in Markdown: `python scripts/api_reference.py > docs/api.md`.

Everything is read from the sources, so that the page is the same under every version of Python.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import sweetrl

INTRODUCTION = """\
# Python API

Written by `make docs` from the docstrings; do not edit. Everything here is a name of `sweetrl` itself:
`import sweetrl`, then `sweetrl.rollout`. Nothing is imported before it is used, and PyTorch only by what needs it.

A function that waits has an async twin, `rollout_async` for `rollout`, with the same arguments. The plain one works
in a notebook too, where an event loop is running. A mistake of the caller is a `UsageError` with one line that says
what to do; a dialogue or an answer that fails is a record with a `failure`.

`Tasks` stands for a list of `Task`, a file, or the name of a generator (`mini-backend:test:500`); `Episodes` for a list
of `Episode` or a file. Models, collaborators and critics are objects of yours or names, as on the command line:
`openai:MODEL@URL`, `hf:PATH_OR_ID`, `scripted:NAME`, `mini`.
"""

SECTIONS = {
    "Functions": ("sweetrl.api", "sweetrl.models", "sweetrl.seeds"),
    "Credit for logs": ("sweetrl.evaluation", "sweetrl.domains.logged"),
    "Dialogues": ("sweetrl.dialogue",),
    "Domains": ("sweetrl.domains", "sweetrl.settings"),
    "Interfaces": ("sweetrl.protocols",),
    "Sandbox": ("sweetrl.sandbox",),
    "Prompts": ("sweetrl.prompts",),
    "Records": ("sweetrl.types",),
    "Errors": ("sweetrl.errors",),
}
TABLES = ("Domains", "Records", "Errors")
"""Sections with one line a name."""
IN_DETAIL = ("Domain", "Labels", "Prompts", "TaskWriter")
"""Names of tables whose fields are shown too: those that people fill in themselves."""


def reference() -> str:
    """The whole page."""
    public = {name: getattr(sweetrl, name) for name in sweetrl.__all__ if name != "__version__"}
    pages = [INTRODUCTION]
    for title, homes in SECTIONS.items():
        found = {name: each for name, each in public.items() if each.__module__.startswith(homes)}
        body = _table(found) if title in TABLES else "\n".join(map(_entry, found, found.values()))
        pages.append(f"## {title}\n\n{body}")
        for name in found:
            public.pop(name)
    assert not public, f"in no section: {', '.join(public)}"
    return "\n".join(pages)


def _table(found: dict[str, Any]) -> str:
    rows = "\n".join(f"| `{name}` | {_sentence(each)} |" for name, each in found.items())
    pages = {"Task": "Fields and formats: [{0}]({0}).", "Domain": "How to write one: [{0}]({0})."}
    files = {"Task": "data-formats.md", "Domain": "domains.md"}
    more = next((pages[name].format(files[name]) for name in pages if name in found), "")
    details = "".join(f"\n{_entry(name, found[name])}" for name in IN_DETAIL if name in found)
    return f"| | |\n|---|---|\n{rows}\n" + (f"\n{more}\n" if more else "") + details


def _entry(name: str, thing: Any) -> str:
    if inspect.isfunction(thing):
        if name.endswith("_async"):
            return f"### `{name}`\n\nThe async twin of `{name.removesuffix('_async')}`.\n"
        return f"### `{name}`\n\n```text\n{_signature(_tree(thing), name)}\n```\n\n{inspect.getdoc(thing)}\n"
    members = "\n".join(_members(_tree(thing)))
    return f"### `{name}`\n\n{inspect.getdoc(thing)}\n\n```text\n{members}\n```\n"


def _members(tree: Any) -> Iterator[str]:
    """The constructor, the fields, and each public method with the first line of its docstring."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign):
            yield ast.unparse(node) + _comment(after)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == "__init__":
                yield _signature(node, tree.name, skip_self=True)
            elif not node.name.startswith("_"):
                prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
                is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
                shown = node.name if is_property else _signature(node, node.name, skip_self=True)
                yield f"{prefix}{shown}\n    # {(ast.get_docstring(node) or '').splitlines()[0]}"


def _comment(node: ast.stmt | None) -> str:
    """The docstring of a field, which stands below it, as a comment."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return ""
    return f"\n    # {' '.join(str(node.value.value).split())}"


def _signature(node: Any, name: str, *, skip_self: bool = False) -> str:
    arguments = [each.strip() for each in _arguments(node.args)][skip_self:]
    returns = (
        "" if node.returns is None or node.name == "__init__" else f" -> {_plain(ast.unparse(node.returns))}"
    )
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){returns}"


def _arguments(given: ast.arguments) -> Iterator[str]:
    """The arguments as they are written, one by one."""
    defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    yield from map(_argument, given.args, defaults)
    if given.vararg is not None:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    yield from map(_argument, given.kwonlyargs, given.kw_defaults)
    if given.kwarg is not None:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    typed = "" if argument.annotation is None else f": {_plain(ast.unparse(argument.annotation))}"
    value = "" if default is None else f" = {ast.unparse(default)}"
    return f"{argument.arg}{typed}{value}"


def _plain(annotation: str) -> str:
    return annotation.strip("'")


def _tree(thing: Any) -> Any:
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
    return ast.parse(source).body[0]


def _sentence(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").splitlines()[0]


if __name__ == "__main__":
    sys.stdout.write(reference())
