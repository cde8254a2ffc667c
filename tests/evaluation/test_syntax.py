import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.evaluation.syntax import parse


def test_python_is_parsed() -> None:
    tree = parse("x = 1")
    assert tree is not None
    assert ast.unparse(tree) == "x = 1"


@pytest.mark.parametrize("text", ["not python at all", "x = \x00", "(" * 5000, "-" * 100_000 + "1", "\ud800"])
def test_anything_else_is_none(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("text", ["x = '\\d'", "1if x else 2"])
def test_doubtful_python_is_parsed_without_a_warning(text: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert parse(text) is not None
    assert seen == []


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    tree = parse(text)
    assert tree is None or isinstance(tree, ast.Module)
