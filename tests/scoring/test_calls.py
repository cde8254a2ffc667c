"""Hidden tests as data."""

import pytest

from sweetrl.scoring.calls import HiddenCall, called_names, main_function, split_calls


@pytest.mark.parametrize(
    ("expression", "subject", "other", "plain"),
    [
        ("solve(1, x='a')", "solve(1, x='a')", None, True),
        ("  solve(1)\n", "solve(1)", None, True),
        ("solve(1) == [2, 3]", "solve(1)", "[2, 3]", True),
        ("[2, 3] == solve(1)", "solve(1)", "[2, 3]", True),
        ("solve(1) != None", "solve(1)", "None", True),
        ("solve(1) == other(2)", "solve(1)", "other(2)", True),
        ("solve(1)['a'] == 3", "solve(1)['a']", "3", False),
        ("solve(1) < 3", "solve(1) < 3", None, False),
        ("print(solve(1))", "print(solve(1))", None, False),
        ("solve(1", "solve(1", None, False),
    ],
)
def test_only_the_side_with_the_call_is_left_to_the_answer(
    expression: str, subject: str, other: str | None, plain: bool
) -> None:
    assert split_calls({"test1": expression}) == (HiddenCall("test1", subject, other, plain),)


def test_calls_keep_the_order_of_their_tests() -> None:
    tests = {"b": "solve(2)", "a": "solve(1)"}
    assert [call.name for call in split_calls(tests)] == ["b", "a"]


@pytest.mark.parametrize(
    ("request_text", "tests", "function"),
    [
        ("The signature is: def solve(x)", {"t": "solve(1)"}, "solve"),
        ("def helper(y) and then def solve(x)", {"t": "solve(helper(1))"}, "solve"),
        ("def unrelated(x)", {"t": "solve(1)"}, "solve"),
        ("no signature", {"a": "solve(1)", "b": "solve(2)", "c": "other(1)"}, "solve"),
        ("no signature", {"a": "print(solve(1))"}, "solve"),
        ("no signature", {"a": "1 +"}, ""),
    ],
)
def test_the_function_a_task_is_about_is_found(
    request_text: str, tests: dict[str, str], function: str
) -> None:
    assert main_function(request_text, tests) == function


def test_each_test_counts_once_for_a_name() -> None:
    assert called_names({"a": "solve(solve(1))", "b": "solve(len([helper(2)]))"}) == {"solve": 2, "helper": 1}
