"""Which functions hidden tests are about."""

import pytest

from sweetrl.domains.backend.calls import (
    as_expression,
    called_names,
    functions_of,
    main_function,
    task_functions,
)


@pytest.mark.parametrize(
    ("request_text", "tests", "function"),
    [
        ("The signature is: def solve(x)", {"t": "solve(1)"}, "solve"),
        ("def helper(y) and then def solve(x)", {"t": "solve(helper(1))"}, "solve"),
        ("def unrelated(x)", {"t": "solve(1)"}, "solve"),
        ("no signature", {"a": "solve(1)", "b": "solve(2)", "c": "other(1)"}, "solve"),
        ("no signature", {"a": "print(solve(1))"}, "solve"),
        ("no signature", {"a": "assert solve(1) == 2, str(other(3))"}, "solve"),
        ("no signature", {"a": "1 +"}, ""),
    ],
)
def test_the_function_a_task_is_about_is_found(
    request_text: str, tests: dict[str, str], function: str
) -> None:
    assert main_function(request_text, tests) == function


def test_all_functions_that_the_request_names_are_the_answers() -> None:
    tests = {"a": "decode(encode('x')) == 'x'", "b": "check(encode('y'))"}
    assert task_functions("def encode(text), def decode(text), def unused()", tests) == ["encode", "decode"]


@pytest.mark.parametrize(
    ("expression", "functions"),
    [
        ("solve(1) == helper(2)", {"solve"}),
        ("list(map(solve, [1]))", {"solve"}),
        ("helper(2) > len('ab')", {"helper"}),
        ("1 +", set()),
    ],
)
def test_a_test_without_the_tasks_functions_is_about_those_that_it_calls(
    expression: str, functions: set[str]
) -> None:
    assert functions_of(expression, frozenset({"solve"})) == functions


def test_each_test_counts_once_for_a_name() -> None:
    assert called_names({"a": "solve(solve(1))", "b": "solve(len([helper(2)]))"}) == {"solve": 2, "helper": 1}


@pytest.mark.parametrize(
    ("test", "expression"),
    [
        ("assert solve(1) == 2, 'wrong'", "bool(solve(1) == 2)"),
        (" assert solve(1)\nassert not solve(2)", "bool(solve(1)) and bool(not solve(2))"),
        ("solve(1) == 2", "solve(1) == 2"),
        ("assert_equal(solve(1), 2)", "assert_equal(solve(1), 2)"),
        ("assert x; y = 1", "assert x; y = 1"),
        ("assert solve(1", "assert solve(1"),
    ],
)
def test_an_assertion_asks_for_the_truth_of_its_expression(test: str, expression: str) -> None:
    assert as_expression(test) == expression
