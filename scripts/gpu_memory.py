"""Simulates the training steps of the recipes for GPUs and writes the table of docs/train-on-gpus.md.

    python scripts/gpu_memory.py

The simulation takes no GPU, and about a minute on an idle core.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from sweetrl.experiments.hardware import TrainingPlan, processes_of
from sweetrl.settings import Recipe, load_experiment

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "train-on-gpus.md"
BEGIN, END = "<!-- by scripts/gpu_memory.py -->\n", "<!-- end -->\n"
Case = tuple[str, str, dict[str, Any]]
CASES: tuple[Case, ...] = (
    ("backend_8b", "as it is", {}),
    ("backend_8b", "without `gradient_checkpointing`", {"gradient_checkpointing": False}),
    ("backend_8b", "`max_tokens = 8192`", {"max_tokens": 8192, "tokens_per_pass": 8192}),
    ("backend_70b", "as it is", {}),
    ("one_gpu", "as it is; adapters are not simulated", {}),
    ("one_gpu", "without `lora_rank`", {"lora_rank": None}),
)


def rows() -> Iterator[str]:
    """A line for each case."""
    yield "| recipe | policy | GPUs | GiB on each | GiB a host | GiB of disk |"
    yield "|---|---|---|---|---|---|"
    with ThreadPoolExecutor() as pool:
        yield from pool.map(row, CASES)


def row(case: Case) -> str:
    """The training of the policy on the longest pair of dialogues."""
    name, label, changes = case
    recipe = load_experiment(ROOT / "recipes" / f"{name}.toml", [], lambda _: None)
    if not isinstance(recipe, Recipe) or recipe.policy is None:
        raise SystemExit(f"{name}: is no recipe that trains a policy")
    section = msgspec.structs.replace(recipe.policy, **changes)
    machines, processes = processes_of(section.launcher)
    demand = TrainingPlan(recipe, section, recipe.algorithm).demand()
    numbers = " | ".join(
        "?" if each is None else f"{each:.1f}" for each in (demand.gpu, demand.host, demand.disk)
    )
    return f"| `{name}` | {label} | {machines * processes} | {numbers} |"


def main() -> None:
    """Rewrite the table in its page."""
    table = "".join(f"{row}\n" for row in rows())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table + END + rest.partition(END)[2])
    sys.stdout.write(table)


if __name__ == "__main__":
    main()
