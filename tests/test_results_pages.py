"""What README and pages say of the study is what its data say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parent.parent
README = (CHECKOUT / "README.md").read_text()
RESULTS: dict[str, Any] = json.loads((CHECKOUT / "docs/results.json").read_text())
TUNING: dict[str, Any] = json.loads((CHECKOUT / "docs/tuning.json").read_text())
MAIN = {name: each for name, each in RESULTS["methods"].items() if each["table"] == "main"}


def percent(metric: dict[str, float]) -> str:
    return "{:.1f} ({:.1f} to {:.1f})".format(*(100 * metric[key] for key in ("value", "low", "high")))


@pytest.mark.parametrize("name", MAIN)
def test_the_readme_has_the_figures_of_the_main_table(name: str) -> None:
    figures = MAIN[name]["figures"]
    row = f"| {MAIN[name]['label']} | {percent(figures['success'])} | {100 * figures['coverage']['value']:.1f} |"
    assert row in README


def test_the_readme_has_the_steps_between_the_methods() -> None:
    told = re.sub(r"\s+", " ", README)
    for step in RESULTS["steps"]:
        if step["second"] in MAIN:
            difference = f"{100 * step['value']:+.1f} ({100 * step['low']:+.1f} to {100 * step['high']:+.1f})"
            assert difference in told


@pytest.mark.parametrize("kind", ["rft", "dpo", "sweet"])
def test_the_study_takes_the_best_configuration_of_a_method(kind: str) -> None:
    tried = {name: each for name, each in TUNING["methods"].items() if name.startswith(kind)}
    best = max(tried, key=lambda name: tried[name]["figures"]["success"]["value"])
    chosen, tuned = RESULTS["settings"]["methods"][kind], TUNING["settings"]["methods"][best]
    assert len(tried) == 8
    assert (chosen["policy"], chosen["turn_pairs"]["min_gap_std"] if kind == "sweet" else None) == (
        tuned["policy"],
        tuned["turn_pairs"]["min_gap_std"] if kind == "sweet" else None,
    )


def test_nothing_was_chosen_with_the_tasks_or_the_seeds_of_the_study() -> None:
    tuned = TUNING["settings"]
    assert tuned["evaluation"]["on"] == "validation"
    assert tuned["seed"] not in RESULTS["seeds"]
