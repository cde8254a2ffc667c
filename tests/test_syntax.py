import ast
import gc
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.syntax import parse, parse_expression


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


def test_an_expression_is_parsed_and_a_statement_is_none() -> None:
    tree = parse_expression(" f(1) ")
    assert tree is not None
    assert ast.unparse(tree) == "f(1)"
    assert parse_expression("x = 1") is None


class Garbage:
    """Collected in the middle of something, it lets other threads run."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns, and garbage is collected, as often as can be."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(5)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("restless")
def test_threads_can_parse_at_the_same_time() -> None:
    def parse_often(_: int) -> int:
        trees = 0
        for _ in range(200):
            Garbage()
            trees += parse_expression("f(1, [2, 3], (4, (5, g(6))))") is not None
        return trees

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(parse_often, range(8))) == 1600
