"""The paper's rules, read and run as it does, on every version of Python."""

from collections.abc import Iterator

import pytest

from sweetrl.domains.backend.official import FORBIDDEN, forbidden_word, reading
from sweetrl.domains.backend.scorer import BackendScorer, Mode
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.sandbox import Sandbox
from sweetrl.types import Outcome, Task

SOLVE = "def solve(x):\n    return x + 1\n"
TASK = Task(
    id="task",
    domain="backend",
    request="def solve(x)",
    secret=BackendSecret(reference=SOLVE, tests={"a": "solve(1)", "b": "solve(2) == 3"}),
)


@pytest.fixture(scope="module")
def scorers() -> Iterator[dict[Mode, BackendScorer]]:
    with Sandbox() as sandbox:
        scorers = {mode: BackendScorer(sandbox, mode=mode) for mode in Mode}
        yield scorers
        for scorer in scorers.values():
            scorer.close()


def passed(scorer: BackendScorer, answer: str) -> int:
    return sum(check.outcome is Outcome.PASSED for check in scorer.checks(TASK, answer))


@pytest.mark.parametrize("word", FORBIDDEN)
def test_a_forbidden_word_anywhere_costs_everything(scorers: dict[Mode, BackendScorer], word: str) -> None:
    answer = f"# {word}\n{SOLVE}"
    assert forbidden_word(answer) == word
    assert passed(scorers[Mode.OFFICIAL], answer) == 0
    assert passed(scorers[Mode.MODULE], answer) == 2


SAME_IN_BOTH = {
    "raw": SOLVE,
    "python fence": f"Here:\n```python\n{SOLVE}```\nDone.",
    "bare fence": f"```\n{SOLVE}```",
    "import inside": "def solve(x):\n    import math\n    return math.floor(x) + 1\n",
    "default argument": "one = 1\ndef solve(x, one=one):\n    return x + one\n",
    "lambda": "solve = lambda x: x + 1\n",
}
MODULE_ONLY = {
    "helper": "def helper(x):\n    return x + 1\ndef solve(x):\n    return helper(x)\n",
    "top-level import": "import math\ndef solve(x):\n    return math.floor(x) + 1\n",
    "constant": "ONE = 1\ndef solve(x):\n    return x + ONE\n",
    "class": "class One:\n    value = 1\ndef solve(x):\n    return x + One.value\n",
    "recursion": "def solve(x):\n    return 2 if x <= 1 else solve(x - 1) + 1\n",
    "capital fence": f"```Python\n{SOLVE}```",
    "prose without a fence": f"Here you are:\n\n{SOLVE}",
    "tilde fence": f"~~~\n{SOLVE}~~~",
}


@pytest.mark.parametrize("answer", SAME_IN_BOTH.values(), ids=SAME_IN_BOTH)
def test_both_modes_accept_what_the_paper_accepts(scorers: dict[Mode, BackendScorer], answer: str) -> None:
    assert {mode: passed(scorer, answer) for mode, scorer in scorers.items()} == {
        Mode.MODULE: 2,
        Mode.OFFICIAL: 2,
    }


@pytest.mark.parametrize("answer", MODULE_ONLY.values(), ids=MODULE_ONLY)
def test_official_mode_denies_what_the_paper_denies(scorers: dict[Mode, BackendScorer], answer: str) -> None:
    official = passed(scorers[Mode.OFFICIAL], answer)
    assert official < 2
    assert passed(scorers[Mode.MODULE], answer) == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("x = 1", "x = 1"),
        ("a\n```python\nx = 1\n```\nb", "\nx = 1\n"),
        ("a\n```\nx = 1\n```\nb", "\nx = 1\n"),
        ("```python\nx = 1", "\nx = 1"),
        ("```\nfirst\n```\n```python\nsecond\n```", "\nsecond\n"),
        ("```Python\nx = 1\n```", "Python\nx = 1\n"),
    ],
)
def test_the_fence_rule_is_the_papers(answer: str, code: str) -> None:
    assert reading(answer) == code


def test_names_say_which_rules_were_used(scorers: dict[Mode, BackendScorer]) -> None:
    assert {scorer.name for scorer in scorers.values()} == {"backend-module/2", "backend-official/2"}
