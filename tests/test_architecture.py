"""Who may import whom: the layers of ARCHITECTURE.md, read from the sources with `ast`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sweetrl

PACKAGE = Path(sweetrl.__file__).parent

LAYERS = (
    {"errors", "types"},
    {"interrupts", "outputs", "prompts", "protocols", "records", "seeds", "settings", "syntax"},
    {"browser", "models", "sandbox", "tasks"},
    {"dialogue", "evaluation", "executors", "learning", "preferences", "scoring"},
    {"candidates", "critics"},
    {"api", "report"},
    {"experiments", "integrations", "viewer"},
    {"cli"},
    {"__main__"},
)
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}

TORCH_STACK = {"accelerate", "datasets", "peft", "torch", "transformers"}


def part_of(module: str) -> str:
    """`records` of `sweetrl.records`, `scoring` of `sweetrl.scoring.backend`, nothing of `sweetrl`."""
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
        ("scoring/backend.py", "from sweetrl.dialogue import rules", "scoring imports sideways: dialogue"),
        ("scoring/backend.py", "from ..dialogue.rules import x", "scoring imports sideways: dialogue"),
        ("scoring/backend.py", "from .. import cli", "scoring imports upwards: cli"),
        ("scoring/backend.py", "def f():\n    import sweetrl.cli.main", "scoring imports upwards: cli"),
        ("scoring/backend.py", "from sweetrl import score", "scoring imports score, which has no layer"),
        ("experiments/runner.py", "from sweetrl.cli import console", "experiments imports upwards: cli"),
        ("helpers.py", "import sweetrl.types", "helpers has no layer"),
        ("tasks/colbench.py", "import torch.nn as nn", "torch at the top of a module"),
        (
            "tasks/colbench.py",
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
        ("scoring/backend.py", "from sweetrl.types import Task\nfrom sweetrl.sandbox import pool"),
        ("scoring/backend.py", "from .compare import equal\nfrom . import compare"),
        ("learning/trainer.py", "import torch"),
        ("models/local/network.py", "import torch"),
        ("models/base.py", "if TYPE_CHECKING:\n    import torch"),
        ("models/scripted.py", "def load():\n    import torch"),
        ("cli/score.py", "from sweetrl import __version__\ndef run():\n    import numpy"),
    ],
)
def test_a_permitted_import_is_not(relative: str, source: str) -> None:
    assert offences(relative, source) == []
