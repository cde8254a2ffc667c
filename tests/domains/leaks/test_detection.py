import ast
import io
import json
import re
import tokenize as python_tokens
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.domains.leaks.detection import Leak, Reference, Said, find_leak, leaks_code, secret_positions
from sweetrl.types import Message, Role, Task

REQUEST = "Write a function that prices a parcel. The signature is: def price(weight, express)"
SOURCE = '''def price(weight, express):
    """Price a parcel by its weight."""
    # Heavy parcels cost more
    if weight > 20:
        raise ValueError("too heavy")
    base = 5 if weight <= 2 else 9 + 0.5 * (weight - 2)
    rates = {"north": 1.2, "south": 0.9}
    total_price = base * rates.get("north", 1)
    if express and weight < 10:
        total_price += 4.75
    return round(total_price, 2)
'''
REFERENCE = Reference(SOURCE)


def leak(reply: str, *said: str) -> Leak:
    return find_leak(REFERENCE, reply, Said([REQUEST, *said]))


# ---------------------------------------------------------------- leaks that are known


@pytest.mark.parametrize(
    "reply",
    [
        SOURCE,
        f"Sure, here it is:\n```python\n{SOURCE}\n```",
        "```python\nbase = 5 if weight <= 2 else 9 + 0.5 * (weight - 2)",
        "It is base = 5 if weight <= 2 else 9 + 0.5 * (weight - 2), nothing more.",
        "You want base=5 if weight<=2 else 9+0.5*(weight-2)",
        'Just use rates = {"north": 1.2, "south": 0.9} for that.',
        "Just use rates = {'north': 1.2, 'south': 0.9} for that.",
        "It says \"total_price += 4.75\" there.",
        "Then total_price += 4.75 happens.",
        "It raises when weight > 20.",
        "It raises when `weight > 20`.",
        "It has `express and weight < 10` as a condition.",
        "I have if weight > 20: there.",
        "```\nelif weight > 20:\n```",
        "At the end there is round(total_price, 2).",
        "```\n((weight - 2))\n```",
    ],
)  # fmt: skip
def test_code_of_the_reference_is_found(reply: str) -> None:
    found = leak(reply)
    assert found.carried
    assert found.fragments[0] in reply


def test_a_paste_of_the_whole_code_carries_all_of_it() -> None:
    head, _docstring, _comment, *body = SOURCE.splitlines()
    assert leak("\n".join([head, *body])).carried >= secret_positions(REFERENCE, REQUEST)


def test_a_line_carries_the_tokens_of_that_line_only() -> None:
    found = leak("Then total_price += 4.75 happens.")
    assert [REFERENCE.texts[position] for position in sorted(found.carried)] == ["total_price", "+=", "4.75"]
    assert found.fragments == ("total_price += 4.75",)


def test_brackets_quotes_and_spaces_do_not_hide_parsed_code() -> None:
    plain = leak("`rates.get('north', 1)`").carried
    assert plain
    assert leak('`rates . get( ("north") , (1) )`').carried == plain


# ---------------------------------------------------------------- honest prose


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I don't know.",
        "Parcels over 20 kilograms are refused with an error saying that they are too heavy.",
        "If the weight is at most 2, the base is 5; otherwise it is 9 plus 0.5 for each kilogram above 2.",
        "The north has a rate of 1.2 and the south of 0.9.",
        "Express costs 4.75 extra, if the weight is under 10.",
        "Yes, return the total price, rounded to 2 digits.",
        "It's the sender's choice: north or south, express or not.",
        "The base, the rates and the total are what you'd expect (see the request).",
        "Use express and weight; nothing else matters.",
        "Heavy parcels cost more",
        "Price a parcel by its weight.",
        "weight-based, i.e. base/total... 5-9, 2 - or so - at most!",
    ],
)
def test_prose_about_the_reference_is_no_leak(reply: str) -> None:
    assert leak(reply) == Leak((), frozenset())


def test_what_the_request_says_is_no_leak() -> None:
    assert not leak("def price(weight, express)").carried
    assert not leak("The signature is `price(weight, express)`.").carried


def test_what_the_agent_said_first_is_no_leak() -> None:
    reply = "Yes, weight > 20 raises, and rates.get('north', 1) is right."
    assert leak(reply).carried
    assert not leak(reply, "Do you mean `weight > 20`?", "And rates.get('north', 1)?").carried


def test_code_that_the_reference_does_not_have_is_no_leak() -> None:
    assert not leak("```python\nif weight > 21:\n    return weight * 3\n```").carried
    assert not leak("You could write `sum(x for x in rates)`.").carried


def test_a_call_of_one_function_on_one_name_is_too_little() -> None:
    reference = Reference("def f(items):\n    return len(items) + 1")
    assert not find_leak(reference, "It has to do with `len(items)`.", Said()).carried
    assert find_leak(reference, "It has to do with `len(items) + 1`.", Said()).carried


def test_code_made_of_words_is_a_leak_only_where_it_is_marked_as_code() -> None:
    reference = Reference(
        "def f(a, express, weight):\n    if a:\n        pass\n    elif express and weight:\n        pass"
    )
    assert not find_leak(reference, "Two things matter (express and weight) here.", Said()).carried
    assert find_leak(reference, "Two things matter: `express and weight`.", Said()).carried
    assert find_leak(reference, "There is `elif express and weight:` in it.", Said()).carried


# ---------------------------------------------------------------- odd input


@given(st.text(max_size=300), st.text(max_size=300))
@settings(max_examples=200)
def test_no_text_breaks_the_detector(source: str, reply: str) -> None:
    reference = Reference(source)
    found = find_leak(reference, reply, Said())
    assert found.carried <= set(range(len(reference.tokens)))


@given(st.lists(st.sampled_from([*REFERENCE.texts, "the", "`", "```", "\n", ". ", '"', "#"]), max_size=60))
@settings(max_examples=200)
def test_no_mix_of_code_and_prose_breaks_the_detector(words: list[str]) -> None:
    found = leak(" ".join(words))
    assert bool(found.carried) == bool(found.fragments)


def test_a_reference_that_does_not_parse_is_searched_by_tokens() -> None:
    broken = Reference("def f(:\n    total = price * 3 + shipping")
    assert find_leak(broken, "total = price * 3", Said()).carried


def test_characters_of_other_scripts_do_not_shift_positions() -> None:
    reference = Reference('def f(größe):\n    länge = "ß" + größe * 7; breite = 3 - länge')
    found = find_leak(reference, "Set breite = 3 - länge here", Said())
    assert [reference.texts[position] for position in sorted(found.carried)] == [
        "breite",
        "=",
        "3",
        "-",
        "länge",
    ]


# ---------------------------------------------------------------- as a guard asks


TASK = Task(
    id="t", domain="backend", request=REQUEST, secret=BackendSecret(SOURCE, {"test1": "price(1, False)"})
)
HISTORY = [Message(Role.USER, REQUEST), Message(Role.ASSISTANT, "Is it weight > 20?")]


def test_a_guard_learns_whether_a_reply_to_a_history_leaks() -> None:
    assert leaks_code(TASK, HISTORY, "It is total_price += 4.75.")
    assert not leaks_code(TASK, HISTORY, "Yes, weight > 20.")
    assert leaks_code(TASK, HISTORY[:1], "Yes, weight > 20.")


def test_the_signature_in_the_request_is_no_leak_whatever_the_history() -> None:
    assert not leaks_code(TASK, [], "def price(weight, express)")


def test_earlier_replies_of_the_collaborator_excuse_nothing() -> None:
    history = [*HISTORY, Message(Role.USER, "It is total_price += 4.75.")]
    assert leaks_code(TASK, history, "It is total_price += 4.75.")


def test_a_page_is_searched_by_tokens() -> None:
    page = '<html><body class="p-4"><h1 class="text-4xl font-bold">Welcome to our shop</h1></body></html>'
    task = Task(id="p", domain="frontend", request="A shop", secret=FrontendSecret(page))
    assert leaks_code(task, [], 'Write <h1 class="text-4xl font-bold">Welcome')
    assert not leaks_code(task, [], "The heading should say Welcome to our shop, in bold and larger.")


def test_the_text_of_a_page_is_not_its_code(colbench_dir: Path) -> None:
    with (colbench_dir / "frontend_dev.jsonl").open() as file:
        pages = [json.loads(line)["ground_truth"] for line in file][::3]
    verdicts = []
    for page in pages:
        reference = Reference(page, is_page=True)
        visible = " ".join(re.sub(r"(?s)<(script|style).*?</\1>|<[^>]+>", " ", page).split())
        assert find_leak(reference, page[:1000], Said()).carried
        verdicts.append(bool(find_leak(reference, f"It should say: {visible}"[:1000], Said()).carried))
    assert sum(verdicts) / len(verdicts) < 0.01


# ---------------------------------------------------------------- real references


@pytest.fixture(scope="module")
def real_tasks(colbench_dir: Path) -> list[dict[str, Any]]:
    with (colbench_dir / "backend_dev.jsonl").open() as file:
        return [json.loads(line) for line in file]


def test_pasted_real_references_are_found_and_carry_nearly_all_of_the_code(real_tasks) -> None:
    shares, found = [], []
    for task in real_tasks[::2]:
        reference, said = Reference(task["ground_truth"]), Said([task["problem_description"]])
        secret = secret_positions(reference, task["problem_description"])
        shares.append(len(find_leak(reference, task["ground_truth"], said).carried & secret) / len(secret))
        found.append(bool(find_leak(reference, f"Sure:\n{task['ground_truth']}"[:400], said).carried))
    assert min(shares) > 0.7
    assert sum(shares) / len(shares) > 0.99
    # One reference is a single long string, of which the cut leaves half.
    assert sum(found) / len(found) > 0.995


def remarks(source: str) -> list[str]:
    """What the authors of a reference said about it in English: its comments and docstrings."""
    tokens = python_tokens.generate_tokens(io.StringIO(source).readline)
    comments = [token.string.lstrip("# ") for token in tokens if token.type == python_tokens.COMMENT]
    strings = [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return comments + strings


def test_prose_about_real_references_is_almost_never_taken_for_code(real_tasks) -> None:
    verdicts = []
    for position, task in enumerate(real_tasks):
        reference, said = Reference(task["ground_truth"]), Said([task["problem_description"]])
        foreign = [
            real_tasks[(position + step) % len(real_tasks)]["problem_description"] for step in (1, 7, 33)
        ]
        prose = [*remarks(task["ground_truth"]), *(text.split("The signature")[0] for text in foreign)]
        verdicts += [bool(find_leak(reference, text[:400], said).carried) for text in prose]
    assert len(verdicts) > 1500
    assert sum(verdicts) / len(verdicts) < 0.002


SPOKEN = {
    ast.Gt: "is greater than", ast.GtE: "is at least", ast.Lt: "is less than", ast.LtE: "is at most",
    ast.Eq: "is", ast.NotEq: "is not", ast.In: "is in", ast.NotIn: "is not in", ast.Is: "is",
    ast.IsNot: "is not", ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times",
    ast.Div: "divided by", ast.And: "and", ast.Or: "or",
}  # fmt: skip


def in_words(node: ast.AST) -> str:
    """An expression as a person would say it who knows the names in the code."""
    match node:
        case ast.Name(id=name):
            return f"the {name.replace('_', ' ')}"
        case ast.Constant(value=value):
            return str(value)
        case ast.Attribute(value=value, attr=name):
            return f"the {name.replace('_', ' ')} of {in_words(value)}"
        case ast.Call(func=function, args=arguments):
            return f"{in_words(function)} of {' and '.join(map(in_words, arguments))}"
        case ast.Subscript(value=value, slice=key):
            return f"{in_words(value)} at {in_words(key)}"
        case ast.BinOp(left=left, op=operator, right=right):
            return f"{in_words(left)} {SPOKEN.get(type(operator), 'and')} {in_words(right)}"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"{in_words(left)} {SPOKEN[type(operator)]} {in_words(right)}"
        case ast.BoolOp(op=operator, values=values):
            return f" {SPOKEN[type(operator)]} ".join(map(in_words, values))
        case _:
            return "something else"


def paraphrases(source: str) -> list[str]:
    said = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If):
            said.append(f"Yes, something special happens if {in_words(node.test)}.")
        elif isinstance(node, ast.Return) and node.value is not None:
            said.append(f"It should return {in_words(node.value)}, nothing else.")
        elif isinstance(node, ast.Assign):
            said.append(f"I think {in_words(node.targets[0])} is {in_words(node.value)}.")
    return said


def test_conditions_and_results_of_real_references_in_plain_words_are_no_leak(real_tasks) -> None:
    verdicts = []
    for task in real_tasks:
        reference, said = Reference(task["ground_truth"]), Said([task["problem_description"]])
        verdicts += [
            bool(find_leak(reference, text, said).carried) for text in paraphrases(task["ground_truth"])
        ]
    assert len(verdicts) > 2000
    assert sum(verdicts) / len(verdicts) < 0.002
