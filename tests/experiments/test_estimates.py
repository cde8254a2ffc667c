"""What the stages of a recipe will take."""

from pathlib import Path

import pytest

from recipe_files import write_recipe
from sweetrl.experiments.estimates import cost
from sweetrl.experiments.pipeline import stages
from sweetrl.settings import load_recipe


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


def test_the_plan_is_what_hand_arithmetic_says(recipe: Path) -> None:
    loaded = load_recipe(recipe)
    planned = stages(loaded)
    found = {stage.name: cost(loaded, stage) for stage in planned}
    # 3 tasks x 2 attempts x 3 turns; a turn finds 400 + (3 - 1) / 2 * 150 = 550 tokens before it.
    assert found["rollout"].requests == 2 * 18
    assert found["rollout"].tokens == 18 * (2 * 550 + 150)
    assert found["candidates"].tokens == 18 * (550 + 16 * 100)
    assert found["train-policy"].tokens == 18 * 4 * 2 * 650
    hours = (6 + 2) * 18 * 4 * 2 * 650 * 1e9 / 100e12 / 3600
    assert found["train-policy"].gpu_hours == pytest.approx(hours)
    assert found["score"].tokens == 0


def test_what_cannot_be_told_is_not_guessed(recipe: Path) -> None:
    loaded = load_recipe(recipe, ["tasks.train=not-there.jsonl", "estimate={}"])
    found = [cost(loaded, stage) for stage in stages(loaded)]
    assert found[0].tokens is None
    assert all(each.gpu_hours is None for each in found)
