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
    steps = {(step["first"], step["second"]): step for step in RESULTS["steps"]}
    for pair in [("base", "rft"), ("rft", "dpo"), ("dpo", "sweet"), ("rft", "sweet")]:
        value, low, high = (100 * steps[pair][key] for key in ("value", "low", "high"))
        assert f"{value:+.1f} ({low:+.1f} to {high:+.1f})" in told


def numbers(method: dict[str, Any]) -> dict[str, Any]:
    """The hyperparameters of a method; what is not given is left out."""
    given = {**method["policy"], "min_gap_std": method["turn_pairs"]["min_gap_std"]}
    return {key: value for key, value in given.items() if value not in (None, False, [])}


@pytest.mark.parametrize("kind", ["rft", "dpo", "sweet"])
def test_the_study_takes_the_best_configuration_of_a_method(kind: str) -> None:
    tried = {name: each for name, each in TUNING["methods"].items() if name.startswith(f"{kind}_")}
    best = max(tried, key=lambda name: tried[name]["figures"]["success"]["value"])
    chosen, tuned = (
        numbers(found["settings"]["methods"][name]) for found, name in ((RESULTS, kind), (TUNING, best))
    )
    if kind != "sweet":  # learns from no pairs of turns
        chosen["min_gap_std"] = tuned["min_gap_std"]
    assert (len(tried), chosen) == (8, tuned)


def test_nothing_was_chosen_with_the_tasks_or_the_seeds_of_the_study() -> None:
    tuned = TUNING["settings"]
    assert tuned["evaluation"]["on"] == "validation"
    assert tuned["seed"] not in RESULTS["seeds"]
