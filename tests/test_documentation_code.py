"""Code in the documents works: what can run is run, and what cannot is compared with the commands that there are.

The rule: a block that is marked `python` or `sh` is run as it stands. Indented blocks are not run, because they install
something, take long, need a GPU, a real model or a person, or stand for a file; their command lines must still exist.
"""

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from addition_tasks import write_addition_tasks
from command_lines import command_lines, complaint, root
from conftest import CHECKOUT
from models.hostile_server import HostileServer, in_thread
from sweetrl.cli.main import run

PAGES = {
    path.relative_to(CHECKOUT).as_posix(): path.read_text()
    for folder in (CHECKOUT, CHECKOUT / "docs", CHECKOUT / "docs/decisions", CHECKOUT / "examples/sql_domain")
    for path in sorted(folder.glob("*.md"))
}

RUN_ELSEWHERE = {
    "README.md": "tests/test_api.py",
    "docs/credit-your-logs.md": "tests/cli/test_credit_command.py",
    "docs/dialogues.md": "tests/dialogue/test_documentation.py",
    "docs/domains.md": "tests/domains/test_registry.py",
    "docs/report.md": "tests/report/test_documentation.py",
}
"""Pages whose Python is run by a test that also looks at what it does."""

BEFORE = {
    "docs/fairness.md": "import sweetrl\ncollaborator = sweetrl.load_collaborator('scripted:unsure', 'tasks.jsonl')\n",
    "docs/integrations.md": "def my_agent(messages): return 'I WANT TO ANSWER: def f(x): return x'\n",
    "docs/rendering.md": "html = '<html><body><h1>Tea</h1></body></html>'\n",
}
"""What the text around an example says that the reader has."""

NOT_RUN = {
    "docs/credit-your-logs.md": "asks a model that is not here",
    "docs/credit.md": "names a model of the reader's",
    "docs/domains.md": "asks a judge about the reader's chats; tests/cli/test_episodes_command.py imports some",
    "docs/evaluation.md": "stands for the reader's runs; tests/cli runs all four commands of credit quality",
    "docs/frontend.md": "trains a vision model of the reader's; tests/e2e/test_frontend_road.py runs the rest",
    "docs/mini-backend.md": "takes minutes, or a person at the keyboard",
    "docs/more-machines.md": "needs a cluster; tests/integrations/test_ray.py has a small one",
    "docs/quickstart.md": "takes minutes; tests/e2e/test_study.py runs a smaller one",
    "docs/recipes.md": "needs a model from the hub; tests/test_recipes.py plans every recipe",
    "docs/report.md": "stands for the reader's runs; tests/cli/test_report_command.py writes reports",
    "docs/reproducing.md": "takes hours; tests/test_study_pages.py plans these commands",
    "docs/train-on-gpus.md": "needs GPUs or a model from the hub",
    "docs/training.md": "names a model of the reader's; tests/e2e/test_training_road.py trains a tiny one",
    "docs/viewer.md": "serves pages until it is stopped",
    "docs/your-own-domain.md": "trains a model of the reader's; tests/test_sql_domain.py trains a tiny one",
    "examples/sql_domain/README.md": "installs a package; tests/test_sql_domain.py does",
}
"""Pages with indented command lines, and why these are not run."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


WITH_PYTHON = [page for page in PAGES if blocks(page, "python") and page not in RUN_ELSEWHERE]
WITH_SHELL = [page for page in PAGES if blocks(page, "sh")]


def talking(body: dict[str, Any], sample: int) -> str:
    """An agent that asks once and then answers, and a person who says yes."""
    if body["messages"][0]["role"] != "system":
        return "Yes."
    return "Really?" if len(body["messages"]) == 2 else "I WANT TO ANSWER: def f(x): return x + 2"


@pytest.fixture
def address() -> Iterator[str]:
    """Where an OpenAI-compatible server listens: any model name will do."""
    with in_thread(HostileServer(reply=talking)) as server:
        yield server.url


def with_real_addresses(text: str, address: str) -> str:
    return re.sub(r"http://(?:127\.0\.0\.1|localhost):800[01]/v1", address, text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader is: tasks, a scored run of them, and the published files in their own format."""
    monkeypatch.chdir(tmp_path)
    tasks = write_addition_tasks(tmp_path / "tasks.jsonl")
    (tmp_path / "colbench/backend_tasks").mkdir(parents=True)
    players = ("--agent", "scripted:curious", "--collaborator", "scripted:unsure")
    assert run(["evaluate", "--tasks", str(tasks), *players, "-o", "run", "--quiet"]) == 0
    assert run(["tasks", "export", str(tasks), "-o", "colbench/backend_tasks/test.jsonl"]) == 0
    return tmp_path


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_in_a_document_runs_as_it_stands(page: str, address: str, folder: Path) -> None:
    if page == "docs/rendering.md":
        pytest.importorskip("playwright", reason="showing pages needs the extra `browser`")
    for block in blocks(page, "python"):
        source = BEFORE.get(page, "") + with_real_addresses(block, address)
        code = compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, {"__name__": "__main__"})
        if inspect.isawaitable(waiting):
            asyncio.run(waiting)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", WITH_SHELL)
def test_shell_commands_in_a_document_run_as_they_stand(page: str, address: str, folder: Path) -> None:
    script = "set -eu\n" + with_real_addresses("".join(blocks(page, "sh")), address)
    example = CHECKOUT / "examples/sql_domain/src"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(example),
        "SWEETRL_DOMAINS": "sweetrl_sql:SQL",
    }
    ended = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(("page", "file"), RUN_ELSEWHERE.items())
def test_python_that_is_not_run_here_is_run_where_this_list_says(page: str, file: str) -> None:
    assert blocks(page, "python")
    assert Path(page).name in (CHECKOUT / file).read_text()


def test_tutorials_are_among_what_is_run() -> None:
    assert {"docs/evaluate-your-endpoint.md", "docs/your-own-domain.md"} <= set(WITH_SHELL)
    assert "docs/evaluate-your-endpoint.md" in WITH_PYTHON


@pytest.mark.parametrize("page", [page for page in PAGES if any(command_lines(PAGES[page]))])
def test_commands_and_options_in_a_document_exist(page: str) -> None:
    wrong = [(line, found) for line in command_lines(PAGES[page]) if (found := complaint(line))]
    assert wrong == []


def test_commands_that_are_not_run_are_on_the_list_with_a_reason() -> None:
    outside = {page: re.sub(r"^```.*?^```", "", text, flags=re.M | re.S) for page, text in PAGES.items()}
    assert {page for page, text in outside.items() if any(command_lines(text))} <= NOT_RUN.keys()


def test_the_page_of_commands_lists_all_of_them() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", PAGES["docs/commands.md"], re.MULTILINE)
    listed = {word for row in rows for names in re.findall(r"`([^`]+)`", row) for word in names.split()}
    assert {name for name, command in root().commands.items() if not command.hidden} <= listed


def test_a_command_line_with_a_mistake_is_noticed() -> None:
    assert complaint("rollout --tsaks T --agent mini") == "no option --tsaks"
    assert complaint("rolout --tasks T") == "no command rolout"
    assert complaint("train policy --no-such") == "no option --no-such"
    page = "text\n\n    sweetrl score --tasks T \\\n        -o V  # why\n"
    assert list(command_lines(page)) == ["score --tasks T -o V"]
