"""Tests are split so that the answer's process evaluates its own calls and no more."""

import ast

import pytest

from sweetrl.domains.backend.splits import Split, harmless_imports, ways_to_split

SOLVE = frozenset({"solve"})
FIRST = {
    "solve(1) == [2, 3]": ("solve(1)", "answer_value == [2, 3]"),
    "3 < solve(1) <= 9": ("solve(1)", "3 < answer_value <= 9"),
    "not solve(1) != 3": ("solve(1)", "not answer_value != 3"),
    "(solve(1)) is True": ("solve(1)", "answer_value is True"),
    "solve(1)['a'][0].upper()": ("solve(1)", "answer_value['a'][0].upper()"),
    "f'{solve(1):>5}'": ("solve(1)", "f'{answer_value:>5}'"),
    "[*solve(1)]": ("solve(1)", "[*answer_value]"),
    "sorted(solve(solve(1)))": ("solve(solve(1))", "sorted(answer_value)"),
    "solve(1) + solve(2)": ("(solve(1), solve(2))", "answer_value[0] + answer_value[1]"),
    "(y := solve(3)) and y > 2": ("solve(3)", "(y := answer_value) and y > 2"),
    "(lambda v: v == 3)(solve(1))": ("solve(1)", "(lambda v: v == 3)(answer_value)"),
    "all(solve(i) == i for i in range(5) if i % 2)": (
        "[solve(i) for i in range(5) if i % 2]",
        "all((answer_value.pop(0) == i for i in range(5) if i % 2))",
    ),
    "[i for i in range(9) if i > 2 if solve(i) if i < 8]": (
        "[solve(i) for i in range(9) if i > 2]",
        "[i for i in range(9) if i > 2 if answer_value.pop(0) if i < 8]",
    ),
    "any(map(lambda i: solve(i) == i, range(3)))": (
        "[solve(i) for i in range(3)]",
        "any(map(lambda i: answer_value.pop(0) == i, range(3)))",
    ),
    "list(map(lambda a, b: solve(a) + b, 'ab', 'cd'))": (
        "[solve(a) for a, b in zip('ab', 'cd')]",
        "list(map(lambda a, b: answer_value.pop(0) + b, 'ab', 'cd'))",
    ),
    "max(1, 2, key=lambda i: -solve(i))": (
        "[solve(i) for i in [1, 2]]",
        "max(1, 2, key=lambda i: -answer_value.pop(0))",
    ),
    "[i for i in sorted('ba', key=lambda i: solve(i), reverse=True)]": (
        "[solve(i) for i in 'ba']",
        "[i for i in sorted('ba', key=lambda i: answer_value.pop(0), reverse=True)]",
    ),
    "(lambda n: solve(n) == n)(3)": ("[solve(n) for n in [3]]", "(lambda n: answer_value.pop(0) == n)(3)"),
    "(lambda: solve(3) > 2)()": ("[solve(3) for () in [()]]", "(lambda: answer_value.pop(0) > 2)()"),
    "solve(n := 5) == n * 2": ("solve((n := 5))", "((n := 5), answer_value)[-1] == n * 2"),
    "(n := 5) and n < solve(n)": ("((n := 5), solve(n))[-1]", "(n := 5) and n < answer_value"),
    "(n := 2) and all(solve(i) for i in range(n))": (
        "((n := 2), [solve(i) for i in range(n)])[-1]",
        "(n := 2) and all((answer_value.pop(0) for i in range(n)))",
    ),
    "any((v := i + 1) and solve(v) for i in 'ab')": (
        "[((v := (i + 1)), solve(v))[-1] for i in 'ab']",
        "any(((v := (i + 1)) and answer_value.pop(0) for i in 'ab'))",
    ),
    "(lambda f, n: f(n) == n)(solve, 3)": (
        "[solve(n) for n in [3]]",
        "(lambda n: answer_value.pop(0) == n)(3)",
    ),
    "(lambda f: (lambda g: g(2) > 1)(f))(solve)": (
        "[solve(2) for () in [()] for () in [()]]",
        "(lambda: (lambda: answer_value.pop(0) > 1)())()",
    ),
    "(lambda n=1, *m, k: solve(n, *m) == k)(4, 5, k=6)": (
        "[solve(n, *m) for n, k, m in [(4, 6, (5,))]]",
        "(lambda n, k, m: answer_value.pop(0) == k)(4, 6, (5,))",
    ),
    "(lambda v=solve(1): v == 2)()": ("solve(1)", "(lambda v: v == 2)(answer_value)"),
    "{x: y for x in solve(2) for y in solve(x)}": (
        "(solve(2), [solve(x) for x in solve(2)])",
        "{x: y for x in answer_value[0] for y in answer_value[1].pop(0)}",
    ),
}


@pytest.mark.parametrize("expression", FIRST)
def test_only_the_calls_are_left_to_the_answer(expression: str) -> None:
    first, *_, whole = ways_to_split(expression, SOLVE, frozenset())
    assert (first.subject, first.rest) == FIRST[expression]
    assert whole == Split(expression)


CHANGED = {
    "solve(x := [2]) is None and x == [1]": (
        "(solve((x := [2])), x)",
        "answer_value[0] is None and answer_value[1] == [1]",
    ),
    "(lambda x: (solve(x), x == [1])[1])([2])": (
        "((x := [2]), solve(x), x)",
        "(answer_value[0], (answer_value[1], answer_value[2] == [1])[1])[-1]",
    ),
    "(x := [2], solve(x), all(y > 0 for y in x))[-1]": (
        "((x := [2]), solve(x), x)",
        "(answer_value[0], answer_value[1], all((y > 0 for y in answer_value[2])))[-1]",
    ),
    "(s := solve(), s.push(1), s.pop() == 1)[-1]": (
        "(((s := solve()), None)[-1], (s.push(1), None)[-1], s.pop())",
        "(answer_value[0], answer_value[1], answer_value[2] == 1)[-1]",
    ),
    "(lambda s: s.push(2) and s.top > len(s))(solve())": (
        "(((s := solve()), None)[-1], not not s.push(2), s.top, len(s))",
        "(answer_value[0], answer_value[1] and answer_value[2] > answer_value[3])[-1]",
    ),
    "all([(s := solve(1)).top == 1, s.items[0] == 2, other(3) == 4])": (
        "((s := solve(1)).top, s.items[0])",
        "all([answer_value[0] == 1, answer_value[1] == 2, other(3) == 4])",
    ),
}


@pytest.mark.parametrize("expression", CHANGED)
def test_what_a_call_has_changed_is_looked_at_out_of_its_reach(expression: str) -> None:
    ways = [(way.subject, way.rest) for way in ways_to_split(expression, SOLVE, frozenset({"other"}))]
    assert CHANGED[expression] in ways[:3]


@pytest.mark.parametrize(
    "expression",
    [
        "[solve(x) for x in [[1]] if (y := x) or y]",
        "(x := [1], [solve(x) for x in [[2]]], x)",
        "solve(x := 1) == 2",
        "(x := [1]) and other(solve, x)",
    ],
)
def test_calls_in_loops_and_functions_that_are_handed_on_are_not_taken_out(expression: str) -> None:
    ways = ways_to_split(expression, SOLVE, frozenset())
    assert not any(way.subject.startswith("((x :=") and "[0]" in str(way.rest) for way in ways), ways


@pytest.mark.parametrize("expression", ["solve(1, x='a')", "  solve(solve(1))\n", "solve(1", "1 + 1"])
def test_a_bare_call_and_what_has_none_are_not_split(expression: str) -> None:
    assert ways_to_split(expression, SOLVE, frozenset()) == (Split(expression.strip()),)


@pytest.mark.parametrize(
    "test",
    [
        *("(lambda **n: solve(n))(a=1)", "(lambda *n: solve(n))(*lists)", "map(lambda n: solve(n), *lists)"),
        *("functools.reduce(lambda a, b: solve(a), [1, 2])", "call(lambda n: solve(n))"),
    ],
)
def test_a_lambda_that_is_called_in_an_unknown_way_stays_whole(test: str) -> None:
    subjects = [way.subject for way in ways_to_split(test, SOLVE, frozenset({"functools"}))]
    assert all(subject.startswith("lambda") or subject == test or test in subject for subject in subjects), (
        subjects
    )


def test_a_function_that_is_handed_on_is_one_operation_ahead_of_calls() -> None:
    _, way, *_ = ways_to_split("callable(solve) and solve(1) == 2", SOLVE, frozenset())
    assert way == Split("(callable(solve), solve(1))", "answer_value[0] and answer_value[1] == 2")


def test_a_subject_is_widened_one_operation_at_a_time() -> None:
    ways = ways_to_split("list(map(solve, [1])) == [3]", SOLVE, frozenset())
    assert [way.subject for way in ways] == [
        "solve",
        "map(solve, [1])",
        "list(map(solve, [1]))",
        "list(map(solve, [1])) == [3]",
    ]


@pytest.mark.parametrize(
    ("expression", "rest", "known"),
    [
        ("solve(1) == other(2) + 1", "answer_value == known_value", "other(2) + 1"),
        ("solve(1) == LIMIT", "answer_value == known_value", "LIMIT"),
        (
            "[solve(i) == other(i) for i in 'ab']",
            "[answer_value.pop(0) == known_value.pop(0) for i in 'ab']",
            "[other(i) for i in 'ab']",
        ),
        ("(A, solve(1), B)", "(known_value[0], answer_value, known_value[1])", "(A, B)"),
    ],
)
def test_what_only_the_reference_has_is_left_to_it(expression: str, rest: str, known: str) -> None:
    first, *_ = ways_to_split(expression, SOLVE, frozenset())
    assert (first.rest, first.known) == (rest, known)


@pytest.mark.parametrize(
    "expression",
    [
        "eval(solve(1))",
        "getattr(3, solve(1))",
        "pickle.loads(solve(1))",
        "open(solve(1))",
        "__import__(solve(1))",
        "other(solve(1))",
        "[other(i) for i in solve(2)]",
        "exec('x = 1') or eval(solve(1))",
    ],
)
def test_no_rest_runs_code_that_is_not_known_to_be_harmless_on_a_value(expression: str) -> None:
    """A name outside the list can only be a known value, and those are plain: calling one fails."""
    for way in ways_to_split(expression, SOLVE, frozenset()):
        names = {node.id for node in ast.walk(ast.parse(way.rest or "")) if isinstance(node, ast.Name)}
        assert names <= {"answer_value", "known_value", "i"}, way


def test_modules_of_the_reference_can_be_used_if_they_are_harmless() -> None:
    source = (
        "import math, pickle as p, os.path\nimport numpy as np\nfrom datetime import date as day, time\n"
        "from . import math as m\nfrom os import path\ndef f():\n    import re\n"
    )
    assert harmless_imports(source) == {
        "math": "import math",
        "np": "import numpy as np",
        "day": "from datetime import date as day",
        "time": "from datetime import time",
    }
    first, *_ = ways_to_split("math.isclose(solve(1), 2)", SOLVE, frozenset({"math"}))
    assert first == Split("solve(1)", "math.isclose(answer_value, 2)")


def test_source_that_is_no_python_imports_nothing() -> None:
    assert harmless_imports("import math\ndef (") == {}
