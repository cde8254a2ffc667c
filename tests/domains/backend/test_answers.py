"""The code in an answer is found however it is wrapped, and hostile text costs no time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.domains.backend.answers import MAX_ANSWER_CHARACTERS, readings
from sweetrl.outputs import fenced_blocks

CODE = '''def solve(items):
    """Adds up.

    ```
    solve([1])
    ```
    """
    total = 0

    for each in items:
        total += each  # not `product`
    return total
'''
SIMPLE = "def solve(items):\n    total = sum(items)\n\n    return total\n"
HELPER = "import math\n\nLIMIT = 3\n\ndef helper(x):\n    return math.floor(x)\n"
USER = "def solve(items):\n    return [helper(each) for each in items]\n"


def chosen(answer: str, function: str = "solve") -> dict[str, object] | None:
    """The names that the sandbox would get: those of the first reading that compiles and defines the function."""
    for source in readings(answer, function):
        try:
            code = compile(source, "<answer>", "exec")
        except (SyntaxError, ValueError):
            continue
        if function in code.co_names:
            scope: dict[str, object] = {}
            exec(code, scope)
            return scope
    return None


def result(answer: str) -> object:
    scope = chosen(answer)
    assert scope is not None, readings(answer, "solve")
    return scope["solve"]([1, 2, 3])  # type: ignore[operator]


def indented(text: str, by: str = "    ") -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


WRAPPINGS = {
    "raw": "{code}",
    "python fence": "```python\n{code}```",
    "capital fence": "```Python\n{code}\n```",
    "py fence": "```py\n{code}```\n",
    "python3 fence": "```python3\n{code}```\n",
    "fence with a title": '```python title="solve.py"\n{code}```\n',
    "bare fence": "Sure!\n```\n{code}\n```\n",
    "tilde fence": "~~~\n{code}~~~\n",
    "tilde fence with language": "Here:\n~~~python\n{code}\n~~~\nDone.",
    "four backticks": "````python\n{code}````\n",
    "fence with spaces": "```   python   \n{code}```   \n",
    "unclosed fence": "Here it is:\n```python\n{code}",
    "prose around a fence": "I think this does it.\n\n```python\n{code}```\n\nIt's simple, isn't it?\n",
    "prose before": "Here is the function you asked for:\n\n{code}",
    "prose before and after": "Here is the function:\n\n{code}\nLet me know if it's what you want.\n",
    "marker": "I WANT TO ANSWER:\n{code}",
    "marker and fence": "Thanks.\nI WANT TO ANSWER: \n```python\n{code}```\nBye.",
    "marker on the line": "I WANT TO ANSWER: ```python\n{code}```",
    "usage in a second block": "```python\n{code}```\nUse it like this:\n```python\nprint(solve([1]))\n```\n",
    "usage before": "```\nsolve([1]) # 1\n```\ncalls\n```python\n{code}```\n",
    "shell in another block": "```bash\npip install nothing\n```\n```python\n{code}```\n",
    "output in another block": "```python\n{code}```\nprints\n```text\n6 apples\n```\n",
    "draft before": "```python\ndef solve(items):\n    return None\n```\nNo, better:\n```python\n{code}```\n",
    "quote": "> ```python\n{code}> ```\n",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_function_is_found_in_any_wrapping(wrapping: str, line_end: str) -> None:
    answer = wrapping.replace("{code}", SIMPLE).replace("\n", line_end)
    assert result(answer) == 6


@pytest.mark.parametrize(
    "wrapping",
    ["{code}", "```python\n{code}```", "~~~python\n{code}~~~", "````\n{code}````", "A word.\n\n{code}"],
)
def test_a_docstring_with_fences_of_its_own_is_kept_whole(wrapping: str) -> None:
    scope = chosen(wrapping.replace("{code}", CODE))
    assert scope is not None
    assert scope["solve"]([1, 2, 3]) == 6  # type: ignore[operator]
    assert "Adds up" in str(scope["solve"].__doc__)


@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
def test_an_indented_fence_is_dedented(indent: str) -> None:
    assert result("1. Like so:\n\n" + indented(f"```python\n{SIMPLE}```\n", indent)) == 6


def test_a_fence_within_a_line_is_read_too() -> None:
    assert result("Try ```def solve(items): return sum(items)``` perhaps.") == 6
    assert result("Try ```python def solve(items): return sum(items)```.") == 6


@pytest.mark.parametrize("order", [(HELPER, USER), (USER, HELPER)], ids=["before", "after"])
def test_a_helper_in_a_block_of_its_own_is_kept(order: tuple[str, str]) -> None:
    answer = "First:\n```python\n{}```\nand\n```python\n{}```\n".format(*order)
    assert result(answer) == [1, 2, 3]


def test_the_last_version_counts() -> None:
    draft = SIMPLE.replace("sum(items)", "0")
    assert result(f"```python\n{draft}```\nOops.\n```python\n{SIMPLE}```\n") == 6
    assert result(f"```python\n{SIMPLE}```\nNot this:\n```python\n{draft}```\n") == 0


def test_a_program_with_side_effects_in_another_block_is_not_run() -> None:
    assert result(f"```python\n{SIMPLE}```\n```python\nraise SystemExit\n```\n") == 6


prose = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="`~>"), max_size=40).filter(
    lambda text: "I WANT TO ANSWER" not in text
)
fences = st.sampled_from(["```", "````", "~~~"])
languages = st.sampled_from(["", "python", "Python", "py", "python3", " python ", "PYTHON"])


@given(prose, fences, languages, prose, st.booleans(), st.booleans())
def test_no_prose_around_a_fence_loses_the_function(
    before: str, fence: str, language: str, after: str, closed: bool, marker: bool
) -> None:
    answer = f"{before}\n{'I WANT TO ANSWER:' if marker else ''}\n{fence}{language}\n{SIMPLE}"
    if closed:
        answer += f"{fence}\n{after}"
    assert result(answer) == 6


sentences = st.lists(
    st.sampled_from(["Here", "is", "the", "function", "you", "want", "it's", "2", "ok?"]), min_size=2
)


@given(sentences, sentences)
def test_no_sentence_around_bare_code_loses_the_function(before: list[str], after: list[str]) -> None:
    answer = f"Well {' '.join(before)}:\n\n{SIMPLE}\nWell {' '.join(after)}.\n"
    assert result(answer) == 6


@given(st.text(max_size=200))
def test_any_text_has_readings(text: str) -> None:
    assert all(isinstance(each, str) for each in readings(text, "solve"))
    assert len(readings(text, "solve")) >= 1


@given(st.lists(st.sampled_from(["```", "~~~", "```python", "x = 1", "", "    y", "`", "````"]), max_size=12))
def test_blocks_hold_only_lines_of_the_text(lines: list[str]) -> None:
    for block in fenced_blocks("\n".join(lines)):
        assert {line.strip() for line in block.text.split("\n")} <= {line.strip() for line in lines} | {""}


FLOOD = {
    "spaces in a fence": "```" + " " * MAX_ANSWER_CHARACTERS + "`",
    "thousands of blocks": "```\nsolve=1\n```\n" * (MAX_ANSWER_CHARACTERS // 16),
    "backticks": "`" * MAX_ANSWER_CHARACTERS,
    "fences that never close": "```x\n" * (MAX_ANSWER_CHARACTERS // 5),
    "words": "def " * (MAX_ANSWER_CHARACTERS // 4),
    "one long word": "```\n" + "a" * MAX_ANSWER_CHARACTERS,
    "quotes": ">" * MAX_ANSWER_CHARACTERS,
    "newlines": "```" + "\n" * MAX_ANSWER_CHARACTERS,
}


@pytest.mark.timeout(120)  # a guard: it takes hours where a pattern tries every way to match
@pytest.mark.parametrize("flood", FLOOD.values(), ids=FLOOD)
def test_hostile_text_is_read_to_its_end(flood: str) -> None:
    assert len(readings(flood, "solve")) < 200


@pytest.mark.parametrize("wrapping", ["{code}", "```python\n{code}```", "Look:\n~~~\n{code}~~~\nBye."])
def test_fences_at_the_margin_of_a_docstring_do_not_cut_the_code(wrapping: str) -> None:
    code = CODE.replace("    ```", "```")
    assert result(wrapping.replace("{code}", code)) == 6
