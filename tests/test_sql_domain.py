"""The example of a domain of one's own: text-to-SQL, written on the public API alone."""

import ast
import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import sweetrl
from conftest import CHECKOUT
from models.tiny_llama import save_tiny_llama
from sweetrl.domains import registry

EXAMPLE = CHECKOUT / "examples/sql_domain"
SOURCES = sorted((EXAMPLE / "src").rglob("*.py"))
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[sweetrl.Task]]:
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    sweetrl.use_domain("sweetrl_sql:SQL")
    yield sweetrl.load_tasks("mini-sql:test:8")
    registry.forget()


def answered(task: sweetrl.Task, answer: str) -> sweetrl.Episode:
    return sweetrl.Episode(
        task_id=task.id, attempt=0, seed=0, agent="a", collaborator="c", request=task.request, turns=(),
        ending=sweetrl.Ending.ANSWERED, answer=answer,
    )  # fmt: skip


def success(tasks: list[sweetrl.Task], agent: str, attempts: int) -> float:
    episodes = sweetrl.rollout(tasks, agent=agent, collaborator="analyst", attempts=attempts)
    verdicts = sweetrl.score(tasks, episodes)
    return sum(verdict.success for verdict in verdicts) / len(verdicts)


def test_it_is_short_and_imports_the_public_names_alone() -> None:
    assert sum(len(path.read_text().splitlines()) for path in SOURCES) <= 300
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sweetrl"):
                assert node.module == "sweetrl" or node.module.startswith("sweetrl_sql")
                if node.module == "sweetrl":
                    assert {alias.name for alias in node.names} <= set(sweetrl.__all__)


def test_who_asks_for_everything_always_succeeds_and_who_guesses_seldom(tasks: list[sweetrl.Task]) -> None:
    assert success(tasks, "sql-oracle", 1) == 1.0
    assert success(tasks, "sql-guesser", 4) < 0.6


def test_the_same_seed_makes_the_same_tasks_and_another_split_others(tasks: list[sweetrl.Task]) -> None:
    assert sweetrl.load_tasks("mini-sql:test:8") == tasks
    others = sweetrl.load_tasks("mini-sql:train:8")
    assert [task.secret for task in others] != [task.secret for task in tasks]


def test_rows_count_in_any_order_and_other_spellings_of_the_query_do_too(tasks: list[sweetrl.Task]) -> None:
    query = tasks[0].secret.query  # type: ignore[attr-defined]
    (verdict,) = sweetrl.score(tasks[:1], [answered(tasks[0], f"{query} ORDER BY 2 DESC")])
    assert verdict.success


@pytest.mark.parametrize(
    "query",
    ["", "SELECT", "DROP TABLE orders", "ATTACH DATABASE '/etc/passwd' AS p", "SELECT 1; SELECT 2", ENDLESS],
)
def test_a_query_that_is_wrong_hostile_or_endless_earns_nothing(
    tasks: list[sweetrl.Task], query: str
) -> None:
    (verdict,) = sweetrl.score(tasks[:1], [answered(tasks[0], query)])
    assert verdict.reward == 0.0


# ---------------------------------------------------------------- installed


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment into which pip has installed the example; what it needs is borrowed from this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    packages = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    borrowed = [sysconfig.get_path("purelib"), str(Path(sweetrl.__file__).parents[1])]
    (Path(packages.strip()) / "borrowed.pth").write_text("\n".join(borrowed))
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", EXAMPLE]
    subprocess.run(install, check=True)
    return python


@pytest.mark.slow
def test_an_installed_domain_goes_from_tasks_to_a_trained_policy_and_a_report(
    environment: Path, tmp_path: Path
) -> None:
    model = save_tiny_llama(tmp_path / "model")
    small = {
        "tasks.train": "mini-sql:train:6",
        "tasks.test": "mini-sql:test:2",
        "agent.max_tokens": "8",
        "candidates.n": "4",
        **{f"{part}.model": str(model) for part in ("critic", "policy")},
        **{f"{part}.max_steps": "2" for part in ("critic", "policy")},
    }
    settings = [word for key, value in small.items() for word in ("--set", f"{key}={value}")]

    def sweetrl_command(*words: object) -> None:
        done = subprocess.run(
            [environment, "-m", "sweetrl", *map(str, words)],
            cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    sweetrl_command("run", EXAMPLE / "recipe.toml", *settings, "--quiet")
    run = tmp_path / "runs/sql"
    assert (run / "turn_pairs.jsonl").read_text()
    assert (run / "policy/model.safetensors").exists()
    (metrics,) = run.glob("evaluation*/metrics.json")
    assert json.loads(metrics.read_text())["dialogues"] == 2
    sweetrl_command("report", metrics.parent, "-o", tmp_path / "report.html")
    assert "mini-sql-test-0-0" in (tmp_path / "report.html").read_text()
