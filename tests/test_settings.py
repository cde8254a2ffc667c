from pathlib import Path

import pytest

from sweetrl.errors import ConfigError
from sweetrl.settings import Recipe, load_recipe

LEAST = """
output = "run"
algorithm = "none"
[tasks]
train = "tasks.jsonl"
[agent]
model = "scripted:curious"
[collaborator]
model = "scripted:unsure"
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(LEAST)
    return path


def complaint(path: Path, *changes: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_a_recipe_does_not_say_has_a_default(recipe: Path) -> None:
    loaded = load_recipe(recipe)
    assert (loaded.candidates.n, loaded.turn_pairs.pairs, loaded.seed) == (16, 4, 0)
    assert (loaded.agent.temperature, loaded.collaborator.temperature) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("seed=7", lambda loaded: loaded.seed == 7),
        ("candidates.n = 4", lambda loaded: loaded.candidates.n == 4),
        ("agent.model=hf:some/model", lambda loaded: loaded.agent.model == "hf:some/model"),
        ('agent.model="hf:x y"', lambda loaded: loaded.agent.model == "hf:x y"),
        ("rollout.guard=true", lambda loaded: loaded.rollout.guard is True),
        ("turn_pairs.margin=1e-3", lambda loaded: loaded.turn_pairs.margin == 0.001),
        ("agent.temperature=1", lambda loaded: loaded.agent.temperature == 1.0),
    ],
)
def test_a_change_on_the_command_line_wins(recipe: Path, change: str, read) -> None:
    assert read(load_recipe(recipe, [change]))


def test_the_last_of_several_changes_wins(recipe: Path) -> None:
    assert load_recipe(recipe, ["seed=1", "seed=2"]).seed == 2


def test_a_change_to_nothing_takes_a_key_out(recipe: Path) -> None:
    assert load_recipe(recipe, ["episodes=old.jsonl", "episodes="]).episodes is None
    assert load_recipe(recipe, ["episodes="]).episodes is None


def test_all_faults_are_reported_at_once(recipe: Path) -> None:
    recipe.write_text(
        LEAST.replace('output = "run"', "")
        + "[candidates]\nn = 0\nconcurency = 3\n[turn_pairs]\nrule = 'half'\npairs = 'four'\n"
    )
    said = complaint(recipe, "seed=x")
    assert "output: missing" in said
    assert "candidates.concurency: unknown, did you mean concurrency?" in said
    assert "candidates.n: Expected `int` >= 1" in said
    assert "turn_pairs.rule: Invalid enum value 'half'" in said
    assert "turn_pairs.pairs: Expected `int`, got `str`" in said
    assert "seed: Expected `int`, got `str`" in said


def test_faults_in_lists_of_sections_are_found(recipe: Path) -> None:
    recipe.write_text(LEAST + "[[servers]]\ncommand='x'\nready='http://x'\nstage=['score']\n")
    said = complaint(recipe)
    assert "servers[0].stage: unknown, did you mean stages?" in said
    assert "servers[0].stages: missing" in said


def test_a_section_that_is_a_value_is_a_fault(recipe: Path) -> None:
    assert "candidates: Expected `object`, got `int`" in complaint(recipe, "candidates=3")
    assert "seed is a value, not a section" in complaint(recipe, "seed=1", "seed.x=2")


@pytest.mark.parametrize("change", ["seed", "=3", "a.=3"])
def test_a_change_without_a_key_or_a_value_is_a_fault(recipe: Path, change: str) -> None:
    assert "write key=value" in complaint(recipe, change)


def test_a_file_that_is_no_toml_is_a_fault(recipe: Path, tmp_path: Path) -> None:
    assert "no such recipe" in complaint(tmp_path / "none.toml")
    recipe.write_bytes(b"\xff\xfe")
    assert "not valid TOML" in complaint(recipe)
    recipe.write_text("a = ")
    assert "not valid TOML" in complaint(recipe)


def test_a_policy_needs_a_model(recipe: Path) -> None:
    assert "add a section [policy]" in complaint(recipe, "algorithm=dpo")
    assert isinstance(load_recipe(recipe, ["algorithm=dpo", "policy.model=m"]), Recipe)


def test_the_first_edition_called_the_domain_a_kind_and_critics_are_of_a_kind_still(recipe: Path) -> None:
    found = load_recipe(recipe, ["kind=frontend", "critic.model=m", "critic.kind=value"])
    assert found.domain == "frontend"
    assert found.critic is not None
    assert found.critic.kind == "value"


def test_the_first_edition_called_the_algorithm_a_method(recipe: Path) -> None:
    recipe.write_text(LEAST.replace("algorithm =", "method ="))
    assert load_recipe(recipe).algorithm == "none"
    assert load_recipe(recipe, ["method=rft", "policy.model=m"]).algorithm == "rft"
    assert load_recipe(recipe, ["algorithm=rft", "policy.model=m"]).algorithm == "rft"
