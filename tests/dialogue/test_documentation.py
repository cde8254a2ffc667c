"""The page about dialogues says what is so."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.registry import all_domains
from sweetrl.types import Task

PAGE = (Path(__file__).parents[2] / "docs/dialogues.md").read_text()


def test_the_example_runs_as_it_stands(tmp_path: Path) -> None:
    secret = BackendSecret(reference="def f(): return 1", tests={"test1": "f()"})
    tasks = [Task(id=f"t{n}", domain="backend", request="Write f.", secret=secret) for n in range(3)]
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    ended = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    wanted = [f"t{n}#{attempt} answered 3 turns" for n in range(3) for attempt in range(2)]
    assert sorted(ended.stdout.splitlines()) == wanted


def test_every_field_of_the_shipped_prompts_is_described() -> None:
    fields = frozenset().union(*(domain.prompts.collaborator.fields for domain in all_domains()))
    assert fields == {name for name in fields if f"`{{{name}}}`" in PAGE}


def test_the_page_shows_the_stored_measurements() -> None:
    stored = msgspec.json.decode((Path(__file__).parents[2] / "benchmarks/results/rollout.json").read_bytes())
    rows = re.findall(r"^\| .* \| (\d+\.\d) \|$", PAGE, re.MULTILINE)
    names = ("ideal", "sweetrl", "lock_step_all_at_once", "lock_step_in_batches")
    assert rows == [f"{stored['wall_seconds'][name]:.1f}" for name in names]
