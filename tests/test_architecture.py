"""Who may import whom: the layers of ARCHITECTURE.md, read from the sources with `ast`."""

import ast
import resource
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median

import pytest

import sweetrl

PACKAGE = Path(sweetrl.__file__).parent

LAYERS = (
    {"errors", "types"},
    {"interrupts", "outputs", "prompts", "protocols", "records", "seeds", "settings", "syntax"},
    {"browser", "models", "sandbox"},
    {"domains"},
    {"dialogue", "evaluation", "learning", "preferences"},
    {"candidates", "critics"},
    {"report"},
    {"api"},
    {"experiments", "integrations"},
    {"viewer"},
    {"cli"},
    {"__main__"},
)
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}

TORCH_STACK = {"accelerate", "datasets", "peft", "torch", "transformers"}


def part_of(module: str) -> str:
    """`records` of `sweetrl.records`, `scoring` of `sweetrl.domains.backend.scorer`, nothing of `sweetrl`."""
    return module.removeprefix("sweetrl").lstrip(".").split(".")[0]


def imported(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that a statement imports, relative ones resolved against `package`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: 1 - node.level or None] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        # `from sweetrl import records` names the module only in its second half.
        yield from (f"{base}.{alias.name}" if base == "sweetrl" else base for alias in node.names)


def at_import_time(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported: everything outside functions and blocks for type checkers."""
    for child in ast.iter_child_nodes(tree):
        typing_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not typing_only and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import_time(child)


def offences(relative: str, source: str) -> list[str]:
    """What is wrong with the imports of `src/sweetrl/<relative>`."""
    tree = ast.parse(source)
    module = "sweetrl." + relative.removesuffix(".py").replace("/", ".")
    package, own = module.rpartition(".")[0], part_of(module)
    inside = {name for node in ast.walk(tree) for name in imported(node, package) if is_ours(name)}
    outside = {name.split(".")[0] for node in at_import_time(tree) for name in imported(node, package)}
    found = [complaint for name in sorted(inside) if (complaint := layer_offence(own, part_of(name)))]
    if own != "learning" and not relative.startswith("models/local/"):
        found += [f"{name} at the top of a module" for name in sorted(outside & TORCH_STACK)]
    if own == "cli" and "numpy" in outside:
        found.append("numpy at the top of a command")
    return found


def is_ours(name: str) -> bool:
    return name.split(".")[0] == "sweetrl"


def layer_offence(own: str, other: str) -> str | None:
    if own not in LEVEL:
        return f"{own} has no layer"
    if own == other or (own == "cli" and other == "__version__"):
        return None
    if other not in LEVEL:
        return f"{own} imports {other or 'the package itself'}, which has no layer"
    if LEVEL[other] >= LEVEL[own]:
        return f"{own} imports {'sideways' if LEVEL[other] == LEVEL[own] else 'upwards'}: {other}"
    return None


SOURCES = sorted(
    path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE
) + sorted(path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("relative", SOURCES)
def test_imports_go_down_the_layers(relative: str) -> None:
    assert offences(relative, (PACKAGE / relative).read_text()) == []


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {part_of("sweetrl." + relative.removesuffix(".py").replace("/", ".")) for relative in SOURCES} <= (
        LEVEL.keys()
    )


def test_importing_the_package_imports_nothing() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    assert [name for node in at_import_time(tree) for name in imported(node, "sweetrl")] == []


@pytest.mark.parametrize(
    ("relative", "source", "complaint"),
    [
        ("types.py", "from sweetrl.records import open_log", "types imports upwards: records"),
        ("records.py", "import sweetrl.protocols", "records imports sideways: protocols"),
        ("records.py", "from sweetrl import cli", "records imports upwards: cli"),
        ("experiments/runner.py", "from sweetrl.cli import console", "experiments imports upwards: cli"),
        (
            "evaluation/metrics.py",
            "from sweetrl.dialogue import rules",
            "evaluation imports sideways: dialogue",
        ),
        ("domains/sources.py", "from ..dialogue.rules import x", "domains imports upwards: dialogue"),
        ("domains/sources.py", "from .. import cli", "domains imports upwards: cli"),
        ("domains/sources.py", "def f():\n    import sweetrl.cli.main", "domains imports upwards: cli"),
        ("domains/sources.py", "from sweetrl import score", "domains imports score, which has no layer"),
        ("helpers.py", "import sweetrl.types", "helpers has no layer"),
        ("domains/colbench.py", "import torch.nn as nn", "torch at the top of a module"),
        (
            "domains/colbench.py",
            "if True:\n    from transformers import X",
            "transformers at the top of a module",
        ),
        ("models/openai.py", "import torch", "torch at the top of a module"),
        ("cli/score.py", "import numpy as np", "numpy at the top of a command"),
    ],
)
def test_an_offending_import_is_caught(relative: str, source: str, complaint: str) -> None:
    assert offences(relative, source) == [complaint]


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("domains/sources.py", "from sweetrl.types import Task\nfrom sweetrl.sandbox import pool"),
        ("domains/sources.py", "from .compare import equal\nfrom . import compare"),
        ("learning/trainer.py", "import torch"),
        ("models/local/network.py", "import torch"),
        ("models/base.py", "if TYPE_CHECKING:\n    import torch"),
        ("models/scripted.py", "def load():\n    import torch"),
        ("cli/score.py", "from sweetrl import __version__\ndef run():\n    import numpy"),
    ],
)
def test_a_permitted_import_is_not(relative: str, source: str) -> None:
    assert offences(relative, source) == []


# ---------------------------------------------------------------- domains are asked, not told apart

DOMAIN_NAMES = {"backend", "chat", "frontend"}


def domain_branches(relative: str, source: str) -> list[str]:
    """Where a module outside `domains/` tells tasks apart instead of asking their domain."""
    if part_of("sweetrl." + relative.removesuffix(".py").replace("/", ".")) == "domains":
        return []
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name | ast.Attribute | ast.BoolOp | ast.Compare | ast.Call | ast.Subscript)
        and _tells_domains_apart(node)
    ]


def _tells_domains_apart(node: ast.AST) -> bool:
    match node:
        case ast.Name("Kind") | ast.Attribute(attr="Kind"):
            return True
        case ast.Compare(ast.Attribute(attr="rule")):  # of pairing: two rules bear the names of domains
            return False
        case ast.Compare():
            return any(_names_a_domain(each) for each in (node.left, *node.comparators))
        case ast.Subscript(slice=ast.Constant(value)):
            return value in DOMAIN_NAMES
        case ast.Subscript(slice=ast.Tuple(elements)):
            return all(isinstance(each, ast.Constant) and each.value in DOMAIN_NAMES for each in elements)
        case ast.BoolOp(values=values):  # `name or "backend"`: the registry knows what is usual
            return any(isinstance(each, ast.Constant) and each.value in DOMAIN_NAMES for each in values)
        case ast.Call(ast.Name("isinstance"), [subject, *_]):
            return "secret" in ast.unparse(subject)
        case ast.Call(ast.Attribute(attr="startswith"), arguments):
            return any(_names_a_domain(each) for each in arguments)
    return False


def _names_a_domain(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Constant) and each.value in DOMAIN_NAMES for each in ast.walk(node))


@pytest.mark.parametrize("relative", SOURCES)
def test_no_module_outside_domains_tells_them_apart(relative: str) -> None:
    assert domain_branches(relative, (PACKAGE / relative).read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "from sweetrl.types import x\nkind = Kind(name)",
        "if task.domain == 'frontend': pass",
        "limit = LIMITS['backend']",
        "kind: Literal['backend', 'frontend']",
        "if domain in ('backend', 'chat'): pass",
        "if isinstance(task.secret, BackendSecret): pass",
        "if scorer.startswith('frontend'): pass",
        "find(name or 'backend')",
    ],
)
def test_a_branch_over_domains_is_caught(source: str) -> None:
    assert len(domain_branches("cli/score.py", source)) == 1
    assert domain_branches("domains/colbench.py", source) == []


# ---------------------------------------------------------------- no cycles


def imports_between(package: str) -> dict[str, set[str]]:
    """Which modules of a package import which others of it when they are imported."""
    modules = {
        "sweetrl." + relative.removesuffix(".py").removesuffix("/__init__").replace("/", "."): relative
        for relative in SOURCES
        if relative.startswith(f"{package}/")
    }
    found: dict[str, set[str]] = {}
    for module, relative in modules.items():
        tree = ast.parse((PACKAGE / relative).read_text())
        own = module if relative.endswith("__init__.py") else module.rpartition(".")[0]
        found[module] = {
            name
            for node in at_import_time(tree)
            for name in _modules_named(node, own, modules.keys())
            if name in modules
        }
    return found


def _modules_named(node: ast.AST, package: str, known: Collection[str]) -> Iterator[str]:
    """The modules that a statement imports; `from package import module` names the module, not the package."""
    for name in imported(node, package):
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        inner = [f"{name}.{each}" for each in names if f"{name}.{each}" in known]
        yield from inner
        if len(inner) < len(names) or not names:
            yield name


@pytest.mark.parametrize(
    "package", sorted({relative.partition("/")[0] for relative in SOURCES if "/" in relative})
)
def test_no_modules_of_a_package_import_each_other(package: str) -> None:
    tuple(TopologicalSorter(imports_between(package)).static_order())


# ---------------------------------------------------------------- sizes

TREES = {relative: ast.parse((PACKAGE / relative).read_text()) for relative in SOURCES}
LINES = {relative: len((PACKAGE / relative).read_text().splitlines()) for relative in SOURCES}


def functions_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every function with its number of lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_and_functions_are_short() -> None:
    assert {relative: lines for relative, lines in LINES.items() if lines > 400} == {}
    found = [
        (relative, name, lines) for relative, tree in TREES.items() for name, lines in functions_of(tree)
    ]
    assert [each for each in found if each[2] > 50] == []
    assert median(lines for _, _, lines in found) <= 8


def test_the_command_line_is_thin() -> None:
    assert sum(lines for relative, lines in LINES.items() if relative.startswith("cli/")) < 4000


@pytest.mark.parametrize(
    ("words", "seconds"), [(("-c", "import sweetrl"), 0.05), (("-m", "sweetrl", "--help"), 0.3)]
)
def test_the_package_and_its_help_are_there_at_once(words: tuple[str, ...], seconds: float) -> None:
    """Processor time beside that of a bare interpreter; the least of a few tries, which other work disturbs least."""
    bare = min(cpu_seconds("-c", "pass") for _ in range(3))
    assert min(cpu_seconds(*words) for _ in range(3)) - bare < seconds


def cpu_seconds(*words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
