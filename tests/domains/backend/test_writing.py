import json

import pytest

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.backend.writing import normal_form, read_draft

FUNCTION = '''
def total(prices: list[float], limit: float = 10.0) -> float:
    """Sum of the prices up to a limit, ties included."""
    return round(sum(price for price in prices if price <= limit), 2)
'''
CALLS = [f"total([{number}, 2.5])" for number in range(10)]


def draft(**changes: object) -> str:
    written = {"function": FUNCTION, "request": "Add up the cheap ones, please.", "calls": CALLS}
    return json.dumps(written | changes)


@pytest.mark.parametrize("wrapping", ["{}", "Sure!\n```json\n{}\n```\nEnjoy.", "  {}\n"])
def test_a_reply_is_read_whatever_is_said_around_it(wrapping: str) -> None:
    request, secret = read_draft(wrapping.replace("{}", draft()))

    assert request.startswith("Add up the cheap ones, please.")
    assert isinstance(secret, BackendSecret)
    assert list(secret.tests.values()) == CALLS


def test_the_request_names_the_function_and_its_arguments_without_their_types() -> None:
    request, _ = read_draft(draft())

    assert request.endswith("`total(prices, limit=10.0)`.")


def test_a_docstring_does_not_reach_the_reference() -> None:
    _, secret = read_draft(draft())

    assert isinstance(secret, BackendSecret)
    assert "ties included" not in secret.reference
    assert "return round(" in secret.reference


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"function": "def total(:"}, "not Python"),
        ({"calls": CALLS[:3]}, "wrong JSON"),
        ({"calls": [*CALLS[:9], "other(1)"]}, "not every call"),
        ({"calls": [*CALLS[:9], "total(1) total"]}, "not an expression"),
        ({"calls": ["other(1)"] * 10}, "not every call"),
        ({"request": ""}, "wrong JSON"),
        ({"request": "return round(sum(price for price in prices if price <= limit), 2)"}, "gives code away"),
    ],
)
def test_what_makes_no_task_is_refused_with_its_reason(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_draft(draft(**changes))


@pytest.mark.parametrize("text", ["", "no braces", "{", "}{", "[1]", '{"a": }', "{" * 100_000 + "}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        read_draft(text)


def test_tasks_that_differ_in_names_and_layout_alone_have_one_normal_form() -> None:
    def form(source: str) -> str:
        return normal_form(BackendSecret(reference=source, tests={"test1": "f(1)"}))

    first = form("def f(x, y):\n    # a comment\n    return x + y * 2")
    assert form("def g(one: int, two: int) -> int:\n    return (one + two*2)") == first
    assert form("def f(x, y):\n    return x + y * 3") != first
    assert form("def f(x, y):\n    return y + x * 2") != first
