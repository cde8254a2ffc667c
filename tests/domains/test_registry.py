"""Domains by name: built in, installed by others, or from a module of one's own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from sweetrl.domains import registry
from sweetrl.domains.sources import load_tasks, read_tasks
from sweetrl.errors import DataError, UsageError
from sweetrl.types import Task

PARCELS = """
from sweetrl.domains.domain import Domain, Prompts
from sweetrl.prompts import Prompt
from sweetrl.types import Secret, Task


class ParcelSecret(Secret, frozen=True):
    price: int


def make_tasks(split, count, seed):
    for number in range(count):
        yield Task(id=f"p{number}", domain="parcels", split=split, request="?", secret=ParcelSecret(seed))


def text(name):
    return Prompt(f"{name} of parcels", source=f"{name}-parcels")


PARCELS = Domain(
    name="parcels",
    secret=ParcelSecret,
    reference=lambda secret: str(secret.price),
    prompts=Prompts(
        agent=text("agent"), single_turn=text("single"), collaborator=text("person"), privileged=text("secret")
    ),
    generators={"mini-parcels": make_tasks},
    parse_line=lambda line: {"request": line["question"], "secret": {"price": line["price"]}},
)
OTHER = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of one's own, with a domain in it."""
    name = f"parcels_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PARCELS)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    registry.forget()


def installed(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = {name: EntryPoint(name, value, registry.GROUP) for name, value in values.items()}
    monkeypatch.setattr(registry, "_installed", lambda: entries)


def test_the_domains_of_the_package_are_found_by_name() -> None:
    assert {name: registry.find_domain(name).name for name in registry.BUILT_IN} == {
        "backend": "backend",
        "chat": "chat",
        "frontend": "frontend",
    }


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="there is no domain 'fronted'; did you mean 'frontend'"):
        registry.find_domain("fronted")


def test_a_name_that_resembles_nothing_gets_the_next_step() -> None:
    with pytest.raises(
        UsageError, match=r"'parcels' is not installed; install .* or give --domain MODULE:OBJECT"
    ):
        registry.find_domain("parcels")


def test_a_domain_of_ones_own_module_is_known_once_it_is_used(module: str) -> None:
    assert registry.use_domain(f"{module}:PARCELS").name == "parcels"
    assert registry.find_domain("parcels").reply_limit == 400
    assert [task.id for task in read_tasks("mini-parcels:train:2:9")] == ["p0", "p1"]


def test_tasks_that_name_no_domain_are_of_the_one_in_use(module: str, tmp_path: Path) -> None:
    path = tmp_path / "raw_test.jsonl"
    path.write_text('{"question": "How much?", "price": 7}\n')
    with pytest.raises(DataError, match="name that with --domain"):
        load_tasks(path)
    domain = registry.use_domain(f"{module}:PARCELS")
    [task] = load_tasks(path).values()
    assert task == Task(
        id="raw_test-0",
        domain="parcels",
        split="test",
        request="How much?",
        secret=domain.secret(7),  # type: ignore[call-arg]
    )


def test_a_line_without_what_the_domain_needs_is_named(module: str, tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    registry.use_domain(f"{module}:PARCELS")
    path.write_text('{"question": "How much?", "price": "seven"}\n')
    with pytest.raises(DataError, match=r"raw.jsonl:1: Expected `int`, got `str` - at `\$.secret.price`"):
        load_tasks(path)
    path.write_text('{"question": "How much?"}\n')
    with pytest.raises(DataError, match=r"raw.jsonl:1: not a line of the domain parcels: KeyError: 'price'"):
        load_tasks(path)


def test_the_environment_can_name_domains(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.VARIABLE, f"{module}:PARCELS")
    assert registry.find_domain("parcels").name == "parcels"
    assert "parcels" in registry.names()


@pytest.mark.parametrize(
    ("attribute", "complaint"),
    [
        ("MISSING", "cannot load this domain: AttributeError"),
        ("OTHER", "is no sweetrl.Domain but a int"),
    ],
)
def test_a_specification_that_is_no_domain_is_told_why(module: str, attribute: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        registry.use_domain(f"{module}:{attribute}")


def test_an_installed_domain_is_found_by_its_entry_point(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, parcels=f"{module}:PARCELS")
    assert registry.find_domain("parcels").name == "parcels"


def test_a_module_that_is_not_found_is_told_how_it_can_be() -> None:
    with pytest.raises(UsageError, match=r"No module named 'prices'.*PYTHONPATH=\."):
        registry.use_domain("prices:PRICE")


def test_a_broken_entry_point_gives_one_line_and_the_others_go_on(
    module: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    installed(monkeypatch, parcels=f"{module}:PARCELS", zz="no_such_module_at_all:THING")
    registry._complain.cache_clear()
    assert [domain.name for domain in registry.all_domains()] == ["backend", "chat", "frontend", "parcels"]
    [record] = caplog.records
    assert "the entry point zz is broken: no_such_module_at_all:THING: cannot load" in record.message
    with pytest.raises(UsageError, match="the entry point zz is broken"):
        registry.find_domain("zz")


def test_a_scorer_tells_its_domain_by_its_name() -> None:
    found = registry.domain_of_scorer("frontend-layout/2")
    assert found is not None
    assert found.name == "frontend"
    assert registry.domain_of_scorer("published") is None


def test_a_domain_is_loaded_without_browser_sandbox_and_numpy() -> None:
    code = """
import sys
from sweetrl.domains import registry
names = [domain.name for domain in registry.all_domains()]
heavy = [name for name in ("numpy", "sweetrl.sandbox", "sweetrl.browser", "PIL") if name in sys.modules]
print(names, heavy)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['backend', 'chat', 'frontend'] []"


def test_the_domain_of_the_documentation_is_evaluated_as_written(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/domains.md").read_text()
    [source] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "prices.py").write_text(source)
    (tmp_path / "tasks.jsonl").write_text('{"request": "What does it cost?", "secret": {"price": "7"}}\n')
    [command] = re.findall(
        r"^    PYTHONPATH=\. sweetrl (evaluate .*?-o run)$", page, re.MULTILINE | re.DOTALL
    )
    ended = subprocess.run(
        [sys.executable, "-m", "sweetrl", *command.replace("\\\n", " ").split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "right prices, %" in ended.stdout
