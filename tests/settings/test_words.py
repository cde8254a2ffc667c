"""Settings as command lines, old names of options and keys, and command lines that mean the same."""

from pathlib import Path
from typing import Any

import pytest
import typer

from sweetrl.cli.commands import app
from sweetrl.settings import (
    AgentSettings,
    CollaboratorSettings,
    DialogueSettings,
    RolloutSettings,
    load_experiment,
    load_study,
)
from sweetrl.settings.words import (
    RENAMED,
    STAGES,
    current_words,
    option_value,
    option_words,
    same_command,
    settings_fields,
)

MODEL = AgentSettings(model="mini")


def test_only_what_differs_from_the_defaults_is_said() -> None:
    assert list(option_words(DialogueSettings(agent=MODEL))) == ["--agent", "mini"]
    settings = DialogueSettings(
        agent=AgentSettings(model="mini", temperature=0.5),
        collaborator=CollaboratorSettings(model="colleague", temperature=0.0),
        rollout=RolloutSettings(guard=True, attempts=2),
    )
    words = "--agent mini --agent-temperature 0.5 --collaborator colleague --attempts 2 --guard"
    assert list(option_words(settings)) == words.split()


@pytest.mark.parametrize("name", STAGES)
def test_every_command_takes_the_options_of_its_settings(name: str) -> None:
    commands: Any = typer.main.get_command(app)
    taken = {option for parameter in commands.commands[name].params for option in parameter.opts}
    assert {field.option for section in STAGES[name] for field in settings_fields(section)} <= taken


# ---------------------------------------------------------------- old names


def test_an_old_option_is_taken_for_the_new_one_and_said() -> None:
    said: list[str] = []
    words = current_words(["--spreads", "1", "--spreads=2", "--margin", "1"], {"--min-gap-std"}, said.append)
    assert words == ["--min-gap-std", "1", "--min-gap-std=2", "--margin", "1"]
    assert said[0] == "--spreads is called --min-gap-std now; the old name will go"


def test_a_command_that_has_an_option_of_the_old_name_or_none_of_the_new_one_is_left_alone() -> None:
    for known in ({"--blind", "--no-reference"}, {"--other"}):
        assert current_words(["--blind"], known, pytest.fail) == ["--blind"]


def test_no_new_name_is_an_old_one() -> None:
    assert not RENAMED.keys() & set(RENAMED.values())


RECIPE = """
output = "run"
[tasks]
train = "a"
test = "b"
[agent]
model = "mini"
[collaborator]
model = "colleague"
[turn_pairs]
spreads = 0.4
[critics.c]
[methods.m]
{learner} = "sweet"
critic = "c"
turn_pairs = {{ spreads = 0.8 }}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    from sweetrl.settings import StudyMethod

    learner = "algorithm" if "algorithm" in StudyMethod.__struct_fields__ else "learner"
    path = tmp_path / "study.toml"
    path.write_text(RECIPE.format(learner=learner))
    return path


def test_an_old_key_of_a_recipe_is_taken_for_the_new_one_and_said(recipe: Path) -> None:
    said: list[str] = []
    study: Any = load_experiment(recipe, notice=said.append)
    assert (study.turn_pairs.min_gap_std, study.methods["m"].turn_pairs.min_gap_std) == (0.4, 0.8)
    assert said == [
        f"{recipe}: turn_pairs.spreads is called min_gap_std now; the old name will go",
        f"{recipe}: methods.m.turn_pairs.spreads is called min_gap_std now; the old name will go",
    ]


def test_an_old_key_may_be_changed_by_its_old_name(recipe: Path) -> None:
    assert load_study(recipe, ["turn_pairs.spreads=0.1"]).turn_pairs.min_gap_std == 0.1


STUDY_OF_THE_FIRST_EDITION = """
output = "run"
kind = "backend"
[tasks]
train = "a"
test = "b"
[agent]
model = "mini"
[collaborator]
model = "colleague"
[critic]
kind = "regression"
blind = true
nll = 0.2
floor = 0.5
[turn_pairs]
spreads = 0.4
[policy]
imitation = 0.3
nll = 0.1
[critics.c]
[methods.first]
learner = "dpo"
[methods.second]
learner = "sweet"
critic = "c"
start = "first"
policy = { floor = 0.2 }
"""


def test_a_study_of_the_first_edition_is_read_by_all_its_old_keys(tmp_path: Path) -> None:
    path, said = tmp_path / "study.toml", list[str]()
    path.write_text(STUDY_OF_THE_FIRST_EDITION)
    study: Any = load_experiment(path, notice=said.append)
    assert study.domain == "backend"
    critic, second = study.critics["c"], study.methods["second"]
    # What a critic is made of is called `kind` as before.
    assert (critic.kind, critic.no_reference, critic.nll_weight, critic.min_lr_ratio) == (
        "regression",
        True,
        0.2,
        0.5,
    )
    assert (study.methods["first"].algorithm, second.algorithm, second.init_from) == ("dpo", "sweet", "first")
    assert (second.policy.sft_weight, second.policy.nll_weight, second.policy.min_lr_ratio) == (0.3, 0.1, 0.2)
    assert second.turn_pairs.min_gap_std == 0.4
    told = {line.partition(": ")[2].split(" is called")[0].rpartition(".")[2] for line in said}
    assert told == RENAMED.keys() - {"method"}


def test_a_recipe_of_the_first_edition_is_read_by_all_its_old_keys(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("""
output = "run"
method = "dpo"
kind = "frontend"
tasks = { train = "a" }
agent = { model = "mini" }
collaborator = { model = "designer" }
policy = { model = "mini", nll = 0.1, imitation = 0.2, floor = 0.3 }
""")
    recipe: Any = load_experiment(path)
    assert (recipe.algorithm, recipe.domain) == ("dpo", "frontend")
    assert (recipe.policy.nll_weight, recipe.policy.sft_weight, recipe.policy.min_lr_ratio) == (0.1, 0.2, 0.3)


# ---------------------------------------------------------------- the same command


ROLLOUT = "rollout --tasks t --agent mini --attempts 2 -o run"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ROLLOUT, "rollout --attempts 2 --agent mini --tasks t -o run"),
        (ROLLOUT, f"{ROLLOUT} --seed 0 --agent-temperature 1.0 --turn-limit 10"),
        ("turn-pairs --ranked r --spreads 0.4", "turn-pairs --ranked r --min-gap-std 0.4 --rule halves"),
        ("train dpo --floor 0.1", "train dpo --min-lr-ratio 0.1"),
        ("candidates --episodes e --kind frontend", "candidates --episodes e --domain frontend"),
    ],
)
def test_order_defaults_and_old_names_make_no_difference(first: str, second: str) -> None:
    assert same_command(first.split(), second.split())


@pytest.mark.parametrize(
    "other",
    [
        f"{ROLLOUT} --seed 1",
        f"{ROLLOUT} --guard",
        ROLLOUT.replace("--attempts 2", ""),
        ROLLOUT.replace("-o run", "-o other"),
        ROLLOUT.replace("rollout", "evaluate"),
    ],
)
def test_other_settings_do(other: str) -> None:
    assert not same_command(ROLLOUT.split(), other.split())


def test_the_value_of_an_option_is_what_is_given_or_the_default() -> None:
    words = ["values", "--agent", "mini", "--turns", "5"]
    assert [option_value(words, option) for option in ("--turns", "--replays")] == ["5", "16"]
    assert option_value(words[:3], "--turns") is None
