"""The parts of `transformers.Trainer` that are not public and that training relies on.

When one of these tests fails after an upgrade, read the new `Trainer` before changing the list: the library may no
longer call the method, or call it at another time.
"""

import ast
import inspect
import textwrap
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from transformers import Trainer

from sweetrl.learning.trainer import TurnTrainer

ROOT = Path(__file__).resolve().parents[2]
OVERRIDDEN = {
    "_clip_grad_norm": (["model"], "_run_epoch"),
    "_load_from_checkpoint": (["resume_from_checkpoint", "model"], "_prepare_for_training"),
    "_load_optimizer_and_scheduler": (["checkpoint"], "_prepare_for_training"),
    "_save": (["output_dir", "state_dict"], "save_model"),
    "_save_checkpoint": (["model", "trial"], "_maybe_log_save_evaluate"),
}
"""The private methods that are overridden: their parameters, and a method that calls them."""


def calls(method: str) -> set[str]:
    """The names of the own methods that a method of `Trainer` calls."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(getattr(Trainer, method))))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        func.attr
        for func in called
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    }


def test_no_other_private_method_or_attribute_of_the_library_is_overridden() -> None:
    names = {name for name in vars(TurnTrainer) if name.startswith("_") and not name.startswith("__")}
    assert {name for name in names if hasattr(Trainer, name)} == set(OVERRIDDEN)


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_has_the_parameters_that_we_expect(name: str) -> None:
    parameters, _ = OVERRIDDEN[name]
    assert list(inspect.signature(getattr(Trainer, name)).parameters) == ["self", *parameters]
    assert list(inspect.signature(getattr(TurnTrainer, name)).parameters) == ["self", *parameters]


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_an_overridden_method_is_still_called(name: str) -> None:
    _, caller = OVERRIDDEN[name]
    assert name in calls(caller)


def test_checkpoints_still_go_to_the_output_directory_of_the_arguments() -> None:
    assert "_get_output_dir" in calls("_save_checkpoint")
    assert "run_dir = self.args.output_dir" in inspect.getsource(Trainer._get_output_dir)


def test_the_library_has_a_range_that_ends_and_that_holds_the_installed_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(each) for each in project["optional-dependencies"]["train"]]
    [specifier] = [each.specifier for each in wanted if each.name == "transformers"]
    assert "<" in {each.operator for each in specifier}
    assert specifier.contains(version("transformers"))
