"""No honest answer is denied for how it is written: from an agent's raw output to the code that is run."""

import html
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.dialogue.rules import Rules, conclude, spoken
from sweetrl.domains.backend.answers import readings
from sweetrl.domains.backend.calls import main_function
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.scorer import BackendScorer
from sweetrl.domains.sources import read_tasks
from sweetrl.sandbox import Sandbox
from sweetrl.types import Outcome, Task

CODE = """import math

def solve(items):
    total = sum(items)

    return math.floor(total)
"""
WRONG = "def solve(items):\n    return None\n"
HELPER = "def helper(items):\n    return sum(items)\n"
MAIN = "def solve(items):\n    return helper(items)\n"
MARK = "I WANT TO ANSWER:"


def source_of(output: str, rules: Rules, function: str = "solve") -> str:
    """What the sandbox would run of an agent's last output."""
    conclusion = conclude(BACKEND, [spoken(output)], rules)
    assert conclusion is not None, "the dialogue goes on"
    for source in readings(conclusion.answer or "", function):
        try:
            code = compile(source, "<answer>", "exec")
        except (SyntaxError, ValueError):
            continue
        if function in code.co_names:
            return source
    raise AssertionError(f"nothing defines {function} in {conclusion.answer!r}")


def result(output: str, rules: Rules) -> object:
    scope: dict[str, Callable[[list[int]], object]] = {}
    exec(source_of(output, rules), scope)
    return scope["solve"]([1, 2, 3])


def indented(text: str, by: str = "    ") -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}```\n"


def numbered(code: str, form: str) -> str:
    return "\n".join(form.format(at, line) for at, line in enumerate(code.splitlines(), 1)) + "\n"


def with_line(line: str) -> str:
    """The code with a line more in its function."""
    return CODE.replace("    total = sum(items)\n", f"    total = sum(items)\n    {line}\n")


DOCSTRING = '"""Adds up.\n\n    {}\n    """'

# ---------------------------------------------------------------- forms that need no marker

FORMS = {
    # markers in code
    "OUTPUT in a print": with_line('print("OUTPUT:", total)'),
    "OUTPUT in single quotes": with_line("print('OUTPUT: ', total)"),
    "OUTPUT in an f-string": with_line('print(f"the OUTPUT: {total}")'),
    "OUTPUT in a comment": with_line("# OUTPUT: a number"),
    "OUTPUT behind code": with_line("pass  # OUTPUT: a number"),
    "OUTPUT in a docstring": with_line(DOCSTRING.format("OUTPUT: a number")),
    "OUTPUT at the margin of a docstring": with_line('"""\nOUTPUT:\nI say\n"""'),
    "OUTPUT in a top-level comment": f"# INPUT: a list\n# OUTPUT: a number\n{CODE}",
    "OUTPUT in a constant": f'LABEL = "OUTPUT: "\n{CODE}',
    "OUTPUT as a name": f"OUTPUT = 1\n{with_line('if total == OUTPUT: pass')}",
    "OUTPUT in fenced code": fenced(with_line('print("OUTPUT:", total)')),
    "OUTPUT at the margin of fenced code": fenced("OUTPUT: int = 3\n" + CODE),
    "OUTPUT in tabs": with_line('print("OUTPUT:", total)').replace("    ", "\t"),
    "marker in a comment": with_line(f"# {MARK} soon"),
    "marker in a top-level comment": CODE.replace("\n\ndef", f"\n# {MARK} soon\ndef"),
    "marker in a string": with_line(f'note = "{MARK} now"'),
    "marker in a docstring": with_line(DOCSTRING.format(f"{MARK} is what agents say.")),
    "marker at the margin of a docstring": with_line(f'"""\n{MARK}\nI say\n"""'),
    "both in strings": with_line(f'note = ["OUTPUT:", "{MARK}"]'),
    "reasoning tags in a string": with_line('note = "<think>a</think>"'),
    # fences
    "python": fenced(CODE),
    "Python": fenced(CODE, "Python"),
    "py": fenced(CODE, "py"),
    "py3": fenced(CODE, "py3"),
    "PYTHON3": fenced(CODE, "PYTHON3"),
    "no language": fenced(CODE, ""),
    "language in braces": fenced(CODE, "{.python}"),
    "file name": fenced(CODE, "solution.py"),
    "tildes": f"~~~\n{CODE}~~~",
    "tildes with a language": f"~~~python\n{CODE}~~~",
    "tildes that stay open": f"~~~python\n{CODE}",
    "longer fence": f"`````python\n{CODE}`````",
    "fence that stays open": f"```python\n{CODE}",
    "quoted block": "".join(f"> {line}\n" for line in fenced(CODE).splitlines()),
    "list item": f"1. Like so:\n\n{indented(fenced(CODE))}",
    "fences in quotes": f"“```python\n{CODE}```”",
    "language without a fence": f"python\n{CODE}",
    "nested fences": fenced(with_line(DOCSTRING.format("```\n    solve([1])\n    ```"))),
    "nested fences with a definition": with_line(
        DOCSTRING.format("```python\n    def solve(items): ...\n    ```")
    ),
    "nested fences at the margin": fenced(with_line('"""\n```python\nsolve([1])\n```\n"""')),
    "one line in backticks": "Use `solve = lambda items: sum(items)` here.",
    # several blocks
    "helper first": f"First\n{fenced(HELPER)}then\n{fenced(MAIN)}",
    "helper last": f"{fenced(MAIN)}It uses\n{fenced(HELPER)}",
    "imports apart": f"{fenced('import math')}\n{fenced(CODE.removeprefix('import math'))}".replace(
        "math```", "math\n```"
    ),
    "constant apart": fenced("LIMIT = 0\n") + fenced(with_line("total += LIMIT")),
    "constants apart, several at once": fenced("LOW, HIGH = 0, 0\n") + fenced(with_line("total += HIGH")),
    "imports apart over several lines": fenced("from math import (\n    ceil,\n    floor,\n)\n")
    + fenced(with_line("total = floor(total)")),
    "imports of everything apart": fenced("from math import *\n") + fenced(with_line("total = floor(total)")),
    "test that imports everything from the solution": fenced(CODE)
    + fenced("from solution import *\n\ndef test_solve():\n    assert solve([1]) == 1\n"),
    "diff": fenced("".join(f"+{line}" for line in CODE.splitlines(keepends=True)), "diff"),
    "diff of a draft": fenced(
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,4 @@\n import math\n"
        "-def solve(items):\n-    return None\n+def solve(items):\n+    return sum(items)\n"
    ),
    "diff before the code": fenced("-def solve(items):\n+def solve(items, start=0): ...\n", "diff") + fenced(CODE),
    "helper with a call of its own": fenced(f"{HELPER}print(helper([1]))\n") + fenced(MAIN),
    "usage after": f"{fenced(CODE)}Use it so:\n{fenced('print(solve([1, 2]))' + chr(10))}",
    "usage with the names of the code": fenced(CODE) + fenced("items = [1]\ntotal = solve(items)\nassert 0\n"),
    "test that fails": fenced(CODE) + fenced("assert solve([1]) == 2\n"),
    "test that loops": fenced(CODE) + fenced("while True:\n    solve([1])\n"),
    "test that needs a package": fenced(CODE)
    + fenced("import no_such_package\n\ndef test_solve():\n    assert solve([1]) == 1\n"),
    "test cases": fenced(CODE)
    + fenced("import unittest\n\nclass T(unittest.TestCase):\n    pass\n\nunittest.main()\n"),
    "draft, then final": f"{fenced(WRONG)}No:\n{fenced(CODE)}",
    "signature, then code": fenced("def solve(items) -> int:\n") + fenced(CODE),
    "code, then signature": fenced(CODE) + fenced("def solve(items) -> int:\n"),
    "shell and output": fenced("pip install x\n", "bash") + fenced(CODE) + fenced("solve = 6\n", "text"),
    "alternative": f"{fenced(CODE)}Alternatively:\n{fenced('def solve(items):' + chr(10) + '    return 6')}"
    .replace("6```", "6\n```"),
    # prose
    "raw": CODE,
    "prose before": f"Here is the function, from what I understand:\n\n{CODE}",
    "prose before a constant": f"Here it is:\n\nLIMIT = 0\n\n{with_line('total += LIMIT')}",
    "prose with words of code": f"import the module, then:\nfrom here on it is easy.\n\n{CODE}",
    "prose after": f"{CODE}\nLet me know if that's what you want.\n",
    "one word before": f"Certainly\n\n{CODE}",
    "two words before": f"Solution: below\n\n{CODE}",
    "one word after": f"{CODE}\n\nDone\n",
    "a note after": f"{CODE}\n\nNote: fast\n",
    "HTML tags": f"<answer>\n{CODE}</answer>",
    "CDATA": f"<answer><![CDATA[\n{CODE}]]></answer>",
    "tokens of a chat template": f"[/INST] {CODE}</s>",
    "tokens of another template": f"<|python_tag|>{CODE}<|eom_id|>",
    "HTML code": f"<pre><code>{CODE}</code></pre>",
    # characters
    "CRLF": CODE.replace("\n", "\r\n"),
    "CR": CODE.replace("\n", "\r"),
    "BOM": "\ufeff" + CODE,
    "BOM in a fence": fenced("\ufeff" + CODE),
    "tabs": CODE.replace("    ", "\t"),
    "non-breaking spaces": CODE.replace("    ", "\u00a0" * 4),
    "zero-width spaces": CODE.replace("(", "(\u200b"),
    "smart quotes": with_line("note = “a” + ‘b’"),
    "escaped for a page": html.escape(with_line('if total < 0 and items > ["&"]: pass')),
    "a whole block indented": indented(CODE),
    "a whole block indented by two": indented(CODE, "  "),
    "a whole block indented by a tab": indented(CODE, "\t"),
    "line numbers with colons": numbered(CODE, "{}: {}"),
    "line numbers with bars": numbered(CODE, "{:>3} | {}"),
    "line numbers in a fence": fenced(numbered(CODE, "{} {}")),
    "notebook prompts": "In [1]: def solve(items):\n   ...:     return sum(items)\n   ...:\n",
    "JSON": json.dumps({"explanation": "A sum.", "code": CODE}),
    "JSON in a fence": fenced(json.dumps({"answer": fenced(CODE)}, indent=1) + "\n", "json"),
    "tool call": json.dumps({"name": "submit", "arguments": json.dumps({"code": CODE})}),
    "notebook": json.dumps(
        {
            "cells": [
                {"cell_type": "markdown", "source": ["# solve\n"]},
                {"cell_type": "code", "source": ["!pip install x\n", "%time\n", "import math\n"]},
                {"cell_type": "code", "source": CODE.removeprefix("import math").splitlines(keepends=True)},
            ]
        }
    ),
    "escaped line breaks": CODE.strip("\n").replace("\n", "\\n"),
    "a literal of a string": repr(CODE.strip("\n")),
    "escaped as in Markdown": with_line("a_b = 1").replace("_", "\\_"),
    "signature, then bare code": f"def solve(items)\n\n{CODE}",
    "label before an import": f"Answer: {CODE}",
    "indented block after prose": f"**Here it is:**\n\n{indented(CODE)}\nDone, I think.\n",
    "value of a YAML file": f"answer: |\n{indented(CODE, '  ')}",
    "a point after": f"{CODE}\n- quick\n",
    "diff of a new file": fenced(
        "diff --git a/x.py b/x.py\nnew file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/x.py\n@@ -0,0 +1,9 @@\n"
        + "".join(f"+{line}" for line in CODE.splitlines(keepends=True)),
        "diff",
    ),
    "code, then a stub": fenced(CODE) + "You call:\n" + fenced("def solve(items) -> int: ...\n"),
    "code, then a stub of two lines": fenced(CODE) + fenced("def solve(items):\n    pass\n"),
    "interpreter prompts": ">>> import math\n>>> def solve(items):\n...     return math.floor(sum(items))\n",
    # shapes of code
    "method": f"class Solution:\n{indented(HELPER.replace('helper(items', 'solve(self, items'))}",
    "static method": f"class Solution:\n    @staticmethod\n{indented(HELPER.replace('helper', 'solve'))}",
    "main guard": f'{CODE}\nif __name__ == "__main__":\n    raise SystemExit(solve([1]))\n',
    "lambda": "solve = lambda items: sum(items)\n",
    "annotated": "from typing import Callable\n\nsolve: Callable[..., int] = lambda items: sum(items)\n",
}  # fmt: skip

DRESSINGS = {
    "as it is": "{}",
    "after a thought": 'THOUGHT: It\'s easy, "really".\nOUTPUT:\n{}',
    "after a bold thought": "I could say I WANT TO ANSWER: now.\n\n**OUTPUT:**\n{}",
    "after a thought with code": f"{fenced(WRONG)}seems wrong.\nOUTPUT:\n{{}}",
    "after reasoning": f"<think>\n{WRONG}\nOUTPUT: I WANT TO ANSWER: x\n</think>\n\n{{}}",
}
MARKED = {
    "marker": f"{MARK}\n{{}}",
    "prose before the marker": f"Thanks, that's all I need!\n\n{MARK}\n{{}}",
    "thought, then marker": f"They want a sum. I think I WANT TO ANSWER: fits.\nOUTPUT:\n{MARK}\n{{}}",
    "a draft in the thought": f"{WRONG}\nis not it.\nOUTPUT:\n{MARK}\n{{}}",
    "lower case": "I want to answer:\n{}",
    "bold": f"**{MARK}**\n\n{{}}",
    "bold without its colon": "**I WANT TO ANSWER**:\n{}",
    "marker twice": f"{MARK}\n{WRONG}\nWait, that is wrong.\n\n{MARK}\n{{}}",
    "reasoning, then marker": f"<think>{MARK} or not?</think>\n{MARK}\n{{}}",
    "marker in a heading": f"## {MARK}\n\n{{}}",
    "marker in a list": "3. **I want to answer:**\n{}",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_last_message_is_an_answer_in_every_honest_form(form: str) -> None:
    for name, dressing in DRESSINGS.items():
        assert result(dressing.replace("{}", FORMS[form]), Rules(turn_limit=1)) == 6, name


@pytest.mark.parametrize("form", FORMS)
def test_a_marked_answer_is_read_in_every_honest_form(form: str) -> None:
    for name, dressing in MARKED.items():
        assert result(dressing.replace("{}", FORMS[form]), Rules()) == 6, name


@pytest.mark.parametrize(
    "output",
    [
        f"{MARK} {fenced(CODE)}",
        f"Sure! {MARK} {fenced(CODE)}Bye.",
        f"Sure! {MARK}\n{with_line('print(chr(10), chr(34), repr(total))')}",
        f"{MARK}\n\n\n{CODE}",
        f"{MARK}{CODE}",
        f"{fenced(CODE)}\n{MARK}",
        f"```\n{MARK}\n{CODE}```",
        f"```\nOUTPUT:\n{MARK}\n{CODE}```",
        f"> {MARK}\n{CODE}",
        f"- {MARK}\n{fenced(CODE)}",
        f"`{MARK}`\n{fenced(CODE)}",
        f"{MARK}\n{fenced(CODE)}\nINPUT: [1, 2]\nOUTPUT: 3\n",
        f"Thanks! {MARK} {fenced(CODE)}\nOUTPUT: 3\n",
        f"{MARK}\n{CODE}<|eot_id|>",
        f"{MARK}\n{fenced(CODE)}\n{MARK}",
        f"I\u00a0WANT\u00a0TO\u00a0ANSWER:\n{CODE}",
        f"OUTPUT: {MARK} {fenced(CODE)}",
        f"Form: OUTPUT: {MARK} code.\nOUTPUT:\n{MARK}\n{CODE}",
        f"I will use `{MARK}` now.\n\n{CODE}",
        f"\r\n{MARK}\r\n{CODE}".replace("\n", "\r\n"),
    ],
)  # fmt: skip
def test_the_marker_may_stand_anywhere_around_the_code(output: str) -> None:
    assert result(output, Rules()) == 6


# ---------------------------------------------------------------- one answer, not a menu


MENU = [f"def solve(items):\n    return {value}\n" for value in range(8)]


def test_of_several_answers_the_last_one_is_read_whatever_they_return() -> None:
    for answers in (MENU, MENU[::-1]):
        last = int(answers[-1].split()[-1])
        assert result(MARK + "\n" + "Or:\n".join(map(fenced, answers)), Rules()) == last
        assert result("\n".join(f"{MARK}\n{code}" for code in answers), Rules()) == last


def test_code_that_was_only_thought_is_no_answer() -> None:
    with pytest.raises(AssertionError, match="nothing defines solve"):
        source_of(f"{fenced(CODE)}\nOUTPUT:\nI give up.", Rules(turn_limit=1))


def test_readings_of_an_answer_do_not_depend_on_what_was_read_before() -> None:
    before = readings(FORMS["helper first"], "solve")
    readings(FORMS["draft, then final"], "solve")
    assert readings(FORMS["helper first"], "solve") == before


# ---------------------------------------------------------------- real references

PROSE = (
    "Here it is.",
    "It's \"simple\", isn't it?",
    "From what you said:",
    "1. Read\n2. Sum",
    "",
    "Note: fast.",
)
NEWLINES = ("\n", "\r\n")
FENCES = ("```{}\n{}\n```", "~~~{}\n{}\n~~~", "````{}\n{}\n````", "{0:.0}{1}")
LANGUAGES = ("", "python", "Python", "py3")


def dressed(code: str, draw: Callable[[tuple[str, ...]], str]) -> str:
    """The code as an honest agent might send it."""
    body = draw(FENCES).format(draw(LANGUAGES), code.strip("\n"))
    usage = draw(("", "", "\nFor example:\n```python\nassert False\n```", "\n```text\n3\n```"))
    # Bare code may be followed by prose only if a blank line parts them.
    after = draw(PROSE)
    text = f"{draw(PROSE)}\n\n{body}\n{usage}\n\n{after}"
    marked = draw((f"{MARK}\n", f"**{MARK}**\n", f"Thanks!\n{MARK}\n", "I want to answer:\n", f"{MARK} "))
    thought = draw(
        ("", "I think so.\nOUTPUT:\n", 'They said "OUTPUT: x".\n\nOUTPUT: ', f"So, {MARK}\nOUTPUT:\n")
    )
    return (thought + marked + text).replace("\n", draw(NEWLINES))


@pytest.fixture(scope="module")
def tasks(colbench_dir: Path) -> list[Task]:
    return list(read_tasks(str(colbench_dir / "backend_dev.jsonl")))


def top_level(source: str) -> object:
    """What the source comes to, its names of files and lines apart."""
    code = compile(source, "<answer>", "exec")
    return code.co_names, code.co_code, [getattr(each, "co_code", each) for each in code.co_consts]


def test_no_dressing_changes_the_code_that_is_read_of_500_references(tasks: list[Task]) -> None:
    dice = random.Random(7)
    lost = []
    for task in tasks:
        function = main_function(task.request, task.secret.tests)  # type: ignore[union-attr]
        reference = task.secret.reference  # type: ignore[union-attr]
        for _ in range(4):
            output = dressed(reference, dice.choice)
            if top_level(source_of(output, Rules(), function)) != top_level(reference):
                lost.append((task.id, output))
    assert lost == []


@given(st.data(), st.integers(0, 499))
def test_no_dressing_hides_a_real_reference(tasks: list[Task], data: st.DataObject, number: int) -> None:
    task = tasks[number]
    output = dressed(task.secret.reference, lambda options: data.draw(st.sampled_from(options)))  # type: ignore[union-attr]
    function = main_function(task.request, task.secret.tests)  # type: ignore[union-attr]
    assert top_level(source_of(output, Rules(), function)) == top_level(task.secret.reference)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def scorer() -> Iterator[BackendScorer]:
    with Sandbox() as sandbox:
        scorer = BackendScorer(sandbox)
        yield scorer
        scorer.close()


def test_no_dressing_changes_the_score_in_the_sandbox(tasks: list[Task], scorer: BackendScorer) -> None:
    dice = random.Random(8)
    for task in tasks[::20]:
        plain = scorer.checks(task, task.secret.reference)  # type: ignore[union-attr]
        conclusion = conclude(BACKEND, [spoken(dressed(task.secret.reference, dice.choice))], Rules())  # type: ignore[union-attr]
        assert conclusion is not None
        assert scorer.checks(task, conclusion.answer) == plain
        assert any(check.outcome is Outcome.PASSED for check in plain)


def test_every_honest_form_scores_in_the_sandbox(scorer: BackendScorer, tmp_path: Path) -> None:
    line = {
        "problem_description": "def solve(items)",
        "ground_truth": CODE,
        "test_cases": {"a": "solve([1, 2])"},
    }
    (tmp_path / "tasks.jsonl").write_text(json.dumps(line) + "\n")
    [task] = read_tasks(str(tmp_path / "tasks.jsonl"))
    denied = [
        form
        for form, answer in FORMS.items()
        if form != "alternative" and scorer.checks(task, answer)[0].outcome is not Outcome.PASSED
    ]
    assert denied == []
